package policies_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/record"
	"github.com/tollgate-dev/tollgate/policies/sandbox"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// recordedPod is a recorded call of two GPUs whose environment is masked.
func recordedPod(t *testing.T) *record.Recorded {
	t.Helper()
	doc := documentOf(t, call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":2},"env":{"K":"***"}}`))
	r, err := record.Read(doc, []string{"/resource/after/env/K"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A draft is tried beside the policies in force, and changes none of them.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "help.rego", "package policies.spare_help\n\nmany := input.resource.after.gpu.count > 1\n\nwarn contains \"x\" if false\n")
	write(t, dir, "spare.rego", "package policies.spare\n\nimport data.policies.spare_help as helpers\n\ndeny contains \"in force\" if helpers.many\n")
	e := newEngine(t, policies.Config{Directory: dir, Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1}}}})
	before, _ := e.Revision("acme")
	tried, err := e.Try(t.Context(), "acme", policies.Draft{Rego: `package policies.spare

import data.policies.spare_help as helpers

deny contains msg if {
	print("count", input.resource.after.gpu.count)
	helpers.many
	msg := "in the draft"
}

warn contains "never" if {
	input.resource.after.gpu.count > 100
	print("far too many")
}
`}, recordedPod(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(tried.Decision.Deny) != 1 || tried.Decision.Deny[0].Message != "in the draft" || len(tried.Decision.Warn) != 0 {
		t.Errorf("said %+v, want the draft's denial alone", tried.Decision)
	}
	if diff := cmp.Diff([]string{"draft.rego:6: count 2"}, tried.Prints); diff != "" {
		t.Errorf("prints (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{11, 13}, tried.Missed); diff != "" || len(tried.Covered) == 0 {
		t.Errorf("covered %v, missed (-want +got):\n%s", tried.Covered, diff)
	}
	if after, _ := e.Revision("acme"); after != before {
		t.Errorf("revision %s, want %s: the draft is in force", after, before)
	}
	masked, err := e.Try(t.Context(), "acme", policies.Draft{Rego: "package policies.look\n\ndeny contains \"x\" if input.resource.after.env.K == \"v\"\n"}, recordedPod(t))
	if err != nil || len(masked.Decision.Deny) != 0 || len(masked.Open) != 1 || masked.Open[0].Policy != "look" {
		t.Errorf("a look at what is masked: %+v, %v", masked, err)
	}
	entries, err := e.Try(t.Context(), "acme", policies.Draft{Entries: []policies.Entry{{Policy: "gpu_count", Mode: policies.ModeShadow, Params: map[string]any{"max_per_pod": 1}}}}, recordedPod(t))
	if err != nil || len(entries.Decision.Shadow) != 1 || len(entries.Decision.Deny) != 0 {
		t.Errorf("other parameters of a policy of the library: %+v, %v", entries, err)
	}
}

// A draft with a fault is told where, and one without bounds is ended.
func TestTryIsBounded(t *testing.T) {
	e := newEngine(t, policies.Config{})
	for name, c := range map[string]struct {
		rego string
		want error
	}{
		"time":         {"xs := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\ndeny contains \"x\" if count([1 | some a in xs; some b in xs; some c in xs; some d in xs; some e in xs; some f in xs; some g in xs; some h in xs; some i in xs; some j in xs; a + b + c + d + e + f + g + h + i + j == 0]) > 0", policies.ErrDeadline},
		"memory":       {"xs := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\nbig := concat(\"\", [x | some a in xs; some b in xs; some c in xs; some d in xs; x := \"0123456789\"])\n\ndeny contains \"x\" if count({concat(\"\", [big, sprintf(\"%d %d %d %d\", [a, b, c, d])]) | some a in xs; some b in xs; some c in xs; some d in xs}) < 0", sandbox.ErrMemory},
		"prints":       {"xs := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\ndeny contains \"x\" if {\n\tsome a in xs\n\tsome b in xs\n\tsome c in xs\n\tsome d in xs\n\tprint(a, b, c, d)\n\ta + b + c + d < 0\n}", policies.ErrEvaluation},
		"a long print": {"a := [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n\nb := [a | some _ in a]\n\nc := [b | some _ in a]\n\nd := [c | some _ in a]\n\ne := [d | some _ in a]\n\nf := [e | some _ in a]\n\ng := [f | some _ in a]\n\nh := [g | some _ in a]\n\ndeny contains \"x\" if print(h)", policies.ErrEvaluation},
		"network":      {"deny contains \"x\" if http.send({\"method\": \"get\", \"url\": \"http://169.254.169.254\"}).status_code == 200", nil},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			tried, err := e.Try(t.Context(), "acme", policies.Draft{Rego: "package policies.greedy\n\n" + c.rego + "\n"}, recordedPod(t))
			fault, isFault := errors.AsType[*section.Error](err)
			switch {
			case err == nil:
				t.Errorf("it passed: %+v", tried)
			case c.want != nil && !errors.Is(err, c.want):
				t.Errorf("got %v, want %v", err, c.want)
			case c.want == nil && (!isFault || fault.Row != 3 || fault.File != policies.DraftFile || !strings.Contains(fmt.Sprint(err), "http.send")):
				t.Errorf("got %v, want a fault with its place", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// A draft's engine decides recorded calls as if the draft were in force.
func TestDraft(t *testing.T) {
	e := newEngine(t, policies.Config{Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 2}}}})
	next, err := e.Draft(t.Context(), "acme", policies.Draft{Entries: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1}}}}, section.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for engine, want := range map[*policies.Engine]int{e: 0, next: 1} {
		if d, _, err := engine.DecideRecorded(t.Context(), "acme", recordedPod(t)); err != nil || len(d.Deny) != want {
			t.Errorf("denials %+v, %v, want %d", d.Deny, err, want)
		}
	}
	if _, err := e.Draft(t.Context(), "globex", policies.Draft{}, section.DefaultLimits()); !errors.Is(err, policies.ErrUnknownOrg) {
		t.Errorf("another organisation: %v", err)
	}
}
