package callers

import (
	"errors"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// keyRef identifies a key created at run time.
type keyRef struct{ org, id string }

// Callers is filter.Callers with the parts from which it was compiled, so that a change of keys at run time does not compile the
// configuration again. It is immutable.
type Callers struct {
	*filter.Callers

	// orgs holds the organisations of the configuration by id, with their active keys created at run time.
	orgs map[string]*settings.Org
	// plans holds the budgets of the organisations by id, including the budgets of these keys.
	plans map[string]*ledger.Plan
	of    map[string]organisation
	keys  *identity.Directory // only keys of the configuration

	// known holds the keys created at run time by organisation, active or not; holders holds the keys that are not
	// revoked, by the digests of their secrets.
	known   map[string]*store.Records[*runtimeKey]
	holders map[identity.Digest][]keyRef
}

// organisation holds the properties of an organisation that depend only on the configuration.
type organisation struct {
	tenant *filter.Tenant
	plan   *ledger.Plan
	ids    map[string]bool // ids of its keys
	// budgeted is the number of active keys created at run time that have a budget.
	budgeted int
}

// Callers compiles the callers of a configuration.
func (s *Keys) Callers(cfg *settings.Config) (*Callers, error) {
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		for j := range o.Keys {
			if k := &o.Keys[j]; k.Used == nil { // an unchanged section is already in use
				k.Used = &s.keyring.usage(o.ID, k.ID).seen
			}
		}
	}
	keys, err := s.directory(cfg)
	if err != nil {
		return nil, err
	}
	c := &Callers{
		Callers: &filter.Callers{Directory: keys, Tenants: make(map[string]*filter.Tenant, len(cfg.Orgs))}, keys: keys,
		orgs:  make(map[string]*settings.Org, len(cfg.Orgs)),
		plans: make(map[string]*ledger.Plan, len(cfg.Orgs)), of: make(map[string]organisation, len(cfg.Orgs)),
		holders: make(map[identity.Digest][]keyRef),
	}
	var errs fault.Found
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		of, err := s.organisation(cfg, o)
		if err != nil {
			errs = append(errs, fault.At(fault.Index("orgs", i), err))
		}
		c.orgs[o.ID], c.of[o.ID], c.Tenants[o.ID] = o, of, of.tenant
		if of.tenant.Budgets != nil {
			c.plans[o.ID] = of.tenant.Budgets
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s.with(c)
}

// organisation returns the properties of an organisation. It returns the current ones if its section is unchanged.
func (s *Keys) organisation(cfg *settings.Config, o *settings.Org) (organisation, error) {
	if s.deps.Load() != nil && o.EqualTo(s.org(o.ID)) {
		of := s.deps.Callers().of[o.ID]
		of.budgeted = 0
		return of, nil
	}
	ids := make(map[string]bool, len(o.Keys))
	for i := range o.Keys {
		ids[o.Keys[i].ID] = true
	}
	t, err := compileTenant(cfg, o, s.deps.API, s.deps.Runs)
	return organisation{tenant: t, plan: spendingPlan(o), ids: ids}, err
}

// with returns callers updated to the currently known keys created at run time. It copies each map once, however many
// keys have changed.
func (s *Keys) with(c *Callers) (*Callers, error) {
	next := *c
	next.known, next.holders, next.of = s.keyring.Known(), maps.Clone(c.holders), maps.Clone(c.of)
	next.orgs, next.plans = maps.Clone(c.orgs), maps.Clone(c.plans)
	touched := make(map[keyRef]bool)
	for org, is := range next.known {
		was := c.known[org]
		if was == is || c.orgs[org] == nil {
			continue
		}
		for _, id := range was.Diff(is) {
			ref := keyRef{org, id}
			touched[ref] = true
			next.indexSecrets(ref, was.Get(id), false, touched)
			next.indexSecrets(ref, is.Get(id), true, touched)
		}
	}
	var removed []identity.Digest
	var added []identity.Entry
	all, copied := maps.Clone(c.Tenants), make(map[string]bool)
	for ref := range touched {
		if !copied[ref.org] {
			o := *next.orgs[ref.org]
			if o.RuntimeKeys = maps.Clone(o.RuntimeKeys); o.RuntimeKeys == nil {
				o.RuntimeKeys = make(map[string]*settings.Key)
			}
			next.orgs[ref.org], copied[ref.org] = &o, true
		}
		removed, added = next.updateKey(ref, removed, added)
	}
	for org := range copied {
		t := next.tenant(org)
		all[org] = t
		if next.plans[org] = t.Budgets; t.Budgets == nil {
			delete(next.plans, org)
		}
	}
	directory, err := c.Directory.WithChanges(removed, added)
	good, fail := s.keyring.State()
	next.Callers = &filter.Callers{Directory: directory, Tenants: all, Incomplete: good.IsZero() && fail != nil}
	return &next, err
}

// View returns a view that combines a configuration with these callers.
func (c *Callers) View(cfg *settings.Config) *view.View {
	return &view.View{Config: cfg, Orgs: c.orgs, Plans: c.plans}
}

// indexSecrets adds a key to the holders of its secrets, or removes it. It adds the other holders of these secrets to
// touched, because they may become active or inactive.
func (c *Callers) indexSecrets(ref keyRef, m *runtimeKey, holds bool, touched map[keyRef]bool) {
	if m == nil || !m.Revoked.IsZero() {
		return
	}
	for _, d := range m.Secrets() {
		others := slices.DeleteFunc(slices.Clone(c.holders[d.Digest]), func(r keyRef) bool { return r == ref })
		for _, other := range others {
			touched[other] = true
		}
		if holds {
			others = append(others, ref)
		}
		if c.holders[d.Digest] = others; len(others) == 0 {
			delete(c.holders, d.Digest)
		}
	}
}

// updateKey activates or deactivates a key. It appends the changes of the directory to removed and added.
func (c *Callers) updateKey(ref keyRef, removed []identity.Digest, added []identity.Entry) ([]identity.Digest, []identity.Entry) {
	made, of := c.orgs[ref.org].RuntimeKeys, c.of[ref.org]
	if was := made[ref.id]; was != nil {
		for _, d := range was.Secrets() {
			removed = append(removed, d.Digest)
		}
		delete(made, ref.id)
		if was.Budget != (ledger.Budget{}) {
			of.budgeted--
		}
	}
	if m := c.known[ref.org].Get(ref.id); m != nil && m.Revoked.IsZero() && c.inactiveReason(ref.org, m) == "" {
		added = m.Entries(added, ref.org)
		made[ref.id] = &m.Key
		if m.Budget != (ledger.Budget{}) {
			of.budgeted++
		}
	}
	c.of[ref.org] = of
	return removed, added
}

// tenant returns the tenant of an organisation with its active keys created at run time.
func (c *Callers) tenant(org string) *filter.Tenant {
	o, of := c.orgs[org], c.of[org]
	t := *of.tenant
	t.RuntimeKey = func(id string) (filter.RuntimeKey, bool) {
		k := o.RuntimeKeys[id]
		if k == nil {
			return filter.RuntimeKey{}, false
		}
		return filter.RuntimeKey{Limit: k.Quotas(), Labels: k.Labels}, true
	}
	if t.Budgets != nil || of.budgeted > 0 {
		plan := *of.plan
		plan.RuntimeKey = func(id string) (ledger.Budget, bool) {
			k := o.RuntimeKeys[id]
			if k == nil {
				return ledger.Budget{}, false
			}
			return k.Budget, true
		}
		t.Budgets = &plan
	}
	return &t
}

// inactiveReason returns the reason why a key created at run time that is not revoked is inactive, or "".
func (c *Callers) inactiveReason(org string, k *runtimeKey) string {
	o := c.orgs[org]
	if o == nil {
		return "organisation is not configured"
	}
	if c.of[org].ids[k.ID] {
		return "the configuration has a key with this id"
	}
	if k.Team != "" && !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == k.Team }) {
		return adminapi.UnknownName("team of "+org, k.Team, TeamIDs(o))
	}
	own := make(map[identity.Digest]bool)
	for _, d := range k.Secrets() {
		shared := slices.ContainsFunc(c.holders[d.Digest], func(r keyRef) bool { return r != keyRef{org, k.ID} })
		if shared || own[d.Digest] || c.keys.HasDigest(d.Digest) {
			return "another key has the same secret"
		}
		own[d.Digest] = true
	}
	return k.fault
}
