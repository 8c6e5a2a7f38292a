package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// CertificateError wraps ErrUnknown for a rejected certificate. The reason is not sent to callers.
type CertificateError struct{ Err error }

// Error implements error.
func (e *CertificateError) Error() string { return "certificate: " + e.Err.Error() }

// Unwrap returns ErrUnknown.
func (*CertificateError) Unwrap() error { return ErrUnknown }

// Authorities maps certificates to callers. It is immutable and safe for concurrent use. A nil Authorities accepts no
// certificate.
type Authorities struct {
	list     []authority
	teams    map[string][]string
	required bool
	// signers holds the certificates of all authorities.
	signers *x509.CertPool
	// accepted caches verified chains by their digest.
	accepted *lru.Cache[Digest, acceptance]
}

type authority struct {
	*Authority
	roots *x509.CertPool
}

// acceptance is a verified chain with its validity period.
type acceptance struct {
	by          *Authority
	from, until time.Time
}

const (
	// maxAccepted is the maximum number of cached chains.
	maxAccepted = 8192
	// maxChain is the maximum number of certificates in a caller's chain.
	maxChain = 6
)

// Certificates is the configuration of client certificates.
type Certificates struct {
	Authorities []Authority
	// Required makes a certificate mandatory, even for callers with a key or token.
	Required bool
}

// NewAuthorities returns the Authorities of a valid configuration, or nil for an empty list. teams maps
// organisations to their teams.
func NewAuthorities(c Certificates, teams map[string][]string) *Authorities {
	list := c.Authorities
	if len(list) == 0 {
		return nil
	}
	accepted, _ := lru.New[Digest, acceptance](maxAccepted) // lru.New fails only for a size below 1
	as := &Authorities{list: make([]authority, len(list)), teams: teams, required: c.Required, signers: x509.NewCertPool(), accepted: accepted}
	for i := range list {
		a := authority{&list[i], x509.NewCertPool()} // never nil, which would select the system's roots
		if a.Parsed == nil {
			a.Parsed = new(Parsed)
		}
		for _, c := range a.Parsed.signers {
			a.roots.AddCert(c)
			as.signers.AddCert(c)
		}
		as.list[i] = a
	}
	return as
}

// find returns the caller that a chain identifies at the time now, or ErrUnknown. The TLS handshake has proven that the
// caller has the private key of the first certificate.
func (as *Authorities) find(chain []*x509.Certificate, now time.Time) (*Caller, error) {
	switch {
	case as == nil, len(chain) == 0 && !as.required:
		return nil, ErrUnknown
	case len(chain) == 0:
		return nil, &CertificateError{errors.New("missing")}
	}
	a, err := as.verify(chain, now)
	if err != nil {
		return nil, &CertificateError{err}
	}
	presented := names{chain[0]}
	sub := presented.Values(string(a.by.subject()))
	if len(sub) != 1 || sub[0] == "" {
		return nil, &CertificateError{fmt.Errorf("certificate has %d subject alternative names of type %s, want 1", len(sub), a.by.subject())}
	}
	c, err := a.by.caller(presented, as.teams)
	if err != nil {
		return nil, &CertificateError{err}
	}
	c.Issuer, c.Subject, c.Key = a.by.ID, subject(sub[0]), a.by.ID+":"+fingerprint(string(a.by.subject()), sub[0])
	c.Until, c.chain = a.until, chain
	return c, nil
}

// verify verifies a chain at the time now. Exactly one authority must accept it.
func (as *Authorities) verify(chain []*x509.Certificate, now time.Time) (acceptance, error) {
	id := digestOf(chain)
	if a, known := as.accepted.Get(id); known && !now.Before(a.from) && now.Before(a.until) {
		return a, nil
	}
	var found []acceptance
	var errs []error
	for _, by := range as.list {
		a, err := by.verify(chain, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %.200s", by.ID, err.Error()))
			continue
		}
		found = append(found, a)
	}
	switch len(found) {
	case 0:
		return acceptance{}, errors.Join(errs...)
	case 1:
		as.accepted.Add(id, found[0])
		return found[0], nil
	}
	return acceptance{}, errors.New("certificate matches more than one configured CA")
}

// digestOf returns the digest of a chain.
func digestOf(chain []*x509.Certificate) Digest {
	h := sha256.New()
	for _, c := range chain {
		_, _ = h.Write(c.Raw) // writing to a hash never fails
	}
	return Digest(h.Sum(nil))
}

