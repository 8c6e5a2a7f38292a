package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// ErrInvalid is returned for every token that is not accepted, and says why.
var ErrInvalid = errors.New("the token is not accepted")

// ErrIssuerUnavailable is returned for a token of which this cannot be said, because the keys
// of its issuer cannot be read and its own is not among those that are known, or because
// it is not known which tokens are revoked.
var ErrIssuerUnavailable = errors.New("the token cannot be verified at the moment")

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// Verifier verifies the tokens of some issuers. It is immutable and safe for concurrent
// use.
type Verifier struct {
	issuers map[string]issuer // by URL
	keys    *IssuerKeys
}

type issuer struct {
	TokenIssuer
	keys *keySet
}

// NewVerifier returns a Verifier of valid configurations, each of another issuer. Their
// keys are among keys from then on; see [IssuerKeys.Retain].
func NewVerifier(issuers []TokenIssuer, keys *IssuerKeys) *Verifier {
	v := &Verifier{issuers: make(map[string]issuer, len(issuers)), keys: keys}
	for _, c := range issuers {
		c = c.WithDefaults()
		v.issuers[c.URL] = issuer{TokenIssuer: c, keys: keys.of(c)}
	}
	return v
}

// Verify returns the claims of a token that is signed by one of the issuers, is for one of
// the audiences and is accepted now. It returns ErrInvalid or ErrUnavailable otherwise. It
// waits for the issuer only when the token's key is not known, and at most a few seconds.
func (v *Verifier) Verify(ctx context.Context, token string) (*Claims, error) {
	return v.VerifyAt(ctx, token, v.keys.now())
}

// VerifyAt is Verify for a token that was presented at a time, such as the beginning of a session. A revocation since then counts.
func (v *Verifier) VerifyAt(ctx context.Context, token string, at time.Time) (*Claims, error) {
	t, err := parse(token)
	if err != nil {
		return nil, err
	}
	i, known := v.issuers[t.claims.Issuer]
	switch {
	case !known:
		return nil, invalidf("no issuer %.100q is configured", t.claims.Issuer)
	case !slices.Contains(i.Algorithms, Algorithm(t.header.Algorithm)):
		return nil, invalidf("its issuer's tokens may not be signed with %.20q", t.header.Algorithm)
	case !t.header.accepted():
		return nil, invalidf("its type %.20q is not that of an access token", t.header.Type)
	case t.header.Critical != nil:
		return nil, invalidf("it has critical headers")
	case t.claims.all["cnf"] != nil:
		return nil, invalidf("it is bound to a key of its holder, of which no proof was asked")
	}
	// Before the signature, which costs more: neither is told to the caller.
	if err := i.check(t.claims, at); err != nil {
		return nil, err
	}
	revoked := v.keys.revoked.Load()
	switch {
	case revoked == nil:
		return nil, fmt.Errorf("%w: it is not known which are revoked", ErrIssuerUnavailable)
	case revoked.covers(t.claims, i.Skew):
		return nil, invalidf("it is revoked")
	}
	key, err := i.keys.find(ctx, t.header)
	if err != nil {
		return nil, err
	}
	algorithm, _ := jwa.LookupSignatureAlgorithm(t.header.Algorithm)
	if _, err := jws.VerifyCompactFast(key, []byte(t.raw), algorithm); err != nil {
		return nil, invalidf("its signature is wrong")
	}
	return t.claims, nil
}

// StillAccepts reports whether claims that this or another Verifier has accepted are accepted by
// this one now: their issuer, audience and age, and that they are not revoked since.
func (v *Verifier) StillAccepts(c *Claims, now time.Time) bool {
	i, known := v.issuers[c.Issuer]
	again := *c
	revoked := v.keys.revoked.Load()
	return known && i.check(&again, now) == nil && (revoked == nil || !revoked.covers(c, i.Skew))
}

// check reports why claims are not accepted at a time, and sets Until.
func (i issuer) check(c *Claims, now time.Time) error {
	c.Until = c.Expires
	if oldest := c.IssuedAt.Add(i.MaxAge); oldest.Before(c.Until) {
		c.Until = oldest
	}
	c.Until = c.Until.Add(i.Skew)
	switch {
	case !slices.ContainsFunc(c.Audiences, func(a string) bool { return slices.Contains(i.Audiences, a) }):
		return invalidf("it is for another audience")
	case !now.Before(c.Expires.Add(i.Skew)):
		return invalidf("it expired at %s", c.Expires.UTC().Format(time.RFC3339))
	case !now.Before(c.Until):
		return invalidf("it was issued more than %s ago", i.MaxAge)
	case now.Add(i.Skew).Before(c.NotBefore), now.Add(i.Skew).Before(c.IssuedAt):
		return invalidf("it is not accepted yet")
	}
	return nil
}
