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
		"must be 'refuse' with isolation, because the gateway cannot determine the owners of IDs in unknown members")
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
		errs.If(former[t.Former], path, "former id %q is also used by another team", t.Former)
		former[t.Former] = true
	}
	keys := make(map[string]bool, len(o.Keys))
	for i, k := range o.Keys {
		path := fault.Index(at+".keys", i)
		errs.If(keys[k.ID], path+".id", "key %q is already defined", k.ID)
		keys[k.ID] = true
		errs.If(k.Team != "" && !teams[k.Team], path+".team", "team %q is not defined in organisation %q", k.Team, o.ID)
		if k.MovedFrom != "" {
			check(path+".moved_from", k.MovedFrom)
			errs.If(k.Team == "" || k.Team == k.MovedFrom, path+".moved_from", "must differ from team, which is required")
		}
		for j, name := range k.Labels {
			errs.If(!labels[name], path+fault.Index(".labels", j), "label %q is not defined in organisation %q", name, o.ID)
		}
		errs = append(errs, fault.At(path, k.Validate()))
	}
	return errs
}

// Org is the configuration of an organisation.
type Org struct {
	ID         string            `yaml:"id,required" doc:"short name, used in Redis keys and logs"`
	Credential strictyaml.Secret `yaml:"credential,required" doc:"platform key of the organisation. Each organisation needs its own key"`

	RunCredential strictyaml.Secret `yaml:"run_credential" doc:"second platform key of the organisation, sent only with runs and calls to load-balanced endpoints. Use a key that permits nothing else. If empty, credential is sent"`

	Contact string `yaml:"contact" doc:"contact for callers of the organisation whose calls are refused, in place of the gateway's contact"`

	Limit ratelimit.Limit `yaml:"limits" doc:"rate limits shared by all callers of the organisation. A window that is not set has no limit"`

	Failure Failure `yaml:"failure" doc:"handling of the organisation's calls while the store is unavailable, in place of limits.failure"`

	Budget  ledger.Budget  `yaml:"budget" doc:"budget for everything the organisation owns"`
	Horizon ledger.Horizon `yaml:"horizon" doc:"time that a running resource is assumed to keep running when a call is checked against a budget with a period: a duration, or 'period' for the rest of the period. With 'period', a budget is never exceeded, but for a total, 'period' means 1h. If empty, 1h is used"`
	Zone    ledger.Zone    `yaml:"zone" doc:"time zone of the days, weeks, months and quarters of budgets, such as Europe/Berlin. A change takes effect in the next period. If empty, UTC is used"`

	Unknown Unknown `yaml:"unknown" doc:"handling of fields and operations that are newer than this build's API description"`

	KeysInBodies KeysInBodies `yaml:"keys_in_bodies" doc:"handling of environment variables, and of headers for load-balanced endpoints, that contain a caller's key: remove drops the variable or header with a warning, and refuse rejects the call with 422. A key anywhere else in a request is always refused. If empty, remove is used. See docs/keys.md"`
	ModelPaths   []string     `yaml:"model_paths" doc:"additional POST paths below /v2/<id>/openai/v1/ that callers can use at the model servers of the organisation's endpoints, such as responses. The operation of these calls is modelCall. The paths chat/completions, completions and embeddings are always served"`

	Prices catalog.Prices `yaml:"prices" doc:"prices agreed with the platform. Budgets and policies use them in place of the price list"`

	Over      ledger.OverBudgetAction `yaml:"over" doc:"action when the budget of the organisation is exceeded"`
	Idle      ledger.Idle             `yaml:"idle" doc:"definition of idle resources, and the action to take for them"`
	Alerts    Alerts                  `yaml:"alerts" doc:"receivers and times of alerts, for example about a budget that is nearly used up, an unusually expensive hour or an exception that ends soon"`
	Endpoints ledger.Counting         `yaml:"endpoints" doc:"number of workers that budgets count for an endpoint: max counts the maximum, so that budgets are never exceeded; min counts the minimum; active counts the workers found at the last reconciliation with the platform, but at least the minimum. If empty, max is used"`
	Runs      ledger.Runs             `yaml:"runs" doc:"counting of runs for budgets"`
	Isolation Isolation               `yaml:"isolation" doc:"access of callers to resources of other callers in the organisation"`
	Labels    []ledger.LabelRule      `yaml:"labels" doc:"labels that callers can set on their resources with X-Tollgate-Labels. The ledger stores the labels, and costs can be grouped and filtered by label"`
	Classes   []Class                 `yaml:"classes" doc:"groups of v2 operations with separate rate limits"`

	Brownouts []Brownout `yaml:"brownouts" doc:"time windows during which the organisation's calls to the retired interfaces are refused"`

	Policies policyconfig.Config `yaml:",inline"`
	Teams    []Team              `yaml:"teams" doc:"teams of the organisation"`
	Keys     []Key               `yaml:"keys" doc:"keys of callers of the organisation"`
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
	KeyFiles []files.Path `yaml:"key_files" doc:"files with additional keys. Each file contains a list in the format of keys. Relative paths are resolved against the directory of the configuration file"`
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
	Former string                  `yaml:"renamed_from" doc:"former ID of the team. Resources of the former ID, and amounts accrued in the current periods, belong to this team, so that renaming a team does not refill its budgets. See docs/spend.md"`
	Limit  ratelimit.Limit         `yaml:"limits" doc:"rate limits shared by the callers of the team"`
	Budget ledger.Budget           `yaml:"budget" doc:"budget shared by the callers of the team"`
	Over   ledger.OverBudgetAction `yaml:"over" doc:"action when the budget of the team is exceeded"`
	Grants Grants                  `yaml:"grants" doc:"limits within which leads can approve requests of their team. If absent, leads cannot approve requests. See docs/selfservice.md"`
	Weight int64                   `yaml:"weight" doc:"relative share of the platform account (see limits.fair_share); 0 means 1"`
}