// verify verifies a chain at the time now according to RFC 5280, section 6. The first certificate must be a client
// certificate by its extended key usage.
func (a authority) verify(chain []*x509.Certificate, now time.Time) (acceptance, error) {
	leaf := chain[0]
	switch {
	case len(chain) > maxChain:
		return acceptance{}, fmt.Errorf("certificate chain has more than %d intermediate certificates", maxChain-1)
	case leaf.IsCA:
		return acceptance{}, errors.New("certificate is a CA certificate, not a client certificate")
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		return acceptance{}, errors.New("certificate does not allow client authentication")
	case a.MaxLife > 0 && leaf.NotAfter.Sub(leaf.NotBefore) > a.MaxLife:
		return acceptance{}, fmt.Errorf("validity period of the certificate exceeds %s", a.MaxLife)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	paths, err := leaf.Verify(x509.VerifyOptions{
		Roots: a.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return acceptance{}, err
	}
	best, err := acceptance{}, errors.New("expired") // also at the last instant of its validity
	for _, path := range paths {
		from, until, unknown := a.period(path, now)
		switch {
		case unknown != nil:
			err = unknown
		case now.Before(until) && until.After(best.until):
			best = acceptance{a.Authority, from, until}
		}
	}
	if best.by == nil {
		return acceptance{}, err
	}
	return best, nil
}

// period returns the validity period of a path that is valid at the time now, limited by the revocation lists. It returns
// an error if a certificate is revoked or has no current list.
func (a authority) period(path []*x509.Certificate, now time.Time) (from, until time.Time, err error) {
	for i, c := range path {
		from, until = later(from, c.NotBefore), earlier(until, c.NotAfter)
		if a.CRL.IsZero() {
			continue
		}
		if a.Parsed.isRevoked(c) {
			return from, until, errRevoked
		}
		if i+1 == len(path) { // a configured certificate, which needs no list
			continue
		}
		next, err := a.Parsed.current(c, path[i+1], now)
		if err != nil {
			return from, until, err
		}
		until = earlier(until, next)
	}
	return from, until, nil
}

var errRevoked = errors.New("the certificate or one of its issuers was revoked")

// isRevoked reports whether c is a configured certificate that the lists revoke, or is below one.
func (p *Parsed) isRevoked(c *x509.Certificate) bool { return slices.ContainsFunc(p.revoked, c.Equal) }

// findRevoked sets p.revoked. Expired lists count, because a revocation is final. If several certificates of an issuer
// are configured, the revocation of one of them is enough.
func (p *Parsed) findRevoked() {
	for before := -1; before < len(p.revoked); { // each round goes down one level
		before = len(p.revoked)
		for _, c := range p.signers {
			if !p.isRevoked(c) && slices.ContainsFunc(p.signers, func(s *x509.Certificate) bool { return p.revokes(s, c) }) {
				p.revoked = append(p.revoked, c)
			}
		}
	}
}

// revokes reports whether a list of the issuer contains c, or whether the issuer signed c and is revoked itself.
func (p *Parsed) revokes(issuer, c *x509.Certificate) bool {
	if !bytes.Equal(c.RawIssuer, issuer.RawSubject) {
		return false
	}
	_, err := p.current(c, issuer, time.Time{})
	return errors.Is(err, errRevoked) || p.isRevoked(issuer) && c.CheckSignatureFrom(issuer) == nil
}

// current returns the time until which the revocation lists show that a certificate is not revoked.
func (p *Parsed) current(c, issuer *x509.Certificate, now time.Time) (until time.Time, err error) {
	for _, l := range p.lists {
		if !bytes.Equal(l.RawIssuer, issuer.RawSubject) || l.CheckSignatureFrom(issuer) != nil {
			continue
		}
		if l.serials[string(c.SerialNumber.Bytes())] {
			return until, errRevoked
		}
		if !now.Before(l.ThisUpdate) && now.Before(l.NextUpdate) {
			until = later(until, l.NextUpdate)
		}
	}
	if until.IsZero() {
		return until, errors.New("no current revocation list is available for the issuer")
	}
	return until, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// earlier returns the earlier of two times. Zero means no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// stillAccepts reports whether the chain of a caller is still accepted at the time now, and until when. If the chain
// alone identifies the caller, it must still identify the same caller.
func (as *Authorities) stillAccepts(c *Caller, now time.Time) (until time.Time, ok bool) {
	current, err := as.find(c.chain, now)
	if err != nil {
		return time.Time{}, false
	}
	byKey := c.digest != Digest{} || c.claims != nil
	return current.Until, current.same(c) || byKey && current.Org == c.Org
}

// names provides the subject alternative names of a certificate as claims. The common name is ignored.
type names struct{ leaf *x509.Certificate }

// Values returns the names of a kind, or the hosts of its URIs for trust_domain. For a claim such as /ns, it returns the
// segments that follow ns in the paths of the URIs, which it reads as name-value pairs, as in
// spiffe://example.org/ns/default/sa/web.
func (n names) Values(claim string) []string {
	switch NameKind(claim) {
	case nameURI:
		return n.uris(func(u *url.URL) []string { return []string{u.String()} })
	case nameDNS:
		return n.leaf.DNSNames
	case nameEmail:
		return n.leaf.EmailAddresses
	case trustDomain:
		return n.uris(func(u *url.URL) []string { return []string{u.Host} })
	}
	name, pairs := strings.CutPrefix(claim, "/")
	if !pairs {
		return nil
	}
	return n.uris(func(u *url.URL) []string {
		var values []string
		for pair := range slices.Chunk(strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/"), 2) {
			if len(pair) == 2 && pair[0] == name && pair[1] != "" {
				values = append(values, pair[1])
			}
		}
		return values
	})
}

func (n names) uris(values func(*url.URL) []string) []string {
	var all []string
	for _, u := range n.leaf.URIs {
		all = append(all, values(u)...)
	}
	return all
}
