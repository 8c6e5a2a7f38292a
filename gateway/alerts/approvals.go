package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/approval/grants"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
)

// approvalAlert is the alert about an approval request.
type approvalAlert struct {
	Org       string             `json:"org"`
	Approval  string             `json:"approval"` // ID of the request
	Key       string             `json:"key"`
	Team      string             `json:"team,omitempty"`
	Operation string             `json:"operation"`
	Call      string             `json:"call"`
	Summary   string             `json:"summary,omitempty"`
	Refusals  []approval.Refusal `json:"refusals"`
	// USD is the maximum cost of the call per hour or per run; "" if the cost is unknown.
	USD      string        `json:"usd,omitempty"`
	Per      approval.Unit `json:"per,omitempty"`
	Decision string        `json:"decision"`
	Until    time.Time     `json:"until"`
	// AnswerURL is the page for the decision of approvers, and DecisionURL the page of the refused call, or "".
	AnswerURL   string `json:"answer_url,omitempty"`
	DecisionURL string `json:"decision_url,omitempty"`
}

// ApprovalRequested notifies approvers of a new approval request, once. It does not wait for the delivery.
func (t *Alerts) ApprovalRequested(ctx context.Context, org string, r *approval.Record) {
	const kind = "approval.requested"
	c := t.Config()
	d := approvalAlert{
		Org: org, Approval: r.ID, Key: r.Key, Team: r.Team, Operation: r.Operation, Call: r.Call, Summary: r.Summary, Refusals: r.Refusals,
		USD: r.USD, Per: r.Per, Decision: r.Decision, Until: r.Until.UTC(),
	}
	switch pages := c.DecisionPages(); {
	case c.Admin.URL != "":
		d.AnswerURL = consolePage(c, org, kind)
		d.DecisionURL = strings.TrimSuffix(c.Admin.URL, "/") + "/ui/requests/" + r.Decision
	case pages != "": // team leads decide on these pages
		d.AnswerURL = strings.TrimSuffix(pages, "requests/") + "approvals"
		d.DecisionURL = pages + r.Decision
	}
	t.Logger.InfoContext(ctx, "approval requested", "event", kind, "org", org, "approval", r.ID, "team", r.Team, "key", r.Key,
		"decision", r.Decision)
	t.sendAsync(ctx, org, strings.Join([]string{kind, org, r.ID}, ":"), kind, r.Asked, d)
}

func (d approvalAlert) sentence(string) string {
	what := d.Call
	if d.Summary != "" {
		what += ", " + d.Summary
	}
	if d.USD != "" {
		what += fmt.Sprintf(", at most %s per %s", dollars(json.Number(d.USD)), d.Per)
	}
	reasons := make([]string, len(d.Refusals))
	for i, r := range d.Refusals {
		reasons[i] = r.By + " denied it: " + strings.TrimSuffix(r.Message, ".")
	}
	return fmt.Sprintf("A call%s in %s was denied and can be approved until %s: %s. %s.", createdBy(d.Team, d.Key), d.Org, formatTime(d.Until), what,
		strings.Join(reasons, "; "))
}

func (d approvalAlert) links() (links []webhook.Link) {
	if d.AnswerURL != "" {
		links = append(links, webhook.Link{Title: "Grant or deny", URL: d.AnswerURL},
			webhook.Link{Title: "See the denied call", URL: d.DecisionURL})
	}
	return links
}

// NewGrants returns the Grants of a store. The alerts notify approvers of new requests.
func NewGrants(s *approval.Store, a *Alerts) *grants.Grants {
	return &grants.Grants{Store: notifyingStore{s, a}}
}

// notifyingStore is an approval store that notifies approvers.
type notifyingStore struct {
	*approval.Store
	*Alerts
}
