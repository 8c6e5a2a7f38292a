package policies

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Excepted is a violation suppressed by an exception.
type Excepted struct {
	Violation
	// Exception is the ID of the exception. Until, Reason and GrantedBy are copied from it.
	Exception         string
	Until             time.Time
	Reason, GrantedBy string
}

// validateException returns the errors in one exception, each with its path.
func validateException(x *Exception, path string) []error {
	var errs fault.Found
	for _, f := range []struct{ name, value string }{
		{"id", x.ID}, {"policy", x.Policy}, {"reason", x.Reason}, {"granted_by", x.GrantedBy},
	} {
		errs.If(f.value == "", path+"."+f.name, "is required")
	}
	errs.If(len(x.Teams)+len(x.Keys)+len(x.Roles) == 0, path, "must set at least one of teams, keys and roles")
	errs.If(x.Until.IsZero(), path+".until", "is required")
	errs.If(!x.Until.IsZero() && !x.From.IsZero() && !x.From.Before(x.Until), path+".until", "must be after from")
	for _, op := range x.Operations {
		_, known := operation.Lookup(op)
		errs.If(!known, path+".operations", "unknown operation %q", op)
	}
	for _, p := range slices.Sorted(maps.Keys(x.Where)) {
		_, err := policyinput.SplitPointer(p)
		errs.If(err != nil, path+".where", "%w", err)
		for _, v := range x.Where[p] {
			_, err := policyinput.Plain(v)
			errs.If(err != nil, fault.Key(path+".where", p), "%w", err)
		}
	}
	_, err := catalog.ParseMoney(x.MaxUSDPerHour)
	errs.If(x.MaxUSDPerHour != "" && err != nil, path+".max_usd_per_hour", "must be an amount in USD, got %q", x.MaxUSDPerHour)
	return errs
}

// unknownPointers reports the pointers of x that exist neither in a resource nor in the request body of one of its operations. Jobs
// are not checked: their bodies may have any members.
func unknownPointers(x *Exception) []error {
	var out fault.Found
	bodies := []*operation.Shape{operation.States(), operation.AllBodies()}
	for _, id := range x.Operations {
		if row, ok := operation.Lookup(id); !ok || row.Kind == operation.KindJob {
			return nil
		}
	}
	for _, pointer := range slices.Sorted(maps.Keys(x.Where)) {
		path, err := policyinput.SplitPointer(pointer)
		out.If(err == nil && !slices.ContainsFunc(bodies, func(s *operation.Shape) bool { return s.Has(path) }),
			fault.Key("", pointer), "%s does not exist in any resource or in the body of any operation", pointer)
	}
	return out
}

// validateExceptions checks all exceptions of an organisation.
func validateExceptions(list []Exception) []error {
	var errs fault.Found
	seen := map[string]bool{}
	for i, x := range list {
		path := fault.Index("exceptions", i)
		errs = append(errs, validateException(&x, path)...)
		errs.If(x.ID != "" && seen[x.ID], path+".id", "%q is used twice", x.ID)
		seen[x.ID] = true
	}
	return errs
}

// lifted reports exceptions for policies that are not in force. own lists the organisation's own policies. If scope is WithOwn, these are
// not known yet, and only names of library policies are checked.
func lifted(c *Config, own []string, scope compiler.Scope) []error {
	var inForce []string
	for _, e := range c.Policies {
		inForce = append(inForce, e.Policy)
	}
	inForce = append(inForce, own...)
	var errs []error
	for i, x := range c.Exceptions {
		path := fault.Index("exceptions", i) + ".policy"
		switch {
		case x.Policy == "" || slices.Contains(inForce, x.Policy): // Validate reports an empty policy
		case compiler.IsLibraryPolicy(x.Policy):
			errs = append(errs, fault.Errorf(path, "policy %q is not enabled: enable the policy or remove the exception", x.Policy))
		case scope == compiler.LibraryOnly:
			errs = append(errs, fault.Errorf(path, "%w", compiler.Unknown("policy", x.Policy, inForce)))
		}
	}
	return errs
}

// exception is an Exception prepared for matching.
type exception struct {
	Exception
	where map[string][]any // values as decoded JSON
	paths map[string][]string
	most  catalog.Money
	costs bool // whether most applies
}

// prepareException prepares a valid exception.
func prepareException(x Exception) exception {
	out := exception{Exception: x, where: map[string][]any{}, paths: map[string][]string{}, costs: x.MaxUSDPerHour != ""}
	for pointer, values := range x.Where {
		out.paths[pointer], _ = policyinput.SplitPointer(pointer)
		for _, v := range values {
			p, _ := policyinput.Plain(v)
			out.where[pointer] = append(out.where[pointer], p)
		}
	}
	out.most, _ = catalog.ParseMoney(x.MaxUSDPerHour)
	return out
}

// covers reports whether the exception applies to a policy and a call.
func (x *exception) covers(policy string, in *Input) bool {
	switch {
	case x.Policy != policy,
		in.Time.Before(x.From), !in.Time.Before(x.Until),
		!slices.Contains(x.Teams, in.Caller.Team) && !slices.Contains(x.Keys, in.Caller.Key) &&
			!slices.ContainsFunc(in.Caller.Roles, func(role string) bool { return slices.Contains(x.Roles, role) }),
		len(x.Operations) > 0 && !slices.Contains(x.Operations, in.Request.Operation),
		x.costs && (!in.Cost.Known || in.Cost.Hourly > x.most):
		return false
	}
	state := in.Resource.After
	if state == nil {
		state = in.Request.Body
	}
	for pointer, path := range x.paths {
		have, present := policyinput.Lookup(state, path)
		if !present || !slices.ContainsFunc(x.where[pointer], func(v any) bool { return policyinput.Equal(v, have) }) {
			return false
		}
	}
	return true
}

// except moves the violations covered by an exception from Deny to Excepted. It allocates new slices because d may be cached.
func (d *Decision) except(list []exception, in *Input) {
	if len(list) == 0 {
		return
	}
	find := func(policy string) *exception {
		for i := range list {
			if list[i].covers(policy, in) {
				return &list[i]
			}
		}
		return nil
	}
	var kept []Violation
	for _, v := range d.Deny {
		x := find(v.Policy)
		if x == nil {
			kept = append(kept, v)
			continue
		}
		d.Excepted = append(d.Excepted, Excepted{
			Violation: v, Exception: x.ID, Until: x.Until, Reason: x.Reason, GrantedBy: x.GrantedBy,
		})
	}
	d.Deny = kept
	d.Mutate = slices.DeleteFunc(slices.Clone(d.Mutate), func(m Mutation) bool { return find(m.Policy) != nil })
}

// prepareExceptions validates and prepares an organisation's exceptions.
func prepareExceptions(org string, cfg Config, own []string) ([]exception, error) {
	list := cfg.Exceptions
	var faults []error
	for _, err := range append(validateExceptions(list), lifted(&cfg, own, compiler.LibraryOnly)...) {
		for _, f := range fault.List(err) {
			faults = append(faults, &policyconfig.Error{Org: org, Path: f.Path, Message: f.Err.Error()})
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	out := make([]exception, 0, len(list))
	for _, x := range list {
		out = append(out, prepareException(x))
	}
	return out, nil
}
