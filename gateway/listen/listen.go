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
	"sync"
	"sync/atomic"
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
	// Recorder counts refused connections and request heads. It also provides the clock.
	Recorder *telemetry.Recorder
}

// Data returns a listener for callers that accepts connections from l. cfg is the configuration at startup. signers returns the current
// certificate authorities of callers.
func (ls *Listeners) Data(ctx context.Context, l net.Listener, cfg *settings.Config, signers func() *x509.CertPool) net.Listener {
	return ls.validated(ctx, ls.encrypted(ls.bounded(ctx, newProxyListener(l, cfg.Balancers), cfg), ofData, signers))
}

// Admin returns a listener for operators that accepts connections from l.
func (ls *Listeners) Admin(l net.Listener) net.Listener { return ls.encrypted(l, ofAdmin, ofNone) }

// Reserved returns a listener that reserves file descriptors for a few connections; see [NewReserved].
func Reserved(l net.Listener) net.Listener { return NewReserved(l, adminReserve) }

// Open returns inherited unless it is nil. Otherwise Open returns a new TCP listener on addr.
func Open(inherited net.Listener, addr string) (net.Listener, error) {
	if inherited != nil {
		return inherited, nil
	}
	l, err := net.Listen("tcp", addr) //nolint:noctx // opened once, at start
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// Limits of a connection. Receiving a body and calling the platform have separate time limits.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
)

// abortTime is the time that requests have to end after the streams have ended, and again after they have been aborted.
const abortTime = 100 * time.Millisecond

// ErrAborted means that requests were still in progress when the time to finish them ended.
var ErrAborted = errors.New("requests in progress were aborted")

// Serve serves h on l until ctx ends. It then closes l and waits for the requests in progress. If the context over is canceled during this
// wait, Serve aborts the remaining requests and returns ErrAborted. During the wait, it calls end, which must end streams and WebSockets
// when over is canceled.
func (ls *Listeners) Serve(ctx, over context.Context, l net.Listener, h http.Handler, end func(context.Context)) error {
	var fresh newConns
	var calls inProgress
	s := &http.Server{
		Handler:           calls.counted(h),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    wire.MaxHead,
		ConnState:         fresh.note,
		ConnContext:       wire.ConnContext,
		ErrorLog:          telemetry.StandardLog(ls.Logger),
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // unblocks Serve
	if err := s.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	fresh.wait(over)
	late, abort := context.WithCancel(context.WithoutCancel(over))
	defer abort()
	defer context.AfterFunc(over, func() { time.AfterFunc(abortTime, abort) })()
	var streams sync.WaitGroup
	streams.Go(func() { end(over) })
	err := s.Shutdown(late)
	streams.Wait()
	if errors.Is(err, context.Canceled) {
		n := calls.n.Load()
		err = s.Close()
		calls.wait(abortTime)
		if n > 0 {
			err = errors.Join(fmt.Errorf("serve on %s: %w: %d", l.Addr(), ErrAborted, n), err)
		}
	}
	return err
}

// inProgress counts the requests in progress.
type inProgress struct {
	n    atomic.Int64
	done sync.WaitGroup
}

// counted returns a handler that counts its requests.
func (p *inProgress) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.n.Add(1)
		p.done.Add(1)
		defer p.done.Done()
		defer p.n.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// wait waits for all requests to end, but at most for limit.
func (p *inProgress) wait(limit time.Duration) {
	ended := make(chan struct{})
	go func() { p.done.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// bounded returns a listener with a limited number of connections. It counts refusals, and logs at most one refusal per minute, because
// refusals come in bursts.
func (ls *Listeners) bounded(ctx context.Context, l net.Listener, cfg *settings.Config) net.Listener {
	bounds := Bounds{
		Total: cfg.Connections.Total, PerAddress: cfg.Connections.PerAddress, Spare: spareConnections,
		Exempt: slices.Concat(cfg.Limits.AnonymousExempt, cfg.Balancers.Addresses),
	}
	if cfg.TLS.Pair == nil { // with TLS, no response can be sent before the handshake
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

// adminReserve is the number of admin connections for which file descriptors are reserved, so that the gateway can respond to probes and
// metric scrapes when no other descriptors are free.
const adminReserve = 4

// spareConnections is the number of connections above a limit that are accepted for stop and delete requests.
const spareConnections = 64

// RefuseOverBound returns an error if the request arrived on a connection above a limit, and nil otherwise. Do not call it for requests
// that are always served, such as requests that stop or delete a resource.
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

// refusal returns the complete HTTP response for a refused connection. full is true if the limit on all connections is reached.
func refusal(full bool) []byte {
	p := tooMany(full)
	body := p.JSON()
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		p.Status, http.StatusText(p.Status), problem.ContentType, len(body), body)
}

// validated returns a listener that rejects ambiguous requests. It logs rejected requests, because no handler sees them.
func (ls *Listeners) validated(ctx context.Context, l net.Listener) net.Listener {
	return wire.NewListener(l, func(client net.Addr, r *wire.Refusal) {
		ls.Recorder.Refused(ctx, "wire")
		ls.Logger.WarnContext(ctx, "refused a malformed request", "client.address", client.String(),
			"http.response.status_code", r.Status, "detail", r.Reason)
	})
}
