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

// Bounds are the bounds. The zero value has none.
type Bounds struct {
	// Total bounds all connections together, PerAddress those of one address; 0 is
	// no bound.
	Total, PerAddress int
	// Exempt lists addresses that PerAddress does not hold for: load balancers, which
	// all callers come through. Total holds for them, too.
	Exempt []netip.Prefix
	// Spare is how many connections over a bound are returned all the same, an eighth of
	// them from one address at most. Such a connection must send the head of a request
	// within a second, and its server asks Excess whether to refuse that. 0 is
	// none.
	Spare int
	// Refused is told of each connection that is refused here, from several goroutines;
	// it may be nil.
	Refused func(client net.Addr)
	// Full answers a refused connection before it is closed if there are too many in all, Crowded if
	// there are too many from its address. Nil sends nothing.
	Full, Crowded []byte
}

// NewBounded returns inner with bounds. cfg must be valid.
func NewBounded(inner net.Listener, cfg Bounds) net.Listener {
	return &boundedListener{Listener: inner, cfg: cfg, answering: make(chan struct{}, maxAnswering)}
}

const (
	// maxAnswering bounds the refused connections that are being answered; those
	// beyond are closed without a word.
	maxAnswering = 64
	// answerTime is how long one may take to read its answer.
	answerTime = time.Second
	// maxUnread bounds the reading of a request that is not wanted.
	maxUnread = 64 << 10
)

type boundedListener struct {
	net.Listener
	cfg Bounds
	// answering has an element for each refused connection that is being answered.
	answering chan struct{}
	// within are the connections within the bounds, spares those over a bound.
	within, spares connCounts
}

// connCounts counts open connections. The zero value has none.
type connCounts struct {
	mu    sync.Mutex // guards what follows
	total int
	open  map[netip.Addr]int // by network; none is 0
}

// enter counts a connection unless there are most in all, or mostOf from its network; full says the former.
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

// Accept implements net.Listener. It returns connections within the bounds, with the spare
// ones, and closes all others.
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
		l.tell(c)
		l.refuse(c, full)
	}
}

func (l *boundedListener) tell(c net.Conn) {
	if l.cfg.Refused != nil {
		l.cfg.Refused(c.RemoteAddr())
	}
}

// refuse answers a connection, if few are being answered, and closes it.
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
	_ = c.Close() // it was never used
}

// enter takes a place for a connection from addr, if there is one; full says that
// there is none for any address.
func (l *boundedListener) enter(addr netip.Addr) (ok, full bool) {
	most, mostOf := cmp.Or(l.cfg.Total, math.MaxInt), cmp.Or(l.cfg.PerAddress, math.MaxInt)
	if !addr.IsValid() || slices.ContainsFunc(l.cfg.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		mostOf = math.MaxInt
	}
	return l.within.enter(network(addr), most, mostOf)
}

// addressOf is the address of a peer; the zero Addr for one without, as over a
// local socket.
func addressOf(peer net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(peer.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// ipv6Network is the length of the prefix that counts as one address.
const ipv6Network = 64

func network(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	p, err := addr.Prefix(ipv6Network)
	if err != nil { // not for a valid address
		return addr
	}
	return p.Addr()
}

// overConn gives its place back when it is closed.
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

// wrapped is a connection that was accepted.
type wrapped struct{ net.Conn }

// NetConn returns the connection itself.
func (c wrapped) NetConn() net.Conn { return c.Conn }

// CloseWrite shuts down the sending half.
func (c wrapped) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
