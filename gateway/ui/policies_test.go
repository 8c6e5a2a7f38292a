package ui

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
)

// The page of policies adds up their verdicts of a week, by policy, by day and by team.
func TestWeek(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC)
	counts := []decisions.PolicyCount{
		{Hour: now.Truncate(time.Hour), Policy: "disk", Verdict: "would deny", Team: "research", Calls: 3},
		{Hour: now.Add(-25 * time.Hour), Policy: "disk", Verdict: "would deny", Team: "research", Calls: 2},
		{Hour: now.Add(-25 * time.Hour), Policy: "disk", Verdict: "warns", Calls: 4},
		{Hour: now.Truncate(time.Hour), Policy: "gone", Verdict: "denies", Calls: 1},
	}
	today := []decisions.RefusalCount{{Reason: "policy gone", Calls: 1, Decision: "d1"}, {Reason: "budget", Calls: 9}}
	list, teams := week([]adminapi.Entry{{Policy: "gpu_count", Mode: "enforce"}, {Policy: "disk", Mode: "shadow", Teams: []string{"ml", "ops"}}, {Policy: "disk", Mode: "warn", ExceptTeams: []string{"ml"}, Roles: []string{"viewer"}}}, counts, today, now)
	want := []policyWeek{
		{Policy: "gpu_count", On: true, Modes: []string{"enforce"}},
		{Policy: "disk", On: true, Modes: []string{"shadow for team ml, ops", "warn but for team ml for role viewer"}, WouldRefuse: 5, Warned: 4, Days: [weekDays]int64{5: 6, 6: 3}},
		{Policy: "gone", Refused: 1, Today: today[0]},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]decisions.PolicyCount{
		{Policy: "disk", Verdict: "would deny", Team: "research", Calls: 5}, {Policy: "disk", Verdict: "warns", Calls: 4}, {Policy: "gone", Verdict: "denies", Calls: 1},
	}, teams); diff != "" {
		t.Errorf("by team (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]box{{X: "51.0", Y: "0.0", Width: "8.0", Height: "20.0"}, {X: "61.0", Y: "10.0", Width: "8.0", Height: "10.0"}}, list[1].Bars()); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
}
