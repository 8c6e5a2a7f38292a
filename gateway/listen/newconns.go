package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// newConns are the connections of a server that have sent no request yet. A
// server of net/http drops the first request of a connection that it accepted
// before Shutdown and reads after; a wait for newConns in between, with the
// listener closed, loses none. The zero value has none.
type newConns struct {
	mu    sync.Mutex // guards what follows
	open  map[net.Conn]struct{}
	empty chan struct{} // closed when open becomes empty; nil when there is no wait
}

// note is the server's ConnState.
func (n *newConns) note(c net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state == http.StateNew {
		if n.open == nil {
			n.open = make(map[net.Conn]struct{})
		}
		n.open[c] = struct{}{}
		return
	}
	delete(n.open, c)
	if len(n.open) == 0 && n.empty != nil {
		close(n.empty)
		n.empty = nil
	}
}

// wait waits until there are none, or ctx ends.
func (n *newConns) wait(ctx context.Context) {
	n.mu.Lock()
	if len(n.open) == 0 {
		n.mu.Unlock()
		return
	}
	if n.empty == nil {
		n.empty = make(chan struct{})
	}
	empty := n.empty
	n.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
