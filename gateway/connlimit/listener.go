package connlimit

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config are the bounds. The zero value has none.
type Config struct {
	// Total bounds all connections together, PerAddress those of one address; 0 is
	// no bound.
	Total      int `yaml:"total" doc:"connections of the data listener, of all callers together; 0 is no bound"`
	PerAddress int `yaml:"per_address" doc:"those from one address, IPv6 by /64 network; addresses in limits.anonymous_exempt have no such bound; 0 is no bound"`
	// Exempt lists addresses that PerAddress does not hold for: load balancers, which
	// all callers come through. Total holds for them, too.
	Exempt []netip.Prefix `yaml:"-"`
	// Refused is told of each connection that is refused, from the goroutine that
	// accepts; it may be nil.
	Refused func(client net.Addr) `yaml:"-"`
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{{"total", c.Total}, {"per_address", c.PerAddress}} {
		if f.value < 0 {
			errs = append(errs, fault.Errorf(f.name, "must not be negative, got %d", f.value))
		}
	}
	return errors.Join(errs...)
}

// NewListener returns inner with bounds. cfg must be valid; a negative bound
// would be none.
func NewListener(inner net.Listener, cfg Config) net.Listener {
	return &listener{Listener: inner, cfg: cfg, open: make(map[netip.Addr]int)}
}

type listener struct {
	net.Listener
	cfg Config

	mu    sync.Mutex
	total int
	open  map[netip.Addr]int // connections by address; none is 0
}

// Accept implements net.Listener. It returns connections within the bounds and
// closes all others.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := addressOf(c.RemoteAddr())
		if l.enter(addr) {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(addr) })}, nil
		}
		if l.cfg.Refused != nil {
			l.cfg.Refused(c.RemoteAddr())
		}
		_ = c.Close() // it was never used
	}
}

// enter takes a place for a connection from addr, if there is one.
func (l *listener) enter(addr netip.Addr) bool {
	counted := addr.IsValid() && !slices.ContainsFunc(l.cfg.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Total > 0 && l.total >= l.cfg.Total {
		return false
	}
	if counted && l.cfg.PerAddress > 0 && l.open[network(addr)] >= l.cfg.PerAddress {
		return false
	}
	l.total++
	l.open[network(addr)]++
	return true
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

// CloseWrite shuts down the sending half.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
