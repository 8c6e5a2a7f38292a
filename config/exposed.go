package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// warnExposed reports keys and tokens that travel unencrypted, and tokens that are accepted for more than they were issued for.
func warnExposed(c *settings.Config) fault.Found {
	var errs fault.Found
	errs.If(!loopback(c.Listen) && c.TLS.Certificate.IsZero() && len(c.Balancers.Addresses) == 0 && len(c.Envoy.XDS.Groups) == 0, "listen",
		"is beyond loopback without encryption: callers' keys travel as they are; set tls, or balancers.addresses if a balancer speaks TLS")
	guarded := !c.Admin.Token.IsZero() || len(c.Admin.Admins)+len(c.Admin.Issuers) > 0
	errs.If(!loopback(c.Admin.Listen) && guarded && c.Admin.TLS.Certificate.IsZero(), "admin.listen", "is beyond loopback without encryption: tokens of admins travel as they are; set admin.tls")
	errs.If(clear(c.PublicURL), "public_url", "is http: callers' keys travel as they are")
	for path, o := range map[string]settings.Receiver{"telemetry.otlp": c.Telemetry.OTLP.Receiver, "audit.otlp": c.Audit.OTLP} {
		errs.If(clear(o.Endpoint) && len(o.Headers) > 0, path+".endpoint", "is http beyond loopback: the headers of exports travel as they are; use https")
	}
	if s := c.Decisions.Service; s != nil {
		errs.If(clear(s.URL) && s.TokenFile.IsZero(), "decisions.service.url", "is http beyond loopback: decisions, with what callers send, travel as they are; use https")
	}
	for i, caller := range c.Issuers {
		for j, a := range caller.Audiences {
			for _, admin := range c.Admin.Issuers {
				errs.If(admin.URL == caller.URL && slices.Contains(admin.Audiences, a), fault.Index(fault.Index("issuers", i)+".audiences", j),
					"%q is an audience of admin.issuers, too: a caller's token is accepted as an admin's; give admins another client", a)
			}
		}
	}
	return errs
}

// clear reports whether an address is unencrypted and beyond loopback.
func clear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !loopbackHost(u.Hostname())
}

// warnShared reports secrets that have the value of another one: whoever is given one has both.
func warnShared(c *settings.Config) error {
	type named struct {
		path   string
		secret *strictyaml.Secret
	}
	list := []named{{"admin.token", &c.Admin.Token}, {"envoy.xds.token", &c.Envoy.XDS.Token}, {"audit.webhook.secret", &c.Audit.Webhook.Secret}}
	for i := range c.Orgs {
		o, at := &c.Orgs[i], fault.Index("orgs", i)
		list = append(list, named{at + ".credential", &o.Credential}, named{at + ".alerts.snooze_secret", &o.Alerts.SnoozeSecret}, named{at + ".alerts.webhook.secret", &o.Alerts.Webhook.Secret})
	}
	var errs fault.Found
	first := make(map[string]string, len(list))
	for _, n := range list {
		value := n.secret.Reveal()
		other, taken := first[value]
		if value == "" {
			continue
		}
		errs.If(taken, n.path, "has the value of %s: whoever is given one has the other, too", other)
		if !taken {
			first[value] = n.path
		}
	}
	return errors.Join(errs...)
}

// warnCertificates reports certificates outside their time. They are no faults: the configuration must be changeable all the same.
func (l *Loaded) warnCertificates(now time.Time) error {
	c := &l.Config
	whole := *c
	whole.Orgs = nil
	errs := fault.Found{certificatesOf(&whole, now)}
	for i := range c.Orgs {
		if o := &c.Orgs[i]; !o.WarningsReported() || slices.ContainsFunc(l.files[o.File].secrets, certified) {
			errs = append(errs, fault.At(fault.Index("orgs", i), certificatesOf(o, now)))
		}
	}
	return errors.Join(errs...)
}

// certified reports whether a secret may hold certificates.
func certified(s strictyaml.Secret) bool { return strings.Contains(s.Reveal(), "-----BEGIN ") }

// certificatesOf reports the certificates of a section.
func certificatesOf(section any, now time.Time) error {
	return strictyaml.Each(section, func(s *strictyaml.Secret) error {
		var valid int
		var fault error
		rest := []byte(s.Reveal())
		for first := true; ; first = false {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if block.Type != "CERTIFICATE" || err != nil {
				continue
			}
			err = outOfTime(cert, now)
			if err == nil {
				valid++
			}
			if fault == nil && (first || cert.IsCA) {
				fault = err
			}
			if first && !cert.IsCA && err != nil {
				return err // of a chain the first is shown
			}
		}
		if valid > 0 {
			return nil
		}
		return fault
	})
}

func outOfTime(cert *x509.Certificate, now time.Time) error {
	switch {
	case now.After(cert.NotAfter):
		return fmt.Errorf("certificate of %q expired at %s: replace it", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		return fmt.Errorf("certificate of %q is valid from %s on", cert.Subject.CommonName, cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}
