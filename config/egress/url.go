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

// URL is a setting that names a server outside. The zero URL names none. A URL is comparable: equal ones lead to the same servers.
// [URL.AllowAll] or [URL.Restrict] decides which addresses it may lead to; before that, [URL.Client] dials none.
type URL struct {
	text  string
	reach reach
}

// reach is the set of addresses that a URL may lead to.
type reach struct {
	kind reachKind
	// networks are private networks, separated by spaces.
	networks string
}

type reachKind uint8

const (
	unplaced reachKind = iota
	anywhere
	restricted
)

// UnrestrictedURL returns a URL that is not from a configuration. It may lead anywhere.
func UnrestrictedURL(text string) URL { return URL{text: text, reach: reach{kind: anywhere}} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL{text: string(text)}
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (u URL) MarshalText() ([]byte, error) { return []byte(u.text), nil }

// String returns the URL as it is written, for messages. It may hold a token of the receiver.
func (u URL) String() string { return u.text }

// IsZero reports whether u names no server.
func (u URL) IsZero() bool { return u.text == "" }

// AllowAll lets u lead anywhere.
func (u *URL) AllowAll() { u.place(reach{kind: anywhere}) }

// Restrict lets u lead to public addresses and to the listed private networks. No list lets u lead to an address that [CheckForbidden] excludes, or
// to this host.
func (u *URL) Restrict(networks []Network) {
	list := make([]string, len(networks))
	for i, n := range networks {
		list[i] = n.String()
	}
	u.place(reach{kind: restricted, networks: strings.Join(list, " ")})
}

// place leaves the zero URL as it is.
func (u *URL) place(r reach) {
	if !u.IsZero() {
		u.reach = r
	}
}

// Validate reports a URL that is neither https nor, for a loopback address, http, or that has no host, or a user.
func (u URL) Validate() error {
	parsed, err := url.Parse(u.text)
	switch {
	case err != nil:
		return errors.New("must be a URL") // the cause repeats the text
	case parsed.Hostname() == "" || parsed.User != nil:
		return errors.New("must have a host and no user")
	case parsed.Scheme == "http" && !Loopback(parsed.Hostname()), parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("must be https: http is for loopback addresses only")
	}
	return CheckPort(parsed)
}

// CheckPort reports a port that does not exist. u may be nil.
func CheckPort(u *url.URL) error {
	if u == nil || u.Port() == "" {
		return nil
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q is not a port: must be from 1 to 65535", u.Port())
	}
	return nil
}

// Check reports a URL whose host is an address that it may not lead to. The addresses of names are judged when they are dialled.
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
		return judge(addr, u.reach.public(), nil)
	}
	return nil
}

// Loopback reports whether a host is on the loopback interface, by its address or by the name localhost.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Request returns a request to u.
func (u URL) Request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, method, u.text, body)
}

// Client returns a client as [NewClient] does, which dials only the addresses that u may lead to. guard may be nil; it judges them, too.
func (u URL) Client(guard Guard, dial time.Duration) *http.Client {
	return NewClient(u.withReach(guard), dial)
}

// withReach adds the guard of u's reach to another.
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
				return fmt.Errorf("%w: the addresses of this host are not known: %w", ErrForbidden, err)
			}
			if err = judge(to.Addr(), public, own); err == nil && guard != nil {
				err = guard(network, address, c)
			}
			return err
		}
	case unplaced:
	}
	return func(string, string, syscall.RawConn) error { return errUnplaced }
}
