package callers

import (
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/trie"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// keyRef names a key made at run time.
type keyRef struct{ org, id string }

// Callers are those of a configuration, with the keys made at run time that are in force beside its own. They are immutable; those after
// a change of keys share everything that did not change.
type Callers struct {
	*filter.Callers

	// orgs are the organisations of the configuration, by id, with the keys made at run time that are in force.
	orgs map[string]*settings.Org
	// plans are the budgets of the organisations that have some, by id, with those of the same keys.
	plans map[string]*spend.Plan
	of    map[string]organisation

	ids  map[string]map[string]bool // of the keys of the configuration, by organisation
	keys *identity.Directory        // of the configuration alone

	made   map[string]trie.Map[string, *madeKey] // in force or not, by organisation
	secret trie.Map[identity.Digest, []keyRef]   // to the keys of made that have it and are not revoked
}

// organisation holds the facts that callers of the configuration alone have.
type organisation struct {
	tenant *filter.Tenant
	plan   *spend.Plan
	// budgeted counts the keys made at run time that are in force with a budget.
	budgeted int
}

// Callers compiles who may call.
func (s *Keys) Callers(cfg *settings.Config) (*Callers, error) {
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		for j := range o.Keys {
			if k := &o.Keys[j]; k.Used == nil { // a section that stays is in force
				k.Used = &s.keyring.usage(o.ID, k.ID).seen
			}
		}
	}
	keys, err := s.directory(cfg)
	if err != nil {
		return nil, err
	}
	all, err := s.deps.Tenants(cfg)
	if err != nil {
		return nil, err
	}
	c := &Callers{
		Callers: &filter.Callers{Directory: keys, Tenants: all}, keys: keys, orgs: make(map[string]*settings.Org, len(cfg.Orgs)),
		plans: make(map[string]*spend.Plan, len(cfg.Orgs)),
		of:    make(map[string]organisation, len(cfg.Orgs)), ids: make(map[string]map[string]bool, len(cfg.Orgs)),
	}
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		one := organisation{tenant: all[o.ID], plan: tenants.Budgets(o)}
		ids := make(map[string]bool, len(o.Keys))
		for j := range o.Keys {
			ids[o.Keys[j].ID] = true
		}
		c.orgs[o.ID], c.of[o.ID], c.ids[o.ID] = o, one, ids
		if one.tenant.Budgets != nil {
			c.plans[o.ID] = one.tenant.Budgets
		}
	}
	known := *s.keyring.known.Load()
	ids := make(map[string][]string, len(known))
	for org, r := range known {
		for id := range r.records.All() {
			ids[org] = append(ids[org], id)
		}
	}
	return c.with(known, ids, s.keyring.partial())
}

// apply puts the keys in force that are known now, of which some have changed, by organisation.
func (s *Keys) apply(changed map[string][]string) {
	s.deps.Apply(func(c *Callers) (*Callers, error) {
		return c.with(*s.keyring.known.Load(), changed, s.keyring.partial())
	})
}

// View returns what is in force with a configuration and these callers.
func (c *Callers) View(cfg *settings.Config, moves map[string][]string) *view.View {
	return &view.View{Config: cfg, Orgs: c.orgs, Plans: c.plans, Moves: moves}
}

// with returns callers with the records that are known now in the place of those they have, of some ids by organisation.
func (c *Callers) with(known map[string]orgKeys, changed map[string][]string, partial bool) (*Callers, error) {
	next := *c
	next.made, next.orgs, next.of = maps.Clone(c.made), maps.Clone(c.orgs), maps.Clone(c.of)
	if next.made == nil {
		next.made = make(map[string]trie.Map[string, *madeKey], len(changed))
	}
	touched := make(map[keyRef]bool)
	for org, ids := range changed {
		if next.orgs[org] == nil {
			continue
		}
		for _, id := range ids {
			next.put(keyRef{org, id}, known[org], touched)
		}
	}
	var gone []identity.Digest
	var come []identity.Entry
	all, copied := maps.Clone(c.Tenants), make(map[string]bool)
	for ref := range touched {
		if !copied[ref.org] {
			o := *next.orgs[ref.org]
			next.orgs[ref.org], copied[ref.org] = &o, true
		}
		gone, come = next.judge(ref, gone, come)
	}
	next.plans = maps.Clone(c.plans)
	for org := range copied {
		t := next.tenant(org)
		all[org] = t
		if next.plans[org] = t.Budgets; t.Budgets == nil {
			delete(next.plans, org)
		}
	}
	directory, err := c.Directory.With(gone, come)
	next.Callers = &filter.Callers{Directory: directory, Tenants: all, Partial: partial}
	return &next, err
}

