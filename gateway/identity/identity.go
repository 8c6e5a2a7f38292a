package identity

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// Digest is the SHA-256 of a key.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a key as callers send it.
func DigestOf(key string) Digest { return sha256.Sum256([]byte(key)) }

// ParseDigest reads the 64 hexadecimal digits a configuration holds. The zero Digest, which stands for none, is an error.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != hex.EncodedLen(len(d)) {
		return d, fmt.Errorf(`must be the SHA-256 of the key or token, %d hexadecimal digits, got %d characters; printf %%s "$KEY" | sha256sum prints it`, hex.EncodedLen(len(d)), len(s))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return d, errors.New("must be the SHA-256 of the key or token, in hexadecimal digits alone")
	}
	if d == (Digest{}) {
		return d, errors.New("is zero, which is the digest of no key")
	}
	return d, nil
}

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(text []byte) error {
	var err error
	*d, err = ParseDigest(string(text))
	return err
}

// String returns the digest as 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Role is a right of a caller beyond those of a member of its team.
type Role string

// The roles the gateway knows. Policies read them.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	// RoleLead may make and withdraw keys of its team.
	RoleLead Role = "lead"
)

// Values lists the roles a configuration may name.
func (Role) Values() []string {
	return []string{string(RoleViewer), string(RoleOperator), string(RoleAdmin), string(RoleLead)}
}

// Caller is the sender of a request: no secret, safe to log. It is shared between
// requests and must not be changed.
type Caller struct {
	// Org, Team and Key are the ids of the configuration. A caller with a token or a
	// certificate has a Key that stands for the issuer and the subject.
	Org, Team, Key string
	// Issuer is the id of the issuer of its token or certificate, Subject whom that was
	// issued to, as it is shown; both are empty for a caller with a key.
	Issuer, Subject string
	// Labels are those that its token or certificate gives its resources, as
	// name=value,name=value.
	Labels string
	// CredentialLabels are the names of the labels that those alone set, whether they do or not.
	CredentialLabels []string
	// Roles are those of the configuration; see RoleNames.
	Roles []Role
	// Exempt callers are not limited and get no RateLimit headers.
	Exempt bool
	// Until is when its credential ceases to be accepted; zero is never.
	Until time.Time
	// Addresses are where the key is accepted from; none is everywhere.
	Addresses []netip.Prefix
	// Used is when the caller last made a request, in Unix seconds and to the minute;
	// nil where that is not kept.
	Used *atomic.Int64

	digest Digest    // of the key it came with, zero for callers without one
	from   time.Time // when that key begins to be accepted; zero is always
	claims *Claims   // of the token it came with, nil for callers without one
	// chain is its certificate and the certificates sent with it, nil where none is asked of it.
	chain []*x509.Certificate
}

// same reports whether c and d are the same to policies, quotas and the ledger.
func (c *Caller) same(d *Caller) bool {
	return c.Org == d.Org && c.Team == d.Team && c.Key == d.Key && slices.Equal(c.Roles, d.Roles)
}

// RoleNames returns the roles as strings. A caller that none was named for is an
// operator.
func (c *Caller) RoleNames() []string {
	if len(c.Roles) == 0 {
		return []string{string(RoleOperator)}
	}
	out := make([]string, len(c.Roles))
	for i, r := range c.Roles {
		out[i] = string(r)
	}
	return out
}

// MarkUsed notes that the caller made a request.
func (c *Caller) MarkUsed(now time.Time) {
	if c.Used != nil && now.Unix()-c.Used.Load() >= 60 {
		c.Used.Store(now.Unix())
	}
}

// ErrUnknown is returned for every credential that is not a known key,
// with any fault.
var ErrUnknown = errors.New("identity: unknown key")

// PeriodError is an [ErrUnknown] for a key that is known, but not accepted at the
// time. Callers are not told the difference.
type PeriodError struct {
	Org, Key string
	// From and Until bound the time in which the key is accepted; zero is no bound.
	From, Until time.Time
}

// Error names the key and the period.
func (e *PeriodError) Error() string {
	return fmt.Sprintf("key %s of %s is accepted %s", e.Key, e.Org, Period(e.From, e.Until))
}

// Unwrap returns ErrUnknown.
func (*PeriodError) Unwrap() error { return ErrUnknown }

// AddressError is an [ErrUnknown] for a key that is known, but not accepted from the
// address that it came from. Callers are not told the difference.
type AddressError struct{ Org, Key, Peer string }

