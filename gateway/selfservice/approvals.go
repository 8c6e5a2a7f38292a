package selfservice

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// requests returns the approval requests that a caller can see, newest first.
func (s *Service) requests(ctx context.Context, ex *filter.Exchange) ([]approval.Record, error) {
	list, err := ask[approval.List](ctx, s, ex, "GET /admin/approvals", nil)
	if err != nil {
		return nil, err
	}
	out := make([]approval.Record, 0, len(list.Approvals))
	for _, r := range list.Approvals {
		if sees(ex.Caller, r.Team, r.Key) {
			r.Claim = ""
			out = append(out, r)
		}
	}
	return out, nil
}

func (s *Service) approvals(ctx context.Context, ex *filter.Exchange) (any, error) {
	if len(ex.Query) > 0 {
		return nil, adminapi.BadParam("query", "parameters are not accepted")
	}
	list, err := s.requests(ctx, ex)
	out := make([]Request, len(list))
	for i, r := range list {
		out[i] = Request{
			Record: r, MayGrant: r.State == approval.Pending && s.mayGrant(ex.Caller, &r, cmp.Or(r.USD, "0")) == nil,
			MayDeny: (r.State == approval.Pending || r.State == approval.Granted) && s.mayAnswer(ex.Caller) == nil,
		}
	}
	return RequestList{out}, err
}

// RequestList is the list of approval requests in a response.
type RequestList struct {
	Approvals []Request `json:"approvals"`
}

// Request is an approval request with the answers that the caller may give.
type Request struct {
	approval.Record

	// MayGrant is set if the caller may approve the request at its price. MayDeny is set if the caller may deny it.
	MayGrant bool `json:"may_grant,omitempty"`
	MayDeny  bool `json:"may_deny,omitempty"`
}

// grants returns the limits of the approvals that leads of a caller's team can give.
func (s *Service) grants(c *identity.Caller) settings.Grants {
	if o := s.deps.Org(c.Org); o != nil {
		if i := slices.IndexFunc(o.Teams, func(t settings.Team) bool { return t.ID == c.Team }); i >= 0 {
			return o.Teams[i].Grants
		}
	}
	return settings.Grants{}
}

// grant approves a call of the lead's team once.
func (s *Service) grant(ctx context.Context, ex *filter.Exchange) (any, error) {
	r, err := s.request(ctx, ex)
	if err != nil {
		return nil, err
	}
	if len(ex.Query["max_usd"]) > 1 {
		return nil, adminapi.BadParam("max_usd", "must not be repeated")
	}
	most := cmp.Or(ex.Query.Get("max_usd"), r.USD)
	if err := s.mayGrant(ex.Caller, r, most); err != nil {
		return nil, err
	}
	return s.answered(ctx, ex, "POST /admin/approvals/grant", url.Values{"max_usd": {most}}, "for", "reason", "max_usd")
}

// mayGrant returns the reason why a lead cannot approve a request for at most the given amount in USD, or nil if the lead can approve it.
func (s *Service) mayGrant(c *identity.Caller, r *approval.Record, most string) error {
	if err := s.mayAnswer(c); err != nil {
		return err
	}
	if err := s.notOwn(c, r); err != nil {
		return err
	}
	for _, f := range r.Refusals {
		if budget, ok := strings.CutPrefix(f.By, "budget "); ok && !s.ownBudget(c, budget) {
			return problem.Forbidden.Newf("budget %s is not a budget of team %s or of its keys, so only an approver can answer this request",
				budget, c.Team)
		}
	}
	bound := s.grants(c).PerHour
	if r.Per == approval.PerRun {
		bound = s.grants(c).PerRun
	}
	if price, err := catalog.ParseMoney(most); err != nil || price > bound {
		return problem.Forbidden.Newf("leads of team %s can approve at most %s USD per %s, so only an approver can answer this request",
			c.Team, bound, r.Per)
	}
	return nil
}

// ownBudget reports whether the budget with the given name, such as "team research per_hour", belongs to the caller's team or to a key of
// the team. A call that changes another team's resource can exceed a budget of that team.
func (s *Service) ownBudget(c *identity.Caller, name string) bool {
	if strings.HasPrefix(name, "team "+c.Team+" ") {
		return true
	}
	for k := range s.deps.Org(c.Org).AllKeys() {
		if k.Team == c.Team && strings.HasPrefix(name, "key "+k.ID+" ") {
			return true
		}
	}
	return false
}

