package envoy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/world"
)

// callers is how many connections a load keeps busy.
const callers = 8

// load calls the Envoys of a proof that are in rotation, each caller one call after the
// other and none twice, whatever becomes of it.
type load struct {
	p     *proof
	end   context.CancelFunc
	group sync.WaitGroup
	made  atomic.Int64
	// rotation are the addresses that new connections go to, as a balancer has them. A
	// caller holds connecting from its choice until it is connected.
	connecting sync.RWMutex
	rotation   []string // guarded by connecting

	mu   sync.Mutex // guards lost
	lost []loss
}

// loss is a call that had another outcome than the one it must have.
type loss struct {
	addr, org, method string // addr is that of the Envoy
	status            int    // 0 without an answer
	err               error
}

func (l loss) String() string {
	return fmt.Sprintf("%s by %s, %s: %d %v", l.method, l.addr, l.org, l.status, l.err)
}

// newLoad starts calls that last until the test ends.
func newLoad(p *proof) *load {
	ctx, cancel := context.WithCancel(p.t.Context())
	l := &load{p: p, end: cancel}
	l.rotate(p.envoys...)
	for i := range callers {
		l.group.Go(func() { l.call(ctx, i) })
	}
	p.t.Cleanup(l.finish)
	return l
}

// rotate has new connections go to some Envoys. Callers that had chosen another one are
// connected to it by the end.
func (l *load) rotate(envoys ...*front) {
	var addrs []string
	for _, e := range envoys {
		addrs = append(addrs, e.addr)
	}
	l.connecting.Lock()
	defer l.connecting.Unlock()
	l.rotation = addrs
}

// call is one caller: mostly reads, some creates, and creates that policies refuse.
func (l *load) call(ctx context.Context, number int) {
	c := caller{load: l}
	defer c.hangUp()
	for n := number; ctx.Err() == nil; n++ {
		org := l.p.orgs[n%len(l.p.orgs)]
		method, path, body, want := http.MethodGet, "/v2/serverless", "", http.StatusOK
		switch n % 10 {
		case 3:
			// each is another: one whose gateway was killed is under way still, for its equals
			body = strings.Replace(pod4090, `"a"`, fmt.Sprintf(`"%d-%d"`, number, n), 1)
			method, path, want = http.MethodPost, "/v2/pods", http.StatusCreated
		case 7:
			method, path, body, want = http.MethodPost, "/v2/pods", podH100, http.StatusForbidden
		}
		status, err := c.ask(ctx, n, request(method, path, "any_of_"+org, body))
		if ctx.Err() != nil {
			return
		}
		if status != want {
			l.mu.Lock()
			l.lost = append(l.lost, loss{c.addr, org, method, status, err})
			l.mu.Unlock()
		}
		l.made.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond): // a bounded rate
		}
	}
}

// caller has a connection while it is of use.
type caller struct {
	load *load
	addr string
	conn net.Conn
	r    *bufio.Reader
}

// ask makes a call on the connection there is, if that is in rotation, or a new one.
func (c *caller) ask(ctx context.Context, n int, raw string) (status int, err error) {
	if err := c.connect(ctx, n); err != nil {
		return 0, err
	}
	conn := c.conn // which is hung up by and by
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	status, text, err := exchange(c.conn, c.r, raw)
	if err != nil || strings.HasSuffix(text, closing) {
		c.hangUp()
	}
	return status, err
}

func (c *caller) connect(ctx context.Context, n int) (err error) {
	c.load.connecting.RLock()
	defer c.load.connecting.RUnlock()
	rotation := c.load.rotation
	if !slices.Contains(rotation, c.addr) {
		c.hangUp()
	}
	if c.conn != nil {
		return nil
	}
	c.addr = rotation[n%len(rotation)]
	d := tls.Dialer{Config: c.load.p.ca.client()}
	if c.conn, err = d.DialContext(ctx, "tcp", c.addr); err != nil {
		c.conn = nil
		return err
	}
	c.r = newReader(c.conn)
	return nil
}

func (c *caller) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReader(conn) }

// closing ends the text of a response after which the connection ends.
const closing = "\nConnection: close"

// exchange sends a request and reads the response.
func exchange(conn net.Conn, r *bufio.Reader, raw string) (status int, text string, err error) {
	if _, err := io.WriteString(conn, raw); err != nil {
		return 0, "", err
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	text = string(body)
	if res.Close {
		text += closing
	}
	return res.StatusCode, text, err
}

// more waits until n more calls have been made.
func (l *load) more(n int64) {
	l.p.t.Helper()
	enough := l.made.Load() + n
	world.Until(l.p.t, fmt.Sprintf("%d more calls are made", n), func() bool { return l.made.Load() >= enough })
}

// take returns the calls lost since it was called last, and forgets them.
func (l *load) take() []loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.lost
	l.lost = nil
	return lost
}

// finish ends the calls.
func (l *load) finish() {
	l.end()
	l.group.Wait()
}

// nothing checks that no call was lost.
func (l *load) nothing(t *testing.T) {
	t.Helper()
	if lost := l.take(); len(lost) > 0 {
		t.Errorf("%d calls were lost, want none; the first: %v", len(lost), lost[:min(5, len(lost))])
	}
}

// held checks that no call was lost but those that an ended process or connection had
// received, one of each caller at most: in line, creates; by ext_proc, reads too, whose
// verdict had been given.
func (l *load) held(t *testing.T) {
	t.Helper()
	lost := l.take()
	for _, c := range lost {
		if c.method != http.MethodPost && c.addr != l.p.envoys[1].addr || c.status != http.StatusServiceUnavailable {
			t.Errorf("lost: %v, want only creates, or reads by ext_proc, answered 503", c)
		}
	}
	if len(lost) > callers {
		t.Errorf("%d calls were lost, want at most one of each of %d callers: %v", len(lost), callers, lost)
	}
	t.Logf("lost: %v", lost)
}
