package policies

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Names are what an organisation's section may refer to besides policies. A
// name nobody has would switch an entry off, or an exception, in silence.
type Names struct {
	Teams, Keys, Roles []string
}

// Check reports every name in the section that nothing has, each fault with
// its path below the section, as Validate does.
func (c Config) Check(known Names) error {
	lib, err := loadLibrary()
	if err != nil {
		return err
	}
	var errs []error
	check := func(kind, path string, given, known []string) {
		for i, name := range given {
			if name != "" && !slices.Contains(known, name) { // Validate reports empty ones
				errs = append(errs, &fault.Error{Path: fault.Index(path, i), Err: unknown(kind, name, known)})
			}
		}
	}
	for i, e := range c.Policies {
		path := fault.Index("policies", i)
		check("team", path+".teams", e.Teams, known.Teams)
		check("team", path+".except_teams", e.ExceptTeams, known.Teams)
		check("role", path+".roles", e.Roles, known.Roles)
		check("role", path+".except_roles", e.ExceptRoles, known.Roles)
		if p := lib.policies[e.Policy]; p != nil {
			errs = append(errs, fault.At(path+".params", errors.Join(p.params.roles(e.Params, known.Roles)...)))
		}
	}
	for i, x := range c.Exceptions {
		path := fault.Index("exceptions", i)
		check("team", path+".teams", x.Teams, known.Teams)
		check("key", path+".keys", x.Keys, known.Keys)
	}
	return errors.Join(errs...)
}

// unknown names the nearest known name, if one is near.
func unknown(kind, name string, known []string) error {
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("unknown %s %q, did you mean %q?", kind, name, near)
	}
	return fmt.Errorf("unknown %s %q", kind, name)
}

// roles reports the values of format role that are no role.
func (p params) roles(given map[string]any, known []string) []error {
	var faults []error
	for _, spec := range p.list {
		v, err := plain(given[spec.Name])
		if err != nil {
			continue // a fault of its own
		}
		eachFormat(spec.Name, spec.Schema, v, func(path, format, value string) {
			if format == "role" && !slices.Contains(known, value) {
				faults = append(faults, fault.Errorf(path, "%w", unknown("role", value, known)))
			}
		})
	}
	return faults
}

// lifted reports exceptions from policies that are not in force. With own, the
// names of policies that are not the library's are taken from it; without, they
// are not looked at when the organisation has Rego of its own.
func (c Config) lifted(lib *library, own map[string]ownPolicy) []error {
	var inForce []string
	for _, e := range c.Policies {
		inForce = append(inForce, e.Policy)
	}
	inForce = append(inForce, slices.Sorted(maps.Keys(own))...)
	var errs []error
	for i, x := range c.Exceptions {
		path := fault.Index("exceptions", i) + ".policy"
		switch {
		case x.Policy == "" || slices.Contains(inForce, x.Policy): // Validate reports empty ones
		case lib.policies[x.Policy] != nil:
			errs = append(errs, fault.Errorf(path, "policy %q is not in force, so there is nothing to lift", x.Policy))
		case own != nil || c.Directory == "" && c.Bundle == nil:
			errs = append(errs, fault.Errorf(path, "%w", unknownPolicy(x.Policy, inForce)))
		}
	}
	return errs
}