// mayAnswer returns the reason why a caller cannot answer the approval requests of its team, or nil if the caller can answer them.
func (s *Service) mayAnswer(c *identity.Caller) error {
	if !leads(c) {
		return problem.Forbidden.New("only a key with the role lead can answer the approval requests of its team")
	}
	if s.grants(c) == (settings.Grants{}) {
		return problem.Forbidden.Newf("leads of team %s cannot approve requests: the team has no `grants` setting", c.Team)
	}
	return nil
}

// deny denies a request of the lead's team, or revokes a grant.
func (s *Service) deny(ctx context.Context, ex *filter.Exchange) (any, error) {
	if _, err := s.request(ctx, ex); err != nil {
		return nil, err
	}
	return s.answered(ctx, ex, "POST /admin/approvals/deny", nil, "reason")
}

// request returns the approval request that a lead wants to answer. The content of an approval request never changes, because a new request
// gets a new ID.
func (s *Service) request(ctx context.Context, ex *filter.Exchange) (*approval.Record, error) {
	if err := s.mayAnswer(ex.Caller); err != nil {
		return nil, err
	}
	list, err := s.requests(ctx, ex)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(r approval.Record) bool { return r.ID == ex.Params["id"] })
	if i < 0 {
		return nil, problem.NotFound.Newf("team %s has no approval request %q", ex.Caller.Team, ex.Params["id"])
	}
	return &list[i], nil
}

// notOwn returns an error unless the approval request certainly belongs to someone other than the lead. The request must come from a
// configured key with another owner, because leads can obtain the secrets of keys created at run time and because the holder of a token is
// unknown.
func (s *Service) notOwn(c *identity.Caller, r *approval.Record) error {
	if r.Key == c.Key {
		return problem.Forbidden.New("you cannot approve your own request")
	}
	o := s.deps.Org(c.Org)
	own := o.Key(c.Key)
	asks := slices.IndexFunc(o.Keys, func(k settings.Key) bool { return k.ID == r.Key && k.Team == c.Team })
	switch {
	case own == nil || own.Owner == "":
		return problem.Forbidden.New("you cannot approve this request: your key has no configured owner, so the request could be your own")
	case asks < 0:
		return problem.Forbidden.New("you cannot approve this request: it uses no configured key of your team, so it could be your own")
	case o.Keys[asks].Owner == "" || strings.EqualFold(strings.TrimSpace(o.Keys[asks].Owner), strings.TrimSpace(own.Owner)):
		return problem.Forbidden.Newf("you cannot approve this request: key %s has no configured owner other than you, so the request may be your own", r.Key)
	}
	return nil
}

// answered answers an approval request on behalf of the lead, and writes an audit record before and after the answer. names lists the
// parameters that the HTTP request may have.
func (s *Service) answered(ctx context.Context, ex *filter.Exchange, pattern string, values url.Values, names ...string) (any, error) {
	if !ex.Ports.LeadsMayManage {
		return nil, problem.BadRequest.New("answers to approval requests do not support dry runs")
	}
	asked := url.Values{"org": {ex.Caller.Org}, "id": {ex.Params["id"]}}
	for name, v := range ex.Query {
		if !slices.Contains(names, name) {
			return nil, adminapi.BadParam(name, "%s", adminapi.UnknownName("parameter", name, names))
		}
		asked[name] = v
	}
	maps.Copy(asked, values)
	seq, err := ex.RecordIntent(audit.Record{
		Decision: ex.DecisionID, Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Peer: ex.In.Peer, Dialect: string(route.V2),
		Operation: ex.Route.ID, Kind: "approval", Resource: ex.Params["id"], Query: asked.Encode(),
	})
	if err != nil {
		return nil, err
	}
	v, err := adminapi.Call[any](ctx, s.rows, pattern, s.scope(ex.Caller, adminapi.Approver), asked, nil)
	status := http.StatusOK
	if p, ok := errors.AsType[*problem.Problem](refusal(err)); err != nil && ok {
		status = p.Status
	}
	if seq != 0 {
		result := audit.Record{Resource: ex.Params["id"], Status: status}
		if subject, ok := v.(audit.Subject); ok {
			result.Kind, result.Resource, result.Summary = subject.AuditSubject()
		}
		if failed := ex.Ports.Audit.Result(seq, result); failed != nil {
			s.deps.Logger.ErrorContext(ctx, "cannot write the audit log", "error", failed)
		}
	}
	return v, err
}
