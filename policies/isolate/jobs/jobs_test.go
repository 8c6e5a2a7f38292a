package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/isolate/jobs"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

// TestMain lets the test binary be the child.
func TestMain(m *testing.M) {
	if code, isChild := jobs.Main(context.Background()); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func runner(t *testing.T, cfg isolate.Config) *isolate.Runner {
	t.Helper()
	cfg.Command = isolate.Self
	r := isolate.New(cfg)
	t.Cleanup(r.Close)
	return r
}

// asJSON is a value as a child sends it.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// endless is a module that OPA's type checker never finishes: the types of a and b are equal
// trees of 2^60 leaves.
func endless(pkg string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package policies.%s\n\n", pkg)
	for _, v := range []string{"a", "b"} {
		fmt.Fprintf(&b, "%s0 := [1, \"x\"]\n\n", v)
		for i := range 60 {
			fmt.Fprintf(&b, "%[1]s%[2]d := [%[1]s%[3]d, %[1]s%[3]d]\n\n", v, i+1, i)
		}
	}
	b.WriteString("deny contains \"x\" if a60 == b60\n")
	return b.String()
}

// input is the input of a call that creates a pod with two GPUs.
func input(t *testing.T) map[string]any {
	t.Helper()
	in := &policies.Input{
		Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Caller: policies.Caller{Org: "acme", Team: "research", Key: "ann"},
		Request:  policies.Request{Operation: "createPod", Dialect: "v2", Body: map[string]any{"name": "x"}},
		Resource: policies.Resource{After: map[string]any{"gpu": map[string]any{"count": json.Number("2")}}},
	}
	doc, err := in.Decoded()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// source returns the sources of an organisation with a policy of its own and one of the library.
func source(t *testing.T) *policies.Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"own.rego":         "package policies.own\n\ndeny contains \"in force\" if data.limits.gpus < input.resource.after.gpu.count\n",
		"limits/data.yaml": "gpus: 1\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": {
		Directory: files.UnrestrictedPath(dir), Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 4}}},
	}}, policies.Deps{Isolate: runner(t, isolate.Config{Compile: time.Minute})})
	if err != nil {
		t.Fatal(err)
	}
	src, err := e.Source("acme")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// A child answers as this process would.
func TestChildAnswersTheSame(t *testing.T) {
	src := source(t)
	trial := func(d policies.Draft) *jobs.Trial {
		return &jobs.Trial{Source: src, Draft: d, Input: input(t), Masked: []string{"/resource/after/env"}}
	}
	for name, d := range map[string]policies.Draft{
		"other parameters":  {Entries: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1}}}},
		"own with data":     {Entries: []policies.Entry{{Policy: "own", Mode: policies.ModeWarn}}},
		"rego":              {Rego: "package policies.own\n\ndeny contains msg if {\n\tprint(data.limits)\n\tmsg := sprintf(\"%d\", [data.limits.gpus])\n}\n"},
		"a change":          {Rego: "package policies.new\n\nmutate contains {\"op\": \"add\", \"pointer\": \"/name\", \"value\": {\"n\": 1.50}} if true\n"},
		"what is masked":    {Rego: "package policies.new\n\ndeny contains \"x\" if input.resource.after.env.K == \"v\"\n"},
		"two faults":        {Rego: "package policies.new\n\ndeny contains \"x\" if inputs.a\n\nwarn contains \"x\" if inputs.b\n"},
		"a failing policy":  {Rego: "package policies.new\n\ndeny contains \"x\" if to_number(\"x\") == 1\n"},
		"an unknown policy": {Entries: []policies.Entry{{Policy: "nonesuch"}}},
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := jobs.Try(t.Context(), nil, trial(d))
			got, err := jobs.Try(t.Context(), runner(t, isolate.Config{}), trial(d))
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("got %v, want %v", err, wantErr)
			}
			if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var wantFault, fault *policyconfig.Error
			if errors.As(wantErr, &wantFault) != errors.As(err, &fault) {
				t.Errorf("got %T, want %T", err, wantErr)
			}
		})
	}
	damaged := trial(policies.Draft{Rego: "package policies.new\n\ndeny contains \"x\" if false\n"})
	damaged.Input["version"] = json.Number("0")
	if _, err := jobs.Try(t.Context(), runner(t, isolate.Config{}), damaged); !errors.Is(err, policies.ErrInput) {
		t.Errorf("a document of another version: %v, want %v", err, policies.ErrInput)
	}
}

