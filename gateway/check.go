package gateway

import (
	"crypto/tls"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// Judge checks a configuration with the engines: policies and their parameters, the
// configuration of Envoys, the tokens of admins. Its faults have paths of the file.
type Judge struct{}

// Faults reports all errors.
func (Judge) Faults(c *settings.Config) error {
	orgs := make(map[string]bool, len(c.Orgs))
	errs := fault.Found{validateEnvoys(c)}
	for i := range c.Orgs {
		o := &c.Orgs[i]
		orgs[o.ID] = true
		names := policies.Names{Roles: identity.Role("").Values()}
		for _, t := range o.Teams {
			names.Teams = append(names.Teams, t.ID)
		}
		for _, k := range o.Keys {
			names.Keys = append(names.Keys, k.ID)
		}
		errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(policies.Validate(&o.Policies), policies.Check(&o.Policies, names))))
	}
	return errors.Join(append(errs, validateAdmins(c, orgs))...)
}

// Warnings reports settings without an effect.
func (Judge) Warnings(c *settings.Config, now time.Time) error {
	errs := fault.Found{fault.At("decisions", errors.Join(decisionlog.Warnings(&c.Decisions.DecisionLog)...))}
	for i := range c.Orgs {
		o, at := &c.Orgs[i], fault.Index("orgs", i)
		errs.If(Budgeted(o) && c.Redis.Embedded, at, "has budgets, and the embedded Redis forgets with each restart what was spent and who made what")
		errs.If(o.Alerts.Thresholds != nil && !Budgeted(o), at+".alerts.thresholds", "are of budgets, and there is none")
		for j, e := range o.Policies.Policies {
			errs.If(strings.HasPrefix(e.Policy, "run_") && load.Known(e.Policy) && c.Platform.RunURL == "" && c.Platform.BalancedURL == "",
				fault.Index(at+".policies", j)+".policy", "%s judges what platform.run_url serves, and it is not set", e.Policy)
		}
		var teams []string
		for _, t := range o.Teams {
			teams = append(teams, t.ID)
		}
		errs = append(errs, fault.At(at, errors.Join(policies.Warnings(&o.Policies, now, teams)...)))
	}
	return errors.Join(errs...)
}

// validateEnvoys reports what is wrong with the configuration of Envoys.
func validateEnvoys(c *settings.Config) error {
	var errs fault.Found
	seen := make(map[string]bool)
	groups := nodeGroups(c)
	for i, g := range c.Envoy.XDS.Groups {
		at := fault.Index("groups", i)
		errs.If(seen[g.ID], at+".id", "group %q is already defined", g.ID)
		seen[g.ID] = true
		errs.If(g.TrustedHops < 0, at+".trusted_hops", "must not be negative")
		errs.If(g.AccessLog != "" && !path.IsAbs(g.AccessLog), at+".access_log", "must be an absolute path, on the Envoys' machines")
		errs.If(len(g.Certificates) > 0 && g.TLS.Certificate.IsZero(), at+".certificates", "needs tls, which callers without a name are shown")
		for j, t := range g.Certificates {
			errs.If(t.Certificate.IsZero(), fault.Index(at+".certificates", j), "needs certificate and key")
		}
		errs.If(g.HTTP3 && g.TLS.Certificate.IsZero(), at+".http3", "needs tls")
		if needs := groups[i].ThroughData(); needs != "" && len(c.Balancers.Addresses) == 0 {
			errs = append(errs, fault.Errorf(at+".topology", "%s needs balancers.addresses, those of these Envoys: all callers would be one", needs))
		}
		if _, err := groups[i].Snapshot(nil); err != nil {
			errs = append(errs, fault.At(at, placed(err)))
		}
		errs.If(!zoneName.MatchString(g.Zone), at+".zone", "must be a name of letters, digits, '-', '_' and '.'")
	}
	errs.If(!zoneName.MatchString(c.Envoy.XDS.Zone), "zone", "must be a name of letters, digits, '-', '_' and '.'")
	for i, p := range c.Envoy.XDS.Gateways {
		errs.If(!zoneName.MatchString(p.Zone), fault.Index("gateways", i)+".zone", "must be a name of letters, digits, '-', '_' and '.'")
	}
	if len(c.Envoy.XDS.Groups) == 0 {
		return errors.Join(errs...)
	}
	if n := len(c.Envoy.XDS.Token.Reveal()); n > 0 && n < settings.MinEnvoyToken {
		errs = append(errs, fault.Errorf("token", "must have at least %d characters", settings.MinEnvoyToken))
	}
	errs.If(c.Envoy.Listen == "", "groups", "need envoy.listen, where their Envoys ask")
	if addr := c.Advertised(); !addr.IsValid() || addr.IsUnspecified() && c.Redis.Embedded {
		errs = append(errs, fault.Errorf("advertise", "must be the IP address under which Envoys reach this gateway: neither listen nor a way to Redis says it"))
	}
	for path, pair := range map[string]*tls.Certificate{"tls": c.TLS.Pair, "envoy.tls": c.Envoy.TLS.Pair} {
		errs.If(pair != nil && peerOf(c, pair).Name == "", "groups", "need a DNS name in the certificate of %s", path)
	}
	errs.If(!c.TLS.Certificate.IsZero() && c.Envoy.TLS.Certificate.IsZero(), "groups", "need envoy.tls.ca, the authority by which Envoys know the certificate of the data listener")
	return fault.At("envoy.xds", errors.Join(errs...))
}

// zoneName is the name of a zone, or nothing.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// placed puts what is wrong with merge patches where they are.
func placed(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var found []error
		for _, e := range all.Unwrap() {
			found = append(found, placed(e))
		}
		return errors.Join(found...)
	}
	if p, ok := errors.AsType[*xds.PatchError](err); ok {
		return fault.At("merge."+p.Kind+"."+p.Name, p.Err)
	}
	return err
}

// admins builds the look-up of admins with tokens of their own.
func admins(a *settings.Admin) (*admin.Directory, error) {
	return admin.NewDirectory(a.Token.Reveal(), a.Admins)
}

// validateAdmins reports admins of unknown organisations, and tokens that are keys.
func validateAdmins(c *settings.Config, orgs map[string]bool) error {
	admins, err := admins(&c.Admin)
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
		errs.If(urls[i.URL], at+".url", "another issuer has the same")
		errs.If(i.Org != "" && !orgs[i.Org], at+".org", "no organisation %q is defined", i.Org)
		ids[i.ID], urls[i.URL] = true, true
	}
	for i, o := range c.Orgs {
		for j, k := range o.Keys {
			errs.If(slices.ContainsFunc(k.Secrets(), func(d settings.Digest) bool { return admins.Knows(d.Digest) }), fault.Index(fault.Index("orgs", i)+".keys", j), "is the token of an admin, too")
		}
	}
	return errors.Join(errs...)
}
