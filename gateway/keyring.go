package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/keystore"
)

const (
	// keyPoll is how often a gateway looks for changes of keys by others.
	keyPoll = time.Second
	// changedHere is the version of what this gateway has changed since it read it, which
	// is none of the store's: one that forgets at once has none.
	changedHere = "-"
	// keyMemory is how long a key is remembered that was revoked or has expired. Its
	// id is free afterwards.
	keyMemory = 30 * 24 * time.Hour
)

// keyring is the keys made at run time: the store, and what this gateway knows of it.
//
// What it knows is in force as long as the process lives, whether the store answers
// or not. What the store has lost, because it was restarted or failed over, is
// written back: of two records of one key the later wins.
type keyring struct {
	store  *keystore.Store
	now    func() time.Time
	logger *slog.Logger
	known  atomic.Pointer[map[string]ring] // by organisation; immutable
	used   sync.Map                        // ORG/ID to *keyUse

	mu   sync.Mutex // held while the store is asked; guards what follows
	good time.Time  // when the store was last read; zero for never
	fail error      // of the last attempt
}

// ring is the keys of one organisation.
type ring struct {
	version string
	records map[string]madeKey // by id
}

// keyUse is the last use of a key, and what the store knows of it, in Unix seconds.
type keyUse struct{ seen, stored atomic.Int64 }

func newKeyring(store *keystore.Store, now func() time.Time, logger *slog.Logger) *keyring {
	k := &keyring{store: store, now: now, logger: logger}
	k.known.Store(new(map[string]ring))
	return k
}

// ring returns what is known of an organisation.
func (k *keyring) ring(org string) ring { return (*k.known.Load())[org] }

// replace puts another ring in the place of what is known of an organisation. mu is
// held.
func (k *keyring) replace(org string, r ring) {
	next := maps.Clone(*k.known.Load())
	if next == nil {
		next = make(map[string]ring, 1)
	}
	next[org] = r
	k.known.Store(&next)
}

// usage returns where the use of a key is noted.
func (k *keyring) usage(org, id string) *keyUse {
	if u, ok := k.used.Load(org + "/" + id); ok {
		return u.(*keyUse)
	}
	u, _ := k.used.LoadOrStore(org+"/"+id, new(keyUse))
	return u.(*keyUse)
}

// refresh reads what has changed in the store, and reports whether anything has.
func (k *keyring) refresh(ctx context.Context, orgs []string) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.good.IsZero() && k.fail == nil
	defer func() {
		// Whether the keys were ever read is part of what callers are told.
		changed = changed || err != nil && first || err == nil && k.good.IsZero() && k.fail != nil
		k.fail = err
		if err == nil {
			k.good = k.now()
		}
	}()
	versions, err := k.store.Versions(ctx, orgs)
	if err != nil {
		return false, err
	}
	for _, org := range orgs {
		known := k.ring(org)
		if versions[org] == known.version {
			continue
		}
		next, err := k.load(ctx, org, known)
		if err != nil {
			return changed, err
		}
		changed = changed || !maps.EqualFunc(known.records, next.records, func(a, b madeKey) bool { return string(a.text) == string(b.text) })
		k.replace(org, next)
	}
	return changed, nil
}

// load reads the keys of an organisation, drops what is over, and writes back what
// the store has lost.
func (k *keyring) load(ctx context.Context, org string, known ring) (ring, error) {
	version, entries, err := k.store.Load(ctx, org)
	if err != nil {
		return known, err
	}
	next, now := ring{version: version, records: make(map[string]madeKey, len(entries))}, k.now()
	unread := make(map[string]bool)
	for id, entry := range entries {
		m, err := parseMade(entry)
		switch {
		case err != nil || m.ID != id:
			unread[id] = true
			k.logger.ErrorContext(ctx, "a key made at run time cannot be read and is not accepted", "org", org, "key", id, "error", fmt.Sprint(err))
		case m.over(now):
			if _, _, err := k.store.Swap(ctx, org, entry, nil); err != nil {
				return known, err
			}
			if err := k.store.Forget(ctx, org, id); err != nil {
				return known, err
			}
			k.used.Delete(org + "/" + id)
		default:
			next.records[id] = m
		}
	}
	var lost []string
	for id, have := range known.records {
		got, ok := next.records[id]
		if unread[id] || have.over(now) || ok && !have.later(&got) {
			continue
		}
		old := entries[id]
		old.ID = id
		entry, done, err := k.store.Swap(ctx, org, old, have.text)
		if err != nil {
			return known, err
		}
		if done {
			have.entry = entry
		}
		next.records[id] = have
		lost = append(lost, id)
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		k.logger.WarnContext(ctx, "the store had lost changes of keys; they were written back", "org", org, "keys", lost)
	}
	return next, nil
}

// swap replaces the record of a key, which is what is known of it, in the store and
// here. It reports whether the store had that.
func (k *keyring) swap(ctx context.Context, org string, next madeKey) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.ring(org)
	old := known.records[next.ID].entry
	old.ID = next.ID
	entry, done, err := k.store.Swap(ctx, org, old, next.text)
	if err != nil || !done {
		return false, err
	}
	next.entry = entry
	records := maps.Clone(known.records)
	if records == nil {
		records = make(map[string]madeKey, 1)
	}
	records[next.ID] = next
	k.replace(org, ring{version: changedHere, records: records})
	return true, nil
}

