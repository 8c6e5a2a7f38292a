package compiler

import (
	"errors"
	"regexp"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// policyName matches policy names, which are elements of Rego packages.
var policyName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Scope determines which policies an organisation's entries may name.
type Scope int

// Scopes.
const (
	// LibraryOnly allows only library policies.
	LibraryOnly Scope = iota
	// WithOwn allows other names, which are checked by Compile.
	WithOwn
)

// Check returns all errors in the entries that can be found without the organisation's own Rego, each with its path.
func Check(entries []policyconfig.Entry, scope Scope) []error {
	lib := loadLibrary()
	var errs []error
	for i, e := range entries {
		path := fault.Index("policies", i)
		errs = append(errs, validate(&e, path)...)
		p := lib.policy(e.Policy)
		switch {
		case p != nil:
			if _, faults := p.params.check(e.Params); len(faults) > 0 {
				errs = append(errs, fault.At(path+".params", errors.Join(faults...)))
			}
		case e.Policy != "" && scope == LibraryOnly:
			errs = append(errs, fault.Errorf(path+".policy", "%w", Unknown("policy", e.Policy, lib.names)))
		}
	}
	return errs
}

// validate reports errors that can be found without the library.
func validate(e *policyconfig.Entry, path string) []error {
	var errs fault.Found
	errs.If(e.Policy == "", path+".policy", "is required")
	errs.If(e.Policy != "" && !policyName.MatchString(e.Policy), path+".policy", "%q is not a policy name", e.Policy)
	modes := []policyconfig.Mode{policyconfig.ModeEnforce, policyconfig.ModeWarn, policyconfig.ModeShadow}
	errs.If(!slices.Contains(modes, e.Mode.OrDefault()), path+".mode", "must be enforce, warn or shadow, got %q", e.Mode)
	errs.If(e.Approvable && e.Mode.OrDefault() != policyconfig.ModeEnforce, path+".approvable",
		"requires mode enforce: a policy in mode %s refuses nothing", e.Mode)
	for _, l := range []struct {
		name   string
		values []string
	}{{"teams", e.Teams}, {"except_teams", e.ExceptTeams}, {"roles", e.Roles}, {"except_roles", e.ExceptRoles}} {
		errs.If(slices.Contains(l.values, ""), path+"."+l.name, "contains an empty name")
	}
	for _, l := range []struct {
		name         string
		only, except []string
	}{{"except_teams", e.Teams, e.ExceptTeams}, {"except_roles", e.Roles, e.ExceptRoles}} {
		for i, name := range l.except {
			errs.If(name != "" && slices.Contains(l.only, name), fault.Index(path+"."+l.name, i), "%q is both included and exempted", name)
		}
	}
	return errs
}
