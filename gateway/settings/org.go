package settings

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

func (o *Org) validate(at string) []error {
	var errs fault.Found
	errs = append(errs, fault.At(at+".id", ratelimit.CheckID(o.ID)), fault.At(at+".contact", checkContact(o.Contact)),
		fault.At(at+".isolation", o.Isolation.Validate()))
	errs.If(strings.Contains(o.ID, "/"), at+".id", "must not contain a slash, because commands name a key as ORG/KEY")
	errs.If(o.Isolation.Applies() && o.Unknown.Members.Forwards(), at+".unknown.members",
		"must be 'refuse' if callers are isolated: unknown fields can contain IDs of other callers' resources")
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
		errs = append(errs, fault.At(path, ratelimit.CheckID(t.ID)))
		errs.If(teams[t.ID], path, "team %q is already defined", t.ID)
		teams[t.ID] = true
	}
	former := make(map[string]bool)
	for i, t := range o.Teams {
		path := fault.Index(at+".teams", i) + ".renamed_from"
		if t.Former == "" {
			continue
		}
		errs = append(errs, fault.At(path, ratelimit.CheckID(t.Former)))
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
			errs = append(errs, fault.At(path+".moved_from", ratelimit.CheckID(k.MovedFrom)))
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
	ID         string            `yaml:"id,required" doc:"short name without a slash, used in Redis keys and logs"`
	Credential strictyaml.Secret `yaml:"credential,required" doc:"platform key, different for each organisation"`

	RunCredential strictyaml.Secret `yaml:"run_credential" doc:"platform key for runs and calls to load-balanced endpoints, with no other permissions; default credential"`

	Contact problem.Contact `yaml:",inline"`

	Limit ratelimit.Limit `yaml:"limits" doc:"rate limits shared by all callers of the organisation, in calls; 0 means no limit"`

	Failure Failure `yaml:"failure" doc:"policy while the store is unavailable, in place of limits.failure"`

	Budget  ledger.Budget  `yaml:"budget" doc:"budget of the organisation. Calendar periods are in its time zone; 0 means no limit"`
	Horizon ledger.Horizon `yaml:"horizon" doc:"time that running resources are assumed to keep running in checks of budgets with a period: a duration, or 'period' for the rest of the period, but at least 1h. The part after the end of the period must fit into the next period. For a total, 'period' means 1h. Default 1h"`
	Zone    ledger.Zone    `yaml:"zone" doc:"time zone of budget periods, such as Europe/Berlin. A change takes effect in the next period. Default UTC"`

	Unknown Unknown `yaml:"unknown" doc:"handling of requests that this gateway's API description does not contain"`

	KeysInBodies KeysInBodies `yaml:"keys_in_bodies" doc:"handling of environment variables, and of headers for load-balanced endpoints, that contain a caller's key: remove (default) drops them with a warning, and refuse answers 422. A key anywhere else is always refused. See docs/keys.md"`
	ModelPaths   []string     `yaml:"model_paths" doc:"additional POST paths below /v2/<id>/openai/v1/ for model servers of endpoints, such as responses; their operation is modelCall. chat/completions, completions and embeddings are always served"`

	Prices catalog.Prices `yaml:"prices" doc:"prices agreed with the platform, which budgets and policies use in place of the price list"`

	Over      ledger.OverBudgetAction `yaml:"over" doc:"action when the organisation exceeds its budget"`
	Idle      ledger.Idle             `yaml:"idle" doc:"idle resources, and the action on them"`
	Alerts    Alerts                  `yaml:"alerts" doc:"alerts about budgets, unusually expensive hours, the end of exceptions and other events"`
	Endpoints ledger.Counting         `yaml:"endpoints" doc:"workers of an endpoint whose cost budgets count: max (default): the maximum, so that budgets are never exceeded; min: the minimum; active: the workers at the last reconciliation, but at least the minimum. The limits workers and gpus always count the maximum"`
	Runs      ledger.Runs             `yaml:"runs" doc:"counting of runs for budgets"`
	Isolation Isolation               `yaml:"isolation" doc:"access to resources of other callers"`
	Labels    []ledger.LabelRule      `yaml:"labels" doc:"labels that callers can set on resources with X-Tollgate-Labels, to group and filter costs"`
	Classes   []Class                 `yaml:"classes" doc:"groups of v2 operations with separate rate limits"`

	Brownouts []Brownout `yaml:"brownouts" doc:"times when calls to the retired interfaces are refused"`

	Policies policyconfig.Config `yaml:",inline"`
	Teams    []Team              `yaml:"teams" doc:"teams of the organisation"`
	Keys     []Key               `yaml:"keys" doc:"keys of callers"`
	// File is the name of the organisation's own configuration file. It is empty if the main file defines the organisation.
	File string `yaml:"-"`
	// Untrusted is true if the organisation's file violates the restrictions in org_bounds. The files that it names must then not be read.
	Untrusted bool `yaml:"-"`
	// Reused is true if the section and the values of its secrets were taken over from the previous configuration, because nothing on which
	// the section depends has changed. A reused section shares values with the previous configuration.
	Reused bool `yaml:"-"`
	// CachedText caches the YAML text of a section that is reused by later configurations. It is nil for all other sections.
	CachedText *strictyaml.TextCache `yaml:"-"`
	// RuntimeKeys holds the active keys created at run time, by ID.
	RuntimeKeys map[string]*Key `yaml:"-"`
	// Issued lists the issuers and certificate authorities whose callers belong to the organisation.
	Issued   []Issued     `yaml:"-"`
	KeyFiles []files.Path `yaml:"key_files" doc:"files with additional keys, each a list like keys. Relative paths start at the directory of the configuration file"`
}

