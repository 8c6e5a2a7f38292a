package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// newConns tracks the connections of a server on which no request has arrived. If a connection is accepted before Shutdown but its first
// request is read afterwards, the net/http server drops the request. To avoid this, close the listener and call wait before Shutdown. The
// zero value is ready to use.
type newConns struct {
	mu    sync.Mutex // guards the fields below
	open  map[net.Conn]struct{}
	empty chan struct{} // closed when open becomes empty; nil while nobody waits
}

// note implements the ConnState callback of the server.
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

// wait blocks until a request has arrived on each connection, or until ctx ends.
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
