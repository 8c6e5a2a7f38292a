package listen

import (
	"cmp"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Bounds limits the number of open connections. The zero value sets no limits.
type Bounds struct {
	// Total is the maximum number of connections. PerAddress is the maximum number of connections from one address. 0 means no limit.
	Total, PerAddress int
	// Exempt lists addresses to which PerAddress does not apply, such as the addresses of load balancers. Total also applies to these
	// addresses.
	Exempt []netip.Prefix
	// Spare is the number of connections above a limit that are accepted nevertheless. At most an eighth of them may come from one address. On
	// such a connection, the client must send a request head within one second, and the server must call [OverBound] or [RefuseOverBound]. 0
	// means that connections above a limit are never accepted.
	Spare int
	// Refused, if not nil, is called for each refused connection. Several goroutines may call it at the same time.
	Refused func(client net.Addr)
	// Full and Crowded are the responses to send on a refused connection before it is closed. Full is sent if Total is reached, and Crowded if
	// PerAddress is reached. If the response is nil, nothing is sent.
	Full, Crowded []byte
}

// NewBounded returns a listener that accepts connections from inner within the limits of cfg. It does not validate cfg.
func NewBounded(inner net.Listener, cfg Bounds) net.Listener {
	return &boundedListener{Listener: inner, cfg: cfg, answering: make(chan struct{}, maxAnswering)}
}

const (
	// maxAnswering is the maximum number of refused connections on which a response is being sent. Further refused connections are closed
	// without a response.
	maxAnswering = 64
	// answerTime is the time limit for sending a response on a refused connection.
	answerTime = time.Second
	// maxUnread is the maximum number of bytes that are read from a refused connection.
	maxUnread = 64 << 10
)

type boundedListener struct {
	net.Listener
	cfg Bounds
	// answering holds one element for each refused connection on which a response is being sent.
	answering chan struct{}
	// within counts the connections within the limits, and spares counts the accepted connections above a limit.
	within, spares connCounts
}

// connCounts counts open connections. The zero value is ready to use.
type connCounts struct {
	mu    sync.Mutex // guards the fields below
	total int
	open  map[netip.Addr]int // by network; entries are never 0
}

// enter counts a connection from a network and returns true. It returns false if there are already maxTotal connections, in which case full
// is true, or already maxPerNetwork connections from the network.
func (p *connCounts) enter(addr netip.Addr, maxTotal, maxPerNetwork int) (ok, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.total >= maxTotal:
		return false, true
	case p.open[addr] >= maxPerNetwork:
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

// refuse closes a connection. If fewer than maxAnswering responses are being sent, it sends a response first.
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

// enter counts a connection from addr and returns true if the limits permit the connection. Otherwise full reports whether Total is
// reached.
func (l *boundedListener) enter(addr netip.Addr) (ok, full bool) {
	most, mostOf := cmp.Or(l.cfg.Total, math.MaxInt), cmp.Or(l.cfg.PerAddress, math.MaxInt)
	if !addr.IsValid() || slices.ContainsFunc(l.cfg.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		mostOf = math.MaxInt
	}
	return l.within.enter(network(addr), most, mostOf)
}

// addressOf returns the IP address of a peer. It returns the zero Addr if the peer has no IP address, for example for a Unix socket.
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
	p, _ := addr.Prefix(ipv6Network) // fails only for a length above 128
	return p.Addr()
}

// overConn is a counted connection. It stops counting when it is closed.
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

// wrapped gives access to the methods of the underlying connection that net.Conn lacks.
type wrapped struct{ net.Conn }

// NetConn returns the underlying connection.
func (c wrapped) NetConn() net.Conn { return c.Conn }

// CloseWrite shuts down the writing side of the connection.
func (c wrapped) CloseWrite() error { return wire.CloseWrite(c.Conn) }
