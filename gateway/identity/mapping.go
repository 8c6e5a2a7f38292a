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

// Mapping maps the claims of a credential to its caller: those of a token, or the
// names in a certificate.
type Mapping struct {
	Orgs    []string          `yaml:"orgs,required" doc:"ids of the organisations that it speaks for; of several, the claim claims.org names one"`
	Claims  ClaimNames        `yaml:"claims" doc:"claims that tell team, key and role of a caller; of a token a name, or a JSON pointer such as /realm_access/roles; of a certificate uri, dns, email, trust_domain, or /ns for the segment after ns in the path of its URI"`
	Require map[string]string `yaml:"require" doc:"values that claims must have, or one of their values must be, such as azp: tollgate-cli"`
	Team    string            `yaml:"team" doc:"team of callers for whom none is named; absent refuses them if claims.team is set"`
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

// names returns the claims that the mapping reads, with their paths.
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

// validateID reports the fault of an id with which those of callers begin.
func validateID(id string) error {
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(id) > 32 {
		return fault.Errorf("id", "must consist of at most 32 of a-z, 0-9, - and _")
	}
	return nil
}

// Validate reports every fault, each with its path below the section.
func (m *Mapping) Validate() error {
	var errs fault.Found
	switch {
	case len(m.Orgs) == 0:
		errs.Add("orgs", "must name at least one organisation")
	case len(m.Orgs) > 1 && m.Claims.Org == "":
		errs.Add("claims.org", "is required, because orgs names several")
	}
	errs.If(len(m.Teams) > 0 && m.Claims.Team == "", "claims.team", "is required beside teams")
	switch {
	case (len(m.Grants) > 0) != (m.Claims.Roles != ""):
		errs.Add("grants", "and claims.roles require each other")
	case m.Role == "" && len(m.Grants) == 0:
		errs.Add("role", "is required without grants: what may its callers do?")
	case m.Role == RoleLead || slices.Contains(slices.Collect(maps.Values(m.Grants)), RoleLead):
		errs.Add("grants", "cannot give the role lead: keys that a lead makes are bounded by its own, which a token or certificate is not")
	}
	return errors.Join(errs...)
}

// claims are the claims of a credential, by name.
type claims interface{ Values(name string) []string }

// caller returns the caller that claims map to. teams are the teams of each organisation.
func (m *Mapping) caller(said claims, teams map[string][]string) (*Caller, error) {
	for name, want := range m.Require {
		if !slices.Contains(said.Values(name), want) {
			return nil, fmt.Errorf("its claim %s does not have the value that is required", name)
		}
	}
	c := new(Caller)
	var err error
	if c.Org, err = m.org(said); err != nil {
		return nil, err
	}
	if c.Team, err = m.team(said); err != nil {
		return nil, err
	}
	if c.Team != "" && !slices.Contains(teams[c.Org], c.Team) {
		return nil, fmt.Errorf("organisation %s has no team %.64q", c.Org, c.Team)
	}
	for _, value := range said.Values(m.Claims.Roles) {
		if role, ok := m.Grants[value]; ok && !slices.Contains(c.Roles, role) {
			c.Roles = append(c.Roles, role)
		}
	}
	if len(c.Roles) == 0 && m.Role != "" {
		c.Roles = []Role{m.Role}
	}
	if len(c.Roles) == 0 {
		return nil, errors.New("nothing that it says gives it a role")
	}
	slices.Sort(c.Roles)
	err = m.label(c, said)
	return c, err
}

func (m *Mapping) org(said claims) (string, error) {
	if m.Claims.Org == "" {
		return m.Orgs[0], nil
	}
	named := said.Values(m.Claims.Org)
	if len(named) != 1 || !slices.Contains(m.Orgs, named[0]) {
		return "", errors.New("it does not name one organisation that its issuer speaks for")
	}
	return named[0], nil
}

func (m *Mapping) team(said claims) (string, error) {
	if m.Claims.Team == "" {
		return m.Team, nil
	}
	var teams []string
	for _, value := range said.Values(m.Claims.Team) {
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
	return "", fmt.Errorf("it names %d teams and not one", len(teams))
}

// label sets the labels of a caller, as the header of labels would.
func (m *Mapping) label(c *Caller, said claims) error {
	var pairs []string
	c.CredentialLabels = slices.Sorted(maps.Keys(m.Labels))
	for _, name := range c.CredentialLabels {
		values := said.Values(m.Labels[name])
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 || strings.Contains(values[0], ",") {
			return fmt.Errorf("its claim %s is not a label's value", m.Labels[name])
		}
		pairs = append(pairs, name+"="+values[0])
	}
	c.Labels = strings.Join(pairs, ",")
	return nil
}

// fingerprint names a subject of an issuer: 80 bits, in 16 letters and digits.
func fingerprint(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// maxSubject bounds the logged part of a subject, in bytes.
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
