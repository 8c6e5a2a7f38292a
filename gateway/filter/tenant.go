package filter

import (
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate"
)

// Class is a group of operations with quotas of their own beside the caller's.
type Class struct {
	ID string
	// Per says whose calls share the quota.
	Per ratelimit.ScopeKind
	// Cost is the units that one call takes.
	Cost  int64
	Limit ratelimit.Limit
}

// Scope is the scope in which a class counts a caller.
func (c *Class) Scope(caller *identity.Caller) ratelimit.Scope {
	id := c.ID
	switch c.Per {
	case ratelimit.KindKey:
		id += "/key/" + caller.Key
	case ratelimit.KindTeam:
		id += "/team/" + caller.Team
	default:
	}
	return ratelimit.Scope{Kind: ratelimit.KindClass, ID: id, Limit: c.Limit, Cost: c.Cost, Policy: c.ID}
}

// Tenant is the configuration of one organisation, in the form in which
// filters ask for it. It is immutable. The zero value limits nothing.
type Tenant struct {
	// ID is the organisation's id.
	ID string
	// PlatformName is the name of the platform, with which no secret's name may begin, "" if it is not known.
	PlatformName string
	// Contact is the contact line that its refusals show, "" for that of the gateway.
	Contact string
	// Limits holds the quotas of its scopes, those that limit nothing included. An id that
	// ends with a colon is that of all whose ids begin so and have no quotas of their own.
	Limits map[ratelimit.Ref]ratelimit.Limit
	// RuntimeKey returns the permissions of a key made at run time, false for other keys. It is nil where there are none.
	RuntimeKey func(id string) (RuntimeKey, bool)
	// Failure overrides, by class of call, the treatment of calls while the shared store is
	// away.
	Failure map[ratelimit.Class]ratelimit.Failure
	// Classes holds the quotas an operation has beside the caller's, by its id.
	Classes map[string][]Class
	// Weights holds the weights of teams, by id; absent ones weigh one.
	Weights map[string]int64
	// Budgets holds the limits of its spend; nil limits nothing, and owners are then
	// unknown.
	Budgets *ledger.Plan
	// Runs holds its declared costs of runs.
	Runs catalog.Runs
	// Labels may be set on its callers' resources; KeyLabels holds those of keys that may
	// set others, by id.
	Labels    []ledger.LabelRule
	KeyLabels map[string][]ledger.LabelRule
	// Isolation is the access of its callers to each other's resources.
	Isolation Isolation
	// RejectCallerKeys says that a key of a caller in the environment of a body is refused,
	// not taken out.
	RejectCallerKeys bool
	// ModelPaths are the paths below openai/v1/ at which modelCall reaches its endpoints.
	ModelPaths []string
	// Unknown selects the undescribed parts that pass.
	Unknown Unknown
	// Brownouts holds the schedules by which legacy calls are refused.
	Brownouts map[route.Dialect]*translate.Schedule
	// ChangesBodies says that its policies may change bodies.
	ChangesBodies bool
}

// RuntimeKey holds the permissions of a caller with a key made at run time.
type RuntimeKey struct {
	Limit ratelimit.Limit
	// Labels are the names of those of the organisation that it may set, nil for all.
	Labels []string
}

// createsimeKey returns the permissions of a key made at run time.
func (t *Tenant) runtimeKey(id string) (k RuntimeKey, ok bool) {
	if t.RuntimeKey == nil {
		return k, false
	}
	return t.RuntimeKey(id)
}

// Limit returns the quotas of a scope, and false when it has none of its own.
func (t *Tenant) Limit(ref ratelimit.Ref) (ratelimit.Limit, bool) {
	if limit, ok := t.Limits[ref]; ok || ref.Kind != ratelimit.KindKey {
		return limit, ok
	}
	k, ok := t.runtimeKey(ref.ID)
	return k.Limit, ok
}

// Scope returns a scope with its quotas.
func (t *Tenant) Scope(kind ratelimit.ScopeKind, id string) ratelimit.Scope {
	limit, ok := t.Limit(ratelimit.Ref{Kind: kind, ID: id})
	if !ok {
		prefix, _, _ := strings.Cut(id, ":")
		limit = t.Limits[ratelimit.Ref{Kind: kind, ID: prefix + ":"}]
	}
	return ratelimit.Scope{Kind: kind, ID: id, Limit: limit}
}

// MaxCallerScopes is the largest number of scopes a caller is counted in beside classes.
const MaxCallerScopes = 3

// Scopes returns the scopes that count a caller.
func (t *Tenant) Scopes(c *identity.Caller) []ratelimit.Scope {
	scopes := make([]ratelimit.Scope, 0, MaxCallerScopes+1)
	for _, s := range [MaxCallerScopes]ratelimit.Scope{
		t.Scope(ratelimit.KindKey, c.Key),
		t.Scope(ratelimit.KindTeam, c.Team),
		t.Scope(ratelimit.KindOrg, t.ID),
	} {
		if !s.Limit.Unlimited() {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// classes returns the scopes that also count a call of an operation.
func (t *Tenant) classes(op *schema.Operation, c *identity.Caller) []ratelimit.Scope {
	var scopes []ratelimit.Scope
	for _, class := range t.Classes[op.ID] {
		scopes = append(scopes, class.Scope(c))
	}
	return scopes
}
