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

// Digest is the SHA-256 digest of a key.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a key as sent by callers.
func DigestOf(key string) Digest { return sha256.Sum256([]byte(key)) }

// UnmarshalText parses the 64 hexadecimal digits of a configured digest. It rejects the zero Digest, which means no key.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf(`must be the SHA-256 digest of the key or token, %d hexadecimal digits, got %d characters; printf %%s "$KEY" | sha256sum prints it`, hex.EncodedLen(len(d)), len(text))
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return errors.New("must be the SHA-256 digest of the key or token in hexadecimal digits")
	}
	if *d == (Digest{}) {
		return errors.New("must not be zero")
	}
	return nil
}

// String returns the digest as 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Role grants a caller additional rights.
type Role string

// Roles. Policies can read them.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	// RoleLead permits a caller to create and revoke keys of its team.
	RoleLead Role = "lead"
)

// Values lists the roles that can be configured.
func (Role) Values() []string {
	return []string{string(RoleViewer), string(RoleOperator), string(RoleAdmin), string(RoleLead)}
}

// Caller is the sender of a request. It contains no secret and can be logged. It is shared between requests and must not
// be modified.
type Caller struct {
	// Org, Team and Key are ids of the configuration. For a caller with a token or a certificate, Key is derived from the
	// issuer and the subject.
	Org, Team, Key string
	// Issuer is the id of the issuer of the token or certificate, and Subject its subject in printable form. Both are
	// empty for a caller with a key.
	Issuer, Subject string
	// Labels holds the labels that the token or certificate assigns to the caller's resources, in the form
	// name=value,name=value.
	Labels string
	// CredentialLabels lists the names of labels that only the token or certificate can set, even if it does not.
	CredentialLabels []string
	// Roles holds the configured roles; see RoleNames.
	Roles []Role
	// Exempt callers have no rate limits and get no RateLimit headers.
	Exempt bool
	// Until is the expiry time of the credential; zero means no expiry.
	Until time.Time
	// Addresses lists the networks that may use the key; empty allows all.
	Addresses []netip.Prefix
	// Used is the time of the caller's last request in Unix seconds, accurate to a minute. It is nil if the time is
	// not recorded.
	Used *atomic.Int64

	digest Digest    // of the caller's key; zero without a key
	from   time.Time // start of the key's validity; zero means no start
	claims *Claims   // of the caller's token; nil without a token
	// chain holds the caller's certificate and its intermediates, or is nil if the caller needs no certificate.
	chain []*x509.Certificate
}

// same reports whether c and d are the same caller for policies, quotas and the ledger.
func (c *Caller) same(d *Caller) bool {
	return c.Org == d.Org && c.Team == d.Team && c.Key == d.Key && slices.Equal(c.Roles, d.Roles)
}

// RoleNames returns the roles as strings. A caller without configured roles is an operator.
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

// MarkUsed records a request of the caller.
func (c *Caller) MarkUsed(now time.Time) {
	if c.Used != nil && now.Unix()-c.Used.Load() >= 60 {
		c.Used.Store(now.Unix())
	}
}

// ErrUnknown is returned for every rejected credential, regardless of the reason.
var ErrUnknown = errors.New("identity: unknown key")

// keyError wraps ErrUnknown for a known key that is not accepted now, or not from the sender's address. Callers cannot distinguish it from
// an unknown key.
type keyError struct{ reason string }

// Error implements error.
func (e *keyError) Error() string { return e.reason }

// Unwrap returns ErrUnknown.
func (*keyError) Unwrap() error { return ErrUnknown }

// Period describes the time between two instants; zero means no bound.
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

// Directory finds callers by key, token or certificate. It is immutable and safe for concurrent use.
type Directory struct {
	byDigest map[Digest]*Caller
	// made holds the callers of WithChanges, whose digests are not in byDigest.
	made        map[Digest]*Caller
	issuers     *Issuers
	authorities *Authorities
	seen        *UsedKeys
}

// accepted reports whether the caller's key is valid at the time now.
func (c *Caller) accepted(now time.Time) bool {
	return !now.Before(c.from) && (c.Until.IsZero() || now.Before(c.Until))
}

// HasDigest reports whether digest is the digest of a caller's key, even if the key is not valid at the moment.
func (d *Directory) HasDigest(digest Digest) bool { return d.caller(digest) != nil }

// caller returns the caller with the given key digest, or nil.
func (d *Directory) caller(digest Digest) *Caller {
	if c := d.byDigest[digest]; c != nil {
		return c
	}
	return d.made[digest]
}

// Entry is one key of a Directory. A caller may have several keys.
type Entry struct {
	Digest Digest
	// From is the start of the key's validity; zero means no start. Caller.Until is its end.
	From   time.Time
	Caller Caller
}

// NewDirectory returns a Directory of the given entries. The Directory also recognises the callers of issuers and authorities, each of
// which may be nil. NewDirectory returns an error if two entries have the same digest, because a key must identify one caller.
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

