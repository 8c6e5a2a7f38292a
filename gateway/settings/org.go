package settings

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

func (o *Org) validate(at string) []error {
	var errs fault.Found
	check := func(path, id string) {
		if err := ratelimit.CheckID(id); err != nil {
			errs = append(errs, fault.At(path, err))
		}
	}
	check(at+".id", o.ID)
	errs = append(errs, fault.At(at+".contact", checkContact(o.Contact)))
	if err := o.Isolation.Validate(); err != nil {
		errs = append(errs, fault.At(at+".isolation", err))
	}
	errs.If(o.Isolation.Applies() && o.Unknown.Members.Forwards(), at+".unknown.members",
		"cannot be forwarded with isolation, because the owner of the IDs in them is unknown")
	labels := make(map[string]bool, len(o.Labels))
	for i, l := range o.Labels {
		path := fault.Index(at+".labels", i)
		errs = append(errs, fault.At(path, l.Validate()))
		errs.If(labels[l.Name], path+".name", "label %q is already defined", l.Name)
		labels[l.Name] = true
	}
	teams := make(map[string]bool)
	for i, t := range o.Teams {
		path := fault.Index(at+".teams", i) + ".id"
		check(path, t.ID)
		errs.If(teams[t.ID], path, "team %q is already defined", t.ID)
		teams[t.ID] = true
	}
	former := make(map[string]bool)
	for i, t := range o.Teams {
		path := fault.Index(at+".teams", i) + ".renamed_from"
		if t.Former == "" {
			continue
		}
		check(path, t.Former)
		errs.If(teams[t.Former], path, "team %q is still defined", t.Former)
		errs.If(former[t.Former], path, "another team also has the former id %q", t.Former)
		former[t.Former] = true
	}
	keys := make(map[string]bool, len(o.Keys))
	for i, k := range o.Keys {
		path := fault.Index(at+".keys", i)
		errs.If(keys[k.ID], path+".id", "key %q is already defined", k.ID)
		keys[k.ID] = true
		errs.If(k.Team != "" && !teams[k.Team], path+".team", "organisation %q has no team %q", o.ID, k.Team)
		if k.MovedFrom != "" {
			check(path+".moved_from", k.MovedFrom)
			errs.If(k.Team == "" || k.Team == k.MovedFrom, path+".moved_from", "requires another team")
		}
		for j, name := range k.Labels {
			errs.If(!labels[name], path+fault.Index(".labels", j), "organisation %q has no label %q", o.ID, name)
		}
		errs = append(errs, fault.At(path, k.Validate()))
	}
	return errs
}

