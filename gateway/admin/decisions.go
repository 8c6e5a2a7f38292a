package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Decisions returns the decisions on calls, made or hypothetical. Its results are
// written as JSON.
type Decisions interface {
	// Find explains an exchange of an organisation, or of any for "", by its decision id,
	// nil if it is not kept.
	Find(ctx context.Context, org, id string) (any, error)
	// List returns the latest exchanges that are selected. With a NewestError, older ones were not looked through; with another error, they are
	// those of this gateway alone.
	List(ctx context.Context, q DecisionQuery) (any, error)
	// Watch returns the selected decisions from now on, by this gateway at once and by others within some seconds, until ctx
	// ends and the channel is closed. It has a Missed in the place of decisions that the reader was too slow for.
	Watch(ctx context.Context, q DecisionQuery) <-chan any
	// Counts returns the number of calls by verdict of an organisation's policies, by hour, from one hour to another.
	Counts(ctx context.Context, org string, from, to time.Time) ([]PolicyCount, error)
	// Explain reports the outcome of the request that a JSON object describes. A
	// question that cannot be read, or is about another organisation than org, unless
	// that is "", is a BadRequestError.
	Explain(ctx context.Context, org string, question []byte) (any, error)
	// Log writes the decision log of this gateway, one JSON object per line: the events of
	// an organisation that are no older than since. It returns row.ErrNoOrg or a row.RefusedError
	// before it writes anything.
	Log(ctx context.Context, w io.Writer, org string, since time.Time) error
	// Audit judges the resources of an organisation by its policies. It returns row.ErrNoOrg for
	// one that is not configured.
	Audit(ctx context.Context, org string) (any, error)
}

// NewestError means that decisions were looked through from the newest, and from Before on no further.
type NewestError struct{ Before time.Time }

// Error implements error.
func (NewestError) Error() string { return "only the newest decisions were looked through" }

// DecisionQuery selects exchanges. A zero member selects all.
type DecisionQuery struct {
	Org, Team, Key string
	// Policy selects the decisions that a policy spoke in, with any verdict, and Operation the calls that contain an operation.
	Policy, Operation string
	// Refused selects refusals.
	Refused bool
	// Own selects the gateway's own actions.
	Own bool
	// Since selects calls that began no earlier.
	Since time.Time
	// Before selects calls that began earlier; the zero Time selects all.
	Before time.Time
	// Limit bounds how many there are, the newest.
	Limit int
}

func (d Deps) decisionRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/decisions", Summary: "The latest exchanges", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.decisions), Answer: row.List("decisions", d.Shapes.Summary, "incomplete", "next"),
			Commands: []row.Command{{
				Use: "decisions", Short: "List decisions, of any gateway", Example: "tollgate decisions --org acme --team research --refused --since 24h",
				Long: `Lists the latest exchanges, newest first: those of the gateway that is asked, and
of all that share its Redis those that were refused, warned of or excepted, or
changed something (decisions.shared). "tollgate explain ID" tells how each came about.`,
			}},
		},
		{Pattern: "GET /admin/decisions/log", Summary: "The decision log of this gateway, an event per line", Watched: true, Role: row.Operator, About: row.OfOrg, Ask: row.Do(d.decisionLog), Media: "application/x-ndjson", Fails: []int{http.StatusConflict}},
		{Pattern: "GET /admin/decisions/{id}", Summary: "The course of an exchange, stage by stage", Watched: true, Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.decision), Answer: row.TypeOf(d.Shapes.Report), Fails: []int{http.StatusNotFound}},
		{Pattern: "POST /admin/explain", Summary: "The course that a request would take", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.explain), Body: reflect.TypeFor[question](), Answer: row.TypeOf(d.Shapes.Report), Fails: []int{http.StatusInternalServerError}},
		{Pattern: "GET /admin/audit", Summary: "The resources of an organisation, judged by its policies", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.audit), Answer: row.TypeOf(d.Shapes.Audit), Fails: []int{http.StatusBadGateway}},
	}
}

