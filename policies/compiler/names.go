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

// Names lists the teams, keys and roles that an organisation's configuration can refer to. They are checked because a misspelled name would
// silently disable an entry or an exception.
type Names struct {
	Teams, Keys, Roles []string
}

// CheckNames returns an error for each name in the entries that does not exist, with its path.
func CheckNames(entries []policyconfig.Entry, known Names) []error {
	lib := loadLibrary()
	var errs []error
	for i, e := range entries {
		if e.Implied { // other entries contain the same names
			continue
		}
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

// UnknownNames returns an error for each of the given names that is not known. It ignores empty names, which are reported elsewhere.
func UnknownNames(kind, path string, given, known []string) []error {
	var errs []error
	for i, name := range given {
		if name != "" && !slices.Contains(known, name) {
			errs = append(errs, &fault.Error{Path: fault.Index(path, i), Err: Unknown(kind, name, known)})
		}
	}
	return errs
}

// Unknown returns the error for a name that does not exist. It suggests the nearest known name, if there is one.
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

// roles reports parameter values with the format role that are not roles.
func (p params) roles(given map[string]any, known []string) []error {
	var faults fault.Found
	for _, spec := range p.list {
		v, err := policyinput.Plain(given[spec.Name])
		if err != nil {
			continue // reported elsewhere
		}
		eachFormat(spec.Name, spec.Schema, v, func(path, format, value string) {
			faults.If(format == "role" && !slices.Contains(known, value), path, "%w", Unknown("role", value, known))
		})
	}
	return faults
}
