package decisions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
)

// List is a list of decisions, newest first.
type List struct {
	Decisions []explain.Summary `json:"decisions"`
	// Incomplete is why there may be others.
	Incomplete string `json:"incomplete,omitempty"`
	// Next is the value of the parameter before for older decisions, set where Incomplete says that only the newest were looked through.
	Next string `json:"next,omitempty"`
}

// Endpoints are the questions of operators about decisions. Those of nil can be read, and not be asked.
func (d *Decisions) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/decisions", Summary: "The latest exchanges", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.list),
			Commands: []adminapi.Command{{
				Use: "decisions", Short: "List decisions, of any gateway", Example: "tollgate decisions --org acme --team research --refused --since 24h",
				Long: `Lists the latest exchanges, newest first: those of the gateway that is asked, and
of all that share its Redis those that were refused, warned of or excepted, or
changed something (decisions.shared). "tollgate explain ID" tells how each came about.`,
			}},
		},
		{Pattern: "GET /admin/decisions/log", Summary: "The decision log of this gateway, an event per line", AuditsReads: true, Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.writeLog), ContentType: "application/x-ndjson", ErrorStatuses: []int{http.StatusConflict}},
		{Pattern: "GET /admin/decisions/{id}", Summary: "The course of an exchange, stage by stage", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectCaller, Handler: adminapi.HandlerFor(d.find), ErrorStatuses: []int{http.StatusNotFound}},
		{Pattern: "GET /admin/decisions/stream", Summary: "Decisions as they are made, as server-sent events", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.stream), ContentType: "text/event-stream"},
		{
			Pattern: "GET /admin/policies/counts", Summary: "The number of calls by policy and verdict", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.policyCounts),
			Commands: []adminapi.Command{{
				Use: "policy counts ORG", Short: "Show on how many calls policies denied, warned, or would have denied", Example: "tollgate policy counts acme --since 7d\ntollgate policy counts acme --policy gpu_count --verdict 'would deny' --bucket hour",
				Long: `Shows on how many calls each policy denied, warned, would have denied (mode shadow),
was lifted by an exception or changed something, by team: so you see the effect of a
policy before you enforce it. Counts are kept for 30 days, by whole hours.`,
			}},
		},
	}
}

// identified names a decision.
type identified struct {
	ID string `query:"id,required" doc:"id of a decision"`
}

// find explains an exchange by its decision id, of this gateway or from the archive.
func (d *Decisions) find(ctx context.Context, s adminapi.Principal, p identified) (*explain.Report, error) {
	if x, ok := d.History.Find(d.deps.Chain(), p.ID); ok && (s.Org == "" || x.Caller.Org == s.Org) {
		return x, nil
	}
	if d.archive != nil {
		if x, err := d.archive.find(ctx, d.orgs(s.Org), p.ID); x != nil || err != nil {
			return x, err
		}
	}
	return nil, adminapi.RefusedError{Status: http.StatusNotFound, Reason: "no decision of that id is kept: it is too old, or it only read and passed at another gateway"}
}

// followed selects decisions.
type followed struct {
	adminapi.OptionalOrg

	Team      adminapi.Team `query:"team" doc:"only those of this team"`
	Key       string        `query:"key" doc:"only those of this key, by its id"`
	Policy    string        `query:"policy" doc:"only those in which this policy spoke: denied, warned, would have denied or changed something"`
	Operation string        `query:"operation" doc:"only those on this operation, by its operationId"`
	Refused   bool          `query:"refused" doc:"only refused calls"`
	Own       bool          `query:"own" doc:"only acts of the gateways themselves: pods stopped, reservations ended"`
}

func (p *followed) query() explain.Query {
	return explain.Query{Org: string(p.Org), Team: string(p.Team), Key: p.Key, Policy: p.Policy, Operation: p.Operation, Refused: p.Refused, Own: p.Own}
}

// selected says which decisions are listed.
type selected struct {
	followed

	Since  adminapi.Since     `query:"since" doc:"only entries no older than a duration, such as 24h, or than a time"`
	Before adminapi.Timestamp `query:"before" doc:"only calls older than a time: that of the last one of a list leads to the next list"`
	Limit  int                `query:"limit" min:"1" max:"1000" default:"50" doc:"how many at most"`
}

// list lists the selected exchanges of all gateways. Without the store they are those of this gateway.
func (d *Decisions) list(ctx context.Context, _ adminapi.Principal, p selected) (*List, error) {
	q := p.query()
	q.Since, q.Before, q.Limit = time.Time(p.Since), time.Time(p.Before), p.Limit
	var out List
	lists := [][]explain.Summary{d.History.List(q)}
	if d.archive != nil {
		var newest newestError
		for _, org := range d.orgs(q.Org) {
			list, err := d.archive.list(ctx, org, q)
			lists = append(lists, list)
			if cut, isCut := errors.AsType[newestError](err); isCut && cut.before.After(newest.before) {
				newest = cut // that of another organisation would leave some out
			} else if err != nil && !isCut {
				out.Incomplete = "the shared store does not answer: these are this gateway's"
			}
		}
		if out.Incomplete == "" && !newest.before.IsZero() {
			out.Incomplete = newest.Error() + ": next is the value of the parameter before for older ones"
			out.Next = newest.before.UTC().Format(time.RFC3339Nano)
		}
	}
	out.Decisions = q.Newest(lists...)
	return &out, nil
}

// newestError means that decisions were looked through from the newest, and from before on no further.
type newestError struct{ before time.Time }

// Error implements error.
func (newestError) Error() string { return "only the newest decisions were looked through" }

// orgs are the configured organisations, or the one of an id.
func (d *Decisions) orgs(id string) []string {
	var ids []string
	for _, o := range d.deps.Config().Orgs {
		if id == "" || o.ID == id {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// logged says which part of the decision log is written.
type logged struct {
	adminapi.OrgParam

	Since adminapi.Since `query:"since" doc:"only entries no older than a duration, such as 24h, or than a time"`
}

func (d *Decisions) writeLog(ctx context.Context, _ adminapi.Principal, p logged) (adminapi.Writer, error) {
	return func(w io.Writer) error { return d.WriteLog(ctx, w, string(p.Org), time.Time(p.Since)) }, nil
}

// WriteLog writes the decision log of this gateway, one JSON object per line: the events of an organisation that are no older than since.
// It returns [row.ErrUnknownOrg] or a [row.RefusedError] before it writes anything.
func (d *Decisions) WriteLog(ctx context.Context, w io.Writer, org string, since time.Time) error {
	if d.deps.Config().Org(org) == nil {
		return adminapi.ErrUnknownOrg
	}
	if d.file == nil {
		return adminapi.RefusedError{Status: http.StatusConflict, Reason: "this gateway writes its decisions to no file: decisions.file is not set"}
	}
	return decisionlog.Copy(ctx, d.file, w, org, since)
}
