package callers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Routes for team leads to manage the keys of their team.
const (
	keysPath    = "/tollgate/keys"
	listKeysID  = "keys.list"
	makeKeyID   = "keys.create"
	rotateKeyID = "keys.rotate"
	revokeKeyID = "keys.revoke"

	maxTeamKeys = 100            // active keys that leads of a team may create
	leadOverlap = 24 * time.Hour // default overlap of a rotation
)

// lead is a caller that may manage keys of its team, with the limits for the keys that it creates.
type lead struct {
	caller *identity.Caller
	key    settings.Key
	team   settings.Team
	labels []ledger.LabelRule // labels that keys may set
}

// leadOf returns the lead that sent a request. For any other caller it returns a 403.
func (s *Keys) leadOf(c *identity.Caller) (*lead, error) {
	if slices.Contains(c.Roles, identity.RoleLead) && c.Team != "" {
		if o := s.org(c.Org); o != nil {
			k := o.Key(c.Key)
			t := slices.IndexFunc(o.Teams, func(t settings.Team) bool { return t.ID == c.Team })
			if k != nil && t >= 0 {
				return &lead{c, *k, o.Teams[t], Labels(o, k)}, nil
			}
		}
	}
	return nil, problem.Forbidden.New("only a key with the role lead can manage the keys of its team")
}

// bound returns the requested key with the lead's own limits in place of those that are not set. It returns an error if
// the key would have more rights than the lead or the team.
func (l *lead) bound(k settings.Key) (settings.Key, error) {
	var errs fault.Found
	if k.Team = cmp.Or(k.Team, l.caller.Team); k.Team != l.caller.Team {
		errs.Add("team", "must be the lead's own team, %q", l.caller.Team)
	}
	works := slices.ContainsFunc(l.caller.Roles, func(r identity.Role) bool { return r == identity.RoleOperator || r == identity.RoleAdmin })
	if len(k.Roles) == 0 && !works {
		k.Roles = []identity.Role{identity.RoleViewer}
	}
	for _, r := range rolesOf(k.Roles) {
		errs.If(r != identity.RoleViewer && (r != identity.RoleOperator || !works), "roles", "a lead cannot assign the role %s", r)
	}
	errs.If(k.Exempt, "exempt", "a lead cannot set this field")
	errs.If(k.Budget.Approvable && !l.key.Budget.Approvable, "budget.approvable", "a lead can set this field only if the budget of the lead's own key is approvable")
	for _, w := range []struct {
		name      string
		of        *int64
		own, team int64
	}{
		{"limits.minute", &k.Limit.Minute, l.key.Limit.Minute, l.team.Limit.Minute},
		{"limits.hour", &k.Limit.Hour, l.key.Limit.Hour, l.team.Limit.Hour},
		{"limits.day", &k.Limit.Day, l.key.Limit.Day, l.team.Limit.Day},
		{"budget.gpus", &k.Budget.GPUs, l.key.Budget.GPUs, l.team.Budget.GPUs},
		{"budget.pods", &k.Budget.Pods, l.key.Budget.Pods, l.team.Budget.Pods},
		{"budget.workers", &k.Budget.Workers, l.key.Budget.Workers, l.team.Budget.Workers},
		{"budget.volume_gb", &k.Budget.VolumeGB, l.key.Budget.VolumeGB, l.team.Budget.VolumeGB},
		{"budget.sandboxes", &k.Budget.Sandboxes, l.key.Budget.Sandboxes, l.team.Budget.Sandboxes},
	} {
		errs = append(errs, atMost(w.name, w.of, w.own, w.team))
	}
	errs = append(errs,
		atMost("budget.per_hour", &k.Budget.PerHour, l.key.Budget.PerHour, l.team.Budget.PerHour),
		atMost("budget.per_day", &k.Budget.PerDay, l.key.Budget.PerDay, l.team.Budget.PerDay),
		atMost("budget.per_week", &k.Budget.PerWeek, l.key.Budget.PerWeek, l.team.Budget.PerWeek),
		atMost("budget.per_month", &k.Budget.PerMonth, l.key.Budget.PerMonth, l.team.Budget.PerMonth),
		atMost("budget.per_quarter", &k.Budget.PerQuarter, l.key.Budget.PerQuarter, l.team.Budget.PerQuarter),
		atMost("budget.total", &k.Budget.Total, l.key.Budget.Total, l.team.Budget.Total))
	if end := l.caller.Until; !end.IsZero() {
		if k.Expires.IsZero() {
			k.Expires = end
		}
		errs.If(k.Expires.After(end), "expires", "must not be later than %s, when the lead's key expires", end.UTC().Format(time.RFC3339))
	}
	if k.Labels == nil {
		k.Labels = l.key.Labels
	}
	for i, name := range k.Labels {
		errs.If(!slices.ContainsFunc(l.labels, func(r ledger.LabelRule) bool { return r.Name == name }), fault.Index("labels", i),
			"the lead's key cannot set this label")
	}
	for _, r := range l.labels {
		errs.If(r.Required && k.Labels != nil && !slices.Contains(k.Labels, r.Name), "labels", "must include the required label %s", r.Name)
	}
	if len(l.caller.Addresses) > 0 && len(k.Addresses) == 0 {
		k.Addresses = l.caller.Addresses
	}
	for i, p := range k.Addresses {
		within := func(own netip.Prefix) bool { return own.Bits() <= p.Bits() && own.Contains(p.Addr()) }
		errs.If(len(l.caller.Addresses) > 0 && !slices.ContainsFunc(l.caller.Addresses, within), fault.Index("addresses", i),
			"must be within the addresses of the lead's key")
	}
	return k, errors.Join(errs...)
}

