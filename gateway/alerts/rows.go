package alerts

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Alert is one sent alert.
type Alert struct {
	ID string `json:"id"`
	// Kind is that of the event, such as budget.threshold.
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	// Delivered reports whether a receiver took it. Failure is why none did, absent for an organisation without one: then the log alone was
	// told.
	Delivered bool   `json:"delivered"`
	Failure   string `json:"failure,omitempty"`
	// Data is that of the event.
	Data json.RawMessage `json:"data"`
}

// AlertList is alerts as they are answered.
type AlertList struct {
	Alerts []Alert `json:"alerts"`
	// Next is the parameter cursor of the next list, absent behind the last.
	Next string `json:"next,omitempty"`
}

// alertParams says which alerts are listed.
type alertParams struct {
	row.Scoped
	row.Paging

	Kind  string    `query:"kind" doc:"only alerts of this kind, such as budget.threshold"`
	Since row.Since `query:"since" doc:"only entries no older than a duration, such as 24h, or than a time"`
}

// Rows are the questions of operators about alerts and exceptions. A nil Alerts describes them.
func (t *Alerts) Rows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/alerts", Summary: "The alerts that receivers were sent", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(t.list),
			Commands: []row.Command{{
				Use: "alerts ORG", Short: "List the alerts that were sent, and whether a receiver took them", Example: "tollgate alerts acme --since 7d",
				Long: `Lists the alerts of an organisation, the newest first: budgets that reached a
threshold, unusual hours, idle resources, stops, changes without the gateway,
exceptions that end, and weekly reports. The latest 1,000 are kept, for 90 days.`,
			}},
		},
		{
			Pattern: "GET /admin/exceptions", Summary: "Exceptions that end at a time", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(t.exceptions),
			Commands: []row.Command{{
				Use: "exceptions ORG", Short: "List exceptions with their ends: to policies, approvals, kept resources, brownouts", Example: "tollgate exceptions acme --within 7d",
				Long: `Lists the exceptions of an organisation that end, the next end first: those to
policies, grants that wait for their call, idle resources that their owners keep,
and scheduled brownouts of the retired interfaces.`,
			}},
		},
	}
}

func (t *Alerts) list(ctx context.Context, _ row.Scope, p alertParams) (*AlertList, error) {
	list, err := t.List(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, a := range list {
		if (p.Kind == "" || p.Kind == a.Kind) && !a.At.Before(time.Time(p.Since)) {
			kept = append(kept, a)
		}
	}
	out := new(AlertList)
	out.Alerts, out.Next, err = row.Page(kept, &p.Paging, func(a *Alert) string { return a.ID })
	return out, err
}

// Exception lets something pass, or leaves it alone, until a time.
type Exception struct {
	Org string `json:"org"`
	// Kind is policy for an exception of the configuration, approval for a grant that waits for its call, kept for an idle resource that its
	// owner keeps, and brownout for a time in which retired interfaces are refused.
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// About is the rule that it is an exception to: a policy, the refusals of a call, idleness, or the interfaces.
	About string `json:"about"`
	// For is whom it is for.
	For    string     `json:"for,omitempty"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	From   *time.Time `json:"from,omitempty"`
	Until  time.Time  `json:"until"`
}

// ExceptionList is exceptions as they are answered.
type ExceptionList struct {
	Exceptions []Exception `json:"exceptions"`
	// Next is the parameter cursor of the next list, absent behind the last.
	Next string `json:"next,omitempty"`
}

// exceptionParams says which exceptions are listed.
type exceptionParams struct {
	row.Scoped
	row.Paging

	Kind   string   `query:"kind" oneof:"policy,approval,kept,brownout" doc:"only this kind"`
	Within row.Span `query:"within" doc:"only exceptions that end in this time from now, such as 7d"`
}

func (t *Alerts) exceptions(ctx context.Context, s row.Scope, p exceptionParams) (*ExceptionList, error) {
	list, err := t.Exceptions(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, x := range list {
		if (p.Kind == "" || p.Kind == x.Kind) && (p.Within == 0 || !x.Until.After(s.Now.Add(time.Duration(p.Within)))) {
			kept = append(kept, x)
		}
	}
	out := new(ExceptionList)
	out.Exceptions, out.Next, err = row.Page(kept, &p.Paging, func(x *Exception) string { return x.Kind + " " + x.ID })
	return out, err
}
