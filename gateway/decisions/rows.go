package decisions

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
)

// List is a list of decisions, newest first.
type List struct {
	Decisions []explain.Summary `json:"decisions"`
	// Incomplete is the reason why decisions may be missing, or empty.
	Incomplete string `json:"incomplete,omitempty"`
	// Next is the value of the parameter before that continues the list with older decisions. It is empty if there are none.
	Next string `json:"next,omitempty"`
	// KeptSeconds is the retention of decisions in the shared store, in seconds. It is 0 if decisions are not shared: then the list contains
	// the latest decisions of this gateway.
	KeptSeconds int64 `json:"keptSeconds,omitempty"`
}

// Endpoints returns the endpoints for decisions. A nil receiver returns endpoints that can be listed but not called.
func (d *Decisions) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/decisions", Summary: "Latest decisions", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg,
			Handler: adminapi.HandlerFor(d.list),
			Commands: []adminapi.Command{{
				Use: "decisions", Heading: "Policy", Short: "List decisions of all gateways",
				Example: "tollgate decisions --org acme --team research --refused --since 24h",
				Long: `Lists the latest exchanges, newest first. The list contains all exchanges of the queried
gateway. For other gateways that share its Redis, it contains only exchanges that changed
something, were refused, caused a warning or passed because of an exception; the setting
decisions.shared limits their age. Use "tollgate explain ID" to explain an exchange.`,
			}},
		},
		{
			Pattern: "GET /admin/decisions/log", Summary: "Decision log of this gateway, one event per line", AuditsReads: true,
			Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.writeLog), ContentType: "application/x-ndjson",
			ErrorStatuses: []int{http.StatusConflict},
		},
		{
			Pattern: "GET /admin/decisions/{id}", Summary: "Explanation of a decision, stage by stage", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectCaller, Handler: adminapi.HandlerFor(d.explanation), ErrorStatuses: []int{http.StatusNotFound},
		},
		{
			Pattern: "GET /admin/decisions/stream", Summary: "Stream of new decisions, as server-sent events", AuditsReads: true,
			Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.stream), ContentType: "text/event-stream",
		},
		{
			Pattern: "GET /admin/policies/counts", Summary: "Number of calls by policy and verdict", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.policyCounts),
			Commands: []adminapi.Command{{
				Use: "policy counts ORG", Short: "Show how many calls each policy denied, warned about, or would have denied",
				Example: "tollgate policy counts acme --since 7d\ntollgate policy counts acme --policy gpu_count --verdict 'would deny' --bucket hour",
				Long: `Counts the calls that each policy denied, warned about, would have denied (mode shadow),
changed, or did not deny because of an exception, by team. Use the counts to see the
effect of a policy before you enforce it. Counts are stored for 30 days, by whole hours.`,
			}},
		},
		d.outcomeRow(),
	}
}

// identified selects a decision.
type identified struct {
	ID string `query:"id,required" doc:"id of a decision"`
}

func (d *Decisions) explanation(ctx context.Context, s adminapi.Principal, p identified) (*explain.Report, error) {
	return d.Find(ctx, s, p.ID)
}

// Find returns the decision with the given ID from this gateway or from the archive. An unknown ID results in an [adminapi.RefusedError]
// with status 404.
func (d *Decisions) Find(ctx context.Context, s adminapi.Principal, id string) (*explain.Report, error) {
	if x, ok := d.History.Find(d.deps.Chain(), id); ok && (s.Org == "" || x.Caller.Org == s.Org) {
		return x, nil
	}
	if d.archive != nil {
		if x, err := d.archive.find(ctx, d.deps.OrgIDs(s.Org), id); x != nil || err != nil {
			return x, err
		}
	}
	return nil, adminapi.RefusedError{
		Status: http.StatusNotFound,
		Reason: "decision not found: old decisions are deleted, and an allowed read is stored only by the gateway that decided about it",
	}
}

