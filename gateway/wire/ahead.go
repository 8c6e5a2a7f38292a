package wire

import (
	"net"
	"os"
	"sync"
	"time"
)

// parkDelay is how long the server's read behind a request, which finds out that the
// client has left, waits before it asks the network: most handlers have ended by then.
const parkDelay = 30 * time.Millisecond

// halfCloseTimeout is how long a GET or HEAD whose client has closed its sending half may take. Closing both halves looks the same, so a client that
// has left is noticed after this time, or when a write to it fails.
const halfCloseTimeout = 2 * time.Second

// deadlineseadlines has the read deadlines of a connection. A deadline reaches the connection with
// the next read from the network: a server sets several for each request, and reads
// once.
type readDeadlines struct {
	inner net.Conn

	mu sync.Mutex // guards what follows
	// wanted is the deadline that was set last, applied the one that inner has.
	wanted, applied time.Time
	// direct says that inner is read, so that deadlines apply at once.
	direct bool
	// parked says that a read waits to become direct; woken tells it that it need not.
	parked bool
	woken  sync.Cond
	timer  *time.Timer // ends the wait; nil before the first
}

// read reads from the network.
func (a *readDeadlines) read(p []byte) (int, error) {
	defer a.end()
	if err := a.begin(); err != nil {
		return 0, err
	}
	return a.inner.Read(p)
}

// begin applies the deadline to the reads that follow, and those set from then on, until
// end. A read whose deadline has passed does not reach the network.
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

// park waits until d is over, the deadline has passed or the connection is closed.
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

// wake ends the parking of a read, if one is parked.
func (a *readDeadlines) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.parked {
		a.parked = false
		a.woken.Broadcast()
	}
}

// set sets the deadline of reads.
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

// apply gives the connection the wanted deadline.
func (a *readDeadlines) apply() error {
	if a.applied.Equal(a.wanted) {
		return nil
	}
	a.applied = a.wanted
	return a.inner.SetReadDeadline(a.wanted)
}