// EqualTo reports whether o was taken over unchanged from before, a section of the previous configuration.
func (o *Org) EqualTo(before *Org) bool {
	return o.Reused && before != nil && o.CachedText != nil && o.CachedText == before.CachedText
}

// WarningsReported reports whether the warnings about o that do not depend on the time were already reported for the previous
// configuration. It returns false if o has its own Rego, which may change without a change of the section.
func (o *Org) WarningsReported() bool {
	return o.Reused && o.Policies.Directory.IsZero() && o.Policies.Bundle == nil
}

// AllKeys returns an iterator over the configured keys and the keys created at run time. The keys must not be modified.
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

// Key returns the key with the given ID, or nil if it does not exist.
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
	Former string                  `yaml:"renamed_from" doc:"former ID of the team. Its resources and the amounts accrued in the current periods belong to this team. See docs/spend.md"`
	Limit  ratelimit.Limit         `yaml:"limits" doc:"rate limits shared by the team"`
	Budget ledger.Budget           `yaml:"budget" doc:"budget of the team"`
	Over   ledger.OverBudgetAction `yaml:"over" doc:"action when the team exceeds its budget"`
	Grants Grants                  `yaml:"grants" doc:"limits for approvals by leads. If absent, leads cannot approve requests. See docs/selfservice.md"`
	Weight int64                   `yaml:"weight" doc:"relative share of the platform account (see limits.fair_share); default 1"`
}

// Grants sets the maximum cost of calls that team leads may approve. With the zero Grants, leads may not approve any calls.
type Grants struct {
	PerHour catalog.Money `yaml:"per_hour" doc:"highest hourly cost of a call that a lead can approve; 0 permits none" unit:"USD"`
	PerRun  catalog.Money `yaml:"per_run" doc:"highest cost of a run that a lead can approve; 0 permits none" unit:"USD"`
}

// Unknown sets how operations and fields missing from the API description are handled.
type Unknown struct {
	Members Handling `yaml:"members" doc:"handling of unknown top-level fields of v2 bodies, unless they resemble a known field, and of unknown query parameters of v2: refuse (default) answers 422 for fields and drops parameters; forward sends both to the platform, and to policies in input.request.unknown and input.request.query. The cost of a call with unknown fields is unknown"`
	Reads   Handling `yaml:"reads" doc:"handling of unknown GET requests below /v2: refuse (default) answers 404, and forward sends them to the platform. Below a pod, cluster, endpoint, volume, template, registry, secret or sandbox that the caller can read, the operation is unknownRead.<kind>. Elsewhere the operation is unknownRead, which isolation refuses"`
}

// KeysInBodies sets how caller keys in request bodies are handled.
type KeysInBodies string

// Values implements strictyaml.Enum.
func (KeysInBodies) Values() []string { return []string{"remove", "refuse"} }

// Refused reports whether a body that contains a caller key is refused.
func (k KeysInBodies) Refused() bool { return k == "refuse" }

// Handling says what the gateway does with a call: "refuse" or "forward".
type Handling string

// Values implements strictyaml.Enum.
func (Handling) Values() []string { return []string{"refuse", "forward"} }

// Forwards reports whether h is "forward".
func (h Handling) Forwards() bool { return h == "forward" }

// Failure overrides the failure policies of the rate limits for one organisation.
type Failure struct {
	Read  ratelimit.Failure `yaml:"read" doc:"policy for calls that change nothing"`
	Write ratelimit.Failure `yaml:"write" doc:"policy for calls that change resources or cost money. Calls that lower cost are always allowed"`
}

// WithDefaults returns the failure policy of each class of calls: the policy in f if it is set, or otherwise the policy in defaults.
func (f Failure) WithDefaults(defaults ratelimit.FailureConfig) map[ratelimit.Class]ratelimit.Failure {
	return map[ratelimit.Class]ratelimit.Failure{
		ratelimit.ClassRead: cmp.Or(f.Read, defaults.Read), ratelimit.ClassWrite: cmp.Or(f.Write, defaults.Write),
	}
}

// Class is a group of v2 operations with separate rate limits.
type Class struct {
	ID string `yaml:"id,required" doc:"short name, unique in the organisation"`

	Operations []string `yaml:"operations,required" doc:"operationIds of the v2 API, also for calls to v1 and GraphQL"`

	Per   Per             `yaml:"per" doc:"scope of the rate limit; default key"`
	Cost  int64           `yaml:"cost" doc:"amount that one call adds to the count; default 1"`
	Limit ratelimit.Limit `yaml:"limits,required" doc:"rate limits of the class"`
}

// Per selects the calls that share a rate limit.
type Per string

// Values implements strictyaml.Enum.
func (Per) Values() []string { return []string{"key", "team", "org"} }
