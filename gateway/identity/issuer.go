package identity

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Issuer configures an OpenID Connect issuer and the mapping from its claims to callers.
type Issuer struct {
	ID          string `yaml:"id,required" doc:"short name of the issuer. Logs, quotas and the ledger show its callers as id:HASH, a hash of iss and sub"`
	TokenIssuer `yaml:",inline"`

	Mapping `yaml:",inline"`
}

// Validate checks i and joins all errors, each with its path relative to the section.
func (i *Issuer) Validate() error {
	return errors.Join(validateID(i.ID), i.TokenIssuer.Validate(), i.Mapping.Validate())
}

// Issuers maps tokens to callers. It is immutable and safe for concurrent use.
type Issuers struct {
	verifier *Verifier
	byURL    map[string]*Issuer
	teams    map[string][]string
}

// NewIssuers returns Issuers for the given configurations, which must be valid. The Issuers verify tokens with the given keys. teams maps
// each organisation to its teams.
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

// TokenError wraps ErrUnknown for a rejected token. The reason is not sent to callers.
type TokenError struct {
	Err error
	// Verified reports that the token is valid, but its claims do not map to a caller.
	Verified bool
}

// Error implements error.
func (e *TokenError) Error() string {
	if errors.Is(e.Err, ErrInvalid) {
		return e.Err.Error()
	}
	return "token: " + e.Err.Error()
}

// Unwrap returns ErrUnknown.
func (*TokenError) Unwrap() error { return ErrUnknown }

// ErrUnavailable is returned for a token that cannot be verified because the issuer's keys or the revoked tokens are
// unavailable.
var ErrUnavailable = errors.New("identity: cannot verify the token")

// find returns the caller of a token that was presented at the given time; zero means now.
func (is *Issuers) find(ctx context.Context, token string, at time.Time) (*Caller, error) {
	claims, err := is.verifier.VerifyAt(ctx, token, at)
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

// caller maps verified claims to a caller.
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

// stillAccepts reports whether a caller with a token is still accepted at the time now and unchanged.
func (is *Issuers) stillAccepts(c *Caller, now time.Time) bool {
	if !is.verifier.StillAccepts(c.claims, now) {
		return false
	}
	current, err := is.caller(c.claims)
	return err == nil && current.same(c)
}
