package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
)

// Issuer is an OpenID Connect issuer whose tokens identify callers, and what its claims
// make them.
type Issuer struct {
	ID          string `yaml:"id,required" doc:"short name, with which the ids of its callers begin in logs, quotas and the ledger: id:HASH, of iss and sub"`
	oidc.Config `yaml:",inline"`

	Orgs    []string          `yaml:"orgs,required" doc:"ids of the organisations that it speaks for; of several, the claim claims.org names one"`
	Claims  ClaimNames        `yaml:"claims" doc:"which claims of a token say what its caller is: a name, or a JSON pointer such as /realm_access/roles"`
	Require map[string]string `yaml:"require" doc:"values that claims must have, or one of their values must be, such as azp: tollgate-cli"`
	Team    string            `yaml:"team" doc:"team of callers whose token names none; absent refuses them if claims.team is set"`
	Teams   map[string]string `yaml:"teams" doc:"teams by values of claims.team, of which others are ignored; absent takes the value for the id of the team"`
	Role    Role              `yaml:"role" doc:"role of callers whom grants gives none; absent refuses them"`
	Grants  map[string]Role   `yaml:"grants" doc:"roles by values of claims.roles, of which others are ignored"`
	Labels  map[string]string `yaml:"labels" doc:"claims by names of labels, which what its callers make then has, and which they cannot set otherwise"`
}

// ClaimNames names claims.
type ClaimNames struct {
	Org   string `yaml:"org" doc:"the organisation's id; one that is not among orgs is refused"`
	Team  string `yaml:"team" doc:"the team: exactly one, of the organisation"`
	Roles string `yaml:"roles" doc:"values that grants maps to roles"`
}

