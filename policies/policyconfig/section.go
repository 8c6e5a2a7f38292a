package policyconfig

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Config is the policy configuration of one organisation.
type Config struct {
	Policies  []Entry    `yaml:"policies" doc:"policies to enable, in any order. The policies account_changes and roles are always enabled, as is run_webhooks if the run interface is served; they use their defaults unless they are listed"`
	Directory files.Path `yaml:"rego" doc:"directory that contains the organisation's own policies (*.rego) and data (data.json, data.yaml). Files that end in _test.rego are ignored"`
	MayDrop   bool       `yaml:"rego_may_drop" doc:"accept a change to the directory that removes a policy in force"`
	Bundle    *Bundle    `yaml:"bundle" doc:"OPA bundle that contains the organisation's own policies. The bundle replaces rego"`
	// KeepOnFailure keeps the configuration in force if this one does not compile.
	KeepOnFailure bool        `yaml:"-"`
	Exceptions    []Exception `yaml:"exceptions" doc:"temporary exceptions that allow certain callers to make calls that a policy refuses. Each exception names the person who granted it"`
}

// MinPodPrice is lower than the hourly price of any pod of the platform, in USD; the cheapest pod costs a few cents.
const MinPodPrice = 0.02

// Limits bounds the resources of evaluations.
type Limits struct {
	Deadline time.Duration `yaml:"deadline" doc:"time limit for one decision, including the wait for an evaluation slot. A call that exceeds the limit is refused"`
	Remember int           `yaml:"remember" doc:"maximum number of cached policy results per organisation. Only results that are safe to cache are stored; 0 disables the cache"`

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
