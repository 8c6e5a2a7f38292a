package envoy

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/world"
)

// mute is a gateway's gRPC listener that can keep back the gateway's messages, as a
// process does that is killed when it has done its work and before it has said so.
type mute struct {
	net.Listener

	mu    sync.Mutex // guards what follows
	on    bool
	conns []net.Conn
	// verdicts tells of the kept messages, health checks aside.
	verdicts chan struct{}
}

// health is more than the answer to a health check takes, in bytes.
const health = 100

type mutedConn struct {
	net.Conn
	of *mute
}

// Accept implements net.Listener.
func (m *mute) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = append(m.conns, c)
	return mutedConn{c, m}, nil
}

// Write implements net.Conn.
func (c mutedConn) Write(b []byte) (int, error) {
	c.of.mu.Lock()
	on := c.of.on
	c.of.mu.Unlock()
	if !on {
		return c.Conn.Write(b)
	}
	if len(b) > health {
		select {
		case c.of.verdicts <- struct{}{}:
		default:
		}
	}
	return len(b), nil
}

func (m *mute) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on, m.verdicts = true, make(chan struct{}, 1)
}

// kill ends the connections. New ones are heard again.
func (m *mute) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.Close()
	}
	m.on, m.conns = false, nil
}

// swallowed sends a request until the gateway behind m has judged it and cannot say so,
// kills its connections, and returns the answer.
func (w *way) swallowed(t *testing.T, m *mute, raw string) answer {
	t.Helper()
	m.hold()
	for range 100 {
		conn := world.Dial(t, w.addr)
		_, _ = io.WriteString(conn, raw)
		r, came := bufio.NewReader(conn), make(chan struct{})
		go func() {
			_, _ = r.Peek(1)
			close(came)
		}()
		select {
		case <-m.verdicts:
			var a answer
			calls := w.sent(func() {
				m.kill()
				<-came
				a = world.Read(t, r, raw)
			})
			if strings.HasPrefix(raw, "GET") != (len(calls) == 1) {
				t.Errorf("%d calls reached the platform after the verdict was lost", len(calls))
			}
			return a
		case <-came: // the other gateway was asked
			world.Read(t, r, raw)
		}
	}
	t.Fatal("a gateway was not asked in 100 requests")
	return answer{}
}

// A gateway that is killed before it has said anything is stood in for by another one, if
// the method is safe; what may not be judged or carried out twice is not, though its
// headers are all of it.
func TestAskedAgain(t *testing.T) {
	f := newFleet(t, strings.ReplaceAll(configuration, "limits: {minute: 6000, hour: 30000, day: 50000}", "exempt: true")+groups)
	m := &mute{verdicts: make(chan struct{}, 1)}
	f.wrap = func(l net.Listener) net.Listener {
		m.Listener = l
		return m
	}
	first := f.run(t, nil)
	f.wrap = nil
	second := f.run(t, nil)
	w := &way{platform: f.platform, process: start(t, bootstrapOf(t, mesh, second.door, first.door))}
	w.settle(t)
	for _, tc := range []struct {
		name, request string
		status        int
	}{
		{"read", request("GET", "/v2/pods", "key_platform", ""), 200},
		{"read by v1", request("GET", "/v1/pods", "key_platform", ""), 200},
		{"create", request("POST", "/v2/pods", "key_platform", pod4090), 503},
		{"delete", request("DELETE", "/v2/pods/nope1234", "key_platform", ""), 503},
		{"stop by v1, without a body", request("POST", "/v1/pods/nope1234/stop", "key_platform", ""), 503},
	} {
		t.Run(tc.name, func(t *testing.T) {
			world.Until(t, "both gateways are healthy", func() bool { return w.stat(t, "cluster.tollgate.membership_healthy") == 2 })
			if a := w.swallowed(t, m, tc.request); a.Status != tc.status {
				t.Errorf("%d %s, want %d", a.Status, a.Body, tc.status)
			}
		})
	}
}
