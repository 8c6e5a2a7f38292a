package settings

import (
	"cmp"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Isolation sets the rights of callers over resources of others of their organisation.
type Isolation struct {
	Change  Reach           `yaml:"change" doc:"callers that may change a resource: all of the organisation, the team of its maker, or the key alone; for others it does not exist (404); empty is the value of read"`
	Read    Reach           `yaml:"read" doc:"callers that may read and use it, likewise; empty is org"`
	Unowned Unowned         `yaml:"unowned" doc:"callers that may read and change a resource without a maker in the ledger, because it was made without the gateway or a moment ago: all of the organisation, or the exempt roles alone; empty is admins"`
	Exempt  []identity.Role `yaml:"exempt" doc:"roles that may read and change everything; empty is admin alone"`
}

// Reach names the callers that may read or change a caller's resources.
type Reach string

// Values lists who can be meant, widest first.
func (Reach) Values() []string { return []string{"org", "team", "key"} }

// Unowned names the callers that may read and change resources without a known maker.
type Unowned string

// Values lists who can be meant.
func (Unowned) Values() []string { return []string{"org", "admins"} }

// Validate reports a change that is allowed to more callers than may read.
func (i Isolation) Validate() error {
	width := func(r Reach) int { return slices.Index(r.Values(), string(cmp.Or(r, "org"))) }
	if i.Change != "" && width(i.Change) < width(i.Read) {
		return fault.Errorf("change", "must not be wider than read: what a caller cannot read, it cannot change")
	}
	return nil
}

// HidesUnowned reports whether resources without a known maker are hidden from callers
// although the configuration does not say so.
func (i Isolation) HidesUnowned() bool { return i.Unowned == "" && i.Applies() }

// Applies reports whether anything is kept apart.
func (i Isolation) Applies() bool {
	narrow := func(r Reach) bool { return r == "team" || r == "key" }
	return narrow(i.Read) || narrow(cmp.Or(i.Change, i.Read))
}