// Error names the key and the address.
func (e *AddressError) Error() string {
	return fmt.Sprintf("key %s of %s is not accepted from %q", e.Key, e.Org, e.Peer)
}

// Unwrap returns ErrUnknown.
func (*AddressError) Unwrap() error { return ErrUnknown }

// Period describes the time from one instant until another; zero is no bound.
func Period(from, until time.Time) string {
	text := "always"
	if !from.IsZero() {
		text = "from " + from.UTC().Format(time.RFC3339)
	}
	switch end := until.UTC().Format(time.RFC3339); {
	case until.IsZero():
		return text
	case from.IsZero():
		return "until " + end
	default:
		return text + " until " + end
	}
}

// Directory finds callers by key, by token and by certificate. It is immutable and safe
// for concurrent use.
type Directory struct {
	byDigest map[Digest]*Caller
	// made are the callers of With, whose digests byDigest lacks.
	made        map[Digest]*Caller
	issuers     *Issuers
	authorities *Authorities
	seen        *UsedKeys
}

// accepted reports whether the caller's key is accepted at now.
func (c *Caller) accepted(now time.Time) bool {
	return !now.Before(c.from) && (c.Until.IsZero() || now.Before(c.Until))
}

// Has reports whether a text is a key of a caller, accepted now or at another time.
func (d *Directory) Has(text string) bool { return d.HasDigest(DigestOf(text)) }

// HasDigest is Has for the digest of a text.
func (d *Directory) HasDigest(digest Digest) bool { return d.caller(digest) != nil }

// caller returns the caller with a key, nil for none.
func (d *Directory) caller(digest Digest) *Caller {
	if c := d.byDigest[digest]; c != nil {
		return c
	}
	return d.made[digest]
}

// Entry is one key of a Directory. A caller may have several.
type Entry struct {
	Digest Digest
	// From is when the key begins to be accepted; zero is always. It ends with
	// Caller.Until.
	From   time.Time
	Caller Caller
}

// NewDirectory returns a Directory of the entries and of the callers of issuers and
// authorities, nil for none. Two entries with the same digest are an error: one key must
// mean one caller.
func NewDirectory(entries []Entry, issuers *Issuers, authorities *Authorities) (*Directory, error) {
	d := &Directory{byDigest: make(map[Digest]*Caller, len(entries)), issuers: issuers, authorities: authorities}
	for i := range entries {
		if err := d.lacks(&entries[i]); err != nil {
			return nil, err
		}
		d.byDigest[entries[i].Digest] = entries[i].caller()
	}
	return d, nil
}

// WithUsedKeys returns a Directory that adds the keys by which it finds callers to seen, and searches texts for these.
func (d *Directory) WithUsedKeys(seen *UsedKeys) *Directory {
	r := *d
	r.seen = seen
	return &r
}

// WithChanges returns a Directory that lacks some entries of an earlier With and has others. It shares issuers and authorities, and their memory,
// and copies the entries of earlier Withs.
func (d *Directory) WithChanges(gone []Digest, come []Entry) (*Directory, error) {
	w := *d
	if w.made = maps.Clone(d.made); w.made == nil {
		w.made = make(map[Digest]*Caller, len(come))
	}
	for _, digest := range gone {
		delete(w.made, digest)
	}
	for i := range come {
		if err := w.lacks(&come[i]); err != nil {
			return nil, err
		}
		w.made[come[i].Digest] = come[i].caller()
	}
	return &w, nil
}

// lacks returns an error when there is an entry with the digest of another.
func (d *Directory) lacks(e *Entry) error {
	if first := d.caller(e.Digest); first != nil {
		return fmt.Errorf("keys %q and %q are the same key", first.Key, e.Caller.Key)
	}
	return nil
}

// caller returns the caller of an entry as a Directory keeps it.
func (e *Entry) caller() *Caller {
	c := e.Caller
	c.digest, c.from = e.Digest, e.From
	return &c
}

// Verifier returns the verifier of the issuers' tokens, of which there must be some or
// none, but not nil.
func (d *Directory) Verifier() *Verifier { return d.issuers.verifier }

// Signers returns the certificates of the authorities, nil without any: callers are not
// asked for a certificate then.
func (d *Directory) Signers() *x509.CertPool { return d.authorities.pool() }

// Revocations returns, by the ids of authorities, when their revocation lists expire.
func (d *Directory) Revocations() map[string]time.Time { return d.authorities.revocations() }