// WithUsedKeys returns a copy of d. When the copy finds the caller of a key, it adds the key to seen. When the copy searches a text for
// keys, it searches for the keys in seen.
func (d *Directory) WithUsedKeys(seen *UsedKeys) *Directory {
	r := *d
	r.seen = seen
	return &r
}

// WithChanges returns a copy of d without the removed entries and with the added entries. The removed entries must have
// been added by earlier calls of WithChanges. It returns an error if two entries have the same digest. The copy shares
// issuers, authorities and their caches with d. The cost grows with the number of entries added by WithChanges, not with
// the number passed to NewDirectory.
func (d *Directory) WithChanges(removed []Digest, added []Entry) (*Directory, error) {
	w := *d
	if w.made = maps.Clone(d.made); w.made == nil {
		w.made = make(map[Digest]*Caller, len(added))
	}
	for _, digest := range removed {
		delete(w.made, digest)
	}
	for i := range added {
		if err := w.lacks(&added[i]); err != nil {
			return nil, err
		}
		w.made[added[i].Digest] = added[i].caller()
	}
	return &w, nil
}

// lacks returns an error if an entry has the same digest as e.
func (d *Directory) lacks(e *Entry) error {
	if first := d.caller(e.Digest); first != nil {
		return fmt.Errorf("keys %q and %q have the same secret", first.Key, e.Caller.Key)
	}
	return nil
}

// caller returns the caller of the entry in the form that a Directory stores.
func (e *Entry) caller() *Caller {
	c := e.Caller
	c.digest, c.from = e.Digest, e.From
	return &c
}

// Verifier returns the verifier of the issuers' tokens. The Directory must have been created with non-nil issuers.
func (d *Directory) Verifier() *Verifier { return d.issuers.verifier }

// Signers returns the certificates of the authorities, or nil if callers are not asked for a certificate.
func (d *Directory) Signers() *x509.CertPool {
	if d.authorities == nil {
		return nil
	}
	return d.authorities.signers
}

// Revocations returns the time when the first issuer of each authority has no current revocation list any more, by authority id. It omits
// authorities without lists.
func (d *Directory) Revocations() map[string]time.Time {
	ends := make(map[string]time.Time)
	if d.authorities == nil {
		return ends
	}
	for _, a := range d.authorities.list {
		if end := a.Parsed.expiry(); !end.IsZero() {
			ends[a.ID] = end
		}
	}
	return ends
}

// RequiresCertificate reports whether every caller must have a certificate.
func (d *Directory) RequiresCertificate() bool { return d.authorities != nil && d.authorities.required }

// Credentials holds the credentials of a request.
type Credentials struct {
	// Key is a key or a token, or "".
	Key string
	// Chain holds the caller's certificate followed by its intermediates. The caller has proven possession of the private
	// key. It is nil without a certificate.
	Chain []*x509.Certificate
	// Peer is the address of the caller.
	Peer string
	// Presented is the time when the caller presented the token; zero means now. The token may have expired since then, but must
	// not have been revoked.
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

// Minimum and maximum length of a key.
const (
	minKey = 8
	maxKey = 256
)

// Find returns the caller that the credentials identify at the time now, or ErrUnknown. A key or token takes precedence over a certificate.
// The certificate is then ignored, unless certificates are required: a required certificate must be accepted and belong to the same
// organisation.
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
		return nil, &CertificateError{fmt.Errorf("certificate is for organisation %s, but the key or token is for %s", certified.Org, c.Org)}
	}
	both := *c
	both.chain, both.Until = from.Chain, earlier(c.Until, certified.Until)
	return &both, nil
}

// bearer finds a caller by key or token. It looks up keys by digest, so that neither the result nor its timing reveals
// whether a guess is close. A credential in the form of a token is verified and never looked up; the error is
// ErrUnavailable if it cannot be verified.
func (d *Directory) bearer(ctx context.Context, from Credentials, now time.Time) (*Caller, error) {
	key := from.Key
	switch {
	case IsToken(key) && d.issuers == nil:
		return nil, &TokenError{Err: errors.New("no token issuer is configured")}
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
		return nil, &keyError{fmt.Sprintf("key %s of %s is accepted %s", c.Key, c.Org, Period(c.from, c.Until))}
	case !c.acceptedFrom(from.Peer):
		return nil, &keyError{fmt.Sprintf("key %s of %s is not accepted from %q", c.Key, c.Org, from.Peer)}
	}
	return c, nil
}

// StillAccepts reports whether this Directory accepts, at the time now, a caller that this or another Directory found. It also returns the
// time until which it accepts the caller; the zero time means that there is no end. A key must still have the same organisation, team, id,
// roles and addresses. A token or certificate must still be valid and identify the same caller.
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

// wellFormed reports whether key has the length of a key and consists of characters of token68 (RFC 9110, section 11.2).
func wellFormed(key string) bool {
	for i := range len(key) {
		if classes[key[i]] == other {
			return false
		}
	}
	return len(key) >= minKey && len(key) <= maxKey
}
