package listen

import (
	"cmp"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds limits open connections. The zero value sets no limits.
type Bounds struct {
	// Total limits all connections together, and PerAddress the connections from one address. 0 means no limit.
	Total, PerAddress int
	// Exempt lists addresses to which PerAddress does not apply, such as load balancers that forward all callers. Total applies to them.
	Exempt []netip.Prefix
	// Spare is the number of connections above a limit that are accepted nevertheless, at most an eighth of them from one address. Such a
	// connection must send a request head within one second, and the server calls RefuseOverBound to decide whether to refuse the
	// request. 0 means that no such connections are accepted.
	Spare int
	// Refused is called for each refused connection, concurrently from several goroutines. It may be nil.
	Refused func(client net.Addr)
	// Full is sent to a connection refused because of Total, and Crowded to one refused because of PerAddress, before the connection is
	// closed. If nil, nothing is sent.
	Full, Crowded []byte
}

// NewBounded returns a listener that accepts connections from inner within the limits of cfg, which must be valid.
func NewBounded(inner net.Listener, cfg Bounds) net.Listener {
	return &boundedListener{Listener: inner, cfg: cfg, answering: make(chan struct{}, maxAnswering)}
}

const (
	// maxAnswering limits the number of refused connections that are answered at the same time. Further connections are closed without an
	// answer.
	maxAnswering = 64
	// answerTime limits the time for sending an answer to a refused connection.
	answerTime = time.Second
	// maxUnread limits the bytes read of a refused request.
	maxUnread = 64 << 10
)

type boundedListener struct {
	net.Listener
	cfg Bounds
	// answering holds one element per refused connection that is being answered.
	answering chan struct{}
	// within counts the connections within the limits, and spares those above a limit.
	within, spares connCounts
}

// connCounts counts open connections. The zero value is ready to use.
type connCounts struct {
	mu    sync.Mutex // guards the fields below
	total int
	open  map[netip.Addr]int // by network; entries are never 0
}

// enter counts a connection, unless there are already most connections in all, or mostOf from the same network. full reports the first
// case.
func (p *connCounts) enter(addr netip.Addr, most, mostOf int) (ok, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.total >= most:
		return false, true
	case p.open[addr] >= mostOf:
		return false, false
	case p.open == nil:
		p.open = make(map[netip.Addr]int)
	}
	p.total++
	p.open[addr]++
	return true, false
}

func (p *connCounts) leave(addr netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	if p.open[addr]--; p.open[addr] == 0 {
		delete(p.open, addr)
	}
}

// Accept implements net.Listener. It returns connections within the limits and spare connections, and closes all others.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := addressOf(c.RemoteAddr())
		ok, full := l.enter(addr)
		if ok {
			return &overConn{wrapped: wrapped{c}, of: &l.within, addr: network(addr)}, nil
		}
		if s := l.spare(c, addr, full); s != nil {
			return s, nil
		}
		l.reportRefused(c)
		l.refuse(c, full)
	}
}

func (l *boundedListener) reportRefused(c net.Conn) {
	if l.cfg.Refused != nil {
		l.cfg.Refused(c.RemoteAddr())
	}
}

// refuse closes a connection. It sends an answer first if few connections are being answered.
func (l *boundedListener) refuse(c net.Conn, full bool) {
	if l.answer(full) != nil {
		select {
		case l.answering <- struct{}{}:
			go func() {
				defer func() { <-l.answering }()
				l.answerRefused(c, full)
				_ = c.Close()
			}()
			return
		default:
		}
	}
	_ = c.Close() // not used yet
}

// enter counts a connection from addr if the limits permit it. full reports that Total is reached.
func (l *boundedListener) enter(addr netip.Addr) (ok, full bool) {
	most, mostOf := cmp.Or(l.cfg.Total, math.MaxInt), cmp.Or(l.cfg.PerAddress, math.MaxInt)
	if !addr.IsValid() || slices.ContainsFunc(l.cfg.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		mostOf = math.MaxInt
	}
	return l.within.enter(network(addr), most, mostOf)
}

// addressOf returns the IP address of a peer, or the zero Addr if the peer lacks one, as with a Unix socket.
func addressOf(peer net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(peer.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// ipv6Network is the prefix length of IPv6 networks that count as one address.
const ipv6Network = 64

func network(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	p, err := addr.Prefix(ipv6Network)
	if err != nil { // never for a valid address
		return addr
	}
	return p.Addr()
}

// overConn releases its count when it is closed.
type overConn struct {
	wrapped
	of   *connCounts
	addr netip.Addr
	left sync.Once
}

// Close implements net.Conn.
func (c *overConn) Close() error {
	defer c.left.Do(func() { c.of.leave(c.addr) })
	return c.Conn.Close()
}

// wrapped is an accepted connection.
type wrapped struct{ net.Conn }

// NetConn returns the underlying connection.
func (c wrapped) NetConn() net.Conn { return c.Conn }

// CloseWrite shuts down the writing side of the connection.
func (c wrapped) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