// flush tells the store of keys that were used.
func (k *keyring) flush(ctx context.Context, orgs []string) error {
	for _, org := range orgs {
		used := make(map[string]time.Time)
		for id := range k.ring(org).records {
			if u := k.usage(org, id); u.seen.Load() > u.stored.Load() {
				used[id] = time.Unix(u.seen.Load(), 0)
			}
		}
		if len(used) == 0 {
			continue
		}
		if err := k.store.Use(ctx, org, used); err != nil {
			return err
		}
		for id, at := range used {
			k.usage(org, id).stored.Store(at.Unix())
		}
	}
	return nil
}

// lastUsed returns when keys of an organisation were last used, by id: what the store
// knows, if it answers, and what this gateway does.
func (k *keyring) lastUsed(ctx context.Context, org string) map[string]time.Time {
	used, err := k.store.Used(ctx, org)
	if err != nil {
		used = make(map[string]time.Time)
	}
	for id := range k.ring(org).records {
		if at := time.Unix(k.usage(org, id).seen.Load(), 0).UTC(); at.Unix() > 0 && at.After(used[id]) {
			used[id] = at
		}
	}
	return used
}

// state returns when the store was last read, zero for never, and how the last
// attempt ended.
func (k *keyring) state() (good time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.good, k.fail
}

// failed notes that what is kept beside the keys could not be read.
func (k *keyring) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = err
}

// RefreshKeys reads the keys made at run time and the revocations of tokens that have
// changed, and puts them in force. Run does so every second.
func (g *Gateway) RefreshKeys(ctx context.Context) error {
	ids := orgs(g.current.Load().config)
	tokens := g.refreshTokens(ctx)
	changed, err := g.keys.refresh(ctx, ids)
	if changed {
		g.applyKeys()
	}
	if err == nil && tokens != nil {
		err = tokens
		g.keys.failed(err)
	}
	if err != nil {
		return err
	}
	return g.keys.flush(ctx, ids)
}

// runKeys refreshes until ctx ends.
func (g *Gateway) runKeys(ctx context.Context) {
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		g.pollKeys(ctx)
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// pollKeys refreshes once. That the store stops or begins to answer is one line each.
func (g *Gateway) pollKeys(ctx context.Context) {
	_, before := g.keys.state()
	polled, cancel := context.WithTimeout(ctx, g.current.Load().config.Limits.Timeout)
	defer cancel()
	if err := g.RefreshKeys(polled); (err == nil) != (before == nil) && ctx.Err() == nil {
		g.deps.Logger.WarnContext(ctx, "store of keys", "answers", err == nil, "error", fmt.Sprint(err))
	}
}

// applyKeys puts the keys now known in force, for every request that starts from now
// on, and ends the streams of those that are not in force any more.
func (g *Gateway) applyKeys() {
	g.changing.Lock()
	now := g.current.Load()
	cfg := g.withKeys(now.file)
	callers, err := g.callers(cfg)
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

// withKeys returns the configuration of a file with the keys made at run time that
// are in force beside its own.
func (g *Gateway) withKeys(file *Config) *Config {
	known := *g.keys.known.Load()
	if len(known) == 0 {
		return file
	}
	taken := file.taken(known)
	cfg := *file
	cfg.Orgs = slices.Clone(file.Orgs)
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		keys := slices.Clip(o.Keys)
		for _, id := range slices.Sorted(maps.Keys(known[o.ID].records)) {
			m := known[o.ID].records[id]
			if m.Revoked.IsZero() && taken.unfit(&file.Orgs[i], &m.Key) == "" {
				m.Used = &g.keys.usage(o.ID, id).seen
				keys = append(keys, m.Key)
			}
		}
		o.Keys = keys
	}
	return &cfg
}

// taken is what keys made at run time must not have.
type taken struct {
	// ids are those of the keys of the file, by organisation, where there are keys made
	// at run time.
	ids map[string]map[string]bool
	// digests counts the keys that have each of the digests of keys made at run time.
	digests map[identity.Digest]int
}

// taken collects that of a file.
func (c *Config) taken(known map[string]ring) taken {
	t := taken{ids: make(map[string]map[string]bool), digests: make(map[identity.Digest]int)}
	for i := range c.Orgs {
		for _, m := range known[c.Orgs[i].ID].records {
			for _, d := range m.Secrets() {
				if m.Revoked.IsZero() {
					t.digests[d.Digest]++
				}
			}
		}
	}
	for i := range c.Orgs {
		o := &c.Orgs[i]
		ids := make(map[string]bool)
		for j := range o.Keys {
			ids[o.Keys[j].ID] = true
			for _, d := range o.Keys[j].Secrets() {
				if t.digests[d.Digest] > 0 {
					t.digests[d.Digest]++
				}
			}
		}
		t.ids[o.ID] = ids
	}
	return t
}

// unfit says why a key made at run time is not in force beside the file, "" if it is.
func (t *taken) unfit(o *Org, k *Key) string {
	switch {
	case o == nil:
		return "its organisation is not configured"
	case t.ids[o.ID][k.ID]:
		return "the configuration has a key of this id"
	case k.Team != "" && !slices.ContainsFunc(o.Teams, func(t Team) bool { return t.ID == k.Team }):
		return fmt.Sprintf("the organisation has no team %q", k.Team)
	case slices.ContainsFunc(k.Secrets(), func(d Digest) bool { return t.digests[d.Digest] > 1 }):
		return "another key has the same secret"
	}
	if err := k.Validate(); err != nil {
		return err.Error()
	}
	return ""
}
