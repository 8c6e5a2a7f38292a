package policies

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// Config is one organisation's policy section.
type Config struct {
	Policies   []Entry     `yaml:"policies" doc:"policies in force, in any order; account_changes and roles are, with their defaults, even when not listed, and run_webhooks where the run interface is served"`
	Directory  string      `yaml:"rego" doc:"directory with the organisation's own policies (*.rego) and data (data.json, data.yaml); files ending in _test.rego are left out"`
	MayDrop    bool        `yaml:"rego_may_drop" doc:"take an edited directory although a policy that was in force is gone from it"`
	Bundle     *Bundle     `yaml:"bundle" doc:"OPA bundle with the organisation's own policies, instead of rego"`
	Exceptions []Exception `yaml:"exceptions" doc:"what some callers may do although a policy denies it, until when, and who allowed it"`
}

// Limits bound what evaluations may use.
type Limits struct {
	Deadline time.Duration `yaml:"deadline" doc:"bounds one decision, waiting for a free place included; past it the call is refused"`
	Remember int           `yaml:"remember" doc:"how many verdicts are kept per organisation, of single policies and of all together, where that is sound. 0 keeps none"`

	// Concurrency bounds the evaluations that run at once. Where there are several
	// organisations, one may have half of them, rounded up, so that none can keep the
	// others waiting; 0 is twice the number of cores.
	Concurrency int `yaml:"-"`
	// MaxMutations bounds the changes one decision may ask for.
	MaxMutations int `yaml:"-"`
}

// DefaultLimits are the limits used where nothing is said.
func DefaultLimits() Limits {
	return Limits{Deadline: 200 * time.Millisecond, Remember: 4096, MaxMutations: 32}
}

// Validate reports every fault, each with its path below the section.
func (l Limits) Validate() error {
	var errs fault.Found
	errs.If(l.Deadline <= 0, "deadline", "must be positive, got %s", l.Deadline)
	errs.If(l.Concurrency < 0, "concurrency", "must not be negative, got %d", l.Concurrency)
	errs.If(l.Remember < 0, "remember", "must not be negative, got %d", l.Remember)
	errs.If(l.MaxMutations < 0, "max_mutations", "must not be negative, got %d", l.MaxMutations)
	return errors.Join(errs...)
}

// Validate reports every fault of an organisation's section, each with its
// path below it, without reading files: unknown policies and parameters are
// found by NewEngine when the organisation has Rego of its own, and here
// otherwise. Teams, keys and roles are for Check.
func (c Config) Validate() error {
	scope := load.LibraryOnly
	if c.Directory != "" || c.Bundle != nil {
		scope = load.WithOwn
	}
	errs := fault.Found(append(validateExceptions(c.Exceptions), c.Bundle.Validate()))
	errs.If(c.Directory != "" && c.Bundle != nil, "rego", "cannot be given beside bundle")
	errs = append(errs, load.Check(c.Policies, scope)...)
	return errors.Join(append(errs, c.lifted(nil, scope)...)...)
}

// Check reports every name in the section that does not exist, each fault with
// its path below the section, as Validate does.
func (c Config) Check(known Names) error {
	errs := load.CheckNames(c.Policies, known)
	for i, x := range c.Exceptions {
		path := fault.Index("exceptions", i)
		errs = append(errs, load.UnknownNames("team", path+".teams", x.Teams, known.Teams)...)
		errs = append(errs, load.UnknownNames("key", path+".keys", x.Keys, known.Keys)...)
		errs = append(errs, load.UnknownNames("role", path+".roles", x.Roles, known.Roles)...)
	}
	return errors.Join(errs...)
}

// Warnings reports what is no fault and yet does nothing, each with its path below the
// section: exceptions that have ended or are for calls that there are not, parameters
// that never apply, and teams that data of its own Rego leaves out.
func (c Config) Warnings(now time.Time, teams []string) []error {
	out := fault.Found(load.Warnings(c.Policies))
	if own, err := load.ReadDirectory("", c.Directory); err == nil { // otherwise NewEngine says why
		out = append(out, own.LeftOut(teams)...)
	}
	for i, x := range c.Exceptions {
		at := fault.Index("exceptions", i)
		out.If(!x.Until.IsZero() && !now.Before(x.Until), at+".until", "the exception %q has ended", x.ID)
		out = append(out, fault.At(at+".where", errors.Join(x.nowhere()...)))
	}
	return out
}
