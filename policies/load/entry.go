package load

import (
	"errors"
	"regexp"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Entry switches one policy on.
type Entry struct {
	Policy      string         `yaml:"policy" doc:"a policy of the library, or a package policies.<name> of the organisation's own Rego"`
	Mode        Mode           `yaml:"mode" doc:"what a violation does: enforce, warn or shadow; empty is enforce"`
	Teams       []string       `yaml:"teams" doc:"the entry is for callers of these teams only; empty is all"`
	ExceptTeams []string       `yaml:"except_teams" doc:"exempts the callers of these teams"`
	Roles       []string       `yaml:"roles" doc:"the entry is for callers with at least one of these roles only; empty is all"`
	ExceptRoles []string       `yaml:"except_roles" doc:"exempts callers with one of these roles"`
	Ratchet     bool           `yaml:"ratchet" doc:"lets an update pass that violates the policy no more than the resource as it is does, with a warning"`
	Approvable  bool           `yaml:"approvable" doc:"lets operators approve single calls that the policy refuses; see docs/approvals.md"`
	Params      map[string]any `yaml:"params" doc:"the policy's parameters; see docs/policies.md"`
}

// Mode says what happens when a policy finds a violation.
type Mode string

// The modes.
const (
	// ModeEnforce refuses the call.
	ModeEnforce Mode = "enforce"
	// ModeWarn lets it pass and warns the caller.
	ModeWarn Mode = "warn"
	// ModeShadow lets it pass silently and records it.
	ModeShadow Mode = "shadow"
)

// OrDefault returns the mode, or the default where none is given.
func (m Mode) OrDefault() Mode {
	if m == "" {
		return ModeEnforce
	}
	return m
}

// policyName is what a policy may be called: a Rego package element.
var policyName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Scope is where the policies of an organisation may come from.
type Scope int

// The scopes.
const (
	// LibraryOnly is for an organisation without Rego of its own.
	LibraryOnly Scope = iota
	// WithOwn leaves names that the library does not have to Compile.
	WithOwn
)

// Check reports every fault of the entries that can be found without the
// organisation's own Rego, each with its path below the section.
func Check(entries []Entry, scope Scope) []error {
	lib, err := loadLibrary()
	if err != nil {
		return []error{err}
	}
	var errs []error
	for i, e := range entries {
		path := fault.Index("policies", i)
		errs = append(errs, e.validate(path)...)
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

// validate reports the faults that need no library to see.
func (e Entry) validate(path string) []error {
	var errs fault.Found
	switch {
	case e.Policy == "":
		errs = append(errs, fault.Errorf(path+".policy", "is required"))
	case !policyName.MatchString(e.Policy):
		errs = append(errs, fault.Errorf(path+".policy", "%q is not a policy name", e.Policy))
	}
	errs.If(!slices.Contains([]Mode{ModeEnforce, ModeWarn, ModeShadow}, e.Mode.OrDefault()), path+".mode", "%q is not one of enforce, warn, shadow", e.Mode)
	errs.If(e.Approvable && e.Mode.OrDefault() != ModeEnforce, path+".approvable", "a policy in mode %s refuses nothing", e.Mode)
	for _, l := range []struct {
		name   string
		values []string
	}{{"teams", e.Teams}, {"except_teams", e.ExceptTeams}, {"roles", e.Roles}, {"except_roles", e.ExceptRoles}} {
		errs.If(slices.Contains(l.values, ""), path+"."+l.name, "holds an empty name")
	}
	for _, l := range []struct {
		name         string
		only, except []string
	}{{"except_teams", e.Teams, e.ExceptTeams}, {"except_roles", e.Roles, e.ExceptRoles}} {
		for i, name := range l.except {
			errs.If(name != "" && slices.Contains(l.only, name), fault.Index(path+"."+l.name, i), "%q is both included and excepted", name)
		}
	}
	return errs
}
