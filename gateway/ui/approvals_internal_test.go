package ui

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// The effect of an approval covers the budgets of the team, the key and the organisation, now and at the end of the period.
func TestEffectsOfApprovals(t *testing.T) {
	t.Parallel()
	v := inBerlin()
	ends := v.now().Add(10 * time.Hour)
	list := []money.BudgetRow{
		{Kind: "team", ID: "ml", Scope: "team ml", Budget: money.Budget{Name: "per_day", Limit: "9", Left: "9"}},
		{Kind: "team", ID: "research", Scope: "team research", Ends: &ends, Free: "12", Budget: money.Budget{Name: "per_day", Limit: "20", Left: "14"}},
		{Kind: "team", ID: "research", Scope: "team research", Budget: money.Budget{Name: "per_hour", Limit: "10", Left: "1"}},
		{Kind: "team", ID: "research", Scope: "team research", Budget: money.Budget{Name: "gpus", Limit: "10", Left: "1"}},
		{Kind: "organisation", Scope: "organisation", Ends: &ends, Budget: money.Budget{Name: "per_month", Limit: "500", Left: "400"}},
	}
	rows := func(usd string, per approval.Unit) (out []string) {
		for _, r := range effectTable(v, effectsOf(v, list, "research", "ann", usd, per)).Rows {
			var cells []string
			for _, c := range r.Cells {
				text := strings.TrimSuffix(c.Text+", "+c.Sub, ", ")
				if c.Status != nil {
					text = c.Status.Icon() + ": " + c.Status.Word + text
				}
				cells = append(cells, text)
			}
			out = append(out, strings.Join(cells, " | "))
		}
		return out
	}
	for _, tt := range []struct {
		usd  string
		per  approval.Unit
		want []string
	}{
		{"1.5", approval.PerHour, []string{
			"Team research, per day | $14.00, of $20.00 | $12.50 left, for the first hour | x-circle: $3.00 over, resets 30 Nov",
			"Team research, per hour | $1.00, of $10.00 | x-circle: $0.50 over | –",
			"Organisation, per month | $400.00, of $500.00 | $398.50 left, for the first hour | –",
		}},
		{"2", approval.PerRun, []string{
			"Team research, per day | $14.00, of $20.00 | $12.00 left", "Organisation, per month | $400.00, of $500.00 | $398.00 left",
		}},
	} {
		if diff := cmp.Diff(tt.want, rows(tt.usd, tt.per)); diff != "" {
			t.Errorf("%s per %s (-want +got):\n%s", tt.usd, tt.per, diff)
		}
	}
	if got := rows("", approval.PerHour)[0]; !strings.HasSuffix(got, "| Unknown") {
		t.Errorf("without a price: %s", got)
	}
	if e := effectsOf(v, list, "research", "", "1", approval.PerHour); math.IsInf(e[0].AtEnd, 1) || !math.IsInf(e[2].AtEnd, 1) {
		t.Errorf("%+v", e)
	}
}

// The budget with the smallest remaining share is shown. An approval that would exceed it, at once or at the end of its period, has the same
// warning for operators and for callers.
func TestWarningsOfApprovals(t *testing.T) {
	t.Parallel()
	v := hostileVisit("")
	ends := v.now().Add(10 * time.Hour)
	month := selfservice.Budget{Free: "4"}
	month.Scope, month.Name, month.Limit, month.Left, month.Ends = "team research", "per_month", "20", "14", &ends
	hour := selfservice.Budget{}
	hour.Scope, hour.Name, hour.Limit, hour.Left = "team research", "per_hour", "3", "2"
	for _, tt := range []struct {
		usd, text string
		badge     *status
	}{
		{"0.2", "$14.00 of $20.00 per month remaining, after approval $13.80 left for the first hour", nil},
		{"1.5", "$14.00 of $20.00 per month remaining, after approval $12.50 left for the first hour", &status{levelBad, "$11.00 over by " + ends.In(v.zone()).Format("2 Jan") + " if everything keeps running"}},
	} {
		r := selfservice.Request{MayGrant: true, Record: approval.Record{Team: "research", USD: tt.usd, Per: approval.PerHour}}
		own := ownApprovalItem(v, &r, ownBudgetRows([]selfservice.Budget{month, hour}))
		asked := approval.PendingApproval{Team: "research", USD: tt.usd, Per: "hour"}
		for _, x := range []item{own, approvalItem(v, &asked, ownBudgetRows([]selfservice.Budget{hour, month}))} {
			if diff := cmp.Diff(tt.badge, x.Badge); diff != "" || !strings.Contains(x.Text, tt.text) {
				t.Errorf("%s: %s (-want +got):\n%s", tt.usd, x.Text, diff)
			}
		}
	}
	var x item
	x.effect(v, effectsOf(v, ownBudgetRows([]selfservice.Budget{hour}), "research", "", "2.5", approval.PerHour))
	if x.Badge == nil || x.Badge.Word != "$0.50 over right after approval" {
		t.Errorf("an hourly budget: %+v", x)
	}
}

// An anonymous principal enters its name to approve a request on the overview, as on the Approvals page. The browser remembers the name.
func TestNamesOnTheOverview(t *testing.T) {
	t.Parallel()
	v := hostileVisit("")
	asked := approval.PendingApproval{ID: "ap-1", Team: "research", Key: "ann", USD: "1", Per: "hour"}
	if x := approvalItem(v, &asked, nil); len(x.Forms) != 1 || x.Forms[0].Deny != "/ui/approvals/deny" || len(x.Forms[0].Fields) != 0 {
		t.Errorf("with a name: %+v", x.Forms)
	}
	v.scope.Anonymous = true
	v.r.AddCookie(&http.Cookie{Name: "tollgate_name", Value: "mara+%3Ci%3E"})
	budgets := []money.BudgetRow{{Kind: "team", ID: "research", Scope: "team research", Budget: money.Budget{Name: "per_day", Limit: "9", Left: "5"}}}
	x := approvalItem(v, &asked, budgets)
	if f := x.Forms[0].Fields; len(f) != 1 || f[0].Name != "by" || !f[0].Required || f[0].Value != "mara <i>" {
		t.Errorf("without a name: %+v", f)
	}
	if want := "team research: $5.00 of $9.00 per day remaining, after approval $4.00"; !strings.Contains(x.Text, want) {
		t.Errorf("%q has no %q", x.Text, want)
	}
}

// A change names the member of the body, in the same notation everywhere, and replaces the condition that says the same.
func TestChangesForARequest(t *testing.T) {
	t.Parallel()
	policies := []explain.Policy{{Policy: "gpu_count", Verdict: "denies", Message: "4 GPUs exceed the limit of 2", Field: "/gpu/count"}, {Policy: "gpu_allow_list", Verdict: "denies", Message: `GPU type "H100" is not on the allow-list for the offer SECURE (allowed: "A40", "L4")`, Field: "/gpu/id"}, {Policy: "images", Verdict: "denies", Message: `the image x is not from an allowed registry (allowed: "y/*")`, Field: "/image"}}
	want := []string{"Change gpu.count: 4 GPUs exceed the limit of 2 (policy gpu_count).", `Set gpu.id to one of "A40", "L4": GPU type "H100" is not on the allow-list for the offer SECURE (policy gpu_allow_list).`, `Change image: the image x is not from an allowed registry (allowed: "y/*") (policy images).`, "Name is required in gpu.id"}
	if diff := cmp.Diff(want, changesFor(policies, []string{"gpu_count: 4 GPUs exceed the limit of 2 (at $.gpu.count)", "name is required in $.gpu.id"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
