package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Listeners listen for requests and serve them. All fields are required.
type Listeners struct {
	*view.Current
	Logger *slog.Logger
	// Recorder counts connections and heads that are refused, and has the clock.
	Recorder *telemetry.Recorder
}

// Data is the listener for callers, under the configuration at the start. signers returns the signers of callers' certificates that are
// in force.
func (ls *Listeners) Data(ctx context.Context, l net.Listener, cfg *settings.Config, signers func() *x509.CertPool) net.Listener {
	return ls.judged(ctx, ls.encrypted(ls.bounded(ctx, newProxyListener(l, cfg.Balancers), cfg), ofData, signers))
}

// Admin is the listener for operators.
func (ls *Listeners) Admin(l net.Listener) net.Listener { return ls.encrypted(l, ofAdmin, ofNone) }

// Reserved is a listener that has descriptors in reserve.
func Reserved(l net.Listener) net.Listener { return NewReserved(l, adminReserve) }

// Open returns a listener: the given one, or one on an address.
func Open(given net.Listener, addr string) (net.Listener, error) {
	if given != nil {
		return given, nil
	}
	l, err := net.Listen("tcp", addr) //nolint:noctx // opened once, at start
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// Bounds of a connection. Bodies and platform calls have their own.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeaderSize = 32 << 10
)

// Serve serves until ctx ends, and then, without its listener, the accepted
// requests; those that have not ended when over ends are cut off. end ends connections that the HTTP server no longer
// knows: WebSockets and streams.
func (ls *Listeners) Serve(ctx, over context.Context, l net.Listener, h http.Handler, end func(context.Context)) error {
	var fresh newConns
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderSize,
		ConnState:         fresh.note,
		ConnContext:       wire.ConnContext,
		ErrorLog:          telemetry.StandardLog(ls.Logger),
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // ends Serve, and nothing else
	if err := s.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	fresh.wait(over)
	err := s.Shutdown(over)
	end(over)
	if errors.Is(err, context.Canceled) {
		err = s.Close()
	}
	return err
}

// bounded makes a listener hold no more connections than it may. Refusals are
// counted, and logged once a minute at most: they come in floods.
func (ls *Listeners) bounded(ctx context.Context, l net.Listener, cfg *settings.Config) net.Listener {
	bounds := Bounds{
		Total: cfg.Connections.Total, PerAddress: cfg.Connections.PerAddress, Spare: spareConnections,
		Exempt: slices.Concat(cfg.Limits.AnonymousExempt, cfg.Balancers.Addresses),
	}
	if cfg.TLS.Pair == nil { // before a handshake there is nothing to say
		bounds.Full, bounds.Crowded = refusal(true), refusal(false)
	}
	nowAndThen := rate.Sometimes{Interval: time.Minute}
	bounds.Refused = func(client net.Addr) {
		ls.Recorder.Refused(ctx, "connection")
		nowAndThen.Do(func() {
			ls.Logger.WarnContext(ctx, "too many connections; more are refused", "client.address", client.String())
		})
	}
	return NewBounded(l, bounds)
}

// adminReserve is how many connections of the admin listener have descriptors in reserve:
// probes and scrapes are answered when there are no others.
const adminReserve = 4

// spareConnections are those over a bound that are heard all the same, for stops and
// deletes.
const spareConnections = 64

// RefuseOverBound returns the refusal of a request whose connection is one too many.
func RefuseOverBound(r *http.Request) error {
	c := wire.Conn(r.Context())
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	if over, full := OverBound(c); over {
		return tooMany(full).With("Retry-After", "1")
	}
	return nil
}

func tooMany(full bool) *problem.Problem {
	if full {
		return problem.Overloaded.New("too many connections")
	}
	return problem.RateLimited.New("too many connections from this address")
}

// refusal is the answer to a connection that is one too many and sends no request in time.
func refusal(full bool) []byte {
	p := tooMany(full)
	body := p.JSON()
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		p.Status, http.StatusText(p.Status), problem.ContentType, len(body), body)
}

// judged makes a listener pass only requests that have one reading. A refused
// request never becomes an exchange, so it is logged here.
func (ls *Listeners) judged(ctx context.Context, l net.Listener) net.Listener {
	return wire.NewListener(l, wire.Config{
		MaxHead: maxHeaderSize,
		Refused: func(client net.Addr, r *wire.Refusal) {
			ls.Recorder.Refused(ctx, "wire")
			ls.Logger.WarnContext(ctx, "request refused on the wire", "client.address", client.String(), "http.response.status_code", r.Status, "detail", r.Reason)
		},
	})
}
