package settings

import (
	"cmp"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Isolation sets which callers of an organisation may access the resources of other callers.
type Isolation struct {
	Change  Reach           `yaml:"change" doc:"callers that may change a resource: the whole organisation, the owner's team, or only the owner's key; other callers get 404. If empty, the value of read"`
	Read    Reach           `yaml:"read" doc:"callers that may read and use a resource, with the same choices; if empty, org"`
	Unowned Unowned         `yaml:"unowned" doc:"callers that may read and change a resource without an owner in the ledger, because it was created outside the gateway or a moment ago: the whole organisation, or only the exempt roles. If empty, admins"`
	Exempt  []identity.Role `yaml:"exempt" doc:"roles that may read and change all resources; if empty, only admin"`
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
