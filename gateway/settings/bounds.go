package settings

import (
	"cmp"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// OrgBounds bounds the sections of organisations in files of their own. The zero value bounds nothing.
type OrgBounds struct {
	Budget ledger.Budget `yaml:"budget" doc:"the most that such an organisation may spend: it must set each ceiling that is set here, to at most as much, and be approvable only if this is"`
	Env    []string      `yaml:"credential_env" doc:"patterns of the environment variables that its secrets may be in, with * and ?, such as KEY_{id}; {id} is its id in capitals, with _ for every other character than a letter or digit. Absent is any, [] none"`
	Files  []string      `yaml:"credential_files" doc:"patterns of the files that its secrets, tokens and keys may be in, such as /run/secrets/{id}/*; {id} is its id, and * does not match a slash. Absent allows the files of the organisation's own directory alone, [] none"`

	Networks []egress.Network `yaml:"networks" doc:"private networks that its URLs may lead to, such as 10.1.0.0/16; absent is none. Loopback, link-local and metadata addresses, and this host, are never allowed"`
	Keys     int              `yaml:"keys" doc:"the most keys that it may have; 0 is 10000" unit:"keys"`
	Enforce  []string         `yaml:"enforce" doc:"policies of the library that it must have in mode enforce, for all its callers and without exceptions"`
}

// RejectedFile is a file of an organisation that could not be taken.
type RejectedFile struct {
	File string `json:"file"`
	// Org is the organisation whose last good section stays, empty where there is none.
	Org   string `json:"org,omitempty"`
	Fault string `json:"fault"`
}

// Validate reports the faults of the bounds on their own.
func (b *OrgBounds) Validate() error {
	errs := fault.Found{fault.At("budget", b.Budget.Validate())}
	errs.If(b.Keys < 0, "keys", "must not be negative")
	for i, n := range b.Networks {
		errs = append(errs, fault.At(fault.Index("networks", i), egress.CheckForbidden(n.Addr())))
	}
	for name, patterns := range map[string][]string{"credential_env": b.Env, "credential_files": b.Files} {
		for i, p := range patterns {
			_, err := path.Match(p, "")
			errs.If(err != nil, fault.Index(name, i), "%q is not a pattern: a [ needs its ], and a \\ a character after it", p)
		}
	}
	return errors.Join(errs...)
}

// defaultMaxKeys bounds the keys of an organisation in a file of its own. A key takes about 1.2 kB of memory.
const defaultMaxKeys = 10_000

// MaxKeys returns the most keys that an organisation may have.
func (b *OrgBounds) MaxKeys() int { return cmp.Or(b.Keys, defaultMaxKeys) }

// Check reports where an organisation in a file of its own goes beyond the bounds, and sets where its paths and URLs may lead. Its file
// is named after it, so that the owners of a file are those of the organisation.
func (b *OrgBounds) Check(o *Org) error {
	var errs fault.Found
	name := strings.TrimSuffix(filepath.Base(o.File), filepath.Ext(o.File))
	errs.If(o.ID != name, "id", "must be %q, the name of its file", name)
	own := o.Budget.Limits()
	for i, most := range b.Budget.Limits() {
		at := "budget." + ledger.CeilingName(i)
		errs.If(most > 0 && own[i] == 0, at, "must be set, to at most %s, by org_bounds", ledger.AmountText(i, most))
		errs.If(most > 0 && own[i] > most, at, "must be at most %s, by org_bounds", ledger.AmountText(i, most))
	}
	errs.If(o.Budget.Approvable && b.Budget.Limits() != [ledger.Ceilings]int64{} && !b.Budget.Approvable, "budget.approvable", "must be false, by org_bounds")
	errs = append(errs, strictyaml.Each(o, func(s *strictyaml.Secret) error { return b.permit(o.ID, s) }), b.confine(o))
	for _, policy := range b.Enforce {
		errs = append(errs, enforced(&o.Policies, policy))
	}
	return errors.Join(errs...)
}

// variable is an id as a part of the name of an environment variable.
func variable(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(id))
}

// literal makes a pattern that matches nothing but a string.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`) //nolint:gochecknoglobals // never changed

// permit refuses a secret that an organisation may not name.
func (b *OrgBounds) permit(org string, s *strictyaml.Secret) error {
	env, file := s.Reference()
	if env != "" && b.Env != nil && !within(b.Env, variable(org), env) || file != "" && b.Files != nil && !b.allowsFile(org, file) {
		return errors.New(s.Source() + " is not one that the organisation may name, by org_bounds")
	}
	return nil
}

// allowsFile reports whether credential_files allows an organisation to name a file.
func (b *OrgBounds) allowsFile(org, file string) bool {
	return within(b.Files, literal.Replace(org), file)
}

// within reports whether a name matches one of the patterns, in which {id} stands for id.
func within(patterns []string, id, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(strings.ReplaceAll(pattern, "{id}", id), name)
		return ok && err == nil
	})
}

// enforced reports where a policy is not in force for all callers.
func enforced(c *policyconfig.Config, policy string) error {
	var errs fault.Found
	listed := false
	for i, e := range c.Policies {
		if e.Policy != policy {
			continue
		}
		at := fault.Index("policies", i)
		errs.If(e.Mode.OrDefault() != policyconfig.ModeEnforce, at+".mode", "must be enforce, by org_bounds")
		errs.If(len(e.Teams)+len(e.ExceptTeams)+len(e.Roles)+len(e.ExceptRoles) > 0, at, "%s must be in force for all callers, by org_bounds", policy)
		listed = true
	}
	errs.If(!listed, "policies", "must list %s, by org_bounds", policy)
	for i, x := range c.Exceptions {
		errs.If(x.Policy == policy || x.Policy == "", fault.Index("exceptions", i), "%s has no exceptions, by org_bounds", policy)
	}
	return errors.Join(errs...)
}