func (d Deps) audit(ctx context.Context, _ row.Scope, p row.Scoped) (any, error) {
	x, err := d.Decisions.Audit(ctx, string(p.Org))
	if err != nil && !errors.Is(err, row.ErrNoOrg) {
		err = row.RefusedError{Status: http.StatusBadGateway, Reason: err.Error()}
	}
	return x, err
}

// followed says which decisions are told as they are made.
type followed struct {
	anyOrg

	Team      row.Team `query:"team" doc:"only those of this team"`
	Key       string   `query:"key" doc:"only those of this key, by its id"`
	Policy    string   `query:"policy" doc:"only those in which this policy spoke: denied, warned, would have denied or changed something"`
	Operation string   `query:"operation" doc:"only those on this operation, by its operationId"`
	Refused   bool     `query:"refused" doc:"only refused calls"`
	Own       bool     `query:"own" doc:"only acts of the gateways themselves: pods stopped, reservations ended"`
}

func (p *followed) query() DecisionQuery {
	return DecisionQuery{Org: string(p.Org), Team: string(p.Team), Key: p.Key, Policy: p.Policy, Operation: p.Operation, Refused: p.Refused, Own: p.Own}
}

// selected says which decisions are listed.
type selected struct {
	followed

	Since  row.Since  `query:"since" doc:"only entries no older than a duration, such as 24h, or than a time"`
	Before row.Moment `query:"before" doc:"only calls older than a time: that of the last one of a list leads to the next list"`
	Limit  int        `query:"limit" min:"1" max:"1000" default:"50" doc:"how many at most"`
}

func (d Deps) decisions(ctx context.Context, _ row.Scope, p selected) (any, error) {
	q := p.query()
	q.Since, q.Before, q.Limit = time.Time(p.Since), time.Time(p.Before), p.Limit
	list, err := d.Decisions.List(ctx, q)
	answer := map[string]any{"decisions": list}
	switch cut, isCut := errors.AsType[NewestError](err); {
	case isCut:
		answer["incomplete"] = err.Error() + ": next is the value of the parameter before for older ones"
		answer["next"] = cut.Before.UTC().Format(time.RFC3339Nano)
	case err != nil:
		answer["incomplete"] = "the shared store does not answer: these are this gateway's"
	}
	return answer, nil
}

// logged says which part of the decision log is written.
type logged struct {
	row.Scoped

	Since row.Since `query:"since" doc:"only entries no older than a duration, such as 24h, or than a time"`
}

func (d Deps) decisionLog(ctx context.Context, _ row.Scope, p logged) (row.Writer, error) {
	return func(w io.Writer) error { return d.Decisions.Log(ctx, w, string(p.Org), time.Time(p.Since)) }, nil
}

// identified names a decision.
type identified struct {
	ID string `query:"id,required" doc:"id of a decision"`
}

func (d Deps) decision(ctx context.Context, s row.Scope, p identified) (any, error) {
	x, err := d.Decisions.Find(ctx, s.Org, p.ID)
	if err == nil && x == nil {
		err = row.RefusedError{Status: http.StatusNotFound, Reason: "no decision of that id is kept: it is too old, or it only read and passed at another gateway"}
	}
	return x, err
}

// asked is a request that is to be explained, as JSON.
type asked struct{ Question row.Body }

func (d Deps) explain(ctx context.Context, s row.Scope, p asked) (any, error) {
	x, err := d.Decisions.Explain(ctx, s.Org, p.Question)
	if _, bad := errors.AsType[row.BadRequestError](err); err != nil && !bad {
		err = row.RefusedError{Status: http.StatusInternalServerError, Reason: err.Error()}
	}
	return x, err
}

// question is a request that is to be explained.
type question struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with the query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Org    string            `json:"org,omitempty"`
	Key    string            `json:"key,omitempty"`
	Team   string            `json:"team,omitempty"`
	Roles  []string          `json:"roles,omitempty"`
}
