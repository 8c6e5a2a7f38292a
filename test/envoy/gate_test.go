package envoy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate is a TCP relay between Envoy and the ext_proc server, which can hold
// back what the server says and cut the connections.
type gate struct {
	addr, target string
	// withheld gets a value when bytes of the server were held back.
	withheld chan struct{}

	mu      sync.Mutex // guards what follows
	holding bool
	conns   map[net.Conn]bool
	work    sync.WaitGroup
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: l.Addr().String(), target: target, withheld: make(chan struct{}, 1), conns: make(map[net.Conn]bool)}
	g.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			g.work.Go(func() { g.relay(near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.cut()
		g.work.Wait()
	})
	return g
}

// hold keeps back everything the server says from now on.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = true
}

// release lets the server speak again, on new connections; what was held back is lost.
func (g *gate) release() {
	g.cut()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = false
}

// cut breaks all connections off.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
	}
}

// keep registers a connection and closes it at the end of f.
func (g *gate) keep(c net.Conn, f func()) {
	g.mu.Lock()
	g.conns[c] = true
	g.mu.Unlock()
	f()
	_ = c.Close()
	g.mu.Lock()
	delete(g.conns, c)
	g.mu.Unlock()
}

func (g *gate) relay(near net.Conn) {
	far, err := net.Dial("tcp", g.target)
	if err != nil {
		_ = near.Close()
		return
	}
	g.work.Go(func() {
		g.keep(near, func() { _, _ = io.Copy(far, near) })
		_ = far.Close()
	})
	g.keep(far, func() { g.back(near, far) })
	_ = near.Close()
}

// back carries what the server says to Envoy.
func (g *gate) back(near, far net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		g.mu.Lock()
		holding := g.holding
		g.mu.Unlock()
		if holding {
			select {
			case g.withheld <- struct{}{}:
			default:
			}
			continue
		}
		if _, err := near.Write(buf[:n]); err != nil {
			return
		}
	}
}
