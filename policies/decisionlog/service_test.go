package decisionlog_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// collector stands for the service: it keeps the ids of each batch it takes.
type collector struct {
	t        *testing.T
	failures int           // how many posts are refused first
	status   int           // of a refusal; 0 is 502
	after    string        // Retry-After of a refusal
	seen     chan struct{} // gets one for every post, when set

	mu      sync.Mutex
	batches [][]string // guarded by mu
}

// RoundTrip implements http.RoundTripper without a network, for the fake clock.
func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen != nil {
		c.seen <- struct{}{}
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	if c.failures > 0 {
		c.failures--
		resp.StatusCode = cmp.Or(c.status, http.StatusBadGateway)
		resp.Header.Set("Retry-After", c.after)
		return resp, nil
	}
	zip, err := gzip.NewReader(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer tok" || r.Method != http.MethodPost {
		c.t.Errorf("request: %s %v %v", r.Method, r.Header, err)
		return resp, nil
	}
	var batch []struct {
		ID string `json:"decision_id"`
	}
	if err := json.NewDecoder(zip).Decode(&batch); err != nil {
		c.t.Error(err)
	}
	var ids []string
	for _, e := range batch {
		ids = append(ids, e.ID)
	}
	c.batches = append(c.batches, ids)
	return resp, nil
}

func (c *collector) log(batch int) *decisionlog.Log {
	c.t.Helper()
	token := filepath.Join(c.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("tok\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Service = &policyconfig.Service{URL: "https://decisions.test", TokenFile: files.UnrestrictedCredential(token), Batch: batch}
	return newLog(c.t, cfg, decisionlog.Deps{HTTPClient: &http.Client{Transport: c}})
}

func TestServiceTakesBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{t: t, failures: 1}
		l := c.log(2)
		run(t, l, func() {
			for i := range 3 {
				l.Record(event(fmt.Sprintf("d%d", i)))
			}
		})
		if diff := gocmp.Diff([][]string{{"d0", "d1"}, {"d2"}}, c.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

// TestEndKeepsTheBatchInHand: when the context ends between two tries of a
// batch, the batch is tried again, and what came after it is written too.
func TestEndKeepsTheBatchInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{t: t, failures: 1, seen: make(chan struct{}, 8)}
		l := c.log(2)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		for i := range 3 {
			l.Record(event(fmt.Sprintf("d%d", i)))
		}
		go func() { done <- l.Run(ctx) }()
		<-c.seen // the first try was refused
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want context.Canceled", err)
		}
		if diff := gocmp.Diff([][]string{{"d0", "d1"}, {"d2"}}, c.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if want := (decisionlog.Stats{Recorded: 3, Written: 3}); l.Stats() != want {
			t.Errorf("stats: got %+v, want %+v", l.Stats(), want)
		}
	})
}

// TestEndIsBounded: a service that is down does not hold up the end for longer than a few
// seconds, and events that it did not take are counted.
func TestEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{t: t, failures: 1000}
		l := c.log(1)
		start := time.Now()
		run(t, l, func() {
			for i := range 10 {
				l.Record(event(fmt.Sprintf("d%d", i)))
			}
		})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the end took %v, want a few seconds", took)
		}
		if want := (decisionlog.Stats{Recorded: 10, Failed: 10}); l.Stats() != want {
			t.Errorf("stats: got %+v, want %+v", l.Stats(), want)
		}
	})
}

// taken lists the events that the service has.
func (c *collector) taken() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.batches...)
}

// answer changes how posts are answered.
func (c *collector) answer(failures int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = failures
}

// backlog is the one of the service.
func backlog(l *decisionlog.Log) decisionlog.Backlog {
	all := l.Backlogs()
	return all[len(all)-1]
}

// TestAnOutageLosesNothing: events of an outage arrive after it, in order, as long as the buffer has room; then the oldest are dropped and
// counted. Another sink gets its events meanwhile.
func TestAnOutageLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{t: t, failures: 1 << 30}
		var out bytes.Buffer
		cfg := policyconfig.DefaultDecisionLog()
		cfg.Stdout, cfg.Buffer = true, 8
		cfg.Service = &policyconfig.Service{URL: "http://decisions.test", Batch: 3, Delay: time.Millisecond}
		l := newLog(t, cfg, decisionlog.Deps{Stdout: &out, HTTPClient: &http.Client{Transport: c.unnamed()}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		var want []string
		record := func(n int) {
			for range n {
				want = append(want, fmt.Sprintf("d%d", len(want)))
				l.Record(event(want[len(want)-1]))
				synctest.Wait()
			}
		}
		record(5)
		time.Sleep(8 * time.Second)
		if b := backlog(l); b.Waiting != 5 || b.Dropped != 0 || b.Err == nil || b.Err.Error() != "service responded with status 502" {
			t.Errorf("in the outage: %+v, want 5 events that wait for a service that answers 502", b)
		}
		if n := bytes.Count(out.Bytes(), []byte{'\n'}); n != 5 {
			t.Errorf("in the outage standard output has %d events, want 5", n)
		}
		c.answer(0)
		time.Sleep(time.Minute)
		if diff := gocmp.Diff(want, c.taken()); diff != "" {
			t.Errorf("after the outage (-want +got):\n%s", diff)
		}
		if b := backlog(l); b.Waiting != 0 || b.Err != nil {
			t.Errorf("after the outage: %+v, want nothing that waits", b)
		}
		c.answer(1 << 30)
		record(20)
		time.Sleep(time.Hour)
		c.answer(0)
		time.Sleep(time.Minute)
		if diff := gocmp.Diff(slices.Concat(want[:5], want[17:]), c.taken()); diff != "" {
			t.Errorf("after an outage that fills the buffer (-want +got):\n%s", diff)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want context.Canceled", err)
		}
		if want := (decisionlog.Stats{Recorded: 25, Dropped: 12, Written: 25 + 13}); l.Stats() != want {
			t.Errorf("stats: got %+v, want %+v", l.Stats(), want)
		}
	})
}

// unnamed is the service without a token.
func (c *collector) unnamed() http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Authorization", "Bearer tok")
		return c.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTheServiceIsLeftAlone for as long as it asks, in seconds or to a time.
func TestTheServiceIsLeftAlone(t *testing.T) {
	for _, as := range []func(time.Duration) string{
		func(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) },
		func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &collector{t: t, failures: 1, status: http.StatusTooManyRequests, after: as(10 * time.Minute), seen: make(chan struct{}, 8)}
			l := c.log(1)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- l.Run(ctx) }()
			l.Record(event("d0"))
			<-c.seen
			begun := time.Now()
			<-c.seen
			if waited := time.Since(begun); waited < 10*time.Minute || waited > 11*time.Minute {
				t.Errorf("the next post came after %v, want 10 minutes", waited)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run: got %v, want context.Canceled", err)
			}
		})
	}
}

// TestRefusedBatches: a batch that the service refuses for its content holds up no other.
func TestRefusedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{t: t, failures: 1, status: http.StatusRequestEntityTooLarge}
		l := c.log(2)
		run(t, l, func() {
			for i := range 3 {
				l.Record(event(fmt.Sprintf("d%d", i)))
			}
		})
		if want := (decisionlog.Stats{Recorded: 3, Failed: 2, Written: 1}); l.Stats() != want {
			t.Errorf("stats: got %+v, want %+v", l.Stats(), want)
		}
	})
}
