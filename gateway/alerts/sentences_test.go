package alerts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
)

// Each kind of alert is told in sentences, with links to what people do next, and keeps its data for programs.
func TestAlertsAreSentences(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	pod := ownedResource{"acme", "p1", "pod", "train", "research", "ann"}
	c := &settings.Config{PublicURL: "https://gw.example"}
	c.Admin.URL = "https://ops.example/"
	for _, tt := range []struct {
		kind string
		data content
		text string
		page string
	}{
		{"budget.threshold", budgetAlert{Org: "acme", Scope: "team research", Budget: "per_week", Percent: 80, Used: "16.5", Limit: "20"}, "The budget per week of team research in acme has reached 80%: $16.50 of $20.00 used.", "budgets"},
		{"budget.threshold", budgetAlert{Org: "acme", Scope: "organisation", Budget: "gpus", Percent: 100, Used: "4", Limit: "4"}, "The budget gpus of acme has reached 100%: 4 of 4 used.", "budgets"},
		{"budget.over", budgetAlert{Org: "acme", Scope: "team ops", Budget: "total", Used: "21", Limit: "20", StopAt: &at}, "The budget total of team ops in acme is used up: $21.00 of $20.00 used. Pods will be stopped and sandboxes deleted at 2026-11-26 12:00 UTC unless the budget is available again by then.", "budgets"},
		{"budget.stopped", budgetAlert{Org: "acme", Scope: "team ops", Budget: "per_day", Used: "21", Limit: "20", Resource: "p1", Name: "train"}, "The pod train (p1) in acme was stopped. The budget per day of team ops in acme is used up: $21.00 of $20.00 used.", "budgets"},
		{"spend.unusual", unusualAlert{"acme", "team ops", at, "12", "3"}, "The cost of team ops in acme in the hour from 2026-11-26 12:00 UTC is $12.00 so far, usually $3.00.", "cost"},
		{"resource.unowned", unmanaged{"acme", "p1", "pod", "", "0.43"}, "The pod p1 in acme was created outside the gateway. It costs $0.43 per hour.", "resources"},
		{"resource.changed", drift{pod, "0.22", "0.43"}, "The pod train (p1) of key ann, team research in acme was changed outside the gateway. It now costs $0.43 per hour. Before the change, it cost $0.22 per hour.", "resources"},
		{"resource.removed", drift{ownedResource{"acme", "v1", "volume", "", "ops", ""}, "0.22", "0"}, "The volume v1 of team ops in acme was removed outside the gateway. It cost $0.22 per hour.", "resources"},
		{"platform.list_short", incompleteList{"acme", 2, 9}, "The platform's list for acme contains 2 resources and omits 9 known resources.", "resources"},
		{"resource.idle", idleAlert{ownedResource: pod, Reason: "no_jobs", Since: at, PerMonth: "315.9", StopAt: &at, SnoozeURL: "https://gw.example/snooze?x"}, "The pod train (p1) of key ann, team research in acme is idle since 2026-11-26 12:00 UTC (no jobs) and costs $315.90 per month. It will be stopped at 2026-11-26 12:00 UTC.", "resources"},
		{"resource.stopped", idleAlert{ownedResource: pod, Reason: "unused", Since: at}, "The pod train (p1) of key ann, team research in acme was stopped: it was idle since 2026-11-26 12:00 UTC (unused).", "resources"},
		{"ledger.lost", lostLedger{"acme", &money.Loss{Lost: "all", At: at}}, "Redis lost all or part of the ledger of acme (all).", ""},
		{"exception.expiring", expiring{"acme", "x1", "gpu_count", at, "demo.", "ada"}, "The exception x1 to policy gpu_count in acme ends at 2026-11-26 12:00 UTC. Granted by ada: demo.", "exceptions"},
		{
			"approval.requested",
			approvalAlert{
				Org: "acme", Approval: "ap-1", Key: "ann", Team: "research", Call: "POST /v2/pods", Summary: "3 x NVIDIA L4", USD: "1.3", Per: approval.PerHour,
				Refusals: []approval.Refusal{{By: "price_ceiling", Message: "at most 0.4."}}, Until: at, AnswerURL: "https://ops.example/ui/approvals?org=acme", DecisionURL: "https://ops.example/ui/requests/d1",
			},
			"A call of key ann, team research in acme was denied and can be approved until 2026-11-26 12:00 UTC: POST /v2/pods, 3 x NVIDIA L4, at most $1.30 per hour. price_ceiling denied it: at most 0.4.", "approvals",
		},
	} {
		got := message(c, "acme", tt.kind, tt.data)
		if got.Text != tt.text {
			t.Errorf("%s: %q, want %q", tt.kind, got.Text, tt.text)
		}
		want := webhook.Link{Title: "Open the console", URL: "https://ops.example/ui/" + tt.page + "?org=acme"}
		if n := len(got.Links); n == 0 || got.Links[n-1] != want {
			t.Errorf("%s: links %v, want %v at the end", tt.kind, got.Links, want)
		}
		data, err := json.Marshal(got)
		if plain, _ := json.Marshal(tt.data); err != nil || string(data) != string(plain) {
			t.Errorf("%s: programs get %s, %v, want %s", tt.kind, data, err, plain)
		}
	}
	links := message(c, "acme", "resource.idle", idleAlert{SnoozeURL: "https://gw.example/snooze?x"}).Links
	if len(links) != 2 || links[0].URL != "https://gw.example/snooze?x" {
		t.Errorf("links of an idle resource: %v, want the link that keeps it first", links)
	}
	if got := message(&settings.Config{}, "acme", "spend.unusual", unusualAlert{}).Links; got != nil {
		t.Errorf("without an address of the console: %v", got)
	}
	if text := message(c, "acme", "report.weekly", &Weekly{Org: "acme", USD: "1", From: at, To: at}).Text; !strings.Contains(text, "Cost: 1.00 USD") {
		t.Errorf("a weekly report: %q", text)
	}
}
