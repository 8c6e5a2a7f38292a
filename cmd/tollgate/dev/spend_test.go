package dev_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/dev"
)

// transport is an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// intercept has a transport make the gateway's calls; next is the transport that it replaces.
func (s *stack) intercept(with func(next http.RoundTripper) transport) {
	s.gateway.HTTP = &http.Client{Transport: with(s.gateway.HTTP.Transport)}
}

// answers returns a JSON response.
func answers(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// Two estimates whose label is refused at the same time are both made again without the
// label, so that each endpoint has its price.
func TestConcurrentEstimatesWithoutTheLabel(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	var labelled atomic.Int32
	second, again := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.intercept(func(next http.RoundTripper) transport {
		return func(r *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(r)
			switch {
			case r.Header.Get("Tollgate-Dry-Run") == "":
			case r.Header.Get("X-Tollgate-Labels") == "":
				once.Do(func() { close(again) })
			case labelled.Add(1) == 1:
				<-second // both have been sent with the label
			default:
				close(second)
				<-again // the other estimate has dropped the label
			}
			return res, err
		}
	})
	d := s.serve(t, write(t, map[string]string{"q.py": queue, "p.py": strings.Replace(queue, `"q"`, `"p"`, 1)}), func(set *dev.Settings) { set.MaxUSD = 2 })
	var group sync.WaitGroup
	group.Go(func() { d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa") })
	group.Go(func() { d.wants(t, "POST", "/p/runsync", `{"input":{"text":"a"}}`, 200, "aa") })
	group.Wait()
	said := d.console.String()
	for text, want := range map[string]int{"at most 1.109 USD an hour": 2, "at most 0 USD": 0, "Label dev omitted": 1, "--max-usd has": 2} {
		if got := strings.Count(said, text); got != want {
			t.Errorf("the console has %q %d times, want %d:\n%s", text, got, want, said)
		}
	}
}

// An endpoint without a price is not rented under --max-usd, and is not said to cost nothing.
func TestEndpointsWithoutAPrice(t *testing.T) {
	t.Parallel()
	const input = `{"input":{"text":"a"}}`
	var answer atomic.Pointer[string] // of dry runs; nil for the gateway's own
	set := func(text string) { answer.Store(&text) }
	s := newStack(t, "")
	s.intercept(func(next http.RoundTripper) transport {
		return func(r *http.Request) (*http.Response, error) {
			if text := answer.Load(); text != nil && r.Header.Get("Tollgate-Dry-Run") != "" {
				return answers(r, 200, *text), nil
			}
			return next.RoundTrip(r)
		}
	})
	dir := write(t, map[string]string{"q.py": queue})
	bounded := func(set *dev.Settings) { set.MaxUSD, set.User = 2, "" }
	set(`{"verdict":"refused","status":403,"detail":"not for you","calls":[]}`)
	s.serve(t, dir, bounded).wants(t, "POST", "/q/runsync", input, 403, "not for you")
	set(`{"verdict":"allowed","calls":[{"cost":{"reason":"not in the price list"}}]}`)
	s.serve(t, dir, bounded).wants(t, "POST", "/q/runsync", input, 402, "--max-usd requires a price")
	if got := s.endpoints(t); got != "" {
		t.Fatalf("endpoints %q", got)
	}
	d := s.serve(t, dir, func(set *dev.Settings) { set.User = "" }) // without a bound
	d.wants(t, "POST", "/q/runsync", input, 200, "aa")
	d.ListRemaining()
	if said := d.console.String(); strings.Contains(said, "0 USD") || !strings.Contains(said, "the gateway has no price") || !strings.Contains(said, "price unknown") {
		t.Errorf("console:\n%s", said)
	}
	s.serve(t, dir, bounded).wants(t, "POST", "/q/runsync", input, 402, "--max-usd requires a price")
	answer.Store(nil)
	d = s.serve(t, dir, bounded)
	d.wants(t, "POST", "/q/runsync", input, 200, "aa")
	if said := d.console.String(); !strings.Contains(said, "at most 1.109 USD an hour") || !strings.Contains(said, "--max-usd has 2 of 2 USD left") {
		t.Errorf("console:\n%s", said)
	}
}

// A job that ended before its cancel is 504 without the refusal of the cancel.
func TestCancelOfAJobThatHasEnded(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	var cancels atomic.Int32
	s.intercept(func(next http.RoundTripper) transport {
		return func(r *http.Request) (*http.Response, error) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/runsync"):
				return answers(r, 200, `{"id":"j","status":"IN_PROGRESS"}`), nil
			case strings.HasSuffix(r.URL.Path, "/cancel/j"):
				cancels.Add(1)
				return answers(r, 400, `{"detail":"the job is TIMED_OUT: cancel is not possible"}`), nil
			}
			return next.RoundTrip(r)
		}
	})
	d := s.serve(t, write(t, map[string]string{"q.py": strings.Replace(queue, `ADA_24)`, `ADA_24, workers=(1, 1), execution_timeout_ms=1)`, 1)}))
	code, got := d.ask(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`)
	if code != 504 || strings.Contains(got, "cancel") || cancels.Load() != 1 {
		t.Errorf("%d %s, %d cancels", code, got, cancels.Load())
	}
}
