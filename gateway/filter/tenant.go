package filter

import (
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Class is a configured group of operations with quotas in addition to the caller's quotas. They are counted in scopes of kind
// ratelimit.KindClass. It is unrelated to ratelimit.Class, which distinguishes reads from writes.
type Class struct {
	ID string
	// Per determines which calls share the quota.
	Per ratelimit.ScopeKind
	// Cost is the number of units that one call uses.
	Cost  int64
	Limit ratelimit.Limit
}

// Scope returns the class's scope for a caller.
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

// Tenant is the configuration of one organisation as used by filters. It is immutable. The zero value has no limits.
type Tenant struct {
	// ID is the organisation's ID.
	ID string
	// PlatformName is the name of the platform, which names of secrets must not begin with, "" if unknown.
	PlatformName string
	// Contact is the contact in refusals, the zero value for the gateway's default.
	Contact problem.Contact
	// Limits contains the quotas of all scopes, including unlimited ones. An ID that ends with a colon, such as ci: for the tokens of the
	// issuer ci, applies to all IDs with that prefix that have no quotas of their own.
	Limits map[ratelimit.Ref]ratelimit.Limit
	// RuntimeKey returns the permissions of a key created at run time, or false for other keys. It may be nil.
	RuntimeKey func(id string) (RuntimeKey, bool)
	// Failure overrides the failure policies for the time when the store is down, by class of call.
	Failure map[ratelimit.Class]ratelimit.Failure
	// Classes maps operation IDs to their additional quotas.
	Classes map[string][]Class
	// Weights maps team IDs to their weights in FairShare; the default is one.
	Weights map[string]int64
	// Budgets contains the spending limits. If it is nil, spending is unlimited and owners are unknown.
	Budgets *ledger.Plan
	// Runs contains the configured costs of runs.
	Runs catalog.RunPrices
	// Labels are the rules for labels that callers may set. KeyLabels overrides them by key ID.
	Labels    []ledger.LabelRule
	KeyLabels map[string][]ledger.LabelRule
	// Isolation restricts access to the resources of other callers.
	Isolation Isolation
	// RejectCallerKeys refuses calls with a caller's key in an environment variable or a header, instead of removing the variable or header;
	// see [StripCallerKeys].
	RejectCallerKeys bool
	// ModelPaths are the paths under openai/v1/ that modelCall forwards.
	ModelPaths []string
	// Unknown selects which parts of requests are forwarded although the API description does not contain them.
	Unknown Unknown
	// ChangesBodies reports that policies may change bodies.
	ChangesBodies bool
}

// RuntimeKey contains the quotas and the permitted labels of a key created at run time.
type RuntimeKey struct {
	Limit ratelimit.Limit
	// Labels are the names of the organisation's labels that the caller may set, nil for all.
	Labels []string
}

// runtimeKey returns the permissions of a key created at run time.
func (t *Tenant) runtimeKey(id string) (k RuntimeKey, ok bool) {
	if t.RuntimeKey == nil {
		return k, false
	}
	return t.RuntimeKey(id)
}

// Limit returns the quotas of a scope. ok is false if the scope has no quotas of its own.
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

// MaxCallerScopes is the number of scopes that count a caller: key, team and organisation. The other scopes of a call, up to
// ratelimit.MaxScopes, are classes.
const MaxCallerScopes = 3

// Scopes returns the scopes that count a caller, except unlimited ones.
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

// classes returns the class scopes that count a call of an operation.
func (t *Tenant) classes(op *schema.Operation, c *identity.Caller) []ratelimit.Scope {
	var scopes []ratelimit.Scope
	for _, class := range t.Classes[op.ID] {
		scopes = append(scopes, class.Scope(c))
	}
	return scopes
}