// Drafts without bounds end, whether they compile or not.
func TestTryEnds(t *testing.T) {
	r, src := runner(t, isolate.Config{}), source(t)
	tens := "xs := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\n"
	spin := "count([1 | some a in xs; some b in xs; some c in xs; some d in xs; some e in xs; some f in xs; some g in xs; some h in xs; some i in xs; some j in xs; a + b + c + d + e + f + g + h + i + j == 0]) > 0"
	held := "s0 := \"0123456789\"\n\n" // 200 strings of 1 MB, which the draft holds until it is ended
	for n := range 5 {
		held += fmt.Sprintf("s%d := concat(\"\", [s%d | some _ in xs])\n\n", n+1, n)
	}
	held += "held := [concat(\"\", [s5, \"x\"]) | some a in xs; some b in xs; some c in [1, 2]]\n\n"
	for name, c := range map[string]struct {
		rego string
		want error
	}{
		"compiling":    {strings.TrimPrefix(endless("greedy"), "package policies.greedy\n\n"), isolate.ErrDeadline},
		"time":         {tens + "deny contains \"x\" if " + spin, isolate.ErrDeadline},
		"memory":       {tens + held + "deny contains \"x\" if {\n\tcount(held) > 0\n\t" + spin + "\n\tcount(held) > 0\n}", isolate.ErrMemory},
		"prints":       {tens + "deny contains \"x\" if {\n\tsome a in xs\n\tsome b in xs\n\tsome c in xs\n\tsome d in xs\n\tprint(a, b, c, d)\n\ta + b + c + d < 0\n}", nil},
		"a long print": {"a := [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n\nb := [a | some _ in a]\n\nc := [b | some _ in a]\n\nd := [c | some _ in a]\n\ne := [d | some _ in a]\n\nf := [e | some _ in a]\n\ng := [f | some _ in a]\n\nh := [g | some _ in a]\n\ndeny contains \"x\" if print(h)", nil},
		"network":      {"deny contains \"x\" if http.send({\"method\": \"get\", \"url\": \"http://169.254.169.254\"}).status_code == 200", nil},
	} {
		t.Run(name, func(t *testing.T) {
			limit := jobs.TryTime
			if errors.Is(c.want, isolate.ErrMemory) {
				limit = time.Minute // a busy machine may need more than TryTime until the memory is exceeded
			}
			trial := &jobs.Trial{Source: src, Draft: policies.Draft{Rego: "package policies.greedy\n\n" + c.rego + "\n"}, Input: input(t)}
			tried, err := jobs.TryFor(t.Context(), r, trial, limit)
			fault, isFault := errors.AsType[*policyconfig.Error](err)
			switch {
			case err == nil:
				t.Errorf("it passed: %+v", tried)
			case c.want != nil && !errors.Is(err, c.want):
				t.Errorf("got %v, want %v", err, c.want)
			case name == "network" && (!isFault || fault.Row != 3 || fault.File != policies.DraftFile || !strings.Contains(err.Error(), "http.send")):
				t.Errorf("got %v, want a fault with its place", err)
			}
		})
	}
}

// A replay reads the log as it is written, and ends even if its draft does not compile.
func TestReplay(t *testing.T) {
	src := source(t)
	log := func(_ context.Context, w io.Writer) error {
		for n := range 3 {
			event := map[string]any{"decision_id": fmt.Sprint(n), "timestamp": "2026-03-04T05:06:07Z", "custom": map[string]any{"org": "acme"}, "input": input(t), "result": map[string]any{"allowed": true}}
			if err := json.NewEncoder(w).Encode(event); err != nil {
				return err
			}
		}
		return nil
	}
	request := func(rego string) *jobs.ReplayRequest {
		return &jobs.ReplayRequest{Source: src, Draft: policies.Draft{Rego: rego}, Options: replay.Options{Org: "acme"}}
	}
	rego := "package policies.new\n\ndeny contains \"draft\" if true\n"
	want, err := jobs.Replay(t.Context(), nil, request(rego), log)
	if err != nil || want.Read != 3 || !want.Changed() {
		t.Fatalf("%+v, %v, want three calls that are denied", want, err)
	}
	got, err := jobs.Replay(t.Context(), runner(t, isolate.Config{}), request(rego), log)
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := jobs.Replay(t.Context(), runner(t, isolate.Config{}), request("package policies.new\n\ndeny contains 1 if nothing\n"), log); err == nil {
		t.Error("a draft with a fault is replayed")
	}
	if _, err := jobs.Replay(t.Context(), runner(t, isolate.Config{}), request(endless("new")), log); err == nil || !strings.Contains(err.Error(), "compilation of the draft took longer than 5s") {
		t.Errorf("a draft that never compiles: %v", err)
	}
}
