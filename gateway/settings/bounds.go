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

// OrgBounds restricts organisations that are configured in files of their own. The zero value imposes no restrictions.
type OrgBounds struct {
	Budget ledger.Budget `yaml:"budget" doc:"highest budget that an organisation in orgs_files can have. The organisation must set every limit that is set here, to the same value or a lower value. Its budget can be approvable only if this budget is approvable"`
	Env    []string      `yaml:"credential_env" doc:"environment variables that an organisation's secrets can refer to, as patterns with * and ?, such as KEY_{id}. In a pattern, {id} stands for the organisation's ID in capitals, with _ in place of all characters other than letters and digits. If absent, all variables are permitted; [] permits none"`
	Files  []string      `yaml:"credential_files" doc:"files that an organisation's secrets, tokens and keys can refer to, as patterns such as /run/secrets/{id}/*. In a pattern, {id} stands for the organisation's ID, and * does not match a slash. If absent, only files in the directory of the organisation's file are permitted; [] permits none"`

	Networks []egress.Network `yaml:"networks" doc:"private networks that an organisation's URLs can reach, such as 10.1.0.0/16. If absent, only public addresses are permitted. Loopback, link-local and cloud metadata addresses and the addresses of this host are never permitted"`
	Keys     int              `yaml:"keys" doc:"maximum number of keys of an organisation; 0 means 10000" unit:"keys"`
	Enforce  []string         `yaml:"enforce" doc:"built-in policies that an organisation must enforce for all callers, without exceptions"`
}

// RejectedFile is an organisation file that was not accepted.
type RejectedFile struct {
	File string `json:"file"`
	// Org is the organisation that keeps its last valid section, empty if there is no such section.
	Org   string `json:"org,omitempty"`
	Fault string `json:"fault"`
}

// Validate returns the faults of the section itself.
func (b *OrgBounds) Validate() error {
	errs := fault.Found{fault.At("budget", b.Budget.Validate())}
	errs.If(b.Keys < 0, "keys", "must not be negative")
	for i, n := range b.Networks {
		errs = append(errs, fault.At(fault.Index("networks", i), egress.CheckForbidden(n.Addr())))
	}
	for name, patterns := range map[string][]string{"credential_env": b.Env, "credential_files": b.Files} {
		for i, p := range patterns {
			_, err := path.Match(p, "")
			errs.If(err != nil, fault.Index(name, i),
				"invalid pattern %q: each [ must be closed by ], and each \\ must be followed by a character", p)
		}
	}
	return errors.Join(errs...)
}

// defaultMaxKeys is the default maximum number of keys of an organisation in a file of its own. A key takes about 1.2 kB of memory.
const defaultMaxKeys = 10_000

// MaxKeys returns the maximum number of keys of an organisation.
func (b *OrgBounds) MaxKeys() int { return cmp.Or(b.Keys, defaultMaxKeys) }

// Check returns the faults of an organisation in a file of its own that exceeds the bounds, and sets where its paths and URLs may lead. The
// file must be named after the organisation, so that the owners of the file are the owners of the organisation.
func (b *OrgBounds) Check(o *Org) error {
	var errs fault.Found
	name := strings.TrimSuffix(filepath.Base(o.File), filepath.Ext(o.File))
	errs.If(o.ID != name, "id", "must be %q, like the name of the file", name)
	own := o.Budget.Limits()
	for i, most := range b.Budget.Limits() {
		at := "budget." + ledger.CeilingName(i)
		errs.If(most > 0 && own[i] == 0, at, "must be set to at most %s (org_bounds)", ledger.AmountText(i, most))
		errs.If(most > 0 && own[i] > most, at, "must be at most %s (org_bounds)", ledger.AmountText(i, most))
	}
	errs.If(o.Budget.Approvable && b.Budget.Limits() != [ledger.Ceilings]int64{} && !b.Budget.Approvable,
		"budget.approvable", "must be false (org_bounds)")
	errs = append(errs, strictyaml.Each(o, func(s *strictyaml.Secret) error { return b.permit(o.ID, s) }), b.confine(o))
	for _, policy := range b.Enforce {
		errs = append(errs, enforced(&o.Policies, policy))
	}
	return errors.Join(errs...)
}

// variable converts an organisation ID to a part of an environment variable name.
func variable(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(id))
}

// literal escapes a string so that a pattern matches only that string.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`) //nolint:gochecknoglobals // never changed

// permit returns an error for a secret that an organisation may not name.
func (b *OrgBounds) permit(org string, s *strictyaml.Secret) error {
	env, file := s.Reference()
	if env != "" && b.Env != nil && !within(b.Env, variable(org), env) || file != "" && b.Files != nil && !b.allowsFile(org, file) {
		return errors.New(s.Source() + " is not permitted for the organisation (org_bounds)")
	}
	return nil
}

// allowsFile reports whether credential_files permits an organisation to name a file.
func (b *OrgBounds) allowsFile(org, file string) bool {
	return within(b.Files, literal.Replace(org), file)
}

// within reports whether name matches one of the patterns after {id} is replaced by id.
func within(patterns []string, id, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(strings.ReplaceAll(pattern, "{id}", id), name)
		return ok && err == nil
	})
}

// enforced returns a fault if a policy is not enforced for all callers.
func enforced(c *policyconfig.Config, policy string) error {
	var errs fault.Found
	listed := false
	for i, e := range c.Policies {
		if e.Policy != policy {
			continue
		}
		at := fault.Index("policies", i)
		errs.If(e.Mode.OrDefault() != policyconfig.ModeEnforce, at+".mode", "must be enforce (org_bounds)")
		errs.If(len(e.Teams)+len(e.ExceptTeams)+len(e.Roles)+len(e.ExceptRoles) > 0, at, "%s must apply to all callers (org_bounds)", policy)
		listed = true
	}
	errs.If(!listed, "policies", "must list %s (org_bounds)", policy)
	for i, x := range c.Exceptions {
		errs.If(x.Policy == policy || x.Policy == "", fault.Index("exceptions", i), "%s must not have exceptions (org_bounds)", policy)
	}
	return errors.Join(errs...)
}