// rolesOf returns the roles of a key. A key without roles is an operator's key.
func rolesOf(roles []identity.Role) []identity.Role {
	if len(roles) == 0 {
		return []identity.Role{identity.RoleOperator}
	}
	return roles
}

// atMost replaces an unset limit with the lead's own limit. It returns an error if the limit exceeds the limit of the lead or of the team.
// 0 means no limit.
func atMost[T ~int64](name string, of *T, own, team T) error {
	*of = cmp.Or(*of, own)
	for _, most := range []T{own, team} {
		if most > 0 && *of > most {
			return fault.Errorf(name, "must not exceed the limit of the lead or the team")
		}
	}
	return nil
}

// Routes returns the routes with which team leads manage the keys of their team.
func (s *Keys) Routes() []filter.Served {
	return []filter.Served{
		filter.Serve(listKeysID, http.MethodGet, keysPath, s.answer),
		filter.Serve(makeKeyID, http.MethodPost, keysPath, s.answer),
		filter.Serve(rotateKeyID, http.MethodPost, keysPath+"/{id}/rotate", s.answer),
		filter.Serve(revokeKeyID, http.MethodDelete, keysPath+"/{id}", s.answer),
	}
}

// answer responds to a request of a lead.
func (s *Keys) answer(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	l, err := s.leadOf(ex.Caller)
	if err != nil {
		return nil, err
	}
	switch ex.Route.ID {
	case listKeysID:
		ex.RecordRead()
		return filter.JSONResponse(map[string]any{"keys": s.teamKeys(ctx, ex.Caller.Org, l)})
	case makeKeyID:
		return s.leadCreates(ctx, ex, l)
	}
	if len(ex.In.Body) > 0 {
		return nil, problem.BadRequest.New("the operation does not accept a body")
	}
	m, err := s.madeKey(ctx, ex.Caller.Org, ex.Params["id"])
	p, _ := errors.AsType[*problem.Problem](err)
	if err == nil && m.Team != l.caller.Team || p != nil && p.Kind == problem.KeyConflict {
		err = noKey(ex.Caller.Org, ex.Params["id"])
	}
	if err != nil {
		return nil, err
	}
	if ex.Route.ID == rotateKeyID {
		return s.leadRotates(ctx, ex, l, m)
	}
	if !mayRevoke(&m.Key) {
		return nil, problem.Forbidden.New("only an administrator can revoke this key")
	}
	return s.leadChange(ex, m.ID, "", http.StatusNoContent, func() (*KeyResponse, error) {
		return nil, s.revokeKey(ctx, ex.Caller.Org, m, ex.Caller.Key)
	})
}

// TeamKey is a key of a lead's team with the changes that the lead may make.
type TeamKey struct {
	settings.KeyRecord

	MayRotate bool `json:"may_rotate,omitempty"`
	MayRevoke bool `json:"may_revoke,omitempty"`
}

// teamKeys returns the keys of a lead's team: first the keys created at run time, then the keys of the configuration
// without their digests.
func (s *Keys) teamKeys(ctx context.Context, org string, l *lead) []TeamKey {
	made, list := s.keyring.Of(org), []TeamKey{}
	used, now := s.keyring.lastUsed(ctx, org), s.deps.Now()
	for _, r := range s.listKeys(org, used) {
		m := made.Get(r.ID)
		if r.Team != l.caller.Team || m == nil {
			continue
		}
		list = append(list, TeamKey{r, !m.ended(now) && l.mayRotate(m.Key), m.Revoked.IsZero() && mayRevoke(&m.Key)})
	}
	for _, r := range s.configuredKeys(org, used) {
		if r.Digests = nil; r.Team == l.caller.Team {
			list = append(list, TeamKey{KeyRecord: r})
		}
	}
	return list
}

// mayRotate reports whether the lead could create the key as it is.
func (l *lead) mayRotate(k settings.Key) bool {
	bounded, err := l.bound(k)
	before, _ := json.Marshal(k.Record())
	after, _ := json.Marshal(bounded.Record())
	return err == nil && bytes.Equal(before, after)
}

