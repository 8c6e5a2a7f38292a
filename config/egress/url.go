package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// URL is a setting that names an external server. The zero URL names no server. [URL.AllowAll] or [URL.Restrict] sets the addresses that
// the URL may reach; until one of them is called, a client returned by [URL.Client] dials no address. URLs are comparable: equal URLs have
// the same text and may reach the same addresses.
type URL struct {
	text  string
	reach reach
}

// reach is the set of addresses that a URL may reach.
type reach struct {
	kind reachKind
	// networks lists private networks, separated by spaces.
	networks string
}

type reachKind uint8

const (
	unplaced reachKind = iota
	anywhere
	restricted
)

// UnrestrictedURL returns a URL that does not come from a configuration and may reach any address.
func UnrestrictedURL(text string) URL { return URL{text: text, reach: reach{kind: anywhere}} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL{text: string(text)}
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (u URL) MarshalText() ([]byte, error) { return []byte(u.text), nil }

// String returns the URL as written in the configuration. The URL may contain a token for the server.
func (u URL) String() string { return u.text }

// IsZero reports whether u names no server.
func (u URL) IsZero() bool { return u.text == "" }

// AllowAll permits u to reach any address.
func (u *URL) AllowAll() { u.place(reach{kind: anywhere}) }

// Restrict permits u to reach public addresses and the given private networks. It never permits addresses of this host or addresses that
// [CheckForbidden] refuses, even if one of the networks contains them.
func (u *URL) Restrict(networks []Network) {
	list := make([]string, len(networks))
	for i, n := range networks {
		list[i] = n.String()
	}
	u.place(reach{kind: restricted, networks: strings.Join(list, " ")})
}

// place sets the reach of u. It does nothing if u is the zero URL.
func (u *URL) place(r reach) {
	if !u.IsZero() {
		u.reach = r
	}
}

// Validate returns an error unless u is a valid https URL with a host and without user information. It also accepts http if the host is a
// loopback address.
func (u URL) Validate() error {
	parsed, err := url.Parse(u.text)
	switch {
	case err != nil:
		return errors.New("must be a URL") // the cause repeats the text
	case parsed.Hostname() == "" || parsed.User != nil:
		return errors.New("must contain a host and must not contain a user")
	case parsed.Scheme == "http" && !Loopback(parsed.Hostname()), parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("must be https unless the host is a loopback address")
	}
	return CheckPort(parsed)
}

// CheckPort returns an error if the port of u is out of range. u may be nil.
func CheckPort(u *url.URL) error {
	if u == nil || u.Port() == "" {
		return nil
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return fmt.Errorf("invalid port %q: must be between 1 and 65535", u.Port())
	}
	return nil
}

// Check returns an error if the host of u is an IP address that u may not reach. Check does not resolve host names; their addresses are
// checked when they are dialled.
func (u URL) Check() error {
	parsed, err := url.Parse(u.text)
	if err != nil || u.reach.kind != restricted {
		return nil //nolint:nilerr // Validate reports it
	}
	host := strings.ToLower(strings.TrimSuffix(parsed.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return errOwn
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return checkAddr(addr, u.reach.public(), nil)
	}
	return nil
}

// Loopback reports whether host is a loopback address or the name localhost.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Request returns a new request to u.
func (u URL) Request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, method, u.text, body)
}

// Client returns an HTTP client like [NewClient], but the client dials only addresses that u may reach. If guard is not nil, guard must
// also permit an address.
func (u URL) Client(guard Guard, dial time.Duration) *http.Client {
	return NewClient(u.withReach(guard), dial)
}

// withReach returns a Guard that checks an address against the reach of u and then calls guard.
func (u URL) withReach(guard Guard) Guard {
	switch u.reach.kind {
	case anywhere:
		return guard
	case restricted:
		public := u.reach.public()
		return func(network, address string, c syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrForbidden, address)
			}
			own, err := net.InterfaceAddrs()
			if err != nil {
				return fmt.Errorf("%w: cannot list the addresses of this host: %w", ErrForbidden, err)
			}
			if err = checkAddr(to.Addr(), public, own); err == nil && guard != nil {
				err = guard(network, address, c)
			}
			return err
		}
	case unplaced:
	}
	return func(string, string, syscall.RawConn) error { return errUnplaced }
}
