package listen_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/listen"
)

// script is a listener whose connections are given, by the addresses they come
// from; after them it is closed.
type script struct {
	peers []string
	made  []*fake
}

func (s *script) Accept() (net.Conn, error) {
	if len(s.peers) == 0 {
		return nil, net.ErrClosed
	}
	c := &fake{peer: peer(s.peers[0])}
	s.peers = s.peers[1:]
	s.made = append(s.made, c)
	return c, nil
}

func (*script) Close() error   { return nil }
func (*script) Addr() net.Addr { return peer("127.0.0.1:80") }

type peer string

func (peer) Network() string  { return "tcp" }
func (p peer) String() string { return string(p) }

// fake is a connection that knows whether it was closed, and how often.
type fake struct {
	net.Conn
	peer   peer
	closed int
}

func (c *fake) RemoteAddr() net.Addr { return c.peer }
func (c *fake) Close() error         { c.closed++; return nil }

func (*fake) SetReadDeadline(time.Time) error { return nil }

// accepted lists the peers whose connections were handed out.
func accepted(t *testing.T, l net.Listener) (conns []net.Conn, peers []string) {
	t.Helper()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return conns, peers
		}
		if err != nil {
			t.Fatal(err)
		}
		conns, peers = append(conns, c), append(peers, c.RemoteAddr().String())
	}
}

func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg         listen.Bounds
		peers, want []string
	}{
		"none":        {listen.Bounds{}, []string{"1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3"}, []string{"1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3"}},
		"total":       {listen.Bounds{Total: 2}, []string{"1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"}, []string{"1.1.1.1:1", "2.2.2.2:1"}},
		"per address": {listen.Bounds{PerAddress: 1}, []string{"1.1.1.1:1", "1.1.1.1:2", "2.2.2.2:1"}, []string{"1.1.1.1:1", "2.2.2.2:1"}},
		"one host, two spellings": {
			listen.Bounds{PerAddress: 1}, []string{"1.1.1.1:1", "[::ffff:1.1.1.1]:2"}, []string{"1.1.1.1:1"},
		},
		"one host's network": {
			listen.Bounds{PerAddress: 1},
			[]string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:1::1]:1", "[fe80::1%eth0]:1", "[fe80::1%eth1]:1"},
			[]string{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "[fe80::1%eth0]:1"},
		},
		"exempt": {
			listen.Bounds{PerAddress: 1, Total: 3, Exempt: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			[]string{"10.0.0.1:1", "10.0.0.1:2", "1.1.1.1:1", "10.0.0.1:3"},
			[]string{"10.0.0.1:1", "10.0.0.1:2", "1.1.1.1:1"},
		},
		"local sockets": {listen.Bounds{PerAddress: 1}, []string{"@", "@", ""}, []string{"@", "@", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var refused []string
			tc.cfg.Refused = func(client net.Addr) { refused = append(refused, client.String()) }
			s := &script{peers: tc.peers}
			_, got := accepted(t, listen.NewBounded(s, tc.cfg))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
			if len(refused) != len(tc.peers)-len(tc.want) {
				t.Errorf("told of %d refusals (%v), want %d", len(refused), refused, len(tc.peers)-len(tc.want))
			}
			closed := 0
			for _, c := range s.made {
				closed += c.closed
			}
			if closed != len(refused) {
				t.Errorf("%d connections closed, want the %d refused ones", closed, len(refused))
			}
		})
	}
}

func TestPlacesAreGivenBackOnce(t *testing.T) {
	s := &script{peers: []string{"1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3"}}
	l := listen.NewBounded(s, listen.Bounds{PerAddress: 2, Total: 2})
	conns, _ := accepted(t, l)
	if len(conns) != 2 {
		t.Fatalf("%d connections, want 2", len(conns))
	}
	for range 3 { // net/http closes some connections more than once
		if err := conns[0].Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.peers = []string{"1.1.1.1:4", "1.1.1.1:5"}
	if _, got := accepted(t, l); !cmp.Equal(got, []string{"1.1.1.1:4"}) {
		t.Errorf("accepted %v, want the one there is a place for", got)
	}
}

// Half-closing a real connection reaches the peer through the bound.
func TestCloseWrite(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listen.NewBounded(inner, listen.Bounds{PerAddress: 1})
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("the connection cannot be half-closed")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("Read = %v, want io.EOF", err)
	}
	_, port, _ := net.SplitHostPort(client.LocalAddr().String())
	if got := c.RemoteAddr().String(); got != "127.0.0.1:"+port {
		t.Errorf("RemoteAddr = %s", got)
	}
}
