package policyconfig

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Config is the policy configuration of one organisation.
type Config struct {
	Policies  []Entry    `yaml:"policies" doc:"policies to enable, in any order. account_changes, roles and (if the run interface is served) run_webhooks are always enabled, with default parameters unless listed"`
	Directory files.Path `yaml:"rego" doc:"directory of your own policies (*.rego) and data (data.json, data.yaml). Files that end in _test.rego are ignored"`
	MayDrop   bool       `yaml:"rego_may_drop" doc:"accept a change to the directory that removes a policy in force"`
	Bundle    *Bundle    `yaml:"bundle" doc:"OPA bundle with your own policies, in place of rego"`
	// KeepOnFailure keeps the configuration in force if this one does not compile.
	KeepOnFailure bool        `yaml:"-"`
	Exceptions    []Exception `yaml:"exceptions" doc:"temporary exceptions for calls that a policy refuses"`
}

// MinPodPrice is lower than the hourly price of any pod of the platform, in USD; the cheapest pod costs a few cents.
const MinPodPrice = 0.02

// Limits bounds the resources of evaluations.
type Limits struct {
	Deadline time.Duration `yaml:"deadline" doc:"time limit for one decision, including the wait for an evaluation slot. Slower calls are refused"`
	Remember int           `yaml:"remember" doc:"maximum cached policy results per organisation; 0 disables the cache. The cache contains only results that are safe to cache"`

	// Concurrency limits the evaluations that run at once. If there are several organisations, each may use half of them, rounded
	// up, so that no organisation can block the others. 0 means twice the number of cores.
	Concurrency int `yaml:"-"`
	// MaxMutations limits the number of body changes in one decision.
	MaxMutations int `yaml:"-"`
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{Deadline: 200 * time.Millisecond, Remember: 4096, MaxMutations: 32}
}

// Validate checks l and joins the errors it finds, each with its path.
func (l Limits) Validate() error {
	var errs fault.Found
	errs.If(l.Deadline <= 0, "deadline", "must be positive, got %s", l.Deadline)
	errs.If(l.Remember < 0, "remember", "must not be negative, got %d", l.Remember)
	return errors.Join(errs...)
}
