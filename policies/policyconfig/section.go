package policyconfig

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Config is one organisation's policy section.
type Config struct {
	Policies  []Entry    `yaml:"policies" doc:"policies in force, in any order; account_changes and roles are, with their defaults, even when not listed, and run_webhooks where the run interface is served"`
	Directory files.Path `yaml:"rego" doc:"directory with the organisation's own policies (*.rego) and data (data.json, data.yaml); files ending in _test.rego are left out"`
	MayDrop   bool       `yaml:"rego_may_drop" doc:"take an edited directory although a policy that was in force is gone from it"`
	Bundle    *Bundle    `yaml:"bundle" doc:"OPA bundle with the organisation's own policies, instead of rego"`
	// KeepOnFailure says that the section in force stays where this one cannot be compiled.
	KeepOnFailure bool        `yaml:"-"`
	Exceptions    []Exception `yaml:"exceptions" doc:"what some callers may do although a policy denies it, until when, and who allowed it"`
}

// MinPodPrice is below the price of every pod of the platform, in USD per hour: the cheapest costs some cents.
const MinPodPrice = 0.02

// Limits bound the resources of evaluations.
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
	errs.If(l.Remember < 0, "remember", "must not be negative, got %d", l.Remember)
	return errors.Join(errs...)
}
