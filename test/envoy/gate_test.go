package envoy

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/world"
)

// gate is a relay between Envoy and the ext_proc server. It reports the server's messages,
// can hold them back, and can cut the connections. It knows just enough of HTTP/2 to tell
// a gRPC message (a DATA frame) from housekeeping.
type gate struct {
	addr, target string
	work         sync.WaitGroup

	mu      sync.Mutex // guards what follows
	holding bool
	// said counts the messages of the server, those held back included.
	said    int
	changed chan struct{} // closed with the next message
	conns   map[net.Conn]bool
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l := world.Listen(t)
	g := &gate{addr: l.Addr().String(), target: target, changed: make(chan struct{}), conns: make(map[net.Conn]bool)}
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

// hold keeps back the server's messages from now on, or no longer does. Held messages are
// lost.
func (g *gate) hold(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = on
}

// cut breaks all connections off.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
	}
}

// after runs f and waits until the server has said one thing more.
func (g *gate) after(t *testing.T, f func()) {
	t.Helper()
	g.mu.Lock()
	before := g.said
	g.mu.Unlock()
	f()
	timeout := time.After(time.Minute)
	for {
		g.mu.Lock()
		said, changed := g.said, g.changed
		g.mu.Unlock()
		if said > before {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatal("the ext_proc server says nothing")
		}
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

// back carries the frames of the server to Envoy. A frame begins with its length in three
// bytes and its type in one, nine bytes in all (RFC 9113, section 4.1). The end of a
// stream, which is in HEADERS, is held back as the server's messages before it: Envoy
// never gets the one without the other.
func (g *gate) back(near, far net.Conn) {
	const head, data, headers = 9, 0, 1
	frame := make([]byte, head, 32<<10)
	for {
		if _, err := io.ReadFull(far, frame[:head]); err != nil {
			return
		}
		frame = append(frame[:head], make([]byte, binary.BigEndian.Uint32(frame[:4])>>8)...)
		if _, err := io.ReadFull(far, frame[head:]); err != nil {
			return
		}
		message := frame[3] == data
		if !message && frame[3] != headers || !g.held() {
			if _, err := near.Write(frame); err != nil {
				return
			}
		}
		if message {
			g.tell()
		}
	}
}

func (g *gate) held() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holding
}

func (g *gate) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.said++
	close(g.changed)
	g.changed = make(chan struct{})
}
