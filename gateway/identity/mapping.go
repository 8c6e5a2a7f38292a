package identity

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Mapping maps the claims of a token, or the names in a certificate, to a caller.
type Mapping struct {
	Orgs    []string          `yaml:"orgs,required" doc:"IDs of the organisations that callers can belong to; claims.org selects one of several"`
	Claims  ClaimNames        `yaml:"claims" doc:"claims with the organisation, team and roles of a caller. In a token: names or JSON pointers such as /realm_access/roles. In a certificate: uri, dns, email, trust_domain, or /ns for the segment after ns in the URI path"`
	Require map[string]string `yaml:"require" doc:"required values of claims, such as azp: tollgate-cli. One value of each claim must match"`
	Team    string            `yaml:"team" doc:"team of callers without a team in their claims. If empty, and claims.team is set, such callers are refused"`
	Teams   map[string]string `yaml:"teams" doc:"team IDs by value of claims.team; other values are ignored. If absent, the claim contains the team ID"`
	Role    Role              `yaml:"role" doc:"role of callers without a role from grants; empty refuses such callers"`
	Grants  map[string]Role   `yaml:"grants" doc:"roles by value of claims.roles; other values are ignored"`
	Labels  map[string]string `yaml:"labels" doc:"claims by label name, for labels that only the gateway sets on callers' resources"`
}

// ClaimNames holds the names of claims.
type ClaimNames struct {
	Org   string `yaml:"org" doc:"claim with the ID of an organisation in orgs"`
	Team  string `yaml:"team" doc:"claim with exactly one team of the organisation"`
	Roles string `yaml:"roles" doc:"claim with the values listed in grants"`
}

// names returns the claims that the mapping reads, by their paths in the configuration.
func (m *Mapping) names() map[string]string {
	names := map[string]string{"claims.org": m.Claims.Org, "claims.team": m.Claims.Team, "claims.roles": m.Claims.Roles}
	for name := range m.Require {
		names[fault.Key("require", name)] = name
	}
	for label, name := range m.Labels {
		names[fault.Key("labels", label)] = name
	}
	maps.DeleteFunc(names, func(_, name string) bool { return name == "" })
	return names
}

// validateID validates an id that is the prefix of caller ids.
func validateID(id string) error {
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(id) > 32 {
		return fault.Errorf("id", "must consist of at most 32 characters of a-z, 0-9, - and _")
	}
	return nil
}

// Validate checks m and returns all errors, joined. The path in each error is relative to the section of m in the configuration.
func (m *Mapping) Validate() error {
	var errs fault.Found
	switch {
	case len(m.Orgs) == 0:
		errs.Add("orgs", "must name at least one organisation")
	case len(m.Orgs) > 1 && m.Claims.Org == "":
		errs.Add("claims.org", "is required if orgs lists several organisations")
	}
	errs.If(len(m.Teams) > 0 && m.Claims.Team == "", "claims.team", "is required if teams is set")
	switch {
	case (len(m.Grants) > 0) != (m.Claims.Roles != ""):
		errs.Add("grants", "must be set together with claims.roles")
	case m.Role == "" && len(m.Grants) == 0:
		errs.Add("role", "is required if grants is not set")
	case m.Role == RoleLead || slices.Contains(slices.Collect(maps.Values(m.Grants)), RoleLead):
		errs.Add("grants", "cannot assign the role lead, because keys created by a lead inherit the limits of the lead's own key")
	}
	return errors.Join(errs...)
}

// claims provides the claims of a credential by name.
type claims interface{ Values(name string) []string }

// caller maps claims to a caller. teams maps organisations to their teams.
func (m *Mapping) caller(presented claims, teams map[string][]string) (*Caller, error) {
	for name, want := range m.Require {
		if !slices.Contains(presented.Values(name), want) {
			return nil, fmt.Errorf("claim %s does not have the required value", name)
		}
	}
	c := new(Caller)
	var err error
	if c.Org, err = m.org(presented); err != nil {
		return nil, err
	}
	if c.Team, err = m.team(presented); err != nil {
		return nil, err
	}
	if c.Team != "" && !slices.Contains(teams[c.Org], c.Team) {
		return nil, fmt.Errorf("team %.64q is not configured in organisation %s", c.Team, c.Org)
	}
	for _, value := range presented.Values(m.Claims.Roles) {
		if role, ok := m.Grants[value]; ok && !slices.Contains(c.Roles, role) {
			c.Roles = append(c.Roles, role)
		}
	}
	if len(c.Roles) == 0 && m.Role != "" {
		c.Roles = []Role{m.Role}
	}
	if len(c.Roles) == 0 {
		return nil, errors.New("no claim maps to a role")
	}
	slices.Sort(c.Roles)
	err = m.label(c, presented)
	return c, err
}

func (m *Mapping) org(presented claims) (string, error) {
	if m.Claims.Org == "" {
		return m.Orgs[0], nil
	}
	named := presented.Values(m.Claims.Org)
	if len(named) != 1 || !slices.Contains(m.Orgs, named[0]) {
		return "", errors.New("claims do not contain exactly one allowed organisation")
	}
	return named[0], nil
}

func (m *Mapping) team(presented claims) (string, error) {
	if m.Claims.Team == "" {
		return m.Team, nil
	}
	var teams []string
	for _, value := range presented.Values(m.Claims.Team) {
		if len(m.Teams) > 0 {
			value = m.Teams[value]
		}
		if value != "" && !slices.Contains(teams, value) {
			teams = append(teams, value)
		}
	}
	switch {
	case len(teams) == 1:
		return teams[0], nil
	case len(teams) == 0 && m.Team != "":
		return m.Team, nil
	}
	return "", fmt.Errorf("claims contain %d teams, want 1", len(teams))
}

// label sets the labels of a caller in the form of the label header.
func (m *Mapping) label(c *Caller, presented claims) error {
	var pairs []string
	c.CredentialLabels = slices.Sorted(maps.Keys(m.Labels))
	for _, name := range c.CredentialLabels {
		values := presented.Values(m.Labels[name])
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 || strings.Contains(values[0], ",") {
			return fmt.Errorf("claim %s is not a valid label value", m.Labels[name])
		}
		pairs = append(pairs, name+"="+values[0])
	}
	c.Labels = strings.Join(pairs, ",")
	return nil
}

// fingerprint returns an id for a subject of an issuer: 80 bits as 16 letters and digits.
func fingerprint(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// maxSubject is the maximum length of the logged part of a subject in bytes.
const maxSubject = 200

// subject returns a subject in printable form.
func subject(sub string) string {
	shown := strings.ToValidUTF8(sub[:min(len(sub), maxSubject)], "")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, shown)
}