// put enters the record of a key as it is known, or that it is gone. It adds to touched the keys of which others may be in force for it.
func (c *Callers) put(ref keyRef, known orgKeys, touched map[keyRef]bool) {
	touched[ref] = true
	each := func(m *madeKey, change func(digest identity.Digest, holders []keyRef)) {
		if m == nil || !m.Revoked.IsZero() {
			return
		}
		for _, d := range m.Secrets() {
			holders, _ := c.secret.Get(d.Digest)
			for _, other := range holders {
				touched[other] = true
			}
			change(d.Digest, holders)
		}
	}
	had, _ := c.made[ref.org].Get(ref.id)
	each(had, func(digest identity.Digest, holders []keyRef) {
		if i := slices.Index(holders, ref); i >= 0 && len(holders) > 1 {
			c.secret = c.secret.With(digest, slices.Delete(slices.Clone(holders), i, i+1))
		} else if i >= 0 {
			c.secret = c.secret.Without(digest)
		}
	})
	has, ok := known.records.Get(ref.id)
	if !ok {
		c.made[ref.org] = c.made[ref.org].Without(ref.id)
		return
	}
	c.made[ref.org] = c.made[ref.org].With(ref.id, has)
	each(has, func(digest identity.Digest, holders []keyRef) {
		c.secret = c.secret.With(digest, append(slices.Clip(holders), ref))
	})
}

// judge puts a key in force or takes it out. It adds the change of the directory.
func (c *Callers) judge(ref keyRef, gone []identity.Digest, come []identity.Entry) ([]identity.Digest, []identity.Entry) {
	o, of := c.orgs[ref.org], c.of[ref.org]
	if was, ok := o.Made.Get(ref.id); ok {
		for _, d := range was.Secrets() {
			gone = append(gone, d.Digest)
		}
		o.Made = o.Made.Without(ref.id)
		if was.Budget != (spend.Budget{}) {
			of.budgeted--
		}
	}
	if m, ok := c.made[ref.org].Get(ref.id); ok && m.Revoked.IsZero() && c.unfit(ref.org, m) == "" {
		come = m.Entries(come, ref.org)
		o.Made = o.Made.With(ref.id, &m.Key)
		if m.Budget != (spend.Budget{}) {
			of.budgeted++
		}
	}
	c.of[ref.org] = of
	return gone, come
}

// tenant returns the tenant of an organisation, with its keys made at run time that are in force.
func (c *Callers) tenant(org string) *filter.Tenant {
	o, of := c.orgs[org], c.of[org]
	t := *of.tenant
	t.Made = func(id string) (filter.MadeKey, bool) {
		k, ok := o.Made.Get(id)
		if !ok {
			return filter.MadeKey{}, false
		}
		return filter.MadeKey{Limit: k.Quotas(), Labels: k.Labels}, true
	}
	if t.Budgets != nil || of.budgeted > 0 {
		plan := *of.plan
		plan.Made = func(id string) (spend.Budget, bool) {
			k, ok := o.Made.Get(id)
			if !ok {
				return spend.Budget{}, false
			}
			return k.Budget, true
		}
		t.Budgets = &plan
	}
	return &t
}

// unfit says why a key made at run time that is not revoked is not in force, "" if it is.
func (c *Callers) unfit(org string, k *madeKey) string {
	o := c.orgs[org]
	if o == nil {
		return "its organisation is not configured"
	}
	if c.ids[org][k.ID] {
		return "the configuration has a key of this id"
	}
	if k.Team != "" && !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == k.Team }) {
		return row.Unknown("team of "+org, k.Team, tenants.TeamIDs(o))
	}
	own := make(map[identity.Digest]bool)
	for _, d := range k.Secrets() {
		holders, _ := c.secret.Get(d.Digest)
		shared := slices.ContainsFunc(holders, func(r keyRef) bool { return r != keyRef{org, k.ID} })
		if shared || own[d.Digest] || c.keys.HasDigest(d.Digest) {
			return "another key has the same secret"
		}
		own[d.Digest] = true
	}
	return k.fault
}
