package compiler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Names are what an organisation's section may refer to besides policies. A
// name that does not exist would silently switch off an entry or an exception.
type Names struct {
	Teams, Keys, Roles []string
}

// CheckNames reports every name in the entries that does not exist, each fault
// with its path below the section.
func CheckNames(entries []policyconfig.Entry, known Names) []error {
	lib, err := loadLibrary()
	if err != nil {
		return []error{err}
	}
	var errs []error
	for i, e := range entries {
		path := fault.Index("policies", i)
		errs = append(errs, UnknownNames("team", path+".teams", e.Teams, known.Teams)...)
		errs = append(errs, UnknownNames("team", path+".except_teams", e.ExceptTeams, known.Teams)...)
		errs = append(errs, UnknownNames("role", path+".roles", e.Roles, known.Roles)...)
		errs = append(errs, UnknownNames("role", path+".except_roles", e.ExceptRoles, known.Roles)...)
		if p := lib.policy(e.Policy); p != nil {
			errs = append(errs, fault.At(path+".params", errors.Join(p.params.roles(e.Params, known.Roles)...)))
		}
	}
	return errs
}

// UnknownNames reports which of the given names are not known. Empty names are
// faults of another sort.
func UnknownNames(kind, path string, given, known []string) []error {
	var errs []error
	for i, name := range given {
		if name != "" && !slices.Contains(known, name) {
			errs = append(errs, &fault.Error{Path: fault.Index(path, i), Err: Unknown(kind, name, known)})
		}
	}
	return errs
}

// Unknown is the fault of a name that does not exist; it names the nearest one
// that does, if one is near.
func Unknown(kind, name string, known []string) error {
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("unknown %s %q, did you mean %q?", kind, name, near)
	}
	const few = 8
	if n := len(known); n > 0 && n <= few {
		return fmt.Errorf("unknown %s %q, known: %s", kind, name, strings.Join(known, ", "))
	}
	return fmt.Errorf("unknown %s %q", kind, name)
}

// roles reports the values of format role that are no role.
func (p params) roles(given map[string]any, known []string) []error {
	var faults fault.Found
	for _, spec := range p.list {
		v, err := policyinput.Plain(given[spec.Name])
		if err != nil {
			continue // a fault of its own
		}
		eachFormat(spec.Name, spec.Schema, v, func(path, format, value string) {
			faults.If(format == "role" && !slices.Contains(known, value), path, "%w", Unknown("role", value, known))
		})
	}
	return faults
}
