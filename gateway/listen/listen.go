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

// Listeners creates the listeners of the gateway and serves requests on them. All fields are required.
type Listeners struct {
	*view.Current
	Logger *slog.Logger
	// Recorder counts refused connections and request heads, and provides the clock.
	Recorder *telemetry.Recorder
}

// Data wraps l as the listener for callers, with the settings of the configuration at startup. signers returns the current
// certificate authorities of callers.
func (ls *Listeners) Data(ctx context.Context, l net.Listener, cfg *settings.Config, signers func() *x509.CertPool) net.Listener {
	return ls.validated(ctx, ls.encrypted(ls.bounded(ctx, newProxyListener(l, cfg.Balancers), cfg), ofData, signers))
}

// Admin returns the listener for operators.
func (ls *Listeners) Admin(l net.Listener) net.Listener { return ls.encrypted(l, ofAdmin, ofNone) }

// Reserved returns a listener with reserved file descriptors, see [NewReserved].
func Reserved(l net.Listener) net.Listener { return NewReserved(l, adminReserve) }

// Open returns the listener given, or a new listener on addr if given is nil.
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

// Time limits of a connection. Bodies and calls to the platform have separate limits.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeaderSize = 32 << 10
)

// Serve serves until ctx ends. Then it closes the listener and waits for accepted requests; requests that have not finished when over ends
// are aborted. end closes connections that the HTTP server no longer tracks: WebSockets and streams.
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
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // unblocks Serve
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

// bounded limits the connections of a listener. Refusals are counted, and logged at most once a minute, because they come in bursts.
func (ls *Listeners) bounded(ctx context.Context, l net.Listener, cfg *settings.Config) net.Listener {
	bounds := Bounds{
		Total: cfg.Connections.Total, PerAddress: cfg.Connections.PerAddress, Spare: spareConnections,
		Exempt: slices.Concat(cfg.Limits.AnonymousExempt, cfg.Balancers.Addresses),
	}
	if cfg.TLS.Pair == nil { // nothing can be sent before a TLS handshake
		bounds.Full, bounds.Crowded = refusal(true), refusal(false)
	}
	nowAndThen := rate.Sometimes{Interval: time.Minute}
	bounds.Refused = func(client net.Addr) {
		ls.Recorder.Refused(ctx, "connection")
		nowAndThen.Do(func() {
			ls.Logger.WarnContext(ctx, "too many connections, refusing new connections", "client.address", client.String())
		})
	}
	return NewBounded(l, bounds)
}

// adminReserve is the number of admin connections with reserved file descriptors, so that probes and metric scrapes are answered when no
// other descriptors are free.
const adminReserve = 4

// spareConnections is the number of connections above a limit that are accepted nevertheless, for stop and delete requests.
const spareConnections = 64

// RefuseOverBound returns the refusal of a request on a connection above a limit, or nil if the request is permitted.
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

// refusal returns the answer for a connection above a limit that does not send a request in time.
func refusal(full bool) []byte {
	p := tooMany(full)
	body := p.JSON()
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		p.Status, http.StatusText(p.Status), problem.ContentType, len(body), body)
}

// validated rejects ambiguous requests. A rejected request never becomes an exchange, so it is logged here.
func (ls *Listeners) validated(ctx context.Context, l net.Listener) net.Listener {
	return wire.NewListener(l, wire.Config{
		MaxHead: maxHeaderSize,
		Refused: func(client net.Addr, r *wire.Refusal) {
			ls.Recorder.Refused(ctx, "wire")
			ls.Logger.WarnContext(ctx, "malformed request refused", "client.address", client.String(),
				"http.response.status_code", r.Status, "detail", r.Reason)
		},
	})
}
