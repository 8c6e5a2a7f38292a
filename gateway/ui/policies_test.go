package ui

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// The list of policies adds up their results by policy and by calendar day; policies that are no longer in force follow the others.
func TestEffects(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC)
	counts := part[decisions.PolicyCounts]{Is: decisions.PolicyCounts{Counts: []decisions.PolicyCount{
		{Hour: now.Truncate(time.Hour), Policy: "disk", Verdict: "would deny", Team: "research", Calls: 3},
		{Hour: now.Add(-25 * time.Hour), Policy: "disk", Verdict: "would deny", Team: "research", Calls: 2},
		{Hour: now.Add(-25 * time.Hour), Policy: "disk", Verdict: "warns", Calls: 4},
		{Hour: now.Add(-40 * 24 * time.Hour), Policy: "disk", Verdict: "excepted", Calls: 5},
		{Hour: now.Truncate(time.Hour), Policy: "gone", Verdict: "denies", Calls: 1},
	}}}
	list := []operator.PolicyDetails{{Policy: "gpu_count"}, {Policy: "disk"}}
	want := []policyEffect{
		{PolicyDetails: list[0], Calls: map[string]int64{}},
		{PolicyDetails: list[1], Calls: map[string]int64{"would deny": 5, "warns": 4, "excepted": 5}, Days: [policyRetention]float64{policyRetention - 2: 2, policyRetention - 1: 3}},
		{PolicyDetails: operator.PolicyDetails{Policy: "gone"}, Calls: map[string]int64{"denies": 1}, Days: [policyRetention]float64{policyRetention - 1: 1}},
	}
	if diff := cmp.Diff(want, effects(list, counts, now)); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if got := effects(list, part[decisions.PolicyCounts]{Status: 503}, now); !got[0].Unknown {
		t.Error("results that could not be read are shown as 0")
	}
}

// Days are calendar days in the organisation's zone, also when clocks change, as on the page of a policy.
func TestDaysOfPolicies(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 26, 0, 30, 0, 0, zone) // 25 October had 25 hours
	counts := part[decisions.PolicyCounts]{}
	for _, at := range []time.Time{now, now.Add(-time.Hour), time.Date(2026, 10, 25, 0, 0, 0, 0, zone), now.AddDate(0, 0, -1).Add(-time.Hour), now.AddDate(0, 0, -29), now.AddDate(0, 0, -30)} {
		hour := at.UTC().Truncate(time.Hour)
		counts.Is.Counts = append(counts.Is.Counts, decisions.PolicyCount{Hour: hour, Policy: "disk", Verdict: "denies", Calls: 1})
	}
	want := [policyRetention]float64{0: 1, policyRetention - 3: 1, policyRetention - 2: 2, policyRetention - 1: 1}
	if got := effects(nil, counts, now)[0]; got.Days != want || got.Calls["denies"] != 6 {
		t.Errorf("%v, %d in all, want %v and 6", got.Days, got.Calls["denies"], want)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	entry := func(e adminapi.Entry) operator.PolicyEntry { return operator.PolicyEntry{Entry: e} }
	shadow, enforce := entry(adminapi.Entry{Mode: "shadow", Teams: []string{"ml", "ops"}, ExceptRoles: []string{"admin"}}), entry(adminapi.Entry{Mode: "enforce"})
	if got := modeOf([]operator.PolicyEntry{shadow, enforce}); got.Word != "Enforced" {
		t.Errorf("two modes are %q, want the strictest", got.Word)
	}
	if got := modeOf(nil); got.Word != "Not in force" {
		t.Errorf("no entry is %q", got.Word)
	}
	if diff := cmp.Diff([]string{"Shadow: team ml, ops, except role admin", "Enforce: everyone"}, appliesCell([]operator.PolicyEntry{shadow, enforce}).Lines); diff != "" {
		t.Errorf("applies to (-want +got):\n%s", diff)
	}
}

// Errors of a draft are shown at their lines.
func TestFaultsOf(t *testing.T) {
	t.Parallel()
	got := faultsOf("2 errors occurred: draft.rego:3:1: rego_parse_error: unexpected }; draft.rego:12: rego_type_error: undefined ref")
	if diff := cmp.Diff([]lineFault{{3, "rego_parse_error: unexpected }"}, {12, "rego_type_error: undefined ref"}}, got); diff != "" {
		t.Errorf("errors by line (-want +got):\n%s", diff)
	}
	if faultsOf("the decision log of this gateway does not have the decision") != nil {
		t.Error("an error without a line has one")
	}
}

// A draft survives its way through an address; a parameter of something else changes nothing.
func TestDraftsInAddresses(t *testing.T) {
	t.Parallel()
	var p, q playground
	p.Rego, p.Policies, p.Input = "package policies.mine\n\n# ä<>&", "policies: []", `{"a": 1}`
	q.unpack(p.pack())
	if diff := cmp.Diff(p, q); diff != "" {
		t.Errorf("through an address (-want +got):\n%s", diff)
	}
	q.unpack("bm90IGRlZmxhdGU")
	if q.Rego != p.Rego {
		t.Error("a broken parameter has changed the draft")
	}
}
