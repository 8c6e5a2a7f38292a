package redistest

import (
	"net"
	"sync"
	"testing"
)

// Relay forwards connections to a server that a test can replace. A test can also stop and start the relay, and put a [Fault] on its
// connections.
type Relay struct {
	t    testing.TB
	addr string
	all  sync.WaitGroup

	mu     sync.Mutex   // guards the fields below
	l      net.Listener // nil if the relay is stopped
	server string
	open   map[net.Conn]bool
	fault  *fault // nil without a fault
}

// NewRelay returns a relay to the server at an address. It ends with the test.
func NewRelay(t testing.TB, server string) *Relay {
	t.Helper()
	return NewRelayAt(t, "127.0.0.1:0", server)
}

// NewRelayAt is NewRelay for a relay that listens on a given address.
func NewRelayAt(t testing.TB, listen, server string) *Relay {
	t.Helper()
	r := &Relay{t: t, addr: listen, server: server, open: make(map[net.Conn]bool)}
	r.Start()
	t.Cleanup(func() {
		r.Stop()
		r.fail(nil)
		r.all.Wait()
	})
	return r
}

// Addr returns host:port.
func (r *Relay) Addr() string { return r.addr }

// Server returns the address that new connections are forwarded to.
func (r *Relay) Server() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server
}

// Start accepts connections again after Stop, at the same address.
func (r *Relay) Start() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.l != nil {
		return
	}
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.l, r.addr = l, l.Addr().String()
	r.all.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			r.all.Go(func() { r.serve(c) })
		}
	})
}

// Stop closes all connections. New ones are refused.
func (r *Relay) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.l == nil {
		return
	}
	_ = r.l.Close()
	r.l = nil
	r.closeAll()
}

// Switch closes all connections, and connects new ones to another server. With the server "", a new
// connection is closed once the client has sent something: in the middle of its handshake.
func (r *Relay) Switch(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = server
	r.closeAll()
}

// closeAll closes all connections; r.mu is held.
func (r *Relay) closeAll() {
	for c := range r.open {
		_ = c.Close()
	}
}

// serve forwards one connection until either side ends it.
func (r *Relay) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	if !r.note(client) {
		return
	}
	defer r.forget(client)
	address := r.Server()
	if address == "" {
		_, _ = client.Read(make([]byte, 1))
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !r.note(server) {
		return
	}
	defer r.forget(server)
	r.forward(client, server)
}

// note has Stop and Switch close a connection, and reports false if the relay is stopped.
func (r *Relay) note(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.l != nil {
		r.open[c] = true
	}
	return r.l != nil
}

func (r *Relay) forget(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}
