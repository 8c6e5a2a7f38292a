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

// ErrInvalid is wrapped by the errors for rejected tokens. These errors contain the reason.
var ErrInvalid = errors.New("token not accepted")

// ErrIssuerUnavailable is returned if a token cannot be verified, because its key is not cached and the issuer's keys cannot be read, or
// because the revoked tokens are unknown.
var ErrIssuerUnavailable = errors.New("token verification unavailable")

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// Verifier verifies tokens of a set of issuers. It is immutable and safe for concurrent use.
type Verifier struct {
	issuers map[string]issuer // by URL
	keys    *IssuerKeys
}

type issuer struct {
	TokenIssuer
	keys *keySet
}

// NewVerifier returns a Verifier for the tokens of the given issuers. The configurations must be valid, and no two may have the same URL.
// NewVerifier registers the issuers with keys, which provides their public keys; see [IssuerKeys.Retain].
func NewVerifier(issuers []TokenIssuer, keys *IssuerKeys) *Verifier {
	v := &Verifier{issuers: make(map[string]issuer, len(issuers)), keys: keys}
	for _, c := range issuers {
		c = c.WithDefaults()
		v.issuers[c.URL] = issuer{TokenIssuer: c, keys: keys.of(c)}
	}
	return v
}

// VerifyAt verifies the signature, the audience and the validity period of a token that was presented at the given time, such as the
// beginning of a session; the zero time means now. Later revocations apply. It returns the claims of the token, ErrInvalid if the token is
// rejected, and ErrIssuerUnavailable if it cannot be verified. If the token's key is not cached, VerifyAt waits for the issuer, but only a
// few seconds.
func (v *Verifier) VerifyAt(ctx context.Context, token string, at time.Time) (*Claims, error) {
	if at.IsZero() {
		at = v.keys.now()
	}
	t, err := parse(token)
	if err != nil {
		return nil, err
	}
	i, known := v.issuers[t.claims.Issuer]
	switch {
	case !known:
		return nil, invalidf("issuer %.100q is not configured", t.claims.Issuer)
	case !slices.Contains(i.Algorithms, Algorithm(t.header.Algorithm)):
		return nil, invalidf("signature algorithm %.20q is not accepted from this issuer", t.header.Algorithm)
	case !t.header.accepted():
		return nil, invalidf("type %.20q is not an access token", t.header.Type)
	case t.header.Critical != nil:
		return nil, invalidf("the header crit is not supported")
	case t.claims.all["cnf"] != nil:
		return nil, invalidf("tokens bound to a key of the holder (claim cnf) are not supported")
	}
	// This check is cheaper than the signature check. Callers cannot tell which of the two failed.
	if err := i.check(t.claims, at); err != nil {
		return nil, err
	}
	revoked := v.keys.revoked.Load()
	switch {
	case revoked == nil:
		return nil, fmt.Errorf("%w: the list of revoked tokens has not been read", ErrIssuerUnavailable)
	case revoked.covers(t.claims, skew):
		return nil, invalidf("revoked")
	}
	key, err := i.keys.find(ctx, t.header)
	if err != nil {
		return nil, err
	}
	algorithm, _ := jwa.LookupSignatureAlgorithm(t.header.Algorithm)
	if _, err := jws.VerifyCompactFast(key, []byte(t.raw), algorithm); err != nil {
		return nil, invalidf("wrong signature")
	}
	return t.claims, nil
}

// StillAccepts reports whether this Verifier accepts claims that this or another Verifier accepted earlier. It checks the issuer, the
// audience, the age and the revocation of the token.
func (v *Verifier) StillAccepts(c *Claims, now time.Time) bool {
	i, known := v.issuers[c.Issuer]
	checked := *c
	revoked := v.keys.revoked.Load()
	return known && i.check(&checked, now) == nil && (revoked == nil || !revoked.covers(c, skew))
}

// check returns an error if claims are not accepted at the time now, and sets Until.
func (i issuer) check(c *Claims, now time.Time) error {
	c.Until = c.Expires
	if oldest := c.IssuedAt.Add(i.MaxAge); oldest.Before(c.Until) {
		c.Until = oldest
	}
	c.Until = c.Until.Add(skew)
	switch {
	case !slices.ContainsFunc(c.Audiences, func(a string) bool { return slices.Contains(i.Audiences, a) }):
		return invalidf("wrong audience")
	case !now.Before(c.Expires.Add(skew)):
		return invalidf("expired at %s", c.Expires.UTC().Format(time.RFC3339))
	case !now.Before(c.Until):
		return invalidf("issued more than %s ago", i.MaxAge)
	case now.Add(skew).Before(c.NotBefore), now.Add(skew).Before(c.IssuedAt):
		return invalidf("not valid yet")
	}
	return nil
}
