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

// warnExposed reports keys and tokens that are sent unencrypted, and tokens of callers that are also accepted from admins.
func warnExposed(c *settings.Config) fault.Found {
	var errs fault.Found
	errs.If(!loopback(c.Listen) && c.TLS.Certificate.IsZero() && len(c.Balancers.Addresses) == 0 && len(c.Envoy.XDS.Groups) == 0, "listen",
		"accepts unencrypted connections from other hosts, so callers' keys can be read in transit; set tls, or balancers.addresses if a load balancer terminates TLS")
	guarded := !c.Admin.Token.IsZero() || len(c.Admin.Admins)+len(c.Admin.Issuers) > 0
	errs.If(!loopback(c.Admin.Listen) && guarded && c.Admin.TLS.Certificate.IsZero(), "admin.listen",
		"accepts unencrypted connections from other hosts, so admin tokens can be read in transit; set admin.tls")
	errs.If(clear(c.PublicURL), "public_url", "uses http, so callers' keys are sent unencrypted; use https")
	for path, o := range map[string]settings.Receiver{"telemetry.otlp": c.Telemetry.OTLP.Receiver, "audit.otlp": c.Audit.OTLP} {
		errs.If(clear(o.Endpoint) && len(o.Headers) > 0, path+".endpoint",
			"uses http to another host, so the export headers are sent unencrypted; use https")
	}
	if s := c.Decisions.Service; s != nil {
		errs.If(clear(s.URL) && s.TokenFile.IsZero(), "decisions.service.url",
			"uses http to another host, so decisions, which contain requests, are sent unencrypted; use https")
	}
	for i, caller := range c.Issuers {
		for j, a := range caller.Audiences {
			for _, admin := range c.Admin.Issuers {
				errs.If(admin.URL == caller.URL && slices.Contains(admin.Audiences, a), fault.Index(fault.Index("issuers", i)+".audiences", j),
					"%q is also an audience of admin.issuers, so callers' tokens are accepted as admin tokens; use a separate client for admins", a)
			}
		}
	}
	return errs
}

// clear reports whether address is an http URL whose host is not a loopback address.
func clear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !loopbackHost(u.Hostname())
}

// warnShared reports secrets with the same value, because a person who receives one of them also knows the other.
func warnShared(c *settings.Config) error {
	type named struct {
		path   string
		secret *strictyaml.Secret
	}
	list := []named{
		{"admin.token", &c.Admin.Token},
		{"envoy.xds.token", &c.Envoy.XDS.Token},
		{"audit.webhook.secret", &c.Audit.Webhook.Secret},
	}
	for i := range c.Orgs {
		o, at := &c.Orgs[i], fault.Index("orgs", i)
		list = append(list, named{at + ".credential", &o.Credential}, named{at + ".alerts.snooze_secret", &o.Alerts.SnoozeSecret},
			named{at + ".alerts.webhook.secret", &o.Alerts.Webhook.Secret})
	}
	var errs fault.Found
	first := make(map[string]string, len(list))
	for _, n := range list {
		value := n.secret.Reveal()
		other, taken := first[value]
		if value == "" {
			continue
		}
		errs.If(taken, n.path, "has the same value as %s, so anyone who knows one secret knows both; use different secrets", other)
		if !taken {
			first[value] = n.path
		}
	}
	return errors.Join(errs...)
}

// warnCertificates reports certificates that have expired or are not yet valid, and revocation lists that have expired or are missing.
// These are warnings, so that such a configuration can still be changed.
func warnCertificates(c *settings.Config, now time.Time) error {
	whole := *c
	whole.Orgs = nil
	errs := fault.Found{certificatesOf(&whole, now)}
	for i, a := range c.Certificates.Authorities {
		if a.Parsed != nil {
			errs = append(errs, fault.At(fault.Index("certificates.authorities", i), a.Parsed.Warnings(now)))
		}
	}
	for i := range c.Orgs {
		if err := certificatesOf(&c.Orgs[i], now); err != nil {
			errs = append(errs, fault.At(fault.Index("orgs", i), err))
		}
	}
	return errors.Join(errs...)
}

// certificatesOf reports the certificates in a section that are not valid at now.
func certificatesOf(section any, now time.Time) error {
	return strictyaml.Each(section, func(s *strictyaml.Secret) error {
		var found error
		if !strings.Contains(s.Reveal(), "-----BEGIN ") {
			return nil
		}
		rest := []byte(s.Reveal())
		for first := true; ; first = false {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return found
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if block.Type != "CERTIFICATE" || err != nil {
				continue
			}
			switch err = outOfTime(cert, now); {
			case err == nil, first && !cert.IsCA: // the leaf comes first in a chain
				return err
			case found == nil && cert.IsCA:
				found = err
			}
		}
	})
}

func outOfTime(cert *x509.Certificate, now time.Time) error {
	switch {
	case now.After(cert.NotAfter):
		return fmt.Errorf("certificate of %q expired at %s; replace the certificate", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		return fmt.Errorf("certificate of %q is not valid before %s", cert.Subject.CommonName, cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}
