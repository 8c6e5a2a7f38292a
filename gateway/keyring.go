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

	"github.com/tollgate-dev/tollgate/gateway/keystore"
)

const (
	// keyPoll is how often a gateway looks for changes of keys by others.
	keyPoll = time.Second
	// changedHere is the version of what this gateway has changed when others had, too,
	// which is none of the store's: one that forgets at once has none.
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
	records map[string]*madeKey // by id; immutable
}

// with returns a ring of a version in which a record stands, in the place of another one
// of its id.
func (r ring) with(version string, m *madeKey) ring {
	records := maps.Clone(r.records)
	if records == nil {
		records = make(map[string]*madeKey, 1)
	}
	records[m.ID] = m
	return ring{version: version, records: records}
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

// refresh reads what has changed in the store. It returns the organisations that have
// other keys now, and whether anything has changed.
func (k *keyring) refresh(ctx context.Context, orgs []string) (of []string, changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.good.IsZero() && k.fail == nil
	defer func() {
		// Whether the keys were ever read is part of what callers are told.
		changed = len(of) > 0 || err != nil && first || err == nil && k.good.IsZero() && k.fail != nil
		k.fail = err
		if err == nil {
			k.good = k.now()
		}
	}()
	versions, err := k.store.Versions(ctx, orgs)
	if err != nil {
		return nil, false, err
	}
	for _, org := range orgs {
		known := k.ring(org)
		if versions[org] == known.version {
			continue
		}
		next, err := k.load(ctx, org, known, versions[org])
		if err != nil {
			return of, false, err
		}
		if !maps.EqualFunc(known.records, next.records, func(a, b *madeKey) bool { return a == b || string(a.text) == string(b.text) }) {
			of = append(of, org)
		}
		k.replace(org, next)
	}
	return of, false, nil
}

// load reads the keys of an organisation that have changed, if the store lists them, or
// else all, drops what is over, and writes back what the store has lost.
func (k *keyring) load(ctx context.Context, org string, known ring, version string) (ring, error) {
	if known.version != "" {
		version, entries, listed, err := k.store.Changed(ctx, org, known.version, version)
		if err != nil {
			return known, err
		}
		if listed {
			next := ring{version: version, records: maps.Clone(known.records)}
			for i := range entries {
				delete(next.records, entries[i].ID)
			}
			return next, k.read(ctx, org, entries, known, &next)
		}
	}
	version, entries, err := k.store.Load(ctx, org)
	if err != nil {
		return known, err
	}
	next := ring{version: version, records: make(map[string]*madeKey, len(entries))}
	if err := k.read(ctx, org, entries, known, &next); err != nil {
		return known, err
	}
	return next, k.writeBack(ctx, org, entries, known, &next)
}

// read enters the records that were found into next. It drops those that are over.
func (k *keyring) read(ctx context.Context, org string, entries []keystore.Entry, known ring, next *ring) error {
	now := k.now()
	for i := range entries {
		entry := &entries[i]
		if entry.Record == nil {
			continue
		}
		m, err := known.records[entry.ID].reread(entry)
		switch {
		case err != nil || m.ID != entry.ID:
			k.logger.ErrorContext(ctx, "a key made at run time cannot be read and is not accepted", "org", org, "key", entry.ID, "error", fmt.Sprint(err))
		case m.over(now):
			if _, _, err := k.store.Swap(ctx, org, *entry, nil); err != nil {
				return err
			}
			if err := k.store.Forget(ctx, org, entry.ID); err != nil {
				return err
			}
			k.used.Delete(org + "/" + entry.ID)
		default:
			m.Used = &k.usage(org, entry.ID).seen
			next.records[entry.ID] = m
		}
	}
	return nil
}

// writeBack enters into next, and writes, what is known of keys and lacks in all that were
// found, or was changed since.
func (k *keyring) writeBack(ctx context.Context, org string, found []keystore.Entry, known ring, next *ring) error {
	entries := make(map[string]keystore.Entry, len(found))
	for _, e := range found {
		entries[e.ID] = e
	}
	now, lost := k.now(), []string(nil)
	for id, have := range known.records {
		old, stored := entries[id]
		got, read := next.records[id]
		if stored && !read || have.over(now) || read && !have.later(got) {
			continue
		}
		old.ID = id
		entry, done, err := k.store.Swap(ctx, org, old, have.text)
		if err != nil {
			return err
		}
		back := *have
		if done {
			back.entry = entry
		}
		next.records[id] = &back
		lost = append(lost, id)
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		k.logger.WarnContext(ctx, "the store had lost changes of keys; they were written back", "org", org, "keys", lost)
	}
	return nil
}

// swap replaces the record of a key, which is what is known of it, in the store and
// here. It reports whether the store had that.
func (k *keyring) swap(ctx context.Context, org string, next madeKey) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.ring(org)
	old := keystore.Entry{}
	if have, ok := known.records[next.ID]; ok {
		old = have.entry
	}
	old.ID = next.ID
	entry, done, err := k.store.Swap(ctx, org, old, next.text)
	if err != nil || !done {
		return false, err
	}
	next.entry, next.Used = entry, &k.usage(org, next.ID).seen
	version := changedHere
	if entry.Version != "" && entry.Was == known.version {
		version = entry.Version // and nothing else has changed
	}
	k.replace(org, known.with(version, &next))
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

// partial reports whether there may be keys that were never read.
func (k *keyring) partial() bool {
	good, fail := k.state()
	return good.IsZero() && fail != nil
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
	tokens := g.tokens.Refresh(ctx)
	of, changed, err := g.keys.refresh(ctx, ids)
	if changed {
		g.applyKeys(of...)
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
