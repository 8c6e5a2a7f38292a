package settings

import (
	"cmp"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Isolation sets which resources of other callers a caller may access within an organisation.
type Isolation struct {
	Change Reach `yaml:"change" doc:"callers that can change a resource: all callers, the owner's team, or only the owner's key; default the value of read. Other callers get 404"`

	Read Reach `yaml:"read" doc:"callers that can read and use a resource, with the same choices as change; default org"`

	Unowned Unowned `yaml:"unowned" doc:"callers that can read and change a resource that has no owner in the ledger because it was created outside the gateway or a moment ago. org permits all callers; admins (default) permits only exempt roles"`

	Exempt []identity.Role `yaml:"exempt" doc:"roles that can read and change all resources; default admin"`
}

// Reach determines which callers may access a resource: all callers of the organisation, the team of the resource's owner, or only the
// owner's key.
type Reach string

// Values lists the groups. The largest group comes first.
func (Reach) Values() []string { return []string{"org", "team", "key"} }

// Unowned determines which callers may access resources without a known owner.
type Unowned string

// Values lists the groups.
func (Unowned) Values() []string { return []string{"org", "admins"} }

// Validate returns an error if the group of callers that may change a resource is larger than the group that may read the resource.
func (i Isolation) Validate() error {
	width := func(r Reach) int { return slices.Index(r.Values(), string(cmp.Or(r, "org"))) }
	if i.Change != "" && width(i.Change) < width(i.Read) {
		return fault.Errorf("change", "must not permit more callers than read")
	}
	return nil
}

// HidesUnowned reports whether resources without a known owner are hidden by default: access is restricted, and the setting unowned is not
// set.
func (i Isolation) HidesUnowned() bool { return i.Unowned == "" && i.Applies() }

// Applies reports whether any access is restricted.
func (i Isolation) Applies() bool {
	narrow := func(r Reach) bool { return r == "team" || r == "key" }
	return narrow(i.Read) || narrow(cmp.Or(i.Change, i.Read))
}
