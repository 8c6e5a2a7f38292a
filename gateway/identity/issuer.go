package identity

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Issuer is an OpenID Connect issuer whose tokens identify callers, and what its claims
// make them.
type Issuer struct {
	ID          string `yaml:"id,required" doc:"short name, with which the ids of its callers begin in logs, quotas and the ledger: id:HASH, of iss and sub"`
	TokenIssuer `yaml:",inline"`

	Mapping `yaml:",inline"`
}

// Validate reports every fault, each with its path below the section.
func (i *Issuer) Validate() error {
	return errors.Join(validateID(i.ID), i.TokenIssuer.Validate(), i.Mapping.Validate())
}

// Issuers turn tokens into callers. They are immutable and safe for concurrent use.
type Issuers struct {
	verifier *Verifier
	byURL    map[string]*Issuer
	teams    map[string][]string
}

// NewIssuers returns Issuers of valid configurations, whose tokens verifier verifies.
// teams are the teams of each organisation.
func NewIssuers(issuers []Issuer, keys *IssuerKeys, teams map[string][]string) *Issuers {
	is := &Issuers{byURL: make(map[string]*Issuer, len(issuers)), teams: teams}
	configs := make([]TokenIssuer, len(issuers))
	for n := range issuers {
		configs[n] = issuers[n].TokenIssuer
		is.byURL[issuers[n].URL] = &issuers[n]
	}
	is.verifier = NewVerifier(configs, keys)
	return is
}

// TokenError is an [ErrUnknown] for a token that is not accepted. Callers are not told
// why.
type TokenError struct {
	Err error
	// Verified is set for a token that its issuer did issue, whose claims lead to no caller.
	Verified bool
}

// Error says why.
func (e *TokenError) Error() string { return "token: " + e.Err.Error() }

// Unwrap returns ErrUnknown.
func (*TokenError) Unwrap() error { return ErrUnknown }

// ErrUnavailable is returned for a token that cannot be judged because its issuer cannot
// be asked for its keys.
var ErrUnavailable = errors.New("identity: the token cannot be verified")

// IsToken reports whether a credential is to be taken for a token and not for a key.
func IsToken(credential string) bool { return LooksLikeToken(credential) }

// find returns the caller that a token was issued to, which was presented at a time; zero is now.
func (is *Issuers) find(ctx context.Context, token string, at time.Time) (*Caller, error) {
	verify := func() (*Claims, error) { return is.verifier.VerifyAt(ctx, token, at) }
	if at.IsZero() {
		verify = func() (*Claims, error) { return is.verifier.Verify(ctx, token) }
	}
	claims, err := verify()
	switch {
	case errors.Is(err, ErrIssuerUnavailable):
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return nil, &TokenError{Err: err}
	}
	c, err := is.caller(claims)
	if err != nil {
		return nil, &TokenError{Err: err, Verified: true}
	}
	return c, nil
}

// caller returns the caller of claims that a verifier has accepted.
func (is *Issuers) caller(claims *Claims) (*Caller, error) {
	i := is.byURL[claims.Issuer]
	c, err := i.Mapping.caller(claims, is.teams)
	if err != nil {
		return nil, err
	}
	c.Issuer, c.Subject, c.Key = i.ID, subject(claims.Subject), i.ID+":"+fingerprint(claims.Issuer, claims.Subject)
	c.Until, c.claims = claims.Until, claims
	return c, nil
}

// stillAccepts reports whether a caller with a token is accepted at now as the same.
func (is *Issuers) stillAccepts(c *Caller, now time.Time) bool {
	if !is.verifier.StillAccepts(c.claims, now) {
		return false
	}
	again, err := is.caller(c.claims)
	return err == nil && again.same(c)
}