// Org is the configuration of an organisation.
type Org struct {
	ID         string            `yaml:"id,required" doc:"short name, used in Redis keys and logs"`
	Credential strictyaml.Secret `yaml:"credential,required" doc:"platform key of the organisation, which no other organisation may share"`

	RunCredential strictyaml.Secret `yaml:"run_credential" doc:"second platform key of the organisation, sent only with runs and calls to load-balanced endpoints; use a key that can do nothing else. If empty, credential is sent"`

	Contact string `yaml:"contact" doc:"contact for help with refusals of its calls, in place of the gateway's contact"`

	Limit        ratelimit.Limit         `yaml:"limits" doc:"rate limits shared by all its callers; absent windows are unlimited"`
	Failure      Failure                 `yaml:"failure" doc:"handling of its calls while the store is unavailable, in place of limits.failure"`
	Budget       ledger.Budget           `yaml:"budget" doc:"budget for everything the organisation owns"`
	Horizon      ledger.Horizon          `yaml:"horizon" doc:"how long a running resource is assumed to keep running when a call is checked against a budget of a period: a duration, or 'period' for the rest of the period, which guarantees that the budget is never exceeded (for a total, 'period' means 1h). If empty, 1h"`
	Zone         ledger.Zone             `yaml:"zone" doc:"time zone of the days, weeks, months and quarters of budgets, such as Europe/Berlin; a change takes effect with the next period. If empty, UTC"`
	Unknown      Unknown                 `yaml:"unknown" doc:"handling of fields and operations that are missing in this build's API description because the platform is newer"`
	KeysInBodies KeysInBodies            `yaml:"keys_in_bodies" doc:"handling of environment variables, and of headers for load-balanced endpoints, that contain a caller's key: remove drops them with a warning, and refuse rejects the call with 422. A key anywhere else in a request is always refused. If empty, remove. See docs/keys.md"`
	ModelPaths   []string                `yaml:"model_paths" doc:"additional POST paths below /v2/<id>/openai/v1/ that callers may use at the model servers of the organisation's endpoints, such as responses, as operation modelCall; chat/completions, completions and embeddings are always served"`
	Prices       catalog.Prices          `yaml:"prices" doc:"prices agreed with the platform, which budgets and policies use in place of the price list"`
	Over         ledger.OverBudgetAction `yaml:"over" doc:"action when its budget is exceeded"`
	Idle         ledger.Idle             `yaml:"idle" doc:"when its resources count as idle, and the action to take"`
	Alerts       Alerts                  `yaml:"alerts" doc:"receivers and times of alerts: a budget is nearly used up, an hour is unusually expensive, an exception ends"`
	Endpoints    ledger.Counting         `yaml:"endpoints" doc:"number of workers that budgets count for an endpoint: max counts its maximum, so that budgets are never exceeded; min counts its minimum; active counts those found at the last comparison with the platform, at least the minimum. If empty, max"`
	Runs         ledger.Runs             `yaml:"runs" doc:"how its runs are counted"`
	Isolation    Isolation               `yaml:"isolation" doc:"access of callers to the resources of other callers in the organisation"`
	Labels       []ledger.LabelRule      `yaml:"labels" doc:"labels that callers may set on their resources with X-Tollgate-Labels; the ledger stores them, and costs can be grouped and filtered by them"`
	Classes      []Class                 `yaml:"classes" doc:"groups of v2 operations with separate rate limits"`
	Brownouts    []Brownout              `yaml:"brownouts" doc:"time windows in which its calls to the retired interfaces are refused"`
	Policies     policyconfig.Config     `yaml:",inline"`
	Teams        []Team                  `yaml:"teams" doc:"teams of the organisation"`
	Keys         []Key                   `yaml:"keys" doc:"keys of its callers"`
	// File is the organisation's own file, or empty if it is defined in the main file.
	File string `yaml:"-"`
	// Untrusted is true if the file sets something that an organisation may not set. Files named in it must not be read.
	Untrusted bool `yaml:"-"`
	// Reused is true if the section, including the values of its secrets, was taken over from the previous configuration, and nothing it
	// depends on has changed. It shares its values with the previous configuration.
	Reused bool `yaml:"-"`
	// CachedText caches the YAML text of the section across configurations. It is nil for a section that is not reused.
	CachedText *strictyaml.TextCache `yaml:"-"`
	// RuntimeKeys holds the active keys created at run time, by ID.
	RuntimeKeys map[string]*Key `yaml:"-"`
	// Issued lists the issuers and certificate authorities whose callers belong to the organisation.
	Issued   []Issued     `yaml:"-"`
	KeyFiles []files.Path `yaml:"key_files" doc:"files with additional keys, each a list as under keys; relative paths are resolved against the directory of the configuration file"`
}

// EqualTo reports whether o was taken over from previous, with everything it is checked and compiled from.
func (o *Org) EqualTo(before *Org) bool {
	return o.Reused && before != nil && o.CachedText != nil && o.CachedText == before.CachedText
}

// WarningsReported reports whether the warnings about o, other than those that depend on the time, were reported with the previous
// configuration. Own Rego may change without a change of the section.
func (o *Org) WarningsReported() bool {
	return o.Reused && o.Policies.Directory.IsZero() && o.Policies.Bundle == nil
}

// AllKeys iterates over the configured keys and the keys created at run time. The keys must not be modified.
func (o *Org) AllKeys() iter.Seq[*Key] {
	return func(yield func(*Key) bool) {
		for i := range o.Keys {
			if !yield(&o.Keys[i]) {
				return
			}
		}
		for _, k := range o.RuntimeKeys {
			if !yield(k) {
				return
			}
		}
	}
}

// Key returns the key with an ID, or nil.
func (o *Org) Key(id string) *Key {
	if k, ok := o.RuntimeKeys[id]; ok {
		return k
	}
	if i := slices.IndexFunc(o.Keys, func(k Key) bool { return k.ID == id }); i >= 0 {
		return &o.Keys[i]
	}
	return nil
}

// Limits returns the rate limits of the organisation, its teams and its keys.
func (o *Org) Limits() map[ratelimit.Ref]ratelimit.Limit {
	limits := map[ratelimit.Ref]ratelimit.Limit{{Kind: ratelimit.KindOrg, ID: o.ID}: o.Limit}
	for _, t := range o.Teams {
		limits[ratelimit.Ref{Kind: ratelimit.KindTeam, ID: t.ID}] = t.Limit
	}
	for k := range o.AllKeys() {
		limits[ratelimit.Ref{Kind: ratelimit.KindKey, ID: k.ID}] = k.Quotas()
	}
	for _, i := range o.Issued {
		limits[ratelimit.Ref{Kind: ratelimit.KindKey, ID: IssuerKeyPrefix(i.ID)}] = i.Limit
	}
	return limits
}

