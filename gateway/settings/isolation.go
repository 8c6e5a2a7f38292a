package settings

import (
	"cmp"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Isolation sets which callers of an organisation may access the resources of other callers.
type Isolation struct {
	Change Reach `yaml:"change" doc:"callers that can change a resource: all callers of the organisation, the owner's team, or only the owner's key. Other callers get 404. If empty, the value of read is used"`

	Read Reach `yaml:"read" doc:"callers that can read and use a resource, with the same choices as for change. If empty, org is used"`

	Unowned Unowned `yaml:"unowned" doc:"callers that can read and change a resource whose owner is not in the ledger, because the resource was created outside the gateway or a moment ago: all callers of the organisation, or only callers with exempt roles. If empty, admins is used"`

	Exempt []identity.Role `yaml:"exempt" doc:"roles that can read and change all resources. If empty, only admin is exempt"`
}

// Reach is a group of callers, relative to the owner of a resource.
type Reach string

// Values lists the groups, largest first.
func (Reach) Values() []string { return []string{"org", "team", "key"} }

// Unowned is the group of callers that may access resources without a known owner.
type Unowned string

// Values lists the groups.
func (Unowned) Values() []string { return []string{"org", "admins"} }

// Validate returns an error if the configuration lets more callers change resources than read them.
func (i Isolation) Validate() error {
	width := func(r Reach) int { return slices.Index(r.Values(), string(cmp.Or(r, "org"))) }
	if i.Change != "" && width(i.Change) < width(i.Read) {
		return fault.Errorf("change", "must not permit more callers than read")
	}
	return nil
}

// HidesUnowned reports whether resources without a known owner are hidden by default, because unowned is not set.
func (i Isolation) HidesUnowned() bool { return i.Unowned == "" && i.Applies() }

// Applies reports whether any access is restricted.
func (i Isolation) Applies() bool {
	narrow := func(r Reach) bool { return r == "team" || r == "key" }
	return narrow(i.Read) || narrow(cmp.Or(i.Change, i.Read))
}
