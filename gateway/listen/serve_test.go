package listen_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/listen"
)

// A stop that aborts requests reports them, after they have noticed. One that only ends streams is clean.
func TestServeReportsAbortedRequests(t *testing.T) {
	for name, stream := range map[string]bool{"a request": false, "a stream": true} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			over, cutOff := context.WithCancel(t.Context())
			begun, streamEnded := make(chan struct{}), make(chan struct{})
			var noticed atomic.Bool
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				close(begun)
				if stream {
					<-streamEnded
				} else {
					<-r.Context().Done()
				}
				noticed.Store(true)
			})
			served := make(chan error, 1)
			ls := &listen.Listeners{Logger: slog.New(slog.DiscardHandler)}
			go func() {
				served <- ls.Serve(ctx, over, l, h, func(ctx context.Context) { <-ctx.Done(); close(streamEnded) })
			}()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := new(http.Transport).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			<-begun
			stop()
			cutOff()
			if err := <-served; errors.Is(err, listen.ErrAborted) == stream || stream && err != nil {
				t.Errorf("Serve = %v", err)
			}
			if !noticed.Load() {
				t.Error("Serve returned before the request ended")
			}
		})
	}
}
