package hostile

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer knows what tests say of names, and no others.
type nameServer struct {
	mu        sync.Mutex // guards addresses
	addresses map[string][4]byte
}

// nameservice is asked for every name in this process.
var nameservice = &nameServer{addresses: make(map[string][4]byte)} //nolint:gochecknoglobals // the process has one resolver

// point has a name lead to an address.
func (n *nameServer) point(name string, address [4]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[name+"."] = address
}

// resolver asks the server on a connection that exists in memory alone.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer func() { _ = there.Close() }()
			_ = n.serve(there) // the resolver has seen enough
		}()
		return here, nil
	}}
}

// serve answers one query, by RFC 1035, section 4.2.2.
func (n *nameServer) serve(conn io.ReadWriter) error {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return err
	}
	question := m.Questions[0]
	n.mu.Lock()
	address, known := n.addresses[question.Name.String()]
	n.mu.Unlock()
	answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	switch {
	case !known:
		answer.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 3600},
			Body:   &dnsmessage.AResource{A: address},
		}}
	}
	text, err := answer.Pack()
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...))
	return err
}

// The platform moves to another address: once the old one is gone calls go to the new one,
// without a restart, for every lifetime in the name's answer.
func TestThePlatformMoves(t *testing.T) {
	t.Parallel()
	const name = "moving.platform.test"
	nameservice.point(name, [4]byte{127, 0, 0, 1})
	s := open(t, calling(name))
	get, post := request("GET", "/v2/pods", k1, ""), request("POST", "/v2/pods", k1, allowed)
	if got := s.ask(t, get); got.Status != 200 || len(s.recorder.take()) != 1 {
		t.Fatalf("at the first address: status %d %s, want 200 from it", got.Status, got.Body)
	}
	var calls atomic.Int64
	moved := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Id") != "" { // of a caller
			calls.Add(1)
		}
		obliging(w, r)
	}))
	var err error
	if moved.Listener, err = net.Listen("tcp", "127.0.0.2:"+port(s.recorder.addr)); err != nil {
		t.Fatal(err)
	}
	moved.Start()
	t.Cleanup(moved.Close)
	nameservice.point(name, [4]byte{127, 0, 0, 2})
	_ = s.recorder.server.Close()
	if got := s.ask(t, get); got.Status != 200 || calls.Load() != 1 {
		t.Errorf("a read when it has moved: status %d %s, %d calls at the new address, want 200 and 1", got.Status, got.Body, calls.Load())
	}
	if got := s.ask(t, post); got.Status != 201 || calls.Load() != 2 {
		t.Errorf("a create when it has moved: status %d %s, %d calls at the new address, want 201 and 2", got.Status, got.Body, calls.Load())
	}
	if calls := s.recorder.take(); len(calls) > 0 {
		t.Errorf("the old address got %v", calls)
	}
	// A name that leads nowhere is an outage of the platform, and no more.
	nameservice.point(name, [4]byte{127, 0, 0, 3})
	moved.CloseClientConnections()
	if got := s.ask(t, post); got.Status != 502 || !strings.Contains(got.Body, "platform") || calls.Load() != 2 {
		t.Errorf("a create when the name leads nowhere: status %d %s, want 502", got.Status, got.Body)
	}
	nameservice.point(name, [4]byte{127, 0, 0, 2})
	if got := s.ask(t, post); got.Status != 201 || calls.Load() != 3 {
		t.Errorf("a create when it leads back: status %d %s, want 201", got.Status, got.Body)
	}
}