// Grants limits the cost of calls that team leads may approve. The zero Grants permits no approvals by leads.
type Grants struct {
	PerHour catalog.Money `yaml:"per_hour" doc:"highest cost per hour of a call that a lead can approve; 0 permits no approvals" unit:"USD"`
	PerRun  catalog.Money `yaml:"per_run" doc:"highest cost of a run that a lead can approve; 0 permits no approvals" unit:"USD"`
}

// Unknown sets how operations and fields missing from the API description are handled.
type Unknown struct {
	Members Handling `yaml:"members" doc:"handling of unknown fields at the top level of v2 bodies, unless they resemble a known field, and of unknown query parameters of v2: refuse answers 422 for fields and drops parameters; forward sends both to the platform, and policies see them in input.request.unknown and input.request.query. The cost of a call with unknown fields is unknown. If empty, refuse is used"`
	Reads   Handling `yaml:"reads" doc:"handling of unknown GET requests below /v2: refuse answers 404, and forward sends them to the platform. The operation is unknownRead.<kind> below a pod, cluster, endpoint, volume, template, registry, secret or sandbox, for callers that isolation lets read that resource. Elsewhere the operation is unknownRead, which isolation refuses. If empty, refuse is used"`
}

// Warnings returns a warning for each kind that is forwarded.
func (u Unknown) Warnings() []error {
	var out fault.Found
	out.If(u.Members.Forwards(), "members", "unknown fields and query parameters are forwarded to the platform, but built-in policies do not check them")
	out.If(u.Reads.Forwards(), "reads", "unknown GET requests are forwarded for every key; policies see them as operation unknownRead")
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
	Read  ratelimit.Failure `yaml:"read" doc:"failure policy for calls that change nothing: closed, local or open"`
	Write ratelimit.Failure `yaml:"write" doc:"failure policy for calls that change resources or cost money: closed, local or open. Calls that lower cost are always allowed"`
}

// WithDefaults returns the failure policy of each class of calls: the overrides in f, and defaults for all others.
func (f Failure) WithDefaults(defaults ratelimit.FailureConfig) map[ratelimit.Class]ratelimit.Failure {
	return map[ratelimit.Class]ratelimit.Failure{
		ratelimit.ClassRead: cmp.Or(f.Read, defaults.Read), ratelimit.ClassWrite: cmp.Or(f.Write, defaults.Write),
	}
}

// Class is a group of v2 operations with separate rate limits.
type Class struct {
	ID string `yaml:"id,required" doc:"short name, unique in the organisation"`

	Operations []string `yaml:"operations,required" doc:"operationIds of the v2 API. Calls to v1 and GraphQL count as their v2 operations"`

	Per   Per             `yaml:"per" doc:"scope of the rate limit: key, team or org. If empty, each key has its own limit"`
	Cost  int64           `yaml:"cost" doc:"number that one call adds to the count; 0 means 1"`
	Limit ratelimit.Limit `yaml:"limits,required" doc:"rate limits of the class"`
}

// Per selects which calls share a rate limit.
type Per string

// Values implements strictyaml.Enum.
func (Per) Values() []string { return []string{"key", "team", "org"} }