// Validate reports every fault, each with its path below the section.
func (i *Issuer) Validate() error {
	errs := []error{i.Config.Validate()}
	bad := func(path, format string, args ...any) { errs = append(errs, fault.Errorf(path, format, args...)) }
	if i.ID == "" || strings.Trim(i.ID, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(i.ID) > 32 {
		bad("id", "must be at most 32 of a-z, 0-9, - and _")
	}
	switch {
	case len(i.Orgs) == 0:
		bad("orgs", "must name at least one organisation")
	case len(i.Orgs) > 1 && i.Claims.Org == "":
		bad("claims.org", "is required, because orgs names several")
	}
	if len(i.Teams) > 0 && i.Claims.Team == "" {
		bad("claims.team", "is required beside teams")
	}
	switch {
	case (len(i.Grants) > 0) != (i.Claims.Roles != ""):
		bad("grants", "and claims.roles require each other")
	case i.Role == "" && len(i.Grants) == 0:
		bad("role", "is required without grants: what may its callers do?")
	case i.Role == RoleLead || slices.Contains(slices.Collect(maps.Values(i.Grants)), RoleLead):
		bad("grants", "cannot give the role lead: keys that a lead makes are bounded by its own, which a token is not")
	}
	return errors.Join(errs...)
}

// Issuers turn tokens into callers. They are immutable and safe for concurrent use.
type Issuers struct {
	verifier *oidc.Verifier
	byURL    map[string]*Issuer
	hasTeam  func(org, team string) bool
}

// NewIssuers returns Issuers of valid configurations, whose tokens verifier verifies.
// hasTeam reports whether an organisation has a team.
func NewIssuers(issuers []Issuer, keys *oidc.Keys, hasTeam func(org, team string) bool) *Issuers {
	is := &Issuers{byURL: make(map[string]*Issuer, len(issuers)), hasTeam: hasTeam}
	configs := make([]oidc.Config, len(issuers))
	for n := range issuers {
		configs[n] = issuers[n].Config
		is.byURL[issuers[n].URL] = &issuers[n]
	}
	is.verifier = oidc.NewVerifier(configs, keys)
	return is
}

// TokenError is an [ErrUnknown] for a token that is not accepted. Callers are not told
// why.
type TokenError struct{ Err error }

// Error says why.
func (e *TokenError) Error() string { return "token: " + e.Err.Error() }

// Unwrap returns ErrUnknown.
func (*TokenError) Unwrap() error { return ErrUnknown }

// ErrUnavailable is returned for a token that cannot be judged because its issuer cannot
// be asked for its keys.
var ErrUnavailable = errors.New("identity: the token cannot be verified")

// IsToken reports whether a credential is to be taken for a token and not for a key.
func IsToken(credential string) bool { return oidc.Looks(credential) }

// find returns the caller that a token was issued to.
func (is *Issuers) find(ctx context.Context, token string) (*Caller, error) {
	claims, err := is.verifier.Verify(ctx, token)
	switch {
	case errors.Is(err, oidc.ErrUnavailable):
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return nil, &TokenError{Err: err}
	}
	c, err := is.caller(claims)
	if err != nil {
		return nil, &TokenError{Err: err}
	}
	return c, nil
}

// caller returns who claims are of, which a verifier has accepted.
func (is *Issuers) caller(claims *oidc.Claims) (*Caller, error) {
	i := is.byURL[claims.Issuer]
	for name, want := range i.Require {
		if !slices.Contains(claims.Values(name), want) {
			return nil, fmt.Errorf("its claim %s does not have the value that is required", name)
		}
	}
	c := &Caller{Issuer: i.ID, Subject: subject(claims.Subject), Key: i.ID + ":" + fingerprint(claims), Until: claims.Until, claims: claims}
	var err error
	if c.Org, err = i.org(claims); err != nil {
		return nil, err
	}
	if c.Team, err = i.team(claims); err != nil {
		return nil, err
	}
	if c.Team != "" && !is.hasTeam(c.Org, c.Team) {
		return nil, fmt.Errorf("organisation %s has no team %.64q", c.Org, c.Team)
	}
	for _, value := range claims.Values(i.Claims.Roles) {
		if role, ok := i.Grants[value]; ok && !slices.Contains(c.Roles, role) {
			c.Roles = append(c.Roles, role)
		}
	}
	if len(c.Roles) == 0 && i.Role != "" {
		c.Roles = []Role{i.Role}
	}
	if len(c.Roles) == 0 {
		return nil, errors.New("nothing that it says gives it a role")
	}
	slices.Sort(c.Roles)
	c.Labels, err = i.labels(claims)
	return c, err
}

func (i *Issuer) org(claims *oidc.Claims) (string, error) {
	if i.Claims.Org == "" {
		return i.Orgs[0], nil
	}
	named := claims.Values(i.Claims.Org)
	if len(named) != 1 || !slices.Contains(i.Orgs, named[0]) {
		return "", errors.New("it does not name one organisation that its issuer speaks for")
	}
	return named[0], nil
}

func (i *Issuer) team(claims *oidc.Claims) (string, error) {
	if i.Claims.Team == "" {
		return i.Team, nil
	}
	var teams []string
	for _, value := range claims.Values(i.Claims.Team) {
		if len(i.Teams) > 0 {
			value = i.Teams[value]
		}
		if value != "" && !slices.Contains(teams, value) {
			teams = append(teams, value)
		}
	}
	switch {
	case len(teams) == 1:
		return teams[0], nil
	case len(teams) == 0 && i.Team != "":
		return i.Team, nil
	}
	return "", fmt.Errorf("it names %d teams and not one", len(teams))
}

// labels returns what the header of labels would say.
func (i *Issuer) labels(claims *oidc.Claims) (string, error) {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(i.Labels)) {
		values := claims.Values(i.Labels[name])
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 || strings.Contains(values[0], ",") {
			return "", fmt.Errorf("its claim %s is not a label's value", i.Labels[name])
		}
		pairs = append(pairs, name+"="+values[0])
	}
	return strings.Join(pairs, ","), nil
}

// fingerprint names who a token was issued to: 80 bits, in 16 letters and digits.
func fingerprint(claims *oidc.Claims) string {
	sum := sha256.Sum256([]byte(claims.Issuer + "\x00" + claims.Subject))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// maxSubject bounds what is logged of a subject, in bytes.
const maxSubject = 200

// subject is a subject as it is shown.
func subject(sub string) string {
	shown := strings.ToValidUTF8(sub[:min(len(sub), maxSubject)], "")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, shown)
}

// holds reports whether a caller with a token is accepted at now as the same.
func (is *Issuers) holds(c *Caller, now time.Time) bool {
	if !is.verifier.Holds(c.claims, now) {
		return false
	}
	again, err := is.caller(c.claims)
	return err == nil && again.Org == c.Org && again.Team == c.Team && again.Key == c.Key && slices.Equal(again.Roles, c.Roles)
}
