package identity

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// Authority is a certificate authority that signs callers' certificates, with the mapping from certificate names to
// callers.
type Authority struct {
	ID  string            `yaml:"id,required" doc:"short name of the authority. Logs, quotas and the ledger show its callers as id:HASH, a hash of the subject"`
	CA  strictyaml.Secret `yaml:"ca,required" doc:"root or intermediate certificates in PEM"`
	CRL strictyaml.Secret `yaml:"crl" doc:"revocation lists in PEM, one for each signing authority. Certificates are rejected if the list of their authority is missing or expired. The certificates in ca are accepted without a list of their issuer, unless a list revokes them or an authority above them"`

	MaxLife time.Duration `yaml:"max_life" doc:"maximum time from notBefore to notAfter of a certificate; required if crl is not set"`
	Subject NameKind      `yaml:"subject" doc:"type of the subject alternative name that identifies the caller; default uri. A certificate must have exactly one name of this type"`

	Mapping `yaml:",inline"`

	// Parsed holds the parsed CA and CRL. It is nil before [Authority.Parse].
	Parsed *Parsed `yaml:"-"`
}

// NameKind is a kind of subject alternative name (RFC 5280, section 4.2.1.6).
type NameKind string

// Kinds of names. They are also the claims of a certificate.
const (
	nameURI   NameKind = "uri"
	nameDNS   NameKind = "dns"
	nameEmail NameKind = "email"
	// trustDomain is the claim with the host of a URI (SPIFFE-ID, section 2.1).
	trustDomain = "trust_domain"
)

// Values lists the kinds that can be configured.
func (NameKind) Values() []string {
	return []string{string(nameURI), string(nameDNS), string(nameEmail)}
}

// Validate checks a and returns all errors, joined. The path in each error is relative to the section of a in the configuration.
func (a *Authority) Validate() error {
	errs := fault.Found{validateID(a.ID), a.Mapping.Validate()}
	errs.If(a.CA.IsZero(), "ca", "is required")
	errs.If(a.CRL.IsZero() && a.MaxLife == 0, "max_life", "is required if crl is not set, so that a stolen certificate expires")
	errs.If(a.MaxLife < 0, "max_life", "must not be negative")
	for path, name := range a.names() {
		errs.If(!slices.Contains(append(NameKind("").Values(), trustDomain), name) && !strings.HasPrefix(name, "/"), path,
			"must be one of uri, dns, email, trust_domain and /NAME, got %q", name)
	}
	return errors.Join(errs...)
}

// subject returns the kind of name that identifies the caller.
func (a *Authority) subject() NameKind { return cmp.Or(a.Subject, nameURI) }

// Parsed holds the signing certificates and revocation lists of an authority. The zero value accepts no certificate.
type Parsed struct {
	signers []*x509.Certificate
	lists   []*revocations
	// revoked holds the signers that a list revokes, and all signers below them.
	revoked []*x509.Certificate
}

// revocations is a certificate revocation list.
type revocations struct {
	*x509.RevocationList
	serials map[string]bool // by the bytes of the serial number
}

// Parse parses the certificates in CA and the revocation list in CRL, if their secret references have been resolved. It accepts expired
// certificates and lists, because otherwise they would prevent every change of the configuration.
func (a *Authority) Parse() error {
	if !a.CA.Resolved() || !a.CRL.IsZero() && !a.CRL.Resolved() {
		return nil
	}
	p := new(Parsed)
	for der, err := range blocks(a.CA.Reveal(), "CERTIFICATE") {
		if err != nil {
			return fault.At("ca", err)
		}
		c, err := x509.ParseCertificate(der)
		switch {
		case err != nil:
			return fault.Errorf("ca", "contains an invalid certificate")
		case !c.IsCA || !c.BasicConstraintsValid:
			return fault.Errorf("ca", "contains a certificate that is not a CA certificate")
		}
		p.signers = append(p.signers, c)
	}
	if !a.CRL.IsZero() {
		for der, err := range blocks(a.CRL.Reveal(), "X509 CRL") {
			if err != nil {
				return fault.At("crl", err)
			}
			l, err := newRevocations(der)
			if err != nil {
				return fault.At("crl", err)
			}
			p.lists = append(p.lists, l)
		}
	}
	p.findRevoked()
	a.Parsed = p
	return nil
}

