package wire

import (
	"net"
	"os"
	"sync"
	"time"
)

// parkDelay is the delay of the server's background read during a request, which detects a disconnect. Most handlers finish before it.
const parkDelay = 30 * time.Millisecond

// halfCloseTimeout is the time for a GET or HEAD whose client has half-closed the connection. A full close looks the same, so a disconnect
// is noticed only after this time or when a write fails.
const halfCloseTimeout = 2 * time.Second

// readDeadlines manages the read deadlines of a connection. It applies a deadline at the next read from the network, because a server sets
// several deadlines for each request but reads only once.
type readDeadlines struct {
	inner net.Conn

	mu sync.Mutex // guards the fields below
	// wanted is the deadline set last, applied the deadline set on inner.
	wanted, applied time.Time
	// direct reports that a read from inner is in progress, so that deadlines apply immediately.
	direct bool
	// parked reports that a read is delayed. woken ends the delay.
	parked bool
	woken  sync.Cond
	timer  *time.Timer // ends the delay; nil before the first
}

// read reads from the network.
func (a *readDeadlines) read(p []byte) (int, error) {
	defer a.end()
	if err := a.begin(); err != nil {
		return 0, err
	}
	return a.inner.Read(p)
}

// begin applies the deadline, and any deadline set until end, to the following reads. It returns an error if the deadline has passed.
func (a *readDeadlines) begin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.direct = true
	if a.passed() {
		return os.ErrDeadlineExceeded
	}
	return a.apply()
}

func (a *readDeadlines) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.direct = false
}

// park waits until d has passed, the deadline is reached or the connection is closed.
func (a *readDeadlines) park(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parked, a.woken.L = true, &a.mu
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.wake)
	} else {
		a.timer.Reset(d)
	}
	for a.parked && !a.passed() {
		a.woken.Wait()
	}
	a.timer.Stop()
	a.parked = false
}

// wake ends the delay of a parked read.
func (a *readDeadlines) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.parked {
		a.parked = false
		a.woken.Broadcast()
	}
}

// set sets the read deadline.
func (a *readDeadlines) set(t time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = t
	if a.parked {
		a.woken.Broadcast()
	}
	if a.direct {
		return a.apply()
	}
	return nil
}

func (a *readDeadlines) passed() bool { return !a.wanted.IsZero() && !a.wanted.After(time.Now()) }

// apply sets the wanted deadline on inner.
func (a *readDeadlines) apply() error {
	if a.applied.Equal(a.wanted) {
		return nil
	}
	a.applied = a.wanted
	return a.inner.SetReadDeadline(a.wanted)
}
