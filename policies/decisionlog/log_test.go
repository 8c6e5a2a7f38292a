package decisionlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(id string) decisionlog.Event {
	body := map[string]any{
		"name": "a", "password": "canary-1", "env": map[string]any{"A": "canary-2", "B/C": "canary-3"}, "args": "canary-4",
	}
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	return decisionlog.Event{
		DecisionID: id, RequestID: "r1", TraceID: "t1", Org: "acme", RequestedBy: "127.0.0.1", Duration: 1500,
		Input: &policies.Input{
			Request:  policies.Request{Operation: "createPod", Method: "POST", Path: "/v2/pods", Body: body, Dialect: "v2"},
			Caller:   policies.Caller{Org: "acme", Team: "research", Key: "k1", Roles: []string{"operator"}},
			Resource: policies.Resource{After: body}, Cost: policies.Cost{Known: true, Hourly: 440_000}, Time: at,
		},
		Decision: &policies.Decision{
			Revision: "abc",
			Deny:     []policies.Violation{{Policy: "p", Message: "no", Pointer: "/name"}},
			Excepted: []policies.Excepted{{Violation: policies.Violation{Policy: "q", Message: "m"}, Exception: "x1", Until: at, Reason: "why", GrantedBy: "ada"}},
			Mutate:   []policies.Mutation{{Policy: "f", Op: policies.OpForce, Pointer: "/env/K", Value: "canary-5"}},
		},
	}
}

// run drives a log until all recorded events are settled.
func run(t *testing.T, l *decisionlog.Log, record func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	record()
	go func() { done <- l.Run(ctx) }()
	cancel() // what is recorded already is written before Run ends
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: got %v, want context.Canceled", err)
	}
}

