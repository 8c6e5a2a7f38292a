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
	"github.com/tollgate-dev/tollgate/translate"
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
	errs.If(o.Isolation.Applies() && o.Unknown.Members.Forwards(), at+".unknown.members", "cannot be forwarded beside isolation: whose ids they name is not known")
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
		errs.If(former[t.Former], path, "another team was renamed from %q, too", t.Former)
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

// Org is one organisation.
type Org struct {
	ID         string            `yaml:"id,required" doc:"short name, used in keys of the store and in logs"`
	Credential strictyaml.Secret `yaml:"credential,required" doc:"the organisation's platform key, which no other organisation has"`

	RunCredential strictyaml.Secret `yaml:"run_credential" doc:"another platform key of the organisation, which is sent with runs and load-balanced calls alone, instead of credential: one that can do no more than call endpoints; empty is credential"`

	Contact string `yaml:"contact" doc:"where its callers get help with refusals, instead of the gateway's contact"`

	Limit        ratelimit.Limit         `yaml:"limits" doc:"quotas all its callers share; absent windows are not limited"`
	Failure      Failure                 `yaml:"failure" doc:"what happens to its callers while the store is away, instead of limits.failure"`
	Budget       ledger.Budget           `yaml:"budget" doc:"what everything it has may cost and take"`
	Horizon      ledger.Horizon          `yaml:"horizon" doc:"how long a running resource is assumed to go on when a call is held against a budget of a period: a duration, or 'period' for the rest of the period, with which such a budget is never passed; a total uses 1h then; empty is 1h"`
	Zone         ledger.Zone             `yaml:"zone" doc:"time zone of the days, weeks, months and quarters of budgets, such as Europe/Berlin; a change takes effect when the next period begins in it; empty is UTC"`
	Unknown      Unknown                 `yaml:"unknown" doc:"what happens to members and operations that this build's description of the platform's API does not know, because the platform is newer"`
	KeysInBodies KeysInBodies            `yaml:"keys_in_bodies" doc:"what happens to variables of env, and to headers for load-balanced endpoints, that hold a key of a caller: remove them with a warning, or refuse the call (422), as is a key anywhere else in a request; empty is remove. See docs/keys.md"`
	ModelPaths   []string                `yaml:"model_paths" doc:"POST paths below /v2/<id>/openai/v1/ that callers reach at the model servers of the organisation's own endpoints, such as responses, as operation modelCall; chat/completions, completions and embeddings are served without"`
	Prices       catalog.Prices          `yaml:"prices" doc:"prices agreed with the platform instead of its list: budgets and policies go by them"`
	Over         ledger.OverBudgetAction `yaml:"over" doc:"action when its budget is passed all the same"`
	Idle         ledger.Idle             `yaml:"idle" doc:"when its resources count as idle, and the action then"`
	Alerts       Alerts                  `yaml:"alerts" doc:"receivers and times of news: a budget is nearly used up, an hour is unusual, an exception ends"`
	Endpoints    ledger.Counting         `yaml:"endpoints" doc:"which workers of endpoints budgets count: max counts all they may have, so that budgets are never passed; min those kept running; active those there were at the last comparison with the platform, at least min; empty is max"`
	Runs         ledger.Runs             `yaml:"runs" doc:"how its runs count"`
	Isolation    Isolation               `yaml:"isolation" doc:"rights of callers on the resources of others in the organisation"`
	Labels       []ledger.LabelRule      `yaml:"labels" doc:"labels that callers may set on their resources with X-Tollgate-Labels, kept with the resource in the ledger: costs are grouped and filtered by them"`
	Classes      []Class                 `yaml:"classes" doc:"groups of v2 operations with quotas of their own"`
	Brownouts    []translate.Brownout    `yaml:"brownouts" doc:"windows in which its calls of the retired interfaces are refused"`
	Policies     policyconfig.Config     `yaml:",inline"`
	Teams        []Team                  `yaml:"teams" doc:"its teams"`
	Keys         []Key                   `yaml:"keys" doc:"its callers' keys"`
	// File is where it is written, empty for the main file.
	File string `yaml:"-"`
	// Untrusted says that its file is not to be followed to anything else: it sets something that an organisation may not set.
	Untrusted bool `yaml:"-"`
	// Reused says that the section, with the values of its secrets, is that of the configuration before, in which it was judged, and that
	// nothing has changed that it alone is judged by. Its parts are shared with that.
	Reused bool `yaml:"-"`
	// CachedText remembers how the section is shown, from one configuration to the next that keeps it; nil for one that none keeps.
	CachedText *strictyaml.TextCache `yaml:"-"`
	// RuntimeKeys are the keys made at run time that are in force beside Keys, by ID.
	RuntimeKeys map[string]*Key `yaml:"-"`
	// Issued are the issuers and authorities of the configuration that speak for it.
	Issued   []Issued     `yaml:"-"`
	KeyFiles []files.Path `yaml:"key_files" doc:"files with more keys, each a list as under keys; relative paths begin where the configuration file is"`
}

// EqualTo reports whether o is the section of before, with everything that it alone is judged and compiled by.
func (o *Org) EqualTo(before *Org) bool {
	return o.Reused && before != nil && o.CachedText != nil && o.CachedText == before.CachedText
}

