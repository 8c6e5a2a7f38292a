package gateway

import (
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
)

// applyKeys puts the keys now known in force, of which those of some organisations have
// changed, for every request that starts from now on, and ends the streams of those that
// are not in force any more.
func (g *Gateway) applyKeys(changed ...string) {
	g.changing.Lock()
	now := g.current.Load()
	cfg := g.withKeys(now.file, now.taken)
	callers, err := g.changedCallers(now.pipeline.Callers, cfg, changed)
	if err == nil {
		next, pipeline := *now, *now.pipeline
		pipeline.Callers = callers
		next.config, next.pipeline = cfg, &pipeline
		g.current.Store(&next)
	}
	g.changing.Unlock()
	if err != nil {
		g.deps.Logger.Error("keys made at run time cannot be put in force", "error", err)
		return
	}
	g.streams.Recheck()
}

// changedCallers returns callers with the keys made at run time of cfg in the place of
// theirs, those of some organisations only being others.
func (g *Gateway) changedCallers(callers *filter.Callers, cfg *settings.Config, changed []string) (*filter.Callers, error) {
	directory, err := callers.Directory.With(cfg.MadeEntries())
	if err != nil {
		return nil, err
	}
	next := &filter.Callers{Directory: directory, Tenants: maps.Clone(callers.Tenants), Partial: g.keys.partial()}
	for _, id := range changed {
		if o := cfg.Org(id); o != nil {
			if next.Tenants[id], err = tenants.Of(o, cfg.Limits.Failure, g.api, g.runs); err != nil {
				return nil, err
			}
		}
	}
	return next, nil
}

// withKeys returns the configuration of a file with the keys made at run time that
// are in force beside its own.
func (g *Gateway) withKeys(file *settings.Config, of taken) *settings.Config {
	known := *g.keys.known.Load()
	if len(known) == 0 {
		return file
	}
	made := digestsOf(file, known)
	cfg := *file
	cfg.Orgs = slices.Clone(file.Orgs)
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		records := known[o.ID].records
		o.Made = make([]*settings.Key, 0, len(records))
		for _, m := range records {
			if m.Revoked.IsZero() && of.unfit(o, m, made) == "" {
				o.Made = append(o.Made, &m.Key)
			}
		}
	}
	return &cfg
}

// taken is what the keys of a file have, and those made at run time must not.
type taken struct {
	// ids are by organisation.
	ids map[string]map[string]bool
	// keys has the digests, and none of keys made at run time.
	keys *identity.Directory
}

// taken collects that of a file, of whose keys a directory is given.
func takenBy(c *settings.Config, keys *identity.Directory) taken {
	t := taken{ids: make(map[string]map[string]bool, len(c.Orgs)), keys: keys}
	for i := range c.Orgs {
		o := &c.Orgs[i]
		ids := make(map[string]bool, len(o.Keys))
		for j := range o.Keys {
			ids[o.Keys[j].ID] = true
		}
		t.ids[o.ID] = ids
	}
	return t
}

// digests counts the keys made at run time of the organisations of a file that have each
// digest.
func digestsOf(c *settings.Config, known map[string]ring) map[identity.Digest]int {
	n := make(map[identity.Digest]int)
	for i := range c.Orgs {
		for _, m := range known[c.Orgs[i].ID].records {
			if m.Revoked.IsZero() {
				m.count(n)
			}
		}
	}
	return n
}

// unfit says why a key made at run time is not in force beside the file, "" if it is. made
// counts the digests of all such keys, this one included.
func (t *taken) unfit(o *settings.Org, k *madeKey, made map[identity.Digest]int) string {
	switch {
	case o == nil:
		return "its organisation is not configured"
	case t.ids[o.ID][k.ID]:
		return "the configuration has a key of this id"
	case k.Team != "" && !slices.Contains(tenants.TeamIDs(o), k.Team):
		return row.Unknown("team of "+o.ID, k.Team, tenants.TeamIDs(o))
	case slices.ContainsFunc(k.Secrets(), func(d settings.Digest) bool { return made[d.Digest] > 1 || t.keys.HasDigest(d.Digest) }):
		return "another key has the same secret"
	}
	return k.fault
}
