package redistest

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A Fault is what a [Relay] does to the data of its connections, open and new ones, in one direction.
type Fault struct {
	// Requests selects the data that clients send; otherwise the fault is on the replies.
	Requests bool
	// Share is the fraction of the connections that are affected; 0 means all.
	Share float64
	// Latency delays the data, by up to Jitter more or less.
	Latency, Jitter time.Duration
	// Bytes is how much of the data of a connection passes before the relay closes it; 0 means no bound.
	Bytes int
	// Drop discards data. A connection that has lost data is closed after End, or when the fault is removed; 0 means only then.
	Drop bool
	End  time.Duration
	// Reset makes the relay close connections with a TCP reset.
	Reset bool
}

// fault is a Fault in force.
type fault struct {
	Fault

	removed chan struct{}
}

// Fail puts a fault on the connections, in place of another one, and returns a function that removes it.
func (r *Relay) Fail(f Fault) (remove func()) {
	r.fail(&fault{Fault: f, removed: make(chan struct{})})
	return func() { r.fail(nil) }
}

func (r *Relay) fail(f *fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		close(r.fault.removed)
	}
	r.fault = f
}

func (r *Relay) failing() *fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// forward copies data in both directions until one of them ends, and closes both connections.
func (r *Relay) forward(client, server net.Conn) {
	luck := rand.Float64()
	var both sync.WaitGroup
	for _, d := range []*direction{{relay: r, to: server, from: client, requests: true, luck: luck}, {relay: r, to: client, from: server, luck: luck}} {
		both.Go(func() {
			d.copy()
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
}

// direction is one direction of a connection.
type direction struct {
	relay    *Relay
	to, from net.Conn
	requests bool
	luck     float64 // the connection is affected by faults with a greater share
	fault    *fault
	passed   int // bytes that fault has let pass
}

func (d *direction) copy() {
	b := make([]byte, 32<<10)
	for {
		n, err := d.from.Read(b)
		if err != nil {
			return
		}
		passes, ends := d.pass(n)
		if _, err := d.to.Write(b[:passes]); err != nil || ends {
			return
		}
	}
}

// pass returns how many of n bytes pass, after their delay, and whether the connection ends then.
func (d *direction) pass(n int) (passes int, ends bool) {
	f := d.relay.failing()
	if f != d.fault {
		d.fault, d.passed = f, 0
	}
	if f == nil || f.Requests != d.requests || f.Share > 0 && d.luck >= f.Share {
		return n, false
	}
	switch {
	case f.Drop:
		f.wait(f.End)
		n, ends = 0, true
	case f.Bytes > 0 && d.passed+n >= f.Bytes:
		n, ends = f.Bytes-d.passed, true
	case f.Latency > 0:
		f.wait(f.Latency + time.Duration((2*rand.Float64()-1)*float64(f.Jitter)))
	}
	if ends && f.Reset {
		reset(d.to)
		reset(d.from)
	}
	d.passed += n
	return n, ends
}

// wait waits until d has passed, if it is not 0, or the fault is removed.
func (f *fault) wait(d time.Duration) {
	var passed <-chan time.Time
	if d > 0 {
		passed = time.After(d)
	}
	select {
	case <-passed:
	case <-f.removed:
	}
}

// reset has Close send a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