// Team is a team of an organisation.
type Team struct {
	ID     string                  `yaml:"id,required" doc:"short name, unique in the organisation"`
	Former string                  `yaml:"renamed_from" doc:"former ID of the team: its resources and the amounts accrued in the current periods belong to this team, so that renaming does not refill its budgets. See docs/spend.md"`
	Limit  ratelimit.Limit         `yaml:"limits" doc:"rate limits shared by its callers"`
	Budget ledger.Budget           `yaml:"budget" doc:"budget shared by its callers"`
	Over   ledger.OverBudgetAction `yaml:"over" doc:"action when its budget is exceeded"`
	Grants Grants                  `yaml:"grants" doc:"limits within which its leads may approve requests of the team; if absent, leads may approve none. See docs/selfservice.md"`
	Weight int64                   `yaml:"weight" doc:"share of the platform account, see limits.fair_share; 0 means 1"`
}

// Grants limits the cost of calls that team leads may approve. The zero Grants permits no approvals by leads.
type Grants struct {
	PerHour catalog.Money `yaml:"per_hour" doc:"highest cost per hour of a call that a lead may approve; 0 permits none" unit:"USD"`
	PerRun  catalog.Money `yaml:"per_run" doc:"highest cost of a run that a lead may approve; 0 permits none" unit:"USD"`
}

// Unknown sets how operations and fields missing from the API description are handled.
type Unknown struct {
	Members Handling `yaml:"members" doc:"unknown fields at the top level of v2 bodies, unless they resemble a known field, and unknown query parameters of v2: refuse (422 for fields; parameters are dropped), or forward them to the platform. Policies see them in input.request.unknown and input.request.query. The cost of a call with unknown fields is unknown. If empty, refuse"`
	Reads   Handling `yaml:"reads" doc:"unknown GET requests below /v2: refuse (404), or forward them. Below a pod, cluster, endpoint, volume, template, registry, secret or sandbox they are the operation unknownRead.<kind> of its owner, and otherwise unknownRead, which isolation refuses. If empty, refuse"`
}

// Warnings returns a warning for each kind that is forwarded.
func (u Unknown) Warnings() []error {
	var out fault.Found
	out.If(u.Members.Forwards(), "members", "unknown fields and query parameters reach the platform: built-in policies do not check them")
	out.If(u.Reads.Forwards(), "reads", "every key may make unknown GET requests: policies see them as operation unknownRead")
	return out
}

// KeysInBodies sets how caller keys in request bodies are handled.
type KeysInBodies string

// Values implements strictyaml.Enum.
func (KeysInBodies) Values() []string { return []string{"remove", "refuse"} }

// Refused reports whether a body that contains a caller key is refused.
func (k KeysInBodies) Refused() bool { return k == "refuse" }

// Handling is "refuse" or "forward".
type Handling string

// Values implements strictyaml.Enum.
func (Handling) Values() []string { return []string{"refuse", "forward"} }

// Forwards reports whether h is "forward".
func (h Handling) Forwards() bool { return h == "forward" }

// Failure overrides the failure policies of the rate limits.
type Failure struct {
	Read  ratelimit.Failure `yaml:"read" doc:"calls that change nothing: closed, local or open"`
	Write ratelimit.Failure `yaml:"write" doc:"calls that change resources or cost money: closed, local or open. Calls that lower cost are always allowed"`
}

// WithDefaults returns the failure policy of each class of calls: the overrides in f, and defaults for all others.
func (f Failure) WithDefaults(defaults ratelimit.FailureConfig) map[ratelimit.Class]ratelimit.Failure {
	return map[ratelimit.Class]ratelimit.Failure{
		ratelimit.ClassRead: cmp.Or(f.Read, defaults.Read), ratelimit.ClassWrite: cmp.Or(f.Write, defaults.Write),
	}
}

// Class is a group of v2 operations with separate rate limits.
type Class struct {
	ID         string          `yaml:"id,required" doc:"short name, unique in the organisation"`
	Operations []string        `yaml:"operations,required" doc:"operationIds of the v2 API; calls to v1 and GraphQL count as the corresponding v2 operations"`
	Per        Per             `yaml:"per" doc:"callers that share the rate limit: key, team or org; if empty, key"`
	Cost       int64           `yaml:"cost" doc:"number that one call counts as; 0 means 1"`
	Limit      ratelimit.Limit `yaml:"limits,required" doc:"rate limits of the class"`
}

// Per selects which calls share a rate limit.
type Per string

// Values implements strictyaml.Enum.
func (Per) Values() []string { return []string{"key", "team", "org"} }
