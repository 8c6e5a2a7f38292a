package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func engine(tb testing.TB, orgs map[string]policies.Config) *policies.Engine {
	tb.Helper()
	limits := policyconfig.DefaultLimits()
	limits.Deadline = 10 * time.Second // the machine may be busy
	e, err := policies.NewEngine(limits, orgs, policies.Deps{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func acme(entries ...policies.Entry) map[string]policies.Config {
	return map[string]policies.Config{"acme": {Policies: entries}}
}

func most(n int) policies.Entry {
	return policies.Entry{Policy: "gpu_count", Params: map[string]any{"max_per_pod": n}}
}

func allow(gpus ...any) policies.Entry {
	return policies.Entry{Policy: "gpu_allow_list", Params: map[string]any{"gpus": gpus}}
}

func ceiling(usd int) policies.Entry {
	return policies.Entry{Policy: "price_ceiling", Params: map[string]any{"max_usd_per_hour": usd}}
}

func noLatest(mode policies.Mode) policies.Entry {
	return policies.Entry{Policy: "images", Mode: mode, Params: map[string]any{"allow": []any{"ghcr.io/acme"}}}
}

// input is a create as the gateway resolves it.
func input(tb testing.TB, org, key, id, body string) *policies.Input {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		tb.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	snap := catalog.NewSnapshot(catalog.Lists{GPUs: []catalog.GPU{{
		ID: "NVIDIA L4", Name: "L4", Pool: "ADA_24", Manufacturer: "NVIDIA", MemoryGB: 24,
		Secure:     catalog.Offer{Offered: true, MaxCount: 8, Price: catalog.Price{Known: true, PerHour: 430_000}},
		Serverless: catalog.Price{Known: true, PerHour: 690_000},
	}}}, catalog.Rates{}, now)
	return &policies.Input{
		Request:  policies.Request{Operation: id, Method: "POST", Path: "/v2/pods", Body: object, Dialect: "v2"},
		Caller:   policies.Caller{Org: org, Team: "research", Key: key, Roles: []string{"operator"}},
		Resource: policies.Resource{After: object},
		Catalog:  snap, Cost: snap.Price(id, operation.VerbCreate, object), Time: now,
	}
}

// pods are calls that differ in the members that the policies of these tests read.
func pods(tb testing.TB) []*policies.Input {
	tb.Helper()
	const pod = `{"gpu":{"id":%q,"count":%d},"image":%q,"env":{"TOKEN":"secret"}}`
	return []*policies.Input{
		input(tb, "acme", "ann", "createPod", fmt.Sprintf(pod, "NVIDIA L4", 1, "ghcr.io/acme/a:1")),
		input(tb, "acme", "ann", "createPod", fmt.Sprintf(pod, "NVIDIA L4", 2, "docker.io/x:1")),
		input(tb, "acme", "bob", "createPod", fmt.Sprintf(pod, "NVIDIA L4", 4, "ghcr.io/acme/a:1")),
		input(tb, "acme", "bob", "createPod", fmt.Sprintf(pod, "NVIDIA L4", 8, "ghcr.io/acme/a:1")),
		input(tb, "acme", "bob", "createEndpoint", `{"gpu":{"pools":["ADA_24"]},"workers":{"max":1}}`),
	}
}

// logOf decides calls and gives back the decision log's lines.
func logOf(tb testing.TB, e *policies.Engine, masks []string, calls ...*policies.Input) []byte {
	tb.Helper()
	var out bytes.Buffer
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout, cfg.Mask = true, masks
	l, err := decisionlog.New(cfg, decisionlog.Deps{Stdout: &out})
	if err != nil {
		tb.Fatal(err)
	}
	for i, in := range calls {
		ev := decisionlog.Event{DecisionID: fmt.Sprintf("d%d", i), Org: in.Caller.Org, Input: in}
		d, err := e.Decide(tb.Context(), in.Caller.Org, in)
		if err == nil {
			ev.Decision = &d
		} else {
			ev.Err = err
		}
		l.Record(ev)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	cancel()
	if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// counts are the calls of each kind that has any.
func counts(r *replay.Report) map[replay.Kind]int {
	out := map[replay.Kind]int{}
	for _, g := range r.Groups {
		if g.Calls > 0 {
			out[g.Kind] = g.Calls
		}
	}
	return out
}

func TestRun(t *testing.T) {
	const same, denied, allowed = replay.Same, replay.NewlyDenied, replay.NewlyAllowed
	tests := []struct {
		name     string
		old, new []policies.Entry
		masks    []string
		want     map[replay.Kind]int
		changed  bool
	}{
		{"the same policies", []policies.Entry{most(2), ceiling(3)}, []policies.Entry{ceiling(3), most(2)}, nil, map[replay.Kind]int{same: 5}, false},
		{"stricter", []policies.Entry{most(4)}, []policies.Entry{most(1)}, nil, map[replay.Kind]int{same: 2, denied: 2, replay.ChangedReasons: 1}, true},
		{"laxer", []policies.Entry{most(1)}, []policies.Entry{most(1000)}, nil, map[replay.Kind]int{same: 2, allowed: 3}, true},
		{"another policy refuses besides", []policies.Entry{most(2)}, []policies.Entry{most(2), ceiling(3)}, nil, map[replay.Kind]int{
			same: 4, replay.ChangedReasons: 1,
		}, true},
		{"only in shadow", []policies.Entry{most(2)}, []policies.Entry{most(2), noLatest(policies.ModeShadow)}, nil, map[replay.Kind]int{
			same: 4, replay.ChangedAdvice: 1,
		}, false},
		{"what needs the price list", nil, []policies.Entry{allow("NVIDIA L4")}, nil, map[replay.Kind]int{same: 4, replay.Undetermined: 1}, false},
		{
			"what needs the price list, refused anyway", nil,
			[]policies.Entry{allow("NVIDIA L4"), {Policy: "kill_switch"}},
			nil,
			map[replay.Kind]int{denied: 5},
			true,
		},
		{"what was masked", []policies.Entry{most(2)}, []policies.Entry{most(2), noLatest("")}, []string{"/input/resource/after/image"}, map[replay.Kind]int{
			same: 3, replay.Undetermined: 2,
		}, false},
		{"policies that change bodies", nil, []policies.Entry{{Policy: "field_values", Params: map[string]any{
			"force": map[string]any{"createPod": map[string]any{"/gpu/count": 1}},
		}}}, nil, map[replay.Kind]int{same: 5}, false},
		{"changes that contradict each other", nil, []policies.Entry{{Policy: "field_values", Params: map[string]any{
			"force": map[string]any{"createPod": map[string]any{"/args": "a", "/cmd": []any{"b"}}},
		}}}, nil, map[replay.Kind]int{same: 1, replay.Undetermined: 4}, false},
		{"a change makes the price unknown", nil, []policies.Entry{{Policy: "field_values", Params: map[string]any{
			"force": map[string]any{"createPod": map[string]any{"/gpu/count": 1}},
		}}, ceiling(1)}, nil, map[replay.Kind]int{same: 2, replay.Undetermined: 3}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := logOf(t, engine(t, acme(tt.old...)), tt.masks, pods(t)...)
			r, err := replay.Run(t.Context(), bytes.NewReader(log), engine(t, acme(tt.new...)), replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, counts(r)); diff != "" {
				text, _ := json.MarshalIndent(r, "", " ")
				t.Errorf("kinds (-want +got):\n%s\n%s", diff, text)
			}
			if text, _ := json.Marshal(r); bytes.Contains(text, []byte("  ")) {
				t.Errorf("the report has two spaces: %s", text)
			}
			if r.Changed() != tt.changed || r.Read != 5 || r.Unreadable+r.Other+r.Skipped != 0 {
				t.Errorf("got changed %t, %d read, want changed %t, all 5 read: %+v", r.Changed(), r.Read, tt.changed, r)
			}
		})
	}
}

// A call that passed with an approval is not denied by a draft that only repeats the denial. An exception covers the recorded violation only.
func TestApprovedCalls(t *testing.T) {
	log := bytes.ReplaceAll(logOf(t, engine(t, acme(most(2))), nil, pods(t)...), []byte(`"deny":[{`), []byte(`"excepted":[{"exception":"ap-1",`))
	for _, tt := range []struct {
		name string
		log  []byte
		new  []policies.Entry
		want map[replay.Kind]int
	}{
		{"approved", log, []policies.Entry{most(2)}, map[replay.Kind]int{replay.Same: 5}},
		{"approved, another message", log, []policies.Entry{most(3)}, map[replay.Kind]int{replay.Same: 5}},
		{"approved, another policy", log, []policies.Entry{most(2), ceiling(3)}, map[replay.Kind]int{replay.Same: 4, replay.NewlyDenied: 1}},
		{"excepted", bytes.ReplaceAll(log, []byte("ap-1"), []byte("x1")), []policies.Entry{most(2)}, map[replay.Kind]int{replay.Same: 5}},
		{"excepted, another message", bytes.ReplaceAll(log, []byte("ap-1"), []byte("x1")), []policies.Entry{most(3)}, map[replay.Kind]int{
			replay.Same: 3, replay.NewlyDenied: 2,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := replay.Run(t.Context(), bytes.NewReader(tt.log), engine(t, acme(tt.new...)), replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, counts(r)); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReport: the findings of one kind.
func TestReport(t *testing.T) {
	log := logOf(t, engine(t, acme(most(8))), nil, pods(t)...)
	r, err := replay.Run(t.Context(), bytes.NewReader(log), engine(t, acme(most(1), ceiling(1))), replay.Options{Examples: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r.Group(replay.NewlyDenied))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"newly_denied","calls":3,"policies":{"gpu_count":3,"price_ceiling":2},` +
		`"callers":[{"org":"acme","team":"research","key":"bob","calls":2},{"org":"acme","team":"research","key":"ann","calls":1}],` +
		`"examples":[{"decision_id":"d1","time":"2026-03-02T12:00:00Z","org":"acme","team":"research","key":"ann","operation":"createPod",` +
		`"now":[{"policy":"gpu_count","message":"2 GPUs per pod exceed the limit of 1","pointer":"/gpu/count"}]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	if r.Revisions["acme"] == "" {
		t.Error("no revision is named")
	}
}

// TestFormats: lines, arrays, gzip, other events, damage and other
// organisations.
func TestFormats(t *testing.T) {
	orgs := acme(most(2))
	orgs["umbrella"] = policies.Config{}
	old := engine(t, orgs)
	lines := logOf(t, old, nil, append(pods(t), input(t, "umbrella", "eve", "createPod", `{"gpu":{"id":"NVIDIA L4","count":8}}`))...)
	array := append(append([]byte{'['}, bytes.ReplaceAll(bytes.TrimSpace(lines), []byte{'\n'}, []byte(",\n"))...), ']')
	zip := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err1 := w.Write(b)
		if err := errors.Join(err1, w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	damaged := append(bytes.Clone(lines), "\n{\"decision_id\":\"x\",\"path\":\"system/main\",\"result\":true}\n{\"input\":{\"version\":9},\"custom\":{\"org\":\"acme\"}}\n{\"decision_id\":"...)
	tests := []struct {
		name                                  string
		log                                   []byte
		opts                                  replay.Options
		read, skipped, other, unreadable, all int
	}{
		{"lines", lines, replay.Options{}, 6, 0, 0, 0, 6},
		{"gzip", zip(lines), replay.Options{}, 6, 0, 0, 0, 6},
		{"array", array, replay.Options{}, 6, 0, 0, 0, 6},
		{"gzipped array", zip(array), replay.Options{}, 6, 0, 0, 0, 6},
		{"one organisation", lines, replay.Options{Org: "acme"}, 6, 1, 0, 0, 5},
		{"damaged", damaged, replay.Options{}, 9, 0, 1, 1, 7},
		{"nothing", nil, replay.Options{}, 0, 0, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := replay.Run(t.Context(), bytes.NewReader(tt.log), old, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			all := 0
			for _, g := range r.Groups {
				all += g.Calls
			}
			if r.Read != tt.read || r.Skipped != tt.skipped || r.Other != tt.other || r.Unreadable != tt.unreadable || all != tt.all {
				t.Errorf("got %d read, %d skipped, %d other, %d unreadable, %d told of; want %d, %d, %d, %d, %d",
					r.Read, r.Skipped, r.Other, r.Unreadable, all, tt.read, tt.skipped, tt.other, tt.unreadable, tt.all)
			}
			if r.Changed() {
				t.Errorf("the same policies change verdicts: %+v", r)
			}
		})
	}
	if _, err := replay.Run(t.Context(), bytes.NewReader(array[:len(array)-9]), old, replay.Options{}); err == nil {
		t.Error("an array that ends too early was read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Run(ctx, bytes.NewReader(lines), old, replay.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// TestAs judges by the policies of a directory, whoever called.
func TestAs(t *testing.T) {
	dir := t.TempDir()
	rego := "package policies.mine\n\ndeny contains \"no\" if input.resource.after.gpu.count > 2\n"
	if err := os.WriteFile(filepath.Join(dir, "mine.rego"), []byte(rego), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := engine(t, map[string]policies.Config{"": {Directory: files.UnrestrictedPath(dir)}, "as": {Directory: files.UnrestrictedPath(dir)}})
	orgs := acme()
	orgs["umbrella"] = policies.Config{}
	log := logOf(t, engine(t, orgs), nil, append(pods(t), input(t, "umbrella", "eve", "createPod", `{"gpu":{"id":"NVIDIA L4","count":8}}`))...)
	r, err := replay.Run(t.Context(), bytes.NewReader(log), mine, replay.Options{As: "as", Org: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[replay.Kind]int{replay.NewlyDenied: 2, replay.Same: 3}, counts(r)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if _, err := replay.Run(t.Context(), bytes.NewReader(log), mine, replay.Options{As: "as"}); !errors.Is(err, replay.ErrSeveralOrgs) {
		t.Errorf("got %v, want ErrSeveral", err)
	}
}

// TestErrorsAreRefusals: a decision that failed was a refusal, and one that
// would fail is one.
func TestErrorsAreRefusals(t *testing.T) {
	dir := t.TempDir()
	rego := "package policies.mine\n\ndeny contains \"no\" if to_number(input.caller.key) > 1\n"
	if err := os.WriteFile(filepath.Join(dir, "mine.rego"), []byte(rego), 0o600); err != nil {
		t.Fatal(err)
	}
	fails := engine(t, map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}})
	passes := engine(t, acme())
	for _, tt := range []struct {
		name     string
		old, new *policies.Engine
		want     map[replay.Kind]int
	}{
		{"would fail", passes, fails, map[replay.Kind]int{replay.NewlyDenied: 5}},
		{"failed", fails, passes, map[replay.Kind]int{replay.NewlyAllowed: 5}},
		{"fails as before", fails, fails, map[replay.Kind]int{replay.Same: 5}},
		{"refuses now", fails, engine(t, acme(policies.Entry{Policy: "kill_switch"})), map[replay.Kind]int{replay.ChangedReasons: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := replay.Run(t.Context(), bytes.NewReader(logOf(t, tt.old, nil, pods(t)...)), tt.new, replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, counts(r)); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
		})
	}
}
