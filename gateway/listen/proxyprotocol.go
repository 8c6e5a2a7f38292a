package listen

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// headerTime is the time limit for receiving a PROXY header.
const headerTime = 5 * time.Second

// maxPending is the maximum number of connections whose PROXY header has not arrived.
const maxPending = 1024

// newProxyListener returns a listener whose connections have the addresses in their PROXY headers. It reads each header in the background
// before Accept returns the connection, so that a slow load balancer does not delay other connections.
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
	// pending holds one element for each connection whose header has not arrived.
	pending chan struct{}
	closed  chan struct{}
	close   sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

// run accepts connections until the listener fails or is closed.
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
			_ = c.Close() // nothing was sent
		}
	}
}

// await reads the header of a connection and delivers the connection.
func (l *proxyListener) await(c net.Conn) {
	defer func() { <-l.pending }()
	proxied := proxyproto.NewConn(c, proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(headerTime))
	if _, err := proxied.Read(nil); err != nil || proxied.RemoteAddr() == nil {
		_ = c.Close() // not a valid PROXY header
		return
	}
	l.deliver(accepted{conn: conn{proxied, c}})
}

// deliver passes a connection to Accept. It returns false if the listener is closed.
func (l *proxyListener) deliver(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.closed:
		if a.conn != nil {
			_ = a.conn.Close() // not used yet
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

// conn is a connection whose PROXY header was read.
type conn struct {
	*proxyproto.Conn
	inner net.Conn
}

// NetConn returns the underlying connection.
func (c conn) NetConn() net.Conn { return c.inner }

// CloseWrite shuts down the writing side of the connection.
func (c conn) CloseWrite() error {
	if half, ok := c.inner.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