// expiry returns the time when the first of the issuers has no current revocation list any more, or the zero time without lists. It
// ignores the lists of authorities that signed other configured authorities.
func (p *Parsed) expiry() (first time.Time) {
	newest := make(map[string]time.Time, len(p.lists))
	for _, l := range p.lists {
		if !slices.ContainsFunc(p.signers, func(s *x509.Certificate) bool { return p.isAbove(s) && l.CheckSignatureFrom(s) == nil }) {
			newest[string(l.RawIssuer)] = later(newest[string(l.RawIssuer)], l.NextUpdate)
		}
	}
	for _, end := range newest {
		first = earlier(first, end)
	}
	return first
}

// isAbove reports whether s signed another configured authority. Callers of that authority are accepted without a list of s, and s is
// assumed to have no other callers. Renewed certificates of s, which have the same subject, do not count.
func (p *Parsed) isAbove(s *x509.Certificate) bool {
	return slices.ContainsFunc(p.signers, func(c *x509.Certificate) bool {
		return !bytes.Equal(c.RawSubject, s.RawSubject) && bytes.Equal(c.RawIssuer, s.RawSubject) && c.CheckSignatureFrom(s) == nil
	})
}

// Warnings returns one joined error for all expired and missing revocation lists. Authorities that signed other configured authorities need
// no list.
func (p *Parsed) Warnings(now time.Time) error {
	var errs fault.Found
	end := p.expiry()
	errs.If(!end.IsZero() && !now.Before(end), "crl", "a revocation list expired at %s, so certificates of its issuer are refused", end.UTC().Format(time.RFC3339))
	for _, s := range p.signers {
		listed := slices.ContainsFunc(p.lists, func(l *revocations) bool { return l.CheckSignatureFrom(s) == nil })
		errs.If(len(p.lists) > 0 && !listed && !p.isAbove(s), "crl", "contains no revocation list of %q, so certificates that it signed are refused", s.Subject)
	}
	return errors.Join(errs...)
}

// blocks yields the contents of the PEM blocks of a text. It yields an error if the text has no block or a block of
// another kind.
func blocks(text, kind string) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		block, rest := pem.Decode([]byte(text))
		if block == nil {
			yield(nil, fmt.Errorf("contains no PEM block of type %s", kind))
		}
		for ; block != nil; block, rest = pem.Decode(rest) {
			var err error
			if block.Type != kind {
				err = fmt.Errorf("contains a PEM block of type %.40q, want only %s", block.Type, kind)
			}
			if !yield(block.Bytes, err) || err != nil {
				return
			}
		}
	}
}

// newRevocations parses a revocation list. It rejects lists with critical extensions, such as partial and delta lists
// (RFC 5280, section 5.2), because they do not contain all revocations.
func newRevocations(der []byte) (*revocations, error) {
	l, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, errors.New("contains an invalid CRL")
	}
	if l.NextUpdate.IsZero() {
		return nil, errors.New("contains a CRL without a nextUpdate field")
	}
	for _, e := range l.Extensions {
		if e.Critical {
			return nil, fmt.Errorf("contains a CRL with the critical extension %s, want only complete CRLs", e.Id)
		}
	}
	r := &revocations{RevocationList: l, serials: make(map[string]bool, len(l.RevokedCertificateEntries))}
	for _, e := range l.RevokedCertificateEntries {
		r.serials[string(e.SerialNumber.Bytes())] = true
	}
	l.RevokedCertificateEntries = nil // only the serial numbers are needed
	return r, nil
}
