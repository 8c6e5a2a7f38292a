package identity

import (
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

// Authority is a signer of callers' certificates, with the mapping of names in these to
// callers.
type Authority struct {
	ID  string            `yaml:"id,required" doc:"short name, with which the ids of its callers begin in logs, quotas and the ledger: id:HASH, of the subject"`
	CA  strictyaml.Secret `yaml:"ca,required" doc:"certificates of the authority in PEM: those that sign, or whose own signers sign, certificates of callers"`
	CRL strictyaml.Secret `yaml:"crl" doc:"certificate revocation lists in PEM, one of each authority that signs; without one that is current, no certificate of it is accepted"`

	MaxLife time.Duration `yaml:"max_life" doc:"life, from not before to not after, beyond which a certificate is refused; required without crl"`
	Subject NameKind      `yaml:"subject" doc:"kind of the name that is the caller: a certificate must have exactly one of it, as subject alternative name; empty is uri"`

	Mapping `yaml:",inline"`

	// Parsed is CA and CRL, parsed; nil before [Authority.Parse].
	Parsed *Parsed `yaml:"-"`
}

// NameKind is a kind of subject alternative name (RFC 5280, section 4.2.1.6).
type NameKind string

// Kinds of names, which are claims of a certificate, too.
const (
	nameURI   NameKind = "uri"
	nameDNS   NameKind = "dns"
	nameEmail NameKind = "email"
	// trustDomain is the claim of the host of a URI (SPIFFE-ID, section 2.1).
	trustDomain = "trust_domain"
)

// Values lists the kinds that can be configured.
func (NameKind) Values() []string {
	return []string{string(nameURI), string(nameDNS), string(nameEmail)}
}

// Validate reports every fault, each with its path below the section.
func (a *Authority) Validate() error {
	errs := fault.Found{validateID(a.ID), a.Mapping.Validate()}
	errs.If(a.CA.IsZero(), "ca", "is required")
	errs.If(a.CRL.IsZero() && a.MaxLife == 0, "max_life", "is required without crl: how does a certificate end that was stolen?")
	errs.If(a.MaxLife < 0, "max_life", "must not be negative")
	for path, name := range a.names() {
		errs.If(!slices.Contains(append(NameKind("").Values(), trustDomain), name) && !strings.HasPrefix(name, "/"), path, "must be one of uri, dns, email, trust_domain and /NAME, got %q", name)
	}
	return errors.Join(errs...)
}

// subject is the kind of name that is the caller.
func (a *Authority) subject() NameKind { return cmp.Or(a.Subject, nameURI) }

// Parsed holds the certificates that an authority signs with and those that it has revoked. The zero Parsed
// signs nothing.
type Parsed struct {
	signers []*x509.Certificate
	lists   []*revocations
}

// revocations is a certificate revocation list.
type revocations struct {
	*x509.RevocationList
	serials map[string]bool // by their bytes
}

// Parse reads CA and CRL, if they are resolved. That one has expired is no fault: the
// configuration must be changeable all the same.
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
			return fault.Errorf("ca", "holds a certificate that cannot be read")
		case !c.IsCA || !c.BasicConstraintsValid:
			return fault.Errorf("ca", "holds a certificate that is none of an authority")
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
	a.Parsed = p
	return nil
}

// blocks returns the content of the PEM blocks of a text, all of one kind and one at
// least.
func blocks(text, kind string) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		block, rest := pem.Decode([]byte(text))
		if block == nil {
			yield(nil, fmt.Errorf("holds no block of PEM %s", kind))
		}
		for ; block != nil; block, rest = pem.Decode(rest) {
			var err error
			if block.Type != kind {
				err = fmt.Errorf("holds %.40q, want only %s", block.Type, kind)
			}
			if !yield(block.Bytes, err) || err != nil {
				return
			}
		}
	}
}

// newRevocations reads a list. One with critical extensions, such as a part of a list or
// the changes of one (RFC 5280, section 5.2), does not say all that is revoked.
func newRevocations(der []byte) (*revocations, error) {
	l, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, errors.New("holds a list that cannot be read")
	}
	if l.NextUpdate.IsZero() {
		return nil, errors.New("holds a list that does not say when the next one comes")
	}
	for _, e := range l.Extensions {
		if e.Critical {
			return nil, fmt.Errorf("holds a list with the critical extension %s: only whole lists are read", e.Id)
		}
	}
	r := &revocations{RevocationList: l, serials: make(map[string]bool, len(l.RevokedCertificateEntries))}
	for _, e := range l.RevokedCertificateEntries {
		r.serials[string(e.SerialNumber.Bytes())] = true
	}
	l.RevokedCertificateEntries = nil // the serials are all that is asked
	return r, nil
}
