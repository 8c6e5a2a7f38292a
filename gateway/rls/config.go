package rls

import (
	"errors"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Domain is what the rate limit filters that name it may count in.
type Domain struct {
	ID      string            `yaml:"domain,required" doc:"the domain that rate limit filters name"`
	Org     string            `yaml:"org" doc:"id of the organisation that everything is counted for; empty is the one that descriptors name"`
	Unknown Unknown           `yaml:"unknown" doc:"what becomes of descriptors that name nothing known: refuse is over the limit, pass is not counted; empty is refuse"`
	Failure ratelimit.Failure `yaml:"failure" doc:"what happens while the store is away: closed, local or open; empty is what holds for calls of the organisation that change something"`
	Rules   []Rule            `yaml:"rules" doc:"quotas of descriptors that name neither organisation, team nor key; the first that fits counts"`
}

// Rule is a quota for descriptors of one form.
type Rule struct {
	ID      string          `yaml:"id,required" doc:"short name, unique in the domain; its windows in RateLimit headers begin with it"`
	Entries []Entry         `yaml:"entries,required" doc:"the entries of the descriptor, in their order"`
	Limit   ratelimit.Limit `yaml:"limits,required" doc:"quotas"`
}

// Entry is what one entry of a descriptor must be.
type Entry struct {
	Key   string `yaml:"key,required" doc:"its key"`
	Value string `yaml:"value" doc:"its value; empty is any, each with quotas of its own"`
}

// Unknown says what becomes of descriptors that name nothing known.
type Unknown string

// Values lists what there is.
func (Unknown) Values() []string { return []string{"refuse", "pass"} }

// passes reports whether they pass uncounted.
func (u Unknown) passes() bool { return u == "pass" }

// Keys of entries that name what is configured elsewhere, and the key of the one that
// may follow entryAuthorization.
const (
	entryOrg           = "org"
	entryTeam          = "team"
	entryKey           = "key"
	entryAuthorization = "authorization"
	entryAddress       = "remote_address"
)

// reserved reports whether descriptors that begin with an entry name what is
// configured elsewhere.
func reserved(key string) bool {
	return key == entryOrg || key == entryTeam || key == entryKey || key == entryAuthorization
}

// Validate reports every fault of domains, with the path of its field below them.
// known reports whether an organisation is configured.
func Validate(domains []Domain, known func(org string) bool) error {
	var errs fault.Found
	seen := make(map[string]bool)
	for i, d := range domains {
		at := fault.Index("", i)
		errs = append(errs, fault.At(at+".domain", checkName(d.ID)))
		errs.If(seen[d.ID], at+".domain", "domain %q is already defined", d.ID)
		seen[d.ID] = true
		errs.If(d.Org != "" && !known(d.Org), at+".org", "no organisation %q is defined", d.Org)
		errs.If(d.Failure != "" && !d.Failure.Valid(), at+".failure", "must be closed, local or open, got %q", d.Failure)
		rules := make(map[string]bool)
		for j, r := range d.Rules {
			at := fault.Index(at+".rules", j)
			errs = append(errs, fault.At(at+".id", checkName(r.ID)), fault.At(at+".limits", r.Limit.Validate()))
			errs.If(rules[r.ID], at+".id", "rule %q is already defined", r.ID)
			rules[r.ID] = true
			errs.If(r.Limit.Unlimited(), at+".limits", "limits nothing")
			errs.If(len(r.Entries) == 0, at+".entries", "needs at least one entry")
			errs.If(len(r.Entries) > 0 && reserved(r.Entries[0].Key), at+".entries[0].key", "begins descriptors that name an organisation, a team or a key, which have quotas of their own")
		}
	}
	return errors.Join(errs...)
}

// checkName reports whether a name can be in the keys of the store and between the
// quotation marks of a header.
func checkName(name string) error {
	if strings.ContainsAny(name, `"\/`) {
		return errors.New(`must not contain ", \ or /`)
	}
	return ratelimit.CheckID(name)
}
