package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Warnings returns a warning for each setting that has no effect or contradicts another setting. The warnings are joined, and each contains
// the path of its setting. The parameter written is a function that reports whether the configuration file contains a value at a path.
func (c *Config) Warnings(written func(path string) bool) error {
	errs := append(c.Timeouts.contradictions(), c.unused(written)...)
	for i := range c.Orgs {
		o := &c.Orgs[i]
		errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(o.unwatched(c)...)))
		if o.WarningsReported() {
			continue
		}
		found := append(o.contradictions(), o.exposed()...)
		found = append(found, o.unused(c, func(path string) bool { return written(fault.Index("orgs", i) + "." + path) })...)
		if n := c.Limits.Gateways; written("limits.gateways") &&
			(c.localFailure() || o.Failure.Read == ratelimit.FailLocal || o.Failure.Write == ratelimit.FailLocal) {
			for w := range ratelimit.Windows {
				q := o.Limit.Quota(w)
				errs.If(q > 0 && q < int64(n), "limits.gateways",
					"is too high: each of %d gateways gets less than one of the %d calls per %s of organisation %q, so no calls are admitted while Redis is down",
					n, q, ratelimit.WindowName(w), o.ID)
			}
		}
		errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(found...)))
	}
	return errors.Join(errs...)
}

func (c *Config) localFailure() bool {
	return c.Limits.Failure.Read == ratelimit.FailLocal || c.Limits.Failure.Write == ratelimit.FailLocal
}

// contradictions returns a warning for each timeout that never expires, because timeouts.call is shorter.
func (t *Timeouts) contradictions() fault.Found {
	var errs fault.Found
	for path, d := range map[string]time.Duration{"connect": t.Connect, "response": t.Response, "lookup": t.Lookup} {
		errs.If(d > t.Call, "timeouts."+path, "%s exceeds timeouts.call (%s), which expires first", d, t.Call)
	}
	return errs
}

// exposed returns a warning for each setting that lets calls pass unchecked, or keys be used by others.
func (o *Org) exposed() fault.Found {
	errs := fault.Found{fault.At("runs", errors.Join(o.Runs.Warnings()...))}
	errs.If(o.Unknown.Members.Forwards(), "unknown.members", "unknown fields and query parameters are forwarded to the platform, but built-in policies do not check them")
	errs.If(o.Unknown.Reads.Forwards(), "unknown.reads", "unknown GET requests are forwarded for every key; policies see them as operation unknownRead")
	errs.If(o.RunCredential.Resolved() && o.RunCredential.Reveal() == o.Credential.Reveal(), "run_credential",
		"equals credential, so runs are sent with a key that has all rights")
	for i := range o.Keys {
		k, at := &o.Keys[i], fault.Index("keys", i)
		errs.If(k.Exempt && !k.Limit.Unlimited(), at+".limits", "has no effect because the key %q is exempt", k.ID)
		errs.If(k.Digest == identity.DigestOf(""), at+".sha256", "is the digest of an empty key")
		for j, p := range k.Addresses {
			errs.If(p.Bits() == 0, fault.Index(at+".addresses", j), "%s contains all addresses, so the key is accepted from anywhere", p)
		}
		for j, d := range k.Digests {
			errs.If(d.Digest == identity.DigestOf(""), fault.Index(at+".digests", j)+".sha256", "is the digest of an empty key")
		}
	}
	return errs
}

// contradictions returns a warning for each budget or quota that cannot be reached because a lower limit applies to the same calls.
func (o *Org) contradictions() fault.Found {
	errs := fault.Found{fault.At("budget", cheap(&o.Budget))}
	teams := make(map[string]*Team, len(o.Teams))
	for i := range o.Teams {
		t, at := &o.Teams[i], fault.Index("teams", i)
		teams[t.ID] = t
		errs = append(errs, fault.At(at, errors.Join(cheapAt(&t.Budget), beyond("the organisation", &t.Budget, &o.Budget),
			beyondQuota("the organisation", t.Limit, o.Limit))))
	}
	for i := range o.Keys {
		k, at := &o.Keys[i], fault.Index("keys", i)
		errs = append(errs, fault.At(at, errors.Join(cheapAt(&k.Budget), beyond("the organisation", &k.Budget, &o.Budget),
			beyondQuota("the organisation", k.Quotas(), o.Limit))))
		if t := teams[k.Team]; t != nil {
			of := fmt.Sprintf("team %q", t.ID)
			errs = append(errs, fault.At(at, errors.Join(beyond(of, &k.Budget, &t.Budget), beyondQuota(of, k.Quotas(), t.Limit))))
		}
	}
	for i, c := range o.Classes {
		at := fault.Index("classes", i)
		errs.If(slices.Contains([]string{"minute", "hour", "day"}, c.ID), at+".id",
			"%q is also the name of a time window, which is ambiguous in RateLimit headers; rename the class", c.ID)
		errs.If(c.Per == "team" && len(o.Teams) == 0, at+".per", "has no effect because organisation %q has no teams", o.ID)
		if c.Per == "org" {
			errs = append(errs, fault.At(at, beyondQuota("the organisation", c.Limit, o.Limit)))
		}
	}
	return errs
}

func cheapAt(b *ledger.Budget) error { return fault.At("budget", cheap(b)) }

// cheap returns a warning for each amount of a budget that is below the smallest possible cost, or above the amount for a longer period.
func cheap(b *ledger.Budget) error {
	const cent = catalog.Money(10_000)
	var errs fault.Found
	least := catalog.Money(policyconfig.MinPodPrice * 1_000_000)
	errs.If(b.PerHour > 0 && b.PerHour < least, "per_hour",
		"%s USD is below the lowest price of a pod, %s USD per hour, so every start is refused", b.PerHour, least)
	type period struct {
		name   string
		amount catalog.Money
	}
	shorter := period{"per_hour", b.PerHour}
	for _, p := range []period{{"per_day", b.PerDay}, {"per_week", b.PerWeek}, {"per_month", b.PerMonth}, {"per_quarter", b.PerQuarter}, {"total", b.Total}} {
		if p.amount == 0 {
			continue
		}
		errs.If(p.amount < cent, p.name, "%s USD is below the lowest possible cost, so every start is refused", p.amount)
		errs.If(shorter.amount > p.amount, shorter.name, "%s exceeds %s (%s), which is exhausted first", shorter.amount, p.name, p.amount)
		shorter = p
	}
	return errors.Join(errs...)
}

// beyond returns a warning for each limit in the budget part that exceeds the same limit in the budget of, because the lower limit refuses
// calls first. whole names the owner of the budget of.
func beyond(whole string, part, of *ledger.Budget) error {
	var errs fault.Found
	own, most := part.Limits(), of.Limits()
	for i := range own {
		errs.If(most[i] > 0 && own[i] > most[i], "budget."+ledger.CeilingName(i), "%s exceeds the limit of %s (%s), which refuses calls first",
			ledger.AmountText(i, own[i]), whole, ledger.AmountText(i, most[i]))
	}
	return errors.Join(errs...)
}

// beyondQuota is like beyond, but compares quotas.
func beyondQuota(whole string, part, of ratelimit.Limit) error {
	var errs fault.Found
	for w := range ratelimit.Windows {
		own, most := part.Quota(w), of.Quota(w)
		errs.If(most > 0 && own > most, "limits."+ratelimit.WindowName(w), "%d exceeds the limit of %s (%d), which refuses calls first", own, whole, most)
	}
	return errors.Join(errs...)
}
