package identity

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/fault"
)

// TokenIssuer is an issuer and which of its tokens are accepted.
type TokenIssuer struct {
	URL        string        `yaml:"url,required" doc:"the issuer's identifier, exactly as in the claim iss of its tokens: https, or http on loopback"`
	JWKS       string        `yaml:"jwks_url" doc:"address of the issuer's keys, a JSON Web Key Set; empty is where its discovery document says, <url>/.well-known/openid-configuration"`
	Audiences  []string      `yaml:"audiences,required" doc:"values of the claim aud of which a token must have one: the issuer's name for this gateway"`
	Algorithms []Algorithm   `yaml:"algorithms" doc:"algorithms that its tokens may be signed with; absent is RS256, PS256, ES256 and EdDSA"`
	MaxAge     time.Duration `yaml:"max_age" doc:"age from which a token is refused although it has not expired; 0 is 24h"`

	// Skew is the difference between the issuer's clock and this one that is accepted;
	// 0 is 30 s.
	Skew time.Duration `yaml:"-"`
	// Refresh is how often the issuer's keys are read, besides when a token has an
	// unknown one: a key that it has withdrawn is accepted that long; 0 is 15 m.
	Refresh time.Duration `yaml:"-"`
}

// Algorithm is a signature algorithm of RFC 7518 or RFC 8037.
type Algorithm string

// Values lists the algorithms that can be configured, all of them asymmetric.
func (Algorithm) Values() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

const (
	defaultSkew    = 30 * time.Second
	defaultMaxAge  = 24 * time.Hour
	defaultRefresh = 15 * time.Minute
)

// WithDefaults returns c with a value for each setting that has a default.
func (c TokenIssuer) WithDefaults() TokenIssuer {
	if len(c.Algorithms) == 0 {
		c.Algorithms = []Algorithm{"RS256", "PS256", "ES256", "EdDSA"}
	}
	c.Skew, c.MaxAge, c.Refresh = cmp.Or(c.Skew, defaultSkew), cmp.Or(c.MaxAge, defaultMaxAge), cmp.Or(c.Refresh, defaultRefresh)
	return c
}

// MaxLifetime is how long a token that was issued by now may be accepted at most. The settings
// have their defaults.
func (c TokenIssuer) MaxLifetime() time.Duration { return c.MaxAge + 2*c.Skew }

// Validate reports every fault, each with its path below the section.
func (c TokenIssuer) Validate() error {
	errs := fault.Found{fault.At("url", checkURL(c.URL))}
	if c.JWKS != "" {
		errs = append(errs, fault.At("jwks_url", checkURL(c.JWKS)))
	}
	errs.If(strings.ContainsAny(c.URL, "?#"), "url", "must have no query and no fragment")
	errs.If(len(c.Audiences) == 0 || slices.Contains(c.Audiences, ""), "audiences", "must name at least one, and none may be empty: tokens for other services would be accepted here")
	errs.If(c.MaxAge < 0, "max_age", "must not be negative")
	return errors.Join(errs...)
}

// checkURL accepts https anywhere and http on loopback.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
		return errors.New("must be a URL with a host and no user")
	case u.Scheme != "https" && (u.Scheme != "http" || !egress.Loopback(u.Hostname())):
		return errors.New("must be https, except for loopback addresses")
	}
	return egress.CheckPort(u)
}