// mayRevoke reports whether the leads of a team may revoke a key.
func mayRevoke(k *settings.Key) bool {
	return !k.Exempt && !slices.Contains(k.Roles, identity.RoleLead) && !slices.Contains(k.Roles, identity.RoleAdmin)
}

func (s *Keys) leadCreates(ctx context.Context, ex *filter.Exchange, l *lead) (*filter.Response, error) {
	doc, err := ex.StrictJSON()
	if err != nil {
		return nil, err
	}
	k, err := parseKey(string(ex.In.Body))
	if err != nil {
		return nil, err
	}
	if err := refuseZeros(doc); err != nil {
		return nil, invalidKey(err)
	}
	if k.Digest != (identity.Digest{}) || len(k.Digests) > 0 {
		return nil, problem.Forbidden.New("the gateway generates the secret of a key created by a lead; omit sha256 and digests")
	}
	if k, err = l.bound(k); err != nil {
		refusal := problem.Forbidden.New("the key exceeds the rights of its team lead")
		if p, ok := errors.AsType[*problem.Problem](invalidKey(err)); ok {
			refusal.Errors = p.Errors
		}
		return nil, refusal
	}
	n, now := 0, s.deps.Now()
	known := s.keyring.Of(ex.Caller.Org)
	if old := known.Get(k.ID); old != nil && old.Team != l.caller.Team {
		return nil, taken(ex.Caller.Org, k.ID) // the resources and the spending of the old key belong to another team
	}
	for _, m := range known.All() {
		if m.Team == l.caller.Team && !m.ended(now) {
			n++
		}
	}
	if n >= maxTeamKeys {
		return nil, problem.KeyConflict.Newf("the team has reached the limit of %d keys created at run time", n)
	}
	spec, err := json.Marshal(k.Record())
	if err != nil {
		return nil, err
	}
	return s.leadChange(ex, k.ID, string(spec), http.StatusCreated, func() (*KeyResponse, error) {
		return s.createKey(ctx, ex.Caller.Org, k, ex.Caller.Key)
	})
}

// refuseZeros rejects a limit or budget of 0 in the specification of a key, which could mean either nothing or no limit.
func refuseZeros(spec any) error {
	given, _ := spec.(map[string]any)
	var errs fault.Found
	for _, section := range []string{"limits", "budget"} {
		members, _ := given[section].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			number, _ := members[name].(json.Number)
			n, err := number.Float64()
			errs.If(err == nil && n == 0, section+"."+name, "must not be 0; omit it to use the lead's own limit")
		}
	}
	return errors.Join(errs...)
}

// leadRotates rotates a key that the lead could create.
func (s *Keys) leadRotates(ctx context.Context, ex *filter.Exchange, l *lead, m *runtimeKey) (*filter.Response, error) {
	overlap := leadOverlap
	for name, values := range ex.Query {
		var err error
		if overlap, err = time.ParseDuration(values[0]); name != "overlap" || len(values) != 1 || err != nil {
			return nil, problem.BadRequest.New("the only supported query parameter is overlap, a duration such as 24h")
		}
	}
	if !l.mayRotate(m.Key) {
		return nil, problem.Forbidden.New("the key exceeds the rights of its team lead; only an administrator can rotate it")
	}
	return s.leadChange(ex, m.ID, "overlap="+overlap.String(), http.StatusOK, func() (*KeyResponse, error) {
		return s.rotateKey(ctx, ex.Caller.Org, m, overlap)
	})
}

// leadChange makes a change and records it in the audit log. It refuses dry runs.
func (s *Keys) leadChange(
	ex *filter.Exchange, id, query string, status int, change func() (*KeyResponse, error),
) (*filter.Response, error) {
	if !ex.Ports.LeadsMayManage {
		return nil, problem.BadRequest.New("dry runs are not supported for changes to keys")
	}
	seq, err := ex.RecordIntent(audit.Record{
		Decision: ex.DecisionID, Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Peer: ex.In.Peer, Dialect: string(route.V2),
		Operation: ex.Route.ID, Kind: "key", Resource: id, Query: query,
	})
	if err != nil {
		return nil, err
	}
	made, err := change()
	result := audit.Record{Resource: id, Status: status}
	if err != nil {
		result.Status = problem.Internal.Status()
		if p, ok := errors.AsType[*problem.Problem](err); ok {
			result.Status = p.Status
		}
	}
	if seq != 0 {
		// The change has been made, so the response returns a new secret in any case.
		if failed := ex.Ports.Audit.Result(seq, result); failed != nil {
			s.deps.Logger.Error("cannot write the audit log", "error", failed)
		}
	}
	if err != nil {
		return nil, err
	}
	if status == http.StatusNoContent {
		return &filter.Response{Status: status, Header: make(http.Header)}, nil
	}
	answer, err := filter.JSONResponse(made)
	if err == nil {
		answer.Status = status
	}
	return answer, err
}
