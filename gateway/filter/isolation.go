package filter

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Isolation restricts the access of callers to resources of other callers in the same organisation. The zero value restricts nothing.
type Isolation struct {
	// Read and Change specify who, besides the owner, may read and change a resource.
	Read, Change AccessScope
	// Unowned makes resources without an owner inaccessible to all callers except those with an exempt role. If it is false, all callers have
	// access to them.
	Unowned bool
	// Exempt lists the roles that may read and change everything.
	Exempt []identity.Role
}

// AccessScope limits access to a resource to the organisation (ledger.KindOrg), the owner's team (ledger.KindTeam) or the owner's key
// (ledger.KindKey). Any other value, such as "", does not restrict access.
type AccessScope ledger.ScopeKind

// restricts reports whether the scope is smaller than the organisation.
func (r AccessScope) restricts() bool {
	return r == AccessScope(ledger.KindTeam) || r == AccessScope(ledger.KindKey)
}

// Enabled reports whether Read or Change restricts access. If so, the gateway must know the owners of resources.
func (i *Isolation) Enabled() bool { return i.Read.restricts() || i.Change.restricts() }

// exempts reports whether a caller has unrestricted access.
func (i *Isolation) exempts(c *identity.Caller) bool {
	return !i.Enabled() || slices.ContainsFunc(c.Roles, func(r identity.Role) bool { return slices.Contains(i.Exempt, r) })
}

func (i *Isolation) scope(changes bool) AccessScope {
	if changes {
		return i.Change
	}
	return i.Read
}

// allows reports whether a caller is within the scope r of the owner o.
func (i *Isolation) allows(r AccessScope, o ledger.Owner, c *identity.Caller) bool {
	switch {
	case !r.restricts():
		return true
	case o == ledger.Owner{}:
		return !i.Unowned
	case r == AccessScope(ledger.KindTeam) && o.Team != "":
		return o.Team == c.Team
	}
	return o.Key == c.Key && o.Team == c.Team
}

// CanChange reports whether a caller may change resources of the given owner.
func (i *Isolation) CanChange(c *identity.Caller, o ledger.Owner) bool {
	return i.exempts(c) || i.allows(i.Change, o, c)
}

// HidesResource reports whether the call names a resource that is hidden from the caller.
func (ex *Exchange) HidesResource() bool { return len(ex.Access.hidden) > 0 }

// recount recalculates the summary of a billing list for the records left after filtering.
func recount(meta map[string]any, left []any, resources int) {
	number := func(n int) json.Number { return json.Number(big.NewInt(int64(n)).String()) }
	for name := range meta {
		if strings.HasPrefix(name, "unique") {
			meta[name] = number(resources)
		}
	}
	meta["recordCount"] = number(len(left))
	totals, _ := meta["totals"].(map[string]any)
	for name := range totals {
		sum := new(big.Rat)
		for _, item := range left {
			record, _ := item.(map[string]any)
			if n, ok := record[name].(json.Number); ok {
				if part, ok := new(big.Rat).SetString(n.String()); ok {
					sum.Add(sum, part)
				}
			}
		}
		const digits = 10
		totals[name] = json.Number(strings.TrimSuffix(strings.TrimRight(sum.FloatString(digits), "0"), "."))
	}
}
