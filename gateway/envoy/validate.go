package envoy

import (
	"crypto/tls"
	"errors"
	"path"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Validate returns all faults of the section envoy.xds, joined.
func Validate(c *settings.Config) error {
	var errs fault.Found
	seen := make(map[string]bool)
	groups := Groups(c)
	for i, g := range c.Envoy.XDS.Groups {
		at := fault.Index("groups", i)
		errs.If(seen[g.ID], at+".id", "group %q is already defined", g.ID)
		seen[g.ID] = true
		errs.If(g.TrustedHops < 0, at+".trusted_hops", "must not be negative")
		errs.If(g.AccessLog != "" && !path.IsAbs(g.AccessLog), at+".access_log", "must be an absolute path on the Envoys' machines")
		errs.If(len(g.Certificates) > 0 && g.TLS.Certificate.IsZero(), at+".certificates",
			"requires tls, which sets the certificate for callers that do not send a host name")
		for j, t := range g.Certificates {
			errs.If(t.Certificate.IsZero(), fault.Index(at+".certificates", j), "requires both certificate and key")
		}
		errs.If(g.HTTP3 && g.TLS.Certificate.IsZero(), at+".http3", "requires tls")
		if needs := groups[i].DirectRequests(); needs != "" && len(c.Balancers.Addresses) == 0 {
			errs = append(errs, fault.Errorf(at+".topology",
				"%s requires the addresses of these Envoys in balancers.addresses: otherwise, all callers appear to have an Envoy's address", needs))
		}
		if _, err := groups[i].Snapshot(nil); err != nil {
			errs = append(errs, fault.At(at, placed(err)))
		}
		errs.If(!zoneName.MatchString(g.Zone), at+".zone", "must consist of letters, digits, '-', '_' and '.'")
	}
	errs.If(!zoneName.MatchString(c.Envoy.XDS.Zone), "zone", "must consist of letters, digits, '-', '_' and '.'")
	for i, p := range c.Envoy.XDS.Gateways {
		errs.If(!zoneName.MatchString(p.Zone), fault.Index("gateways", i)+".zone", "must consist of letters, digits, '-', '_' and '.'")
	}
	if len(c.Envoy.XDS.Groups) == 0 {
		return errors.Join(errs...)
	}
	if n := len(c.Envoy.XDS.Token.Reveal()); n > 0 && n < settings.MinEnvoyToken {
		errs = append(errs, fault.Errorf("token", "must have at least %d characters", settings.MinEnvoyToken))
	}
	errs.If(c.Envoy.Listen == "", "groups", "require envoy.listen, the address that Envoys connect to")
	if addr := c.AdvertisedAddr(); !addr.IsValid() || addr.IsUnspecified() &&
		(c.Redis.Embedded || strings.HasPrefix(c.Redis.URL.Reveal(), "unix:")) {
		errs = append(errs, fault.Errorf("advertise",
			"is required: the IP address that Envoys connect to cannot be derived from listen or Redis"))
	}
	for path, pair := range map[string]*tls.Certificate{"tls": c.TLS.Pair, "envoy.tls": c.Envoy.TLS.Pair} {
		errs.If(pair != nil && newPeer(c, pair).Name == "", "groups", "require a DNS name in the certificate of %s", path)
	}
	errs.If(!c.TLS.Certificate.IsZero() && c.Envoy.TLS.Certificate.IsZero(), "groups",
		"require envoy.tls because tls is configured: Envoys verify the data listener with envoy.tls.ca")
	return fault.At("envoy.xds", errors.Join(errs...))
}

// zoneName matches a zone name or the empty string.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// placed converts each [PatchError] in err to a fault with the path of the patch.
func placed(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var found []error
		for _, e := range all.Unwrap() {
			found = append(found, placed(e))
		}
		return errors.Join(found...)
	}
	if p, ok := errors.AsType[*PatchError](err); ok {
		return fault.At("merge."+p.Kind+"."+p.Name, p.Err)
	}
	return err
}
