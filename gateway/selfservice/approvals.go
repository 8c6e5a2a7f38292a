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

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// requests returns the requests for approval that a caller sees, newest first.
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
		return nil, row.Bad("query", "there are no parameters")
	}
	list, err := s.requests(ctx, ex)
	out := make([]Request, len(list))
	for i := range list {
		r := &list[i]
		out[i] = Request{
			Record: *r, MayGrant: r.State == approval.Pending && s.mayGrant(ex.Caller, r, cmp.Or(r.USD, "0")) == nil,
			MayDeny: (r.State == approval.Pending || r.State == approval.Granted) && s.mayAnswer(ex.Caller) == nil,
		}
	}
	return map[string]any{"approvals": out}, err
}

// Request is a request for approval, and the answers that the caller may give to it.
type Request struct {
	approval.Record

	// MayGrant is set if the caller may grant the request, at its price or at a lower one, and MayDeny if the caller may deny it.
	MayGrant bool `json:"may_grant,omitempty"`
	MayDeny  bool `json:"may_deny,omitempty"`
}

// grants returns the approvals that the leads of a caller's team may give.
func (s *Service) grants(c *identity.Caller) settings.Grants {
	if o := s.deps.Org(c.Org); o != nil {
		if i := slices.IndexFunc(o.Teams, func(t settings.Team) bool { return t.ID == c.Team }); i >= 0 {
			return o.Teams[i].Grants
		}
	}
	return settings.Grants{}
}

// grant lets a call of the lead's team pass once.
func (s *Service) grant(ctx context.Context, ex *filter.Exchange) (any, error) {
	r, err := s.request(ctx, ex)
	if err != nil {
		return nil, err
	}
	if len(ex.Query["max_usd"]) > 1 {
		return nil, row.Bad("max_usd", "is given more than once")
	}
	most := cmp.Or(ex.Query.Get("max_usd"), r.USD)
	if err := s.mayGrant(ex.Caller, r, most); err != nil {
		return nil, err
	}
	return s.answered(ctx, ex, "POST /admin/approvals/grant", url.Values{"max_usd": {most}}, "for", "reason", "max_usd")
}

// mayGrant returns why a lead may not grant a request for at most an amount in USD, nil if the lead may.
func (s *Service) mayGrant(c *identity.Caller, r *approval.Record, most string) error {
	if err := s.mayAnswer(c); err != nil {
		return err
	}
	if err := s.notOwn(c, r); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Refusals, func(f approval.Refusal) bool { return strings.HasPrefix(f.By, "budget organisation ") }) {
		return problem.Forbidden.New("the call was refused by a budget of the organisation: an approver answers")
	}
	bound := s.grants(c).PerHour
	if r.Per == approval.PerRun {
		bound = s.grants(c).PerRun
	}
	if price, err := catalog.ParseMoney(most); err != nil || price > bound {
		return problem.Forbidden.Newf("a lead of team %s approves what costs at most %s USD per %s: an approver answers", c.Team, bound, r.Per)
	}
	return nil
}

// mayAnswer returns why a caller may answer no request for approval of its team, nil if it may.
func (s *Service) mayAnswer(c *identity.Caller) error {
	if !leads(c) {
		return problem.Forbidden.New("only a key with the role lead answers requests for approval of its team")
	}
	if s.grants(c) == (settings.Grants{}) {
		return problem.Forbidden.Newf("leads of team %s answer no requests for approval: no operator lets them (grants of the team)", c.Team)
	}
	return nil
}

// deny refuses a request of the lead's team, or takes a grant back.
func (s *Service) deny(ctx context.Context, ex *filter.Exchange) (any, error) {
	if _, err := s.request(ctx, ex); err != nil {
		return nil, err
	}
	return s.answered(ctx, ex, "POST /admin/approvals/deny", nil, "reason")
}

// request returns the request for approval that a lead is about to answer. The content of a request of one id does not change: a new request
// has another id.
func (s *Service) request(ctx context.Context, ex *filter.Exchange) (*approval.Record, error) {
	c := ex.Caller
	if err := s.mayAnswer(c); err != nil {
		return nil, err
	}
	list, err := s.requests(ctx, ex)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(r approval.Record) bool { return r.ID == ex.Params["id"] })
	if i < 0 {
		return nil, problem.NotFound.Newf("team %s has no request for approval %q", c.Team, ex.Params["id"])
	}
	return &list[i], nil
}

// notOwn refuses to grant a request that may be the lead's own. A lead can get the secret of keys made at run time, and the holder of a token
// is unknown, so the request must come from a key of the configuration that another owner answers for.
func (s *Service) notOwn(c *identity.Caller, r *approval.Record) error {
	if r.Key == c.Key {
		return problem.Forbidden.New("nobody grants a request of his own")
	}
	o := s.deps.Org(c.Org)
	own := o.Key(c.Key)
	asks := slices.IndexFunc(o.Keys, func(k settings.Key) bool { return k.ID == r.Key && k.Team == c.Team })
	switch {
	case own == nil || own.Owner == "":
		return problem.Forbidden.New("nobody grants a request of his own: the lead's key names no owner")
	case asks < 0:
		return problem.Forbidden.New("nobody grants a request of his own: a lead answers those of keys of the configuration alone")
	case o.Keys[asks].Owner == "" || strings.EqualFold(strings.TrimSpace(o.Keys[asks].Owner), strings.TrimSpace(own.Owner)):
		return problem.Forbidden.Newf("nobody grants a request of his own: key %s does not name another owner", r.Key)
	}
	return nil
}

// answered answers a request in the lead's name, audited before and behind. The parameters of the request may be those of some names.
func (s *Service) answered(ctx context.Context, ex *filter.Exchange, pattern string, values url.Values, names ...string) (any, error) {
	if !ex.Ports.LeadsMayManage {
		return nil, problem.BadRequest.New("there are no dry runs of answers")
	}
	asked := url.Values{"org": {ex.Caller.Org}, "id": {ex.Params["id"]}}
	for name, v := range ex.Query {
		if !slices.Contains(names, name) {
			return nil, row.Bad(name, "%s", row.Unknown("parameter", name, names))
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
	v, err := row.Ask[any](ctx, s.rows, pattern, s.scope(ex.Caller, row.Approver), asked, nil)
	status := http.StatusOK
	if p, ok := errors.AsType[*problem.Problem](refusal(err)); err != nil && ok {
		status = p.Status
	}
	if seq != 0 {
		if failed := ex.Ports.Audit.Result(seq, audit.Record{Resource: ex.Params["id"], Status: status}); failed != nil {
			s.deps.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", failed)
		}
	}
	return v, err
}
