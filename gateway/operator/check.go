package operator

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
)

// Validator checks a configuration with the engines that interpret it: policies with their parameters, the configuration of Envoy, and
// admin tokens. Its errors contain paths in the configuration file.
type Validator struct {
	// Isolate records which of the organisations' own Rego has been compiled in a child process. Rego is untrusted before that, so that
	// Warnings skips it. Isolate is nil in commands that do not compile Rego.
	Isolate *policies.Isolator
}

// Faults returns all errors in c, joined.
func (Validator) Faults(c *settings.Config) error {
	orgs := make(map[string]bool, len(c.Orgs))
	errs := fault.Found{envoy.Validate(c)}
	for i, name := range c.OrgBounds.Enforce {
		errs.If(!compiler.IsLibraryPolicy(name), fault.Index("org_bounds.enforce", i), "unknown library policy %q", name)
	}
	for i := range c.Orgs {
		o := &c.Orgs[i]
		orgs[o.ID] = true
		if o.Reused {
			continue
		}
		names := policies.Names{Teams: callers.TeamIDs(o), Roles: identity.Role("").Values()}
		for _, k := range o.Keys {
			names.Keys = append(names.Keys, k.ID)
		}
		errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(policies.Validate(&o.Policies), policies.Check(&o.Policies, names))))
	}
	return errors.Join(append(errs, validateAdmins(c, orgs))...)
}

// Warnings returns the settings that have no effect.
func (j Validator) Warnings(c *settings.Config, now time.Time) error {
	errs := fault.Found{fault.At("decisions", errors.Join(decisionlog.Warnings(&c.Decisions.DecisionLog)...))}
	for i := range c.Orgs {
		o := &c.Orgs[i]
		at := fault.Index("orgs", i)
		errs = append(errs, fault.At(at, errors.Join(policies.ExpiredExceptions(&o.Policies, now)...)))
		if o.WarningsReported() {
			continue
		}
		errs.If(c.Redis.Embedded && callers.HasLedger(o), at,
			"has budgets, but the embedded Redis loses recorded spending at each restart, and owners of resources if no state directory is set")
		errs.If(o.Alerts.Thresholds != nil && !callers.HasLedger(o), at+".alerts.thresholds", "requires budgets")
		for j, e := range o.Policies.Policies {
			errs.If(strings.HasPrefix(e.Policy, "run_") && compiler.IsLibraryPolicy(e.Policy) &&
				c.Platform.RunURL == "" && c.Platform.BalancedURL == "",
				fault.Index(at+".policies", j)+".policy", "%s has no effect because platform.run_url is not set", e.Policy)
		}
		errs = append(errs, audiences(o, at)...)
		errs = append(errs, fault.At(at, errors.Join(policies.Warnings(&o.Policies, callers.TeamIDs(o), j.Isolate)...)))
	}
	return errors.Join(errs...)
}

// audiences reports policy entries that apply to no caller, and GPU limits that exceed the budgets.
func audiences(o *settings.Org, at string) fault.Found {
	var errs fault.Found
	for i, e := range o.Policies.Policies {
		path := fault.Index(at+".policies", i)
		everyTeam := len(o.Teams) > 0 && !slices.ContainsFunc(o.Teams,
			func(t settings.Team) bool { return !slices.Contains(e.ExceptTeams, t.ID) })
		errs.If(everyTeam, path+".except_teams",
			"lists all teams of the organisation as exceptions, so the entry applies only to callers without a team")
		held := func(k settings.Key) bool {
			if len(k.Roles) == 0 {
				return slices.Contains(e.Roles, string(identity.RoleOperator))
			}
			return slices.ContainsFunc(k.Roles, func(r identity.Role) bool { return slices.Contains(e.Roles, string(r)) })
		}
		errs.If(len(e.Roles) > 0 && len(o.Keys) > 0 && len(o.Issued) == 0 && !slices.ContainsFunc(o.Keys, held),
			path+".roles", "no key of the organisation has one of these roles, so the entry applies only to keys created at run time")
		if e.Policy != "gpu_in_flight" {
			continue
		}
		most, ok := e.Params["max_per_org"].(int64)
		errs.If(ok && o.Budget.GPUs > 0 && most > o.Budget.GPUs, path+".params.max_per_org",
			"%d has no effect because it exceeds budget.gpus (%d)", most, o.Budget.GPUs)
		if most, ok = e.Params["max_per_team"].(int64); !ok || len(o.Teams) == 0 {
			continue
		}
		below := !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.Budget.GPUs == 0 || most <= t.Budget.GPUs })
		errs.If(below, path+".params.max_per_team", "%d has no effect because it exceeds the budget.gpus of every team", most)
	}
	return errs
}

// validateAdmins reports admins of unknown organisations, and admin tokens that are also keys of callers.
func validateAdmins(c *settings.Config, orgs map[string]bool) error {
	admins, err := admin.NewDirectory(c.Admin.Token.Reveal(), c.Admin.Admins)
	if err != nil {
		return fault.At("admin", err)
	}
	var errs fault.Found
	for i, a := range c.Admin.Admins {
		errs.If(a.Org != "" && !orgs[a.Org], fault.Index("admin.admins", i)+".org", "no organisation %q is defined", a.Org)
	}
	ids, urls := make(map[string]bool), make(map[string]bool)
	for n := range c.Admin.Issuers {
		i, at := &c.Admin.Issuers[n], fault.Index("admin.issuers", n)
		errs = append(errs, fault.At(at, i.Validate()))
		errs.If(ids[i.ID], at+".id", "issuer %q is already defined", i.ID)
		errs.If(urls[i.URL], at+".url", "is also used by another issuer")
		errs.If(i.Org != "" && !orgs[i.Org], at+".org", "no organisation %q is defined", i.Org)
		ids[i.ID], urls[i.URL] = true, true
	}
	for i := range c.Orgs {
		for j, k := range c.Orgs[i].Keys {
			if slices.ContainsFunc(k.Secrets(), func(d settings.Digest) bool { return admins.HasToken(d.Digest) }) {
				errs.Add(fault.Index(fault.Index("orgs", i)+".keys", j), "is also the token of an admin")
			}
		}
	}
	return errors.Join(errs...)
}
