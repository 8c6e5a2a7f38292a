package policies

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/bundle"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
)

// Validate checks the policy configuration of an organisation and joins all errors it finds, each with its path. It reads no files. Unknown
// policies and parameters are reported only if the organisation has no Rego of its own; otherwise NewEngine reports them. Validate does not
// check the names of teams, keys and roles; see Check.
func Validate(c *Config) error {
	scope := compiler.LibraryOnly
	if !c.Directory.IsZero() || c.Bundle != nil {
		scope = compiler.WithOwn
	}
	errs := fault.Found(append(validateExceptions(c.Exceptions), bundle.Validate(c.Bundle)))
	errs.If(!c.Directory.IsZero() && c.Bundle != nil, "rego", "cannot be combined with bundle")
	errs = append(errs, compiler.Check(c.Policies, scope)...)
	return errors.Join(append(errs, lifted(c, nil, scope)...)...)
}

// Check returns an error for each team, key or role in c that does not exist. It complements Validate, which does not know the
// organisation, and NewEngine, which compiles the policies. The errors have the same form as the errors of Validate.
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

// Warnings reports settings that are valid but have no effect: exceptions for unknown pointers, parameters that never apply, and teams
// missing from the data of the organisation's own Rego. Each warning has its path in c. If r is not nil, own Rego that r has not compiled
// before is not checked.
func Warnings(c *Config, teams []string, r *isolate.Runner) []error {
	out := append(fault.Found(compiler.Warnings(c.Policies)), leftOut(c, teams, r)...)
	for i, x := range c.Exceptions {
		out = append(out, fault.At(fault.Index("exceptions", i)+".where", errors.Join(unknownPointers(&x)...)))
	}
	return out
}

// ExpiredExceptions reports exceptions whose end has passed, each with its path in c.
func ExpiredExceptions(c *Config, now time.Time) []error {
	var out fault.Found
	for i, x := range c.Exceptions {
		out.If(!x.Until.IsZero() && !now.Before(x.Until), fault.Index("exceptions", i)+".until", "exception %q has expired", x.ID)
	}
	return out
}

// leftOut reports teams missing from the data of the organisation's own Rego. It ignores errors in the Rego, which NewEngine
// reports.
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
