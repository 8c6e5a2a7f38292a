package decisionlog_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// collector stands for the service: it keeps the ids of each batch it takes.
type collector struct {
	t        *testing.T
	failures int           // how many posts are refused first
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
		resp.StatusCode = http.StatusBadGateway
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
	cfg := section.DefaultDecisionLog()
	cfg.Service = &section.Service{URL: "https://decisions.test", TokenFile: files.CredentialAt(token), Batch: batch}
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
		if diff := cmp.Diff([][]string{{"d0", "d1"}, {"d2"}}, c.batches); diff != "" {
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
		if diff := cmp.Diff([][]string{{"d0", "d1"}, {"d2"}}, c.batches); diff != "" {
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
