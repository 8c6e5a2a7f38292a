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

// TokenIssuer configures an issuer and the tokens that are accepted from it.
type TokenIssuer struct {
	URL        string        `yaml:"url,required" doc:"issuer identifier, exactly as in the iss claim; https except for loopback hosts"`
	JWKS       string        `yaml:"jwks_url" doc:"URL of the JSON Web Key Set; default from <url>/.well-known/openid-configuration"`
	Audiences  []string      `yaml:"audiences,required" doc:"accepted values of the aud claim, one of which a token must contain"`
	Algorithms []Algorithm   `yaml:"algorithms" doc:"accepted signature algorithms; default RS256, PS256, ES256 and EdDSA"`
	MaxAge     time.Duration `yaml:"max_age" doc:"maximum age of a token, even if not expired; default 24h"`
}

// Algorithm is a signature algorithm of RFC 7518 or RFC 8037.
type Algorithm string

// Values lists the algorithms that can be configured. All of them are asymmetric.
func (Algorithm) Values() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

const (
	// skew is the allowed difference between the clocks of the issuer and the gateway.
	skew          = 30 * time.Second
	defaultMaxAge = 24 * time.Hour
)

// WithDefaults returns c with defaults in place of zero values.
func (c TokenIssuer) WithDefaults() TokenIssuer {
	if len(c.Algorithms) == 0 {
		c.Algorithms = []Algorithm{"RS256", "PS256", "ES256", "EdDSA"}
	}
	c.MaxAge = cmp.Or(c.MaxAge, defaultMaxAge)
	return c
}

// MaxLifetime returns the maximum lifetime of a token issued now. c must have its defaults.
func (c TokenIssuer) MaxLifetime() time.Duration { return c.MaxAge + 2*skew }

// Validate checks c and returns all errors, joined. The path in each error is relative to the section of c in the configuration.
func (c TokenIssuer) Validate() error {
	errs := fault.Found{fault.At("url", checkURL(c.URL))}
	if c.JWKS != "" {
		errs = append(errs, fault.At("jwks_url", checkURL(c.JWKS)))
	}
	errs.If(strings.ContainsAny(c.URL, "?#"), "url", "must not have a query or fragment")
	errs.If(len(c.Audiences) == 0 || slices.Contains(c.Audiences, ""), "audiences",
		"must contain at least one audience and no empty value; otherwise tokens for other services would be accepted")
	errs.If(c.MaxAge < 0, "max_age", "must not be negative")
	return errors.Join(errs...)
}

// checkURL accepts https for any host and http for loopback addresses.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
		return errors.New("must be a URL with a host and without user information")
	case u.Scheme != "https" && (u.Scheme != "http" || !egress.Loopback(u.Hostname())):
		return errors.New("must be https unless the host is a loopback address")
	}
	return egress.CheckPort(u)
}