// WarningsReported reports whether the warnings about o, but those that depend on the time, were reported with the configuration before. Own Rego may
// change without the section.
func (o *Org) WarningsReported() bool {
	return o.Reused && o.Policies.Directory.IsZero() && o.Policies.Bundle == nil
}

// AllKeys are those of the configuration and those made at run time. They must not be
// changed.
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

// Key returns the key with an id, nil without one.
func (o *Org) Key(id string) *Key {
	if k, ok := o.RuntimeKeys[id]; ok {
		return k
	}
	if i := slices.IndexFunc(o.Keys, func(k Key) bool { return k.ID == id }); i >= 0 {
		return &o.Keys[i]
	}
	return nil
}

// Limits returns the quotas of the organisation, its teams and its keys.
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

// Team is a part of an organisation.
type Team struct {
	ID     string                  `yaml:"id,required" doc:"short name, unique in the organisation"`
	Former string                  `yaml:"renamed_from" doc:"earlier id of the team: its resources and what it has accrued in the current periods belong to this team, so that a new name does not refill its budgets. See docs/spend.md"`
	Limit  ratelimit.Limit         `yaml:"limits" doc:"quotas its callers share"`
	Budget ledger.Budget           `yaml:"budget" doc:"what its callers may spend together"`
	Over   ledger.OverBudgetAction `yaml:"over" doc:"action when its budget is passed all the same"`
	Grants Grants                  `yaml:"grants" doc:"bounds within which its leads approve requests of the team; absent is none. See docs/selfservice.md"`
	Weight int64                   `yaml:"weight" doc:"its share of the platform account, see limits.fair_share; 0 is 1"`
}

// Grants is the most that a call may cost which a lead of the team approves. The zero Grants lets leads approve nothing.
type Grants struct {
	PerHour catalog.Money `yaml:"per_hour" doc:"most that a call may cost for a lead to approve it; 0 is none" unit:"USD"`
	PerRun  catalog.Money `yaml:"per_run" doc:"most that a run may cost for a lead to approve it; 0 is none" unit:"USD"`
}

// Unknown sets the treatment of operations and members that the API's description does not have.
type Unknown struct {
	Members Handling `yaml:"members" doc:"members of v2 bodies, at the top and not named after a known one, and query parameters of v2: refuse (422; parameters are ignored), or forward them to the platform. Policies see them in input.request.unknown and input.request.query, and the cost of what such a call makes or changes is not known; empty is refuse"`
	Reads   Handling `yaml:"reads" doc:"GET requests below /v2 that are not described: refuse (404), or forward them, below a pod, cluster, endpoint, volume, template, registry, secret or sandbox as operation unknownRead.<kind> under its owner, otherwise as unknownRead, which isolation refuses; empty is refuse"`
}

// Warnings names the parts that pass.
func (u Unknown) Warnings() []error {
	var out fault.Found
	out.If(u.Members.Forwards(), "members", "members of bodies and query parameters that this build does not know reach the platform: policies of the library do not judge them")
	out.If(u.Reads.Forwards(), "reads", "every key may read what this build does not know: policies judge it as operation unknownRead")
	return out
}

// KeysInBodies sets the treatment of callers' keys in the environment of a body.
type KeysInBodies string

// Values lists what can be done.
func (KeysInBodies) Values() []string { return []string{"remove", "refuse"} }

// RejectedFiles reports whether a body with such a key is refused.
func (k KeysInBodies) Refused() bool { return k == "refuse" }

// Handling says whether something passes.
type Handling string

// Values lists what can be done.
func (Handling) Values() []string { return []string{"refuse", "forward"} }

// Forwards reports whether it passes.
func (h Handling) Forwards() bool { return h == "forward" }

// Failure overrides the failure policies of the limits.
type Failure struct {
	Read  ratelimit.Failure `yaml:"read" doc:"calls that change nothing: closed, local or open"`
	Write ratelimit.Failure `yaml:"write" doc:"calls that change or cost something: closed, local or open; calls that lower cost always pass"`
}

// WithDefaults returns what happens to each class of calls, where the defaults stand unless they
// are overridden.
func (f Failure) WithDefaults(defaults ratelimit.FailureConfig) map[ratelimit.Class]ratelimit.Failure {
	return map[ratelimit.Class]ratelimit.Failure{
		ratelimit.ClassRead: cmp.Or(f.Read, defaults.Read), ratelimit.ClassWrite: cmp.Or(f.Write, defaults.Write),
	}
}

// Class is a group of v2 operations with quotas of their own.
type Class struct {
	ID         string          `yaml:"id,required" doc:"short name, unique in the organisation"`
	Operations []string        `yaml:"operations,required" doc:"operationIds of the v2 API; calls of v1 and GraphQL count as their operation of v2"`
	Per        Per             `yaml:"per" doc:"whose calls share the quota; empty is key"`
	Cost       int64           `yaml:"cost" doc:"what one call takes; 0 is 1"`
	Limit      ratelimit.Limit `yaml:"limits,required" doc:"quotas of the class"`
}

// Per says whose calls share a quota.
type Per string

// Values lists the scopes that can share a quota.
func (Per) Values() []string { return []string{"key", "team", "org"} }
