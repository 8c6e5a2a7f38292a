package config

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// leastVaried is the minimum number of different characters in a token. A token with fewer is easy to guess; a token of 16 random
// hexadecimal digits has about 10.
const leastVaried = 8

// Warnings returns a warning, with a position in the file, for each setting that is valid but has no effect or lets calls pass unchecked.
// For unchanged organisation files, it returns only the warnings that depend on now.
func (l *Loaded) Warnings(now time.Time) []error {
	c := &l.Config
	var errs fault.Found
	// If the file has no settings of the retired interfaces, the gateway logs this warning at the first call to one of these interfaces.
	errs.If(c.Legacy.KnownName() == "" && len(c.LegacySettings) > 0, "legacy", "%s", settings.UnnamedPlatform)
	if most := descriptors(); most > 0 {
		errs.If(uint64(max(c.Connections.Total, 0)) > most, "connections.total",
			"%d connections require as many file descriptors, but this process can open only %d; raise the limit (ulimit -n, LimitNOFILE=) or lower this setting", c.Connections.Total, most)
	}
	errs = append(append(errs, warnAdmin(&c.Admin, now)...), warnExposed(c)...)
	errs = append(errs, c.Warnings(l.positions.Contains), warnShared(c), warnCertificates(c, now), l.warnLogs())
	for path, prefixes := range map[string][]netip.Prefix{"balancers.addresses": c.Balancers.Addresses, "limits.anonymous_exempt": c.Limits.AnonymousExempt, "telemetry.context.trusted": c.Telemetry.Context.Trusted} {
		for i, p := range prefixes {
			errs.If(p.Bits() == 0, fault.Index(path, i), "%s contains all addresses, so it applies to every client", p)
		}
	}
	for i := range c.Orgs {
		errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(warnEnded(&c.Orgs[i], now)...)))
	}
	if l.checker != nil {
		errs = append(errs, l.checker.Warnings(c, now))
	}
	found, _ := errors.AsType[strictyaml.Errors](l.Locate(errors.Join(errs...)))
	return fault.AsErrors(found)
}

// past reports whether end has passed. The zero end never passes.
func past(now, end time.Time) bool { return !end.IsZero() && !now.Before(end) }

func warnAdmin(a *settings.Admin, now time.Time) []error {
	var errs fault.Found
	token := []rune(a.Token.Reveal())
	slices.Sort(token)
	errs.If(!loopback(a.Listen) && a.Token.Resolved() && len(slices.Compact(token)) < leastVaried,
		"admin.token", "is easy to guess; generate a token with openssl rand -hex 32")
	for i, admin := range a.Admins {
		at := fault.Index("admin.admins", i)
		errs.If(past(now, admin.Expires), at+".expires", "is in the past, so the token of %q is no longer accepted", admin.Name)
		errs.If(admin.Digest == identity.DigestOf(""), at+".sha256", "is the digest of an empty token")
	}
	return errs
}

// warnEnded reports exceptions, keys and other entries that have expired. Entries expire without a change of the file.
func warnEnded(o *settings.Org, now time.Time) []error {
	var errs fault.Found
	for i, b := range o.Brownouts {
		errs.If(past(now, b.Until), fault.Index("brownouts", i)+".until", "is in the past, so the brownout no longer refuses calls")
	}
	for i := range o.Keys {
		k := &o.Keys[i]
		if past(now, k.Expires) {
			errs.Add(fault.Index("keys", i)+".expires", "is in the past, so the key %q is no longer accepted", k.ID)
		}
		for j, d := range k.Digests {
			if past(now, d.NotAfter) {
				errs.Add(fault.Index(fault.Index("keys", i)+".digests", j)+".not_after", "is in the past, so the digest is no longer accepted")
			}
		}
	}
	return errs
}
