package listen

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// headerTime is how long a balancer may take for the header.
const headerTime = 5 * time.Second

// maxPending bounds the connections whose header is awaited.
const maxPending = 1024

// newProxyListener returns inner with the addresses that the PROXY protocol tells. The
// header is awaited aside, so that a balancer which takes its time holds up no other
// connection, and the layers above see the caller's address from the beginning.
func newProxyListener(inner net.Listener, c settings.Balancers) net.Listener {
	if !c.Protocol {
		return inner
	}
	l := &proxyListener{
		Listener: inner, config: c, ready: make(chan accepted), closed: make(chan struct{}), pending: make(chan struct{}, maxPending),
	}
	go l.run()
	return l
}

type proxyListener struct {
	net.Listener
	config settings.Balancers
	ready  chan accepted
	// pending has an element for each connection whose header is awaited.
	pending chan struct{}
	closed  chan struct{}
	close   sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

// run accepts until the listener fails or is closed.
func (l *proxyListener) run() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !l.deliver(accepted{err: err}) {
				return
			}
			continue
		}
		peer, perr := netip.ParseAddrPort(c.RemoteAddr().String())
		if perr != nil || !l.config.Trusts(peer.Addr()) {
			l.deliver(accepted{conn: c})
			continue
		}
		select {
		case l.pending <- struct{}{}:
			go l.await(c)
		default:
			_ = c.Close() // nothing was said
		}
	}
}

// await reads the header of a connection and delivers it.
func (l *proxyListener) await(c net.Conn) {
	defer func() { <-l.pending }()
	told := proxyproto.NewConn(c, proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(headerTime))
	if _, err := told.Read(nil); err != nil || told.RemoteAddr() == nil {
		_ = c.Close() // not what a balancer sends
		return
	}
	l.deliver(accepted{conn: conn{told, c}})
}

// deliver hands a connection to Accept, and reports whether the listener is open.
func (l *proxyListener) deliver(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.closed:
		if a.conn != nil {
			_ = a.conn.Close() // it was never used
		}
		return false
	}
}

// Accept implements net.Listener.
func (l *proxyListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *proxyListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn is a connection behind its header.
type conn struct {
	*proxyproto.Conn
	inner net.Conn
}

// NetConn returns the connection that the header came by.
func (c conn) NetConn() net.Conn { return c.inner }

// CloseWrite shuts down the sending half.
func (c conn) CloseWrite() error {
	if half, ok := c.inner.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
