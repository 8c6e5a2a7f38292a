package policies

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/bundle"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
)

// Validate reports every fault of an organisation's section, each with its
// path below it, without reading files: unknown policies and parameters are
// found by NewEngine when the organisation has Rego of its own, and here
// otherwise. Teams, keys and roles are for Check.
func Validate(c *Config) error {
	scope := compiler.LibraryOnly
	if !c.Directory.IsZero() || c.Bundle != nil {
		scope = compiler.WithOwn
	}
	errs := fault.Found(append(validateExceptions(c.Exceptions), bundle.Validate(c.Bundle)))
	errs.If(!c.Directory.IsZero() && c.Bundle != nil, "rego", "cannot be given beside bundle")
	errs = append(errs, compiler.Check(c.Policies, scope)...)
	return errors.Join(append(errs, lifted(c, nil, scope)...)...)
}

// Check reports every name in the section that does not exist, each fault with
// its path below the section, as Validate does.
func Check(c *Config, known Names) error {
	errs := compiler.CheckNames(c.Policies, known)
	for i, x := range c.Exceptions {
		path := fault.Index("exceptions", i)
		errs = append(errs, compiler.UnknownNames("team", path+".teams", x.Teams, known.Teams)...)
		errs = append(errs, compiler.UnknownNames("key", path+".keys", x.Keys, known.Keys)...)
		errs = append(errs, compiler.UnknownNames("role", path+".roles", x.Roles, known.Roles)...)
	}
	return errors.Join(errs...)
}

// Warnings reports settings without effect that are not faults, each with its path below the
// section: exceptions for calls that there are not, parameters that never apply,
// and teams that data of its own Rego leaves out.
// Own Rego is parsed only if r, unless it is nil, has compiled it.
func Warnings(c *Config, teams []string, r *isolate.Runner) []error {
	out := append(fault.Found(compiler.Warnings(c.Policies)), leftOut(c, teams, r)...)
	for i, x := range c.Exceptions {
		out = append(out, fault.At(fault.Index("exceptions", i)+".where", errors.Join(unknownPointers(&x)...)))
	}
	return out
}

// ExpiredExceptions reports exceptions that have ended, each with its path below the section.
func ExpiredExceptions(c *Config, now time.Time) []error {
	var out fault.Found
	for i, x := range c.Exceptions {
		out.If(!x.Until.IsZero() && !now.Before(x.Until), fault.Index("exceptions", i)+".until", "the exception %q has ended", x.ID)
	}
	return out
}

// leftOut reports teams that data of own Rego leaves out. Faults of the Rego are NewEngine's.
func leftOut(c *Config, teams []string, r *isolate.Runner) []error {
	d, err := compiler.OpenDirectory("", c.Directory)
	if err != nil || d == nil || r != nil && !r.Compiled(&Compilation{Entries: c.Policies, Rego: d.Rego()}) {
		return nil
	}
	own, err := d.Parse("")
	if err != nil {
		return nil
	}
	return own.MissingTeams(teams)
}
