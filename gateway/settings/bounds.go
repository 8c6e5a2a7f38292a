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
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// OrgBounds restricts the settings of organisations that have their own configuration files. The zero value permits all settings.
type OrgBounds struct {
	Budget ledger.Budget `yaml:"budget" doc:"highest budget of an organisation. An organisation must set every limit that is set here, to at most the same value. Its budget can be approvable only if this budget is approvable. It must not set prices if an amount of money is limited, and must not set endpoints, horizon or runs.reserve to count less than by default"`
	Env    []string      `yaml:"credential_env" doc:"environment variables for an organisation's secrets, as patterns with * and ?, such as KEY_{id}. {id} is the organisation's ID in capitals, with _ for all characters except letters and digits. Default all; [] permits none"`
	Files  []string      `yaml:"credential_files" doc:"files for an organisation's secrets, tokens and keys, as patterns such as /run/secrets/{id}/*. {id} is the organisation's ID, and * does not match a slash. Default files in the directory of the organisation's file; [] permits none"`

	Networks []egress.Network `yaml:"networks" doc:"private networks for an organisation's URLs, such as 10.1.0.0/16; default only public addresses. Loopback, link-local and cloud metadata addresses and this host's addresses are never permitted"`
	Keys     int              `yaml:"keys" doc:"maximum keys of an organisation; default 10000" unit:"keys"`
	Enforce  []string         `yaml:"enforce" doc:"built-in policies that an organisation must enforce for all callers, without exceptions and approvals. With price_ceiling or run_cost, it must not set prices"`
}

// RejectedFile describes an organisation file that was rejected because of a fault.
type RejectedFile struct {
	File string `json:"file"`
	// Org is the ID of the organisation, which keeps its last valid section. It is empty if no such section exists.
	Org   string `json:"org,omitempty"`
	Fault string `json:"fault"`
}

// Validate returns all faults of the section org_bounds, joined.
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

// defaultMaxKeys is the default maximum number of keys of an organisation with its own configuration file. A key takes about 1.2 kB of
// memory.
const defaultMaxKeys = 10_000

// MaxKeys returns the maximum number of keys of an organisation with its own configuration file.
func (b *OrgBounds) MaxKeys() int { return cmp.Or(b.Keys, defaultMaxKeys) }

// Check checks o, an organisation with its own configuration file, against the bounds and returns all faults. It also restricts the files
// and addresses that the paths and URLs of o may reach. The file must be named after the organisation, so that permissions on files decide
// who can configure the organisation.
func (b *OrgBounds) Check(o *Org) error {
	var errs fault.Found
	name := strings.TrimSuffix(filepath.Base(o.File), filepath.Ext(o.File))
	errs.If(o.ID != name, "id", "must be %q, like the name of the file", name)
	own := o.Budget.Limits()
	priced := slices.Contains(b.Enforce, "price_ceiling") || slices.Contains(b.Enforce, "run_cost")
	bounded, accrues := false, false
	for i, most := range b.Budget.Limits() {
		at := "budget." + ledger.CeilingName(i)
		errs.If(most > 0 && own[i] == 0, at, "must be set to at most %s (org_bounds)", ledger.AmountText(i, most))
		errs.If(most > 0 && own[i] > most, at, "must be at most %s (org_bounds)", ledger.AmountText(i, most))
		bounded, priced, accrues = bounded || most > 0, priced || most > 0 && ledger.IsMoney(i), accrues || most > 0 && ledger.Accrues(i)
	}
	errs.If(bounded && o.Budget.Approvable && !b.Budget.Approvable, "budget.approvable", "must be false (org_bounds)")
	errs.If(bounded && cmp.Or(o.Endpoints, ledger.WorkersMax) != ledger.WorkersMax, "endpoints", "must be %s (org_bounds)", ledger.WorkersMax)
	errs.If(priced && !o.Prices.Equal(catalog.Prices{}), "prices", "must not be set (org_bounds)")
	errs.If(accrues && o.Horizon > 0 && o.Horizon < ledger.DefaultHorizon, "horizon", "must be at least 1h (org_bounds)")
	errs.If(accrues && o.Runs.Reserve == ledger.ReserveExpected, "runs.reserve", "must be %s (org_bounds)", ledger.ReserveWorst)
	errs.If(len(o.Keys) > b.MaxKeys(), "keys", "has %d keys, at most %d are permitted (org_bounds)", len(o.Keys), b.MaxKeys())
	errs = append(errs, strictyaml.Each(o, func(s *strictyaml.Secret) error { return b.permit(o, s) }), b.confine(o))
	for _, policy := range b.Enforce {
		errs = append(errs, enforced(&o.Policies, policy))
	}
	return errors.Join(errs...)
}

// variable converts an organisation ID to the form that is used in names of environment variables.
func variable(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(id))
}

// literal escapes a string, so that the result is a pattern that matches only the string.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`) //nolint:gochecknoglobals // never changed

// permit returns an error if an organisation may not refer to a secret, or if the file of a secret is outside the permitted directories.
func (b *OrgBounds) permit(o *Org, s *strictyaml.Secret) error {
	env, file := s.Reference()
	if env != "" && b.Env != nil && !within(b.Env, variable(o.ID), env) || file != "" && b.Files != nil && !b.allowsFile(o.ID, file) {
		return errors.New(s.Source() + " is not permitted for the organisation (org_bounds)")
	}
	return files.Cause(b.SecretFile(o, file).Check())
}

// allowsFile reports whether the setting credential_files permits an organisation to name a file.
func (b *OrgBounds) allowsFile(org, file string) bool {
	return within(b.Files, literal.Replace(org), file)
}

// within reports whether name matches one of the patterns after {id} is replaced with id.
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
		errs.If(e.Approvable, at+".approvable", "must be false (org_bounds)")
		errs.If(len(e.Teams)+len(e.ExceptTeams)+len(e.Roles)+len(e.ExceptRoles) > 0, at, "%s must apply to all callers (org_bounds)", policy)
		listed = true
	}
	errs.If(!listed, "policies", "must list %s (org_bounds)", policy)
	for i, x := range c.Exceptions {
		errs.If(x.Policy == policy || x.Policy == "", fault.Index("exceptions", i), "%s must not have exceptions (org_bounds)", policy)
	}
	return errors.Join(errs...)
}
