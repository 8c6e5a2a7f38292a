package alerts

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Alert is a sent alert.
type Alert struct {
	ID string `json:"id"`
	// Kind is the type of the event, such as budget.threshold.
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	// Delivered reports whether the receiver accepted the alert. Failure is the reason if the delivery failed. It is absent if the
	// organisation has no receiver and the alert was only logged.
	Delivered bool   `json:"delivered"`
	Failure   string `json:"failure,omitempty"`
	// Text describes the event in sentences. It is absent for alerts of earlier versions.
	Text string `json:"text,omitempty"`
	// Data is the data of the event.
	Data json.RawMessage `json:"data"`
}

// AlertList is one page of alerts.
type AlertList struct {
	Alerts []Alert `json:"alerts"`
	// Next is the cursor parameter of the next page; absent on the last page.
	Next string `json:"next,omitempty"`
}

// alertParams selects the listed alerts.
type alertParams struct {
	adminapi.OrgParam
	adminapi.Paging

	Kind  string         `query:"kind" doc:"only alerts of this kind, such as budget.threshold"`
	Since adminapi.Since `query:"since" doc:"only alerts since this time; a duration such as 24h counts back from now"`
}

// Endpoints returns the admin endpoints for alerts and exceptions. The endpoints of a nil Alerts can be listed but not called.
func (t *Alerts) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/alerts", Summary: "Sent alerts", Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, AuditsReads: true,
			Handler: adminapi.HandlerFor(t.list),
			Commands: []adminapi.Command{{
				Use: "alerts ORG", Heading: "Spend", Short: "List the sent alerts and whether they were delivered", Example: "tollgate alerts acme --since 7d",
				Long: `Lists the alerts of an organisation, newest first: budgets that reached a
threshold, unusual hours, idle resources, stops, changes outside the gateway,
exceptions that end soon, and weekly reports. Keeps the latest 1,000 alerts for 90 days.`,
			}},
		},
		{
			Pattern: "GET /admin/exceptions", Summary: "Exceptions with an end date", Role: adminapi.Viewer, Subject: adminapi.SubjectOrg,
			AuditsReads: true, Handler: adminapi.HandlerFor(t.exceptions),
			Commands: []adminapi.Command{{
				Use: "exceptions ORG", Heading: "Policy", Short: "List temporary exceptions: policy exceptions, approvals, snoozed resources, brownouts",
				Example: "tollgate exceptions acme --within 7d",
				Long: `Lists the temporary exceptions of an organisation in the order they end: policy
exceptions, approvals that have not been used yet, snoozed resources, and scheduled
brownouts of the retired interfaces.`,
			}},
		},
	}
}

func (t *Alerts) list(ctx context.Context, _ adminapi.Principal, p alertParams) (*AlertList, error) {
	list, err := t.List(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(a Alert) bool { return p.Kind != "" && p.Kind != a.Kind || a.At.Before(time.Time(p.Since)) })
	out := new(AlertList)
	out.Alerts, out.Next, err = adminapi.Page(list, &p.Paging, func(a *Alert) string { return a.ID })
	return out, err
}

// Exception is a temporary exception to a rule.
type Exception struct {
	Org string `json:"org"`
	// Kind is policy for an exception in the configuration, approval for a granted approval that has not been used yet, snooze for an idle
	// resource snoozed by its owner, and brownout for a scheduled refusal of retired interfaces.
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// About is the rule with the exception: a policy, the refusals of a call, idle handling, or the retired interfaces.
	About string `json:"about"`
	// For describes the callers covered by the exception.
	For    string     `json:"for,omitempty"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	From   *time.Time `json:"from,omitempty"`
	Until  time.Time  `json:"until"`
}

// ExceptionList is one page of exceptions.
type ExceptionList struct {
	Exceptions []Exception `json:"exceptions"`
	// Next is the cursor parameter of the next page; absent on the last page.
	Next string `json:"next,omitempty"`
}

// exceptionParams selects the listed exceptions.
type exceptionParams struct {
	adminapi.OrgParam
	adminapi.Paging

	Kind   string            `query:"kind" oneof:"policy,approval,snooze,brownout" doc:"only exceptions of this kind"`
	Within adminapi.Duration `query:"within" doc:"only exceptions that end within this duration, such as 7d"`
}

func (t *Alerts) exceptions(ctx context.Context, s adminapi.Principal, p exceptionParams) (*ExceptionList, error) {
	list, err := t.Exceptions(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(x Exception) bool {
		return p.Kind != "" && p.Kind != x.Kind || p.Within != 0 && x.Until.After(s.Now.Add(time.Duration(p.Within)))
	})
	out := new(ExceptionList)
	out.Exceptions, out.Next, err = adminapi.Page(list, &p.Paging, func(x *Exception) string { return x.Kind + " " + x.ID })
	return out, err
}
