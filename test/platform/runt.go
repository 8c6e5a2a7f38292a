package platform

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"testing"
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
	servers := [3]*httptest.Server{}
	urls := [3]string{}
	for n := range servers {
		servers[n] = httptest.NewUnstartedServer(nil)
		urls[n] = "http://" + servers[n].Listener.Addr().String()
	}
	i := &Instance{URL: urls[0], RunURL: urls[1], ControlURL: urls[2]}
	r.Options.RunURL = cmp.Or(r.Options.RunURL, i.RunURL)
	s, err := New(r.Options)
	if err != nil {
		t.Fatalf("platform: %v", err)
	}
	i.Server = s
	for n, handler := range []http.Handler{s, s.RunHandler(), s.ControlHandler()} {
		servers[n].Config.Handler = handler
		servers[n].Start()
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("platform: closing: %v", err)
		}
		for _, server := range servers {
			server.CloseClientConnections() // of clients that read nothing, too
			server.Close()
		}
		if unknown := s.UnknownCalls(); len(unknown) > 0 && r.Strict && !r.allowUnknown {
			t.Errorf("platform: calls to routes the platform does not have: %q", unknown)
		}
	})
	return i
}
