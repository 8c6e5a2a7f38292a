package policies

import (
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config is one organisation's policy section.
type Config struct {
	// Policies switches policies on, in the order given. The order does not
	// change a decision. Default: none, which allows everything the budgets do.
	Policies []Entry `yaml:"policies"`
	// Directory holds the organisation's own Rego (*.rego) and data (data.json,
	// data.yaml); files ending in _test.rego are left out. Default: none.
	Directory string `yaml:"directory"`
	// Bundle gets the organisation's own Rego as an OPA bundle instead.
	// Default: none.
	Bundle *Bundle `yaml:"bundle"`
	// Exceptions lift policies for somebody, for a time. Default: none.
	Exceptions []Exception `yaml:"exceptions"`
}

// Entry switches one policy on.
type Entry struct {
	// Policy names a policy of the library (see Library), or a package
	// policies.<name> of the organisation's own Rego.
	Policy string `yaml:"policy"`
	// Mode says what a violation does. Default: enforce.
	Mode Mode `yaml:"mode"`
	// Teams limits the entry to callers of these teams. Default: all.
	Teams []string `yaml:"teams"`
	// ExceptTeams exempts the callers of these teams. Default: none.
	ExceptTeams []string `yaml:"except_teams"`
	// Roles limits the entry to callers with at least one of these roles.
	// Default: all.
	Roles []string `yaml:"roles"`
	// ExceptRoles exempts callers with one of these roles. Default: none.
	ExceptRoles []string `yaml:"except_roles"`
	// Params are the policy's parameters; see docs/policies.md.
	Params map[string]any `yaml:"params"`
}

// Mode says what happens when a policy finds a violation.
type Mode string

// The modes.
const (
	// ModeEnforce refuses the call.
	ModeEnforce Mode = "enforce"
	// ModeWarn lets it pass and tells the caller.
	ModeWarn Mode = "warn"
	// ModeShadow lets it pass silently and records it.
	ModeShadow Mode = "shadow"
)

// orDefault is the mode with its default.
func (m Mode) orDefault() Mode {
	if m == "" {
		return ModeEnforce
	}
	return m
}

// Limits bound what evaluations may use.
type Limits struct {
	// Deadline bounds one decision, waiting for a free place included; past it
	// the call is refused. Default 200ms.
	Deadline time.Duration `yaml:"deadline"`
	// Concurrency bounds the evaluations that run at once. Where there are several
	// organisations, one may have half of them, rounded up, so that with two or
	// more none can keep the others waiting. Default 2 x cores, said as 0.
	Concurrency int `yaml:"concurrency"`
	// Remember is how many verdicts are kept per organisation, where that is
	// sound. 0 keeps none. Default 4096.
	Remember int `yaml:"remember"`
	// MaxMutations bounds the changes one decision may ask for. Default 32.
	MaxMutations int `yaml:"max_mutations"`
}

// DefaultLimits are the limits used where nothing is said.
func DefaultLimits() Limits {
	return Limits{Deadline: 200 * time.Millisecond, Remember: 4096, MaxMutations: 32}
}

// Validate reports every fault, each with its path below the section.
func (l Limits) Validate() error {
	var errs []error
	if l.Deadline <= 0 {
		errs = append(errs, fault.Errorf("deadline", "must be positive, got %s", l.Deadline))
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"concurrency", l.Concurrency}, {"remember", l.Remember}, {"max_mutations", l.MaxMutations}} {
		if n.value < 0 {
			errs = append(errs, fault.Errorf(n.name, "must not be negative, got %d", n.value))
		}
	}
	return errors.Join(errs...)
}

// policyName is what a policy may be called: a Rego package element.
var policyName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Validate reports every fault of an organisation's section, each with its
// path below it, without reading files: unknown policies and parameters are
// found by NewEngine when the organisation has Rego of its own, and here
// otherwise. Teams, keys and roles are for Check.
func (c Config) Validate() error {
	lib, err := loadLibrary()
	if err != nil {
		return err
	}
	errs := append(validateExceptions(c.Exceptions), c.Bundle.validate()...)
	if c.Directory != "" && c.Bundle != nil {
		errs = append(errs, fault.Errorf("directory", "cannot be given beside bundle"))
	}
	for i, e := range c.Policies {
		path := fault.Index("policies", i)
		errs = append(errs, e.validate(path)...)
		p, known := lib.policies[e.Policy]
		switch {
		case known:
			if _, faults := p.params.check(e.Params); len(faults) > 0 {
				errs = append(errs, fault.At(path+".params", errors.Join(faults...)))
			}
		case e.Policy != "" && c.Directory == "" && c.Bundle == nil:
			errs = append(errs, fault.Errorf(path+".policy", "%w", unknownPolicy(e.Policy, lib.names)))
		}
	}
	return errors.Join(append(errs, c.lifted(lib, nil)...)...)
}

// validate reports the faults that need no library to see.
func (e Entry) validate(path string) []error {
	var errs []error
	switch {
	case e.Policy == "":
		errs = append(errs, fault.Errorf(path+".policy", "is required"))
	case !policyName.MatchString(e.Policy):
		errs = append(errs, fault.Errorf(path+".policy", "%q is not a policy name", e.Policy))
	}
	if !slices.Contains([]Mode{ModeEnforce, ModeWarn, ModeShadow}, e.Mode.orDefault()) {
		errs = append(errs, fault.Errorf(path+".mode", "%q is not one of enforce, warn, shadow", e.Mode))
	}
	for _, l := range []struct {
		name   string
		values []string
	}{{"teams", e.Teams}, {"except_teams", e.ExceptTeams}, {"roles", e.Roles}, {"except_roles", e.ExceptRoles}} {
		if slices.Contains(l.values, "") {
			errs = append(errs, fault.Errorf(path+"."+l.name, "holds an empty name"))
		}
	}
	return errs
}