func newLog(t *testing.T, cfg policyconfig.DecisionLog, deps decisionlog.Deps) *decisionlog.Log {
	t.Helper()
	l, err := decisionlog.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestEventFormat(t *testing.T) {
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout, cfg.Labels, cfg.Mask = true, map[string]string{"id": "gw1"}, []string{"/input/request/body/name"}
	var out bytes.Buffer
	l := newLog(t, cfg, decisionlog.Deps{Stdout: &out})
	run(t, l, func() { l.Record(event("d1")) })
	if strings.Contains(out.String(), "canary") {
		t.Errorf("a secret got out: %s", out.String())
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	input, _ := got["input"].(map[string]any)
	request, _ := input["request"].(map[string]any)
	wantBody := map[string]any{"name": "***", "password": "***", "env": map[string]any{"A": "***", "B/C": "***"}, "args": "***"}
	if diff := cmp.Diff(wantBody, request["body"]); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	delete(got, "input")
	want := map[string]any{
		"labels": map[string]any{"id": "gw1"}, "decision_id": "d1", "trace_id": "t1",
		"bundles": map[string]any{"acme": map[string]any{"revision": "abc"}},
		"path":    "tollgate/entrypoint/decision", "requested_by": "127.0.0.1",
		"timestamp": "2026-03-02T12:00:00Z", "metrics": map[string]any{"timer_decision_ns": 1500.0},
		"custom": map[string]any{"org": "acme", "request_id": "r1"},
		"masked": []any{
			"/input/request/body/env/A", "/input/request/body/env/B~1C", "/input/request/body/password",
			"/input/resource/after/env/A", "/input/resource/after/env/B~1C", "/input/resource/after/password",
			"/result/mutate/0/value", "/input/request/body/args", "/input/resource/after/args", "/input/request/body/name",
		},
		"result": map[string]any{
			"allowed": false, "deny": []any{map[string]any{"policy": "p", "message": "no", "pointer": "/name"}},
			"excepted": []any{map[string]any{
				"policy": "q", "message": "m", "exception": "x1", "until": "2026-03-02T12:00:00Z", "reason": "why", "granted_by": "ada",
			}},
			"mutate": []any{map[string]any{"policy": "f", "op": "force", "pointer": "/env/K", "value": "***"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestErrorsAndUnfitInputs(t *testing.T) {
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout = true
	var out bytes.Buffer
	l := newLog(t, cfg, decisionlog.Deps{Stdout: &out})
	run(t, l, func() {
		l.Record(decisionlog.Event{DecisionID: "d1", Err: errors.New("too late"), Input: &policies.Input{}})
		l.Record(decisionlog.Event{DecisionID: "d2", Decision: &policies.Decision{}, Input: &policies.Input{}})
	})
	for i, want := range []string{`"message":"too late"`, `"code":"input_error"`} {
		if got := strings.Split(out.String(), "\n")[i]; !strings.Contains(got, want) {
			t.Errorf("line %d: got %s, want %s", i, got, want)
		}
	}
}

// TestApply: which events are written, with what masked and labelled, changes while the log
// is open; an event that was recorded before and is written later is masked by the newer
// rules.
func TestApply(t *testing.T) {
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout, cfg.SampleAllowed = true, 1
	var out bytes.Buffer
	l := newLog(t, cfg, decisionlog.Deps{Stdout: &out})
	run(t, l, func() {
		l.Record(event("first"))
		cfg.Mask, cfg.Labels = []string{"/input/caller/team"}, map[string]string{"site": "north"}
		if err := l.Apply(cfg); err != nil {
			t.Fatal(err)
		}
		cfg.SampleAllowed = 0
		if err := l.Apply(cfg); err != nil {
			t.Fatal(err)
		}
		second := event("second")
		second.Decision = &policies.Decision{Revision: "abc"}
		l.Record(second)
		cfg.Mask = []string{"no pointer"}
		if err := l.Apply(cfg); err == nil {
			t.Error("a mask that is none is taken")
		}
	})
	got := out.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, `"first"`) || !strings.Contains(got, `"site":"north"`) || !strings.Contains(got, `"/input/caller/team"`) {
		t.Errorf("it writes\n%s\nwant the first event alone, labelled and masked", got)
	}
}

// TestRecordNeverWaits: with nobody writing, the oldest events go.
func TestRecordNeverWaits(t *testing.T) {
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout, cfg.Buffer = true, 4
	var out bytes.Buffer
	l := newLog(t, cfg, decisionlog.Deps{Stdout: &out})
	run(t, l, func() {
		for i := range 10 {
			l.Record(event(fmt.Sprintf("d%d", i)))
		}
	})
	var ids []string
	for line := range strings.Lines(out.String()) {
		var e struct {
			ID string `json:"decision_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff([]string{"d6", "d7", "d8", "d9"}, ids); diff != "" {
		t.Errorf("events written (-want +got):\n%s", diff)
	}
	want := decisionlog.Stats{Recorded: 10, Dropped: 6, Written: 4}
	if diff := cmp.Diff(want, l.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestRecordIsBoundedInBytes: large events push out more than one small one, and
// one that is larger than all the room there is waits alone.
func TestRecordIsBoundedInBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		sizes []int64
		want  []string
	}{
		"all fit":     {[]int64{40, 30, 30}, []string{"d0", "d1", "d2"}},
		"one goes":    {[]int64{40, 30, 30, 1}, []string{"d1", "d2", "d3"}},
		"several go":  {[]int64{40, 30, 30, 60}, []string{"d2", "d3"}},
		"a giant":     {[]int64{40, 30, 1000}, []string{"d2"}},
		"after one":   {[]int64{1000, 10, 20}, []string{"d1", "d2"}},
		"of no bytes": {[]int64{100, 0, 0}, []string{"d0", "d1", "d2"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := policyconfig.DefaultDecisionLog()
			cfg.Stdout, cfg.BufferBytes = true, 100
			var out bytes.Buffer
			l := newLog(t, cfg, decisionlog.Deps{Stdout: &out})
			run(t, l, func() {
				for i, size := range tc.sizes {
					e := event(fmt.Sprintf("d%d", i))
					e.Size = size
					l.Record(e)
				}
			})
			var got []string
			for line := range strings.Lines(out.String()) {
				var e struct {
					ID string `json:"decision_id"`
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, e.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			dropped := int64(len(tc.sizes) - len(tc.want))
			want := decisionlog.Stats{Recorded: int64(len(tc.sizes)), Dropped: dropped, Written: int64(len(tc.want))}
			if l.Stats() != want {
				t.Errorf("stats: got %+v, want %+v", l.Stats(), want)
			}
		})
	}
}

func TestSampling(t *testing.T) {
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout, cfg.SampleAllowed = true, 0.5
	draws := []float64{0.4, 0.6, 0.5}
	l := newLog(t, cfg, decisionlog.Deps{Stdout: io.Discard, Random: func() float64 {
		d := draws[0]
		draws = draws[1:]
		return d
	}})
	plain := event("d")
	plain.Decision = &policies.Decision{Revision: "abc"}
	run(t, l, func() {
		for range 3 {
			l.Record(plain)
		}
		l.Record(event("denied")) // always, and without a draw
	})
	want := decisionlog.Stats{Recorded: 2, Sampled: 2, Written: 2}
	if diff := cmp.Diff(want, l.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestFileRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.log")
	for i := range 4 { // each run is one batch
		cfg := policyconfig.DefaultDecisionLog()
		cfg.File = &logfile.File{Path: path, MaxBytes: 1, Keep: 2}
		l := newLog(t, cfg, decisionlog.Deps{})
		run(t, l, func() { l.Record(event(fmt.Sprintf("d%d", i))) })
	}
	for suffix, want := range map[string]string{"": "d3", ".1": "d2", ".2": "d1"} {
		text, err := os.ReadFile(path + suffix)
		if err != nil || !strings.Contains(string(text), `"decision_id":"`+want+`"`) {
			t.Errorf("d.log%s: got %s, %v; want %s in it", suffix, text, err, want)
		}
	}
	if _, err := os.Stat(path + ".3"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("d.log.3: got %v, want it not to exist", err)
	}
}

// Whoever renames the file, or cuts it, finds the next events in a new one, or at the
// beginning.
func TestFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.log")
	cfg := policyconfig.DefaultDecisionLog()
	cfg.File = &logfile.File{Path: path, MaxBytes: 2000, Keep: 1}
	l := newLog(t, cfg, decisionlog.Deps{})
	begin := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for ctx.Err() == nil && !ok() {
			if time.Since(begin) > time.Minute {
				t.Fatalf("%s did not happen", what)
			}
			runtime.Gosched()
		}
	}
	written := func(id string) {
		t.Helper()
		before := l.Stats().Written
		l.Record(event(id))
		until(id, func() bool { return l.Stats().Written > before })
	}
	aside := func(suffix string) {
		t.Helper()
		if err := os.Rename(path, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	written("first")
	aside(".aside")
	written("second")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	written("third")
	aside(".again")
	l.Reopen()
	until("another file", func() bool { _, err := os.Stat(path); return err == nil })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	for suffix, want := range map[string][]string{".aside": {"first"}, ".again": {"third"}, "": nil} {
		text, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile(`"decision_id":"(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			got = append(got, m[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events in d.log%s (-want +got):\n%s", suffix, diff)
		}
	}
}

// Events wait while the disk is full. The failure is logged once, and is part of the backlog.
func TestAFullDiskLosesNothing(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	path, file := filepath.Join(dir, "link"), filepath.Join(dir, "d.log")
	link := func(to string) {
		t.Helper()
		if err := errors.Join(os.Symlink(to, path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	link("/dev/full")
	synctest.Test(t, func(t *testing.T) {
		cfg := policyconfig.DefaultDecisionLog()
		cfg.File = &logfile.File{Path: path}
		var logged bytes.Buffer
		l := newLog(t, cfg, decisionlog.Deps{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		for _, id := range []string{"d1", "d2"} {
			l.Record(event(id))
			time.Sleep(5 * time.Minute)
		}
		if b := l.Backlogs()[0]; b.Waiting != 2 || b.Err == nil || strings.Count(logged.String(), "level=ERROR") != 1 {
			t.Errorf("backlog %+v, log %s; want 2 events and one error", b, logged.String())
		}
		link(file)
		time.Sleep(2 * time.Minute)
		if got, want := l.Stats(), (decisionlog.Stats{Recorded: 2, Written: 2}); got != want || l.Backlogs()[0].Err != nil {
			t.Errorf("stats %+v, backlog %+v; want %+v", got, l.Backlogs()[0], want)
		}
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	if text, err := os.ReadFile(file); err != nil || bytes.Count(text, []byte("\n")) != 2 {
		t.Errorf("the file holds %s, %v; want 2 lines", text, err)
	}
}

// brokenWriter fails always.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policyconfig.DefaultDecisionLog()
		cfg.Stdout = true
		l := newLog(t, cfg, decisionlog.Deps{Stdout: brokenWriter{}})
		run(t, l, func() { l.Record(event("d")) })
		want := decisionlog.Stats{Recorded: 1, Failed: 1}
		if diff := cmp.Diff(want, l.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

func TestConfigFaults(t *testing.T) {
	cfg := policyconfig.DecisionLog{
		SampleAllowed: 2, Mask: []string{"input", "/other"},
		File: &logfile.File{MaxBytes: -1, Keep: -1}, Service: &policyconfig.Service{URL: "ftp://x"},
	}
	want := []string{
		"sample_allowed: must be between 0 and 1, got 2",
		`mask[0]: "input" is not a JSON Pointer`, `mask[1]: "/other" does not start with /input/ or /result/`,
		"file.path: is required", "file.max_bytes: must not be negative, got -1", "file.keep: must not be negative, got -1",
		"service.url: must be http or https with a host and without credentials",
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
