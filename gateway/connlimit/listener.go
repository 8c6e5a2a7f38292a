package connlimit

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config are the bounds. The zero value has none.
type Config struct {
	// Total bounds all connections together, PerAddress those of one address; 0 is
	// no bound.
	Total      int `yaml:"total" doc:"connections of the data listener, of all callers together; 0 is no bound" zero:"no bound"`
	PerAddress int `yaml:"per_address" doc:"those from one address, IPv6 by /64 network; addresses in limits.anonymous_exempt have no such bound; 0 is no bound" zero:"no bound"`
	// Exempt lists addresses that PerAddress does not hold for: load balancers, which
	// all callers come through. Total holds for them, too.
	Exempt []netip.Prefix `yaml:"-"`
	// Spare is how many connections over a bound are returned all the same, an eighth of
	// them from one address at most. Such a connection must send the head of a request
	// within a second, and its server asks Excess whether to refuse that. 0 is
	// none.
	Spare int `yaml:"-"`
	// Refused is told of each connection that is refused here, from several goroutines;
	// it may be nil.
	Refused func(client net.Addr) `yaml:"-"`
	// Answer returns the answer to a refused connection before it is closed:
	// full if there are too many in all, else from its address. Nil sends nothing.
	Answer func(full bool) []byte `yaml:"-"`
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var errs fault.Found
	errs.If(c.Total < 0, "total", "must not be negative, got %d", c.Total)
	errs.If(c.PerAddress < 0, "per_address", "must not be negative, got %d", c.PerAddress)
	return errors.Join(errs...)
}

// NewListener returns inner with bounds. cfg must be valid; a negative bound
// would be none.
func NewListener(inner net.Listener, cfg Config) net.Listener {
	return &listener{Listener: inner, cfg: cfg, open: make(map[netip.Addr]int), answering: make(chan struct{}, maxAnswering)}
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

type listener struct {
	net.Listener
	cfg Config
	// answering has an element for each refused connection that is being answered.
	answering chan struct{}
	spares    spares

	mu    sync.Mutex
	total int
	open  map[netip.Addr]int // connections by address; none is 0
}

// Accept implements net.Listener. It returns connections within the bounds, with the spare
// ones, and closes all others.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := addressOf(c.RemoteAddr())
		ok, full := l.enter(addr)
		if ok {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(addr) })}, nil
		}
		if s := l.spare(c, addr, full); s != nil {
			return s, nil
		}
		l.tell(c)
		l.refuse(c, full)
	}
}

func (l *listener) tell(c net.Conn) {
	if l.cfg.Refused != nil {
		l.cfg.Refused(c.RemoteAddr())
	}
}

// refuse answers a connection, if few are being answered, and closes it.
func (l *listener) refuse(c net.Conn, full bool) {
	if l.cfg.Answer != nil {
		select {
		case l.answering <- struct{}{}:
			go func() {
				defer func() { <-l.answering }()
				l.say(c, full)
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
func (l *listener) enter(addr netip.Addr) (ok, full bool) {
	counted := addr.IsValid() && !slices.ContainsFunc(l.cfg.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Total > 0 && l.total >= l.cfg.Total {
		return false, true
	}
	if counted && l.cfg.PerAddress > 0 && l.open[network(addr)] >= l.cfg.PerAddress {
		return false, false
	}
	l.total++
	l.open[network(addr)]++
	return true, false
}

func (l *listener) leave(addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	key := network(addr)
	if l.open[key]--; l.open[key] == 0 {
		delete(l.open, key)
	}
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

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// NetConn returns the connection that was accepted.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite shuts down the sending half.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
