package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// newConns tracks the connections of a server that have not sent a request yet. The net/http server drops the first request on a connection
// that was accepted before Shutdown but read afterwards. Closing the listener and calling wait before Shutdown avoids that. The zero value
// is ready to use.
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

// wait blocks until no such connections are left or ctx ends.
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