// RequiresCertificate reports whether every caller must have a certificate.
func (d *Directory) RequiresCertificate() bool { return d.authorities != nil && d.authorities.required }

// Credentials are the parts of a request that identify its caller.
type Credentials struct {
	// Key is a key or a token, "" for none.
	Key string
	// Chain is the certificate of the caller, whose key it has proven to have, and those
	// that it was sent with; nil for none.
	Chain []*x509.Certificate
	// Peer is the address that they came from.
	Peer string
	// Presented is when a token was presented, zero for now. It may have expired since, and must not be revoked.
	Presented time.Time
}

// acceptedFrom reports whether the key is accepted from the address of a peer.
func (c *Caller) acceptedFrom(peer string) bool {
	if len(c.Addresses) == 0 {
		return true
	}
	addr, err := netip.ParseAddr(peer)
	return err == nil && slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// Bounds of a key as callers send it; anything else cannot be one.
const (
	minKey = 8
	maxKey = 256
)

// Find returns the caller that credentials belong to at now, or ErrUnknown. A key or token
// decides who calls; without one, the certificate does. A certificate beside a key or
// token is not looked at, unless it is required: then it must be accepted, too, and both
// must be of the same organisation.
func (d *Directory) Find(ctx context.Context, from Credentials, now time.Time) (*Caller, error) {
	if from.Key != "" && !d.RequiresCertificate() {
		return d.bearer(ctx, from, now)
	}
	certified, err := d.authorities.find(from.Chain, now)
	if err != nil || from.Key == "" {
		return certified, err
	}
	c, err := d.bearer(ctx, from, now)
	switch {
	case err != nil:
		return nil, err
	case c.Org != certified.Org:
		return nil, &CertificateError{fmt.Errorf("it is of organisation %s, the key or token of %s", certified.Org, c.Org)}
	}
	both := *c
	both.chain, both.Until = from.Chain, earlier(c.Until, certified.Until)
	return &both, nil
}

// bearer is Find by key or token alone. Keys are looked up by digest, so neither the result nor its
// time reveals how close a guess came. A credential in the form of a token is verified as
// one and never looked up; ErrUnavailable says that this was not possible.
func (d *Directory) bearer(ctx context.Context, from Credentials, now time.Time) (*Caller, error) {
	key := from.Key
	switch {
	case IsToken(key) && d.issuers == nil:
		return nil, &TokenError{Err: errors.New("no issuer is configured")}
	case IsToken(key):
		return d.issuers.find(ctx, key, from.Presented)
	case !wellFormed(key):
		return nil, ErrUnknown
	}
	digest := DigestOf(key)
	c := d.caller(digest)
	if c != nil {
		d.seen.add(key, digest)
	}
	switch {
	case c == nil && HasWrongChecksum(key):
		return nil, errChecksum
	case c == nil:
		return nil, ErrUnknown
	case !c.accepted(now):
		return nil, &PeriodError{Org: c.Org, Key: c.Key, From: c.from, Until: c.Until}
	case !c.acceptedFrom(from.Peer):
		return nil, &AddressError{Org: c.Org, Key: c.Key, Peer: from.Peer}
	}
	return c, nil
}

// StillAccepts reports whether a caller found in this or another Directory is accepted by
// this one at now, and until when, zero without an end: the same key, with the same
// organisation, team, id, roles and addresses, or a token or certificate that is still
// accepted as theirs.
func (d *Directory) StillAccepts(c *Caller, now time.Time) (until time.Time, ok bool) {
	if c.chain != nil || d.RequiresCertificate() {
		if until, ok = d.authorities.stillAccepts(c, now); !ok {
			return time.Time{}, false
		}
	}
	switch known := d.caller(c.digest); {
	case c.claims != nil:
		return earlier(until, c.Until), d.issuers != nil && d.issuers.stillAccepts(c, now)
	case c.digest == Digest{}:
		return until, c.chain != nil
	case known == nil || !known.accepted(now):
		return time.Time{}, false
	default:
		return earlier(until, known.Until), known.same(c) && slices.Equal(known.Addresses, c.Addresses)
	}
}

// wellFormed accepts the token68 alphabet of RFC 9110, section 11.2, within
// the bounds of a key.
func wellFormed(key string) bool {
	if len(key) < minKey || len(key) > maxKey {
		return false
	}
	for i := range len(key) {
		c := key[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}
