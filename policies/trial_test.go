package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/record"
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

// sourceOf returns the sources of the engine's organisation, as a child process has them.
func sourceOf(t *testing.T, e *policies.Engine) *policies.Source {
	t.Helper()
	src, err := e.Source("acme")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(src)
	if err != nil {
		t.Fatal(err)
	}
	read, d := new(policies.Source), json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(read); err != nil {
		t.Fatal(err)
	}
	return read
}

// A draft is tried beside the policies in force, and changes none of them.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "help.rego", "package policies.spare_help\n\nmany := input.resource.after.gpu.count > 1\n\nwarn contains \"x\" if false\n")
	write(t, dir, "spare.rego", "package policies.spare\n\nimport data.policies.spare_help as helpers\n\ndeny contains \"in force\" if helpers.many\n")
	e := newEngine(t, policies.Config{Directory: files.UnrestrictedPath(dir), Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1}}}})
	before, _ := e.Revision("acme")
	src := sourceOf(t, e)
	tried, err := src.Try(t.Context(), policies.Draft{Rego: `package policies.spare

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
	masked, err := src.Try(t.Context(), policies.Draft{Rego: "package policies.look\n\ndeny contains \"x\" if input.resource.after.env.K == \"v\"\n"}, recordedPod(t))
	if err != nil || len(masked.Decision.Deny) != 0 || len(masked.Open) != 1 || masked.Open[0].Policy != "look" {
		t.Errorf("a look at what is masked: %+v, %v", masked, err)
	}
	entries, err := src.Try(t.Context(), policies.Draft{Entries: []policies.Entry{{Policy: "gpu_count", Mode: policies.ModeShadow, Params: map[string]any{"max_per_pod": 1}}}}, recordedPod(t))
	if err != nil || len(entries.Decision.Shadow) != 1 || len(entries.Decision.Deny) != 0 {
		t.Errorf("other parameters of a policy of the library: %+v, %v", entries, err)
	}
}

// A draft's engine decides recorded calls as if the draft were in force.
func TestDraft(t *testing.T) {
	e := newEngine(t, policies.Config{Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 2}}}})
	next, err := sourceOf(t, e).Draft(t.Context(), policies.Draft{Entries: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1}}}}, section.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for engine, want := range map[*policies.Engine]int{e: 0, next: 1} {
		if d, _, err := engine.DecideRecorded(t.Context(), "acme", recordedPod(t)); err != nil || len(d.Deny) != want {
			t.Errorf("denials %+v, %v, want %d", d.Deny, err, want)
		}
	}
	if _, err := e.Source("globex"); !errors.Is(err, policies.ErrUnknownOrg) {
		t.Errorf("another organisation: %v", err)
	}
}
