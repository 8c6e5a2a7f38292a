package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Relay forwards connections to a server that a test can replace.
type Relay struct {
	l net.Listener

	mu     sync.Mutex // guards the fields below
	server string
	open   map[net.Conn]bool
	closed bool
}

// NewRelay returns a relay to the server at an address. It ends with the test.
func NewRelay(t testing.TB, server string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{l: l, server: server, open: make(map[net.Conn]bool)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.Switch("")
		all.Wait()
	})
	return r
}

// Addr returns host:port.
func (r *Relay) Addr() string { return r.l.Addr().String() }

// Switch closes all connections, and connects new ones to another server. With the server "", a new
// connection is closed once the client has sent something: in the middle of its handshake.
func (r *Relay) Switch(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = server
	for c := range r.open {
		_ = c.Close()
	}
}

// serve forwards one connection until either side ends it.
func (r *Relay) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	if !r.note(c) {
		return
	}
	defer r.forget(c)
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	if server == "" {
		_, _ = c.Read(make([]byte, 1))
		return
	}
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if !r.note(to) {
		return
	}
	defer r.forget(to)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, to)
		_ = c.Close()
	})
	_, _ = io.Copy(to, c)
	_ = to.Close()
	back.Wait()
}

// note has Switch close a connection, and reports false if the relay has ended.
func (r *Relay) note(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.open[c] = true
	}
	return !r.closed
}

func (r *Relay) forget(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}
