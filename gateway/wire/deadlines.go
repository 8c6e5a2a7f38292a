package wire

import (
	"net"
	"os"
	"sync"
	"time"
)

// parkDelay is the delay of the background read with which the server detects a disconnect during a request. Most handlers finish before
// the delay ends.
const parkDelay = 30 * time.Millisecond

// halfCloseTimeout is the time that a GET or HEAD request may take after its client has half-closed the connection. Because a full close
// looks the same, the server notices a disconnect during such a request only after this time or when a write fails.
const halfCloseTimeout = 2 * time.Second

// readDeadlines manages the read deadlines of a connection. It applies a deadline only when data is next read from the network, because a
// server sets several deadlines for each request but reads only once.
type readDeadlines struct {
	inner net.Conn

	mu sync.Mutex // guards the fields below
	// wanted is the deadline that was set last. applied is the deadline that was set on inner.
	wanted, applied time.Time
	// direct is true while a read from inner is in progress. Deadlines are then applied immediately.
	direct bool
	// parked is true while a read is delayed. woken ends the delay.
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

// begin applies the current deadline to inner. Until end is called, new deadlines are applied immediately. begin returns an error if the
// deadline has passed.
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

// park waits for the duration d, but at most until the deadline or until the connection is closed.
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

// apply sets the deadline wanted on inner.
func (a *readDeadlines) apply() error {
	if a.applied.Equal(a.wanted) {
		return nil
	}
	a.applied = a.wanted
	return a.inner.SetReadDeadline(a.wanted)
}
