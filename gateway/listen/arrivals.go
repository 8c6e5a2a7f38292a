package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// arrivals are the connections of a server that have sent no request yet. A
// server of net/http drops the first request of a connection that it accepted
// before Shutdown and reads after; whoever waits for arrivals in between, with
// the listener closed, loses none. The zero value has none.
type arrivals struct {
	mu    sync.Mutex // guards what follows
	open  map[net.Conn]struct{}
	empty chan struct{} // closed when open becomes empty; nil when there is no wait
}

// note is the server's ConnState.
func (a *arrivals) note(c net.Conn, state http.ConnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state == http.StateNew {
		if a.open == nil {
			a.open = make(map[net.Conn]struct{})
		}
		a.open[c] = struct{}{}
		return
	}
	delete(a.open, c)
	if len(a.open) == 0 && a.empty != nil {
		close(a.empty)
		a.empty = nil
	}
}

// wait waits until there are none, or ctx ends.
func (a *arrivals) wait(ctx context.Context) {
	a.mu.Lock()
	if len(a.open) == 0 {
		a.mu.Unlock()
		return
	}
	if a.empty == nil {
		a.empty = make(chan struct{})
	}
	empty := a.empty
	a.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
