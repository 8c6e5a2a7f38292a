package platform

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// Option changes the options of an emulator started with RunT.
type Option func(*runOptions)

type runOptions struct {
	Options
	allowUnknown bool
}

// WithOptions takes over every field of o, Strict included.
func WithOptions(o Options) Option { return func(r *runOptions) { r.Options = o } }

// WithAccounts sets the accounts.
func WithAccounts(accounts ...Account) Option {
	return func(r *runOptions) { r.Accounts = accounts }
}

// WithClock sets the clock.
func WithClock(c *Clock) Option { return func(r *runOptions) { r.Clock = c } }

// WithPageSize sets Options.PageSize.
func WithPageSize(records int) Option { return func(r *runOptions) { r.PageSize = records } }

// AllowUnknown lets calls to unknown routes pass without failing the test.
func AllowUnknown() Option { return func(r *runOptions) { r.allowUnknown = true } }

// Lenient switches Options.Strict off.
func Lenient() Option { return func(r *runOptions) { r.Strict = false } }

// Instance is an emulator that listens on loopback.
type Instance struct {
	*Server
	// URL is the base address of the REST API, without a trailing slash.
	URL string
	// RunURL is the base address of the run interface.
	RunURL string
	// ControlURL is the base address of the control interface.
	ControlURL string
}

// RunT starts an emulator on free loopback ports for the length of a test. It
// is strict unless told otherwise: a call to no known route fails the test.
func RunT(t testing.TB, opts ...Option) *Instance {
	t.Helper()
	r := runOptions{Options: Options{Strict: true}}
	for _, o := range opts {
		o(&r)
	}
	i := &Instance{}
	listener := listen(t)
	run := listen(t)
	i.URL = "http://" + listener.Addr().String()
	i.RunURL = "http://" + run.Addr().String()
	if r.Options.RunURL == "" {
		r.Options.RunURL = i.RunURL
	}
	s, err := New(r.Options)
	if err != nil {
		t.Fatalf("platform: %v", err)
	}
	i.Server = s
	control := listen(t)
	i.ControlURL = "http://" + control.Addr().String()
	stops := []func(){serveOn(listener, s), serveOn(run, s.RunHandler()), serveOn(control, s.ControlHandler())}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("platform: closing: %v", err)
		}
		for _, stop := range stops {
			stop()
		}
		if unknown := s.UnknownCalls(); len(unknown) > 0 && r.Strict && !r.allowUnknown {
			t.Errorf("platform: calls to routes the platform does not have: %q", unknown)
		}
	})
	return i
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("platform: %v", err)
	}
	return l
}

// serveOn serves h until the returned function has come back.
func serveOn(l net.Listener, h http.Handler) (stop func()) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with ErrServerClosed
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-done
	}
}