// followed selects decisions.
type followed struct {
	adminapi.OptionalOrg

	Team      adminapi.Team `query:"team" doc:"only calls by this team"`
	Key       string        `query:"key" doc:"only calls by the key with this id"`
	Policy    string        `query:"policy" doc:"only calls that this policy denied, warned about, would have denied, or changed, or whose denial an exception lifted"`
	Operation string        `query:"operation" doc:"only calls of the operation with this operationId"`
	Resource  string        `query:"resource" doc:"only calls that created or named the resource with this id"`
	Outcome   string        `query:"outcome" oneof:"allowed,denied,throttled,failed" doc:"only calls with this outcome; see GET /admin/decisions/outcomes"`
	Refused   bool          `query:"refused" doc:"only refused calls"`
	Own       bool          `query:"own" doc:"only actions of the gateways themselves, such as stopped pods and ended reservations"`
}

func (p *followed) query() explain.Query {
	return explain.Query{
		Org: string(p.Org), Team: string(p.Team), Key: p.Key, Policy: p.Policy, Operation: p.Operation,
		Resource: p.Resource, Outcome: p.Outcome, Refused: p.Refused, Own: p.Own,
	}
}

// selected selects the decisions to list.
type selected struct {
	followed

	Since  adminapi.Since     `query:"since" doc:"start of the period: a duration before now, such as 24h, or a time"`
	Before adminapi.Timestamp `query:"before" doc:"only calls before this time; pass the value of next to get the next page"`
	Limit  int                `query:"limit" min:"1" max:"1000" default:"50" doc:"number of entries; calls that began at the same time as the last entry are added"`
}

// list returns the selected exchanges of all gateways, or of this gateway if the store is unavailable.
func (d *Decisions) list(ctx context.Context, _ adminapi.Principal, p selected) (*List, error) {
	q := p.query()
	q.Since, q.Before, q.Limit = time.Time(p.Since), time.Time(p.Before), p.Limit
	var out List
	all := d.History.List(q)
	var searched time.Time // only calls that began then or later were all searched
	if d.archive != nil {
		out.KeptSeconds = int64(d.archive.store.Retention.Seconds())
		for _, org := range d.deps.OrgIDs(q.Org) {
			list, since, err := d.archive.list(ctx, org, q)
			all = append(all, list...)
			if since.After(searched) {
				searched = since
			}
			if err != nil {
				out.Incomplete = "shared store unavailable: the list contains only decisions of this gateway"
			}
		}
	}
	out.Decisions = q.Newest(slices.DeleteFunc(all, func(s explain.Summary) bool { return s.Time.Before(searched) }))
	switch n := len(out.Decisions); {
	case n >= q.Limit:
		out.Next = out.Decisions[n-1].Time.UTC().Format(time.RFC3339Nano)
	case !searched.IsZero():
		out.Incomplete = cmp.Or(out.Incomplete, "only the newest decisions were searched; to continue, pass the value of next as the parameter before")
		out.Next = searched.UTC().Format(time.RFC3339Nano)
	}
	return &out, nil
}

// logged selects the part of the decision log to write.
type logged struct {
	adminapi.OrgParam

	Since adminapi.Since `query:"since" doc:"start of the period: a duration before now, such as 24h, or a time"`
}

func (d *Decisions) writeLog(ctx context.Context, _ adminapi.Principal, p logged) (adminapi.Writer, error) {
	return func(w io.Writer) error { return d.WriteLog(ctx, w, string(p.Org), time.Time(p.Since)) }, nil
}

// WriteLog reads the events of an organisation since the given time from this gateway's decision log, and writes them to w, one JSON object
// per line. It returns an [adminapi.RefusedError] before it writes anything if there is no such log.
func (d *Decisions) WriteLog(ctx context.Context, w io.Writer, org string, since time.Time) error {
	if d.file == nil {
		return adminapi.RefusedError{Status: http.StatusConflict, Reason: "gateway does not write a decision log file: decisions.file is not set"}
	}
	return decisionlog.Copy(ctx, d.file, w, org, since)
}
