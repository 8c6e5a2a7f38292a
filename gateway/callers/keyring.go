package callers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/keystore"
	"github.com/tollgate-dev/tollgate/gateway/trie"
)

const (
	// keyPoll is how often a gateway looks for changes of keys by others.
	keyPoll = time.Second
	// changedHere is the version of orgKeys that both this gateway and others have changed,
	// which is none of the store's: one that forgets at once has none.
	changedHere = "-"
	// keySettled is how long a change that was announced may take. For so long an
	// organisation is looked at with each poll.
	keySettled = 10 * time.Second
	// keyNet is how often an organisation is looked at of which nothing was announced, in
	// case the store has lost that.
	keyNet = time.Minute
	// keyMemory is how long a key is remembered that was revoked or has expired.
	keyMemory = 30 * 24 * time.Hour
)

// keyring is the keys made at run time: the store, and this gateway's view of it.
//
// Its keys are in force as long as the process lives, whether the store answers
// or not. Records that the store has lost, in a restart or a failover, are
// written back: of two records of one key the later wins.
type keyring struct {
	store  *keystore.Store
	now    func() time.Time
	logger *slog.Logger
	known  atomic.Pointer[map[string]orgKeys] // by organisation; immutable
	used   sync.Map                           // ORG/ID to *keyUse

	mu   sync.Mutex // held while the store is asked; guards the fields below
	good time.Time  // when the store was last read; zero for never
	fail error      // of the last attempt
	// mark is that of the latest announcement heard. Organisations were looked at, and are to be looked at until.
	mark          string
	looked, until map[string]time.Time
}

// orgKeys are the keys of one organisation.
type orgKeys struct {
	version string
	records trie.Map[string, *madeKey] // by id
}

// differ lists the ids of records that other does not have, or has another text for. It looks at some, or all when those are nil.
func (k orgKeys) differ(other orgKeys, at []string) (ids []string) {
	if at == nil {
		for _, keys := range []orgKeys{k, other} {
			for id := range keys.records.All() {
				at = append(at, id)
			}
		}
		slices.Sort(at)
		at = slices.Compact(at)
	}
	for _, id := range at {
		a, had := k.records.Get(id)
		b, has := other.records.Get(id)
		if had != has || had && a != b && string(a.text) != string(b.text) {
			ids = append(ids, id)
		}
	}
	return ids
}

// keyUse is the last use of a key, and the last one stored, in Unix seconds.
type keyUse struct{ seen, stored atomic.Int64 }

func newKeyring(store *keystore.Store, now func() time.Time, logger *slog.Logger) *keyring {
	k := &keyring{store: store, now: now, logger: logger, looked: make(map[string]time.Time), until: make(map[string]time.Time)}
	k.known.Store(new(map[string]orgKeys))
	return k
}

// of returns the known keys of an organisation.
func (k *keyring) of(org string) orgKeys { return (*k.known.Load())[org] }

// replace replaces the keys of an organisation. mu is
// held.
func (k *keyring) replace(org string, r orgKeys) {
	next := maps.Clone(*k.known.Load())
	if next == nil {
		next = make(map[string]orgKeys, 1)
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

// refresh reads the changes in the store. It returns the ids of the keys that are
// different now, by organisation, and whether anything has changed.
func (k *keyring) refresh(ctx context.Context, orgs []string) (ids map[string][]string, changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.good.IsZero() && k.fail == nil
	if err = k.listen(ctx, orgs); err == nil {
		now := k.now()
		ids, err = k.look(ctx, slices.DeleteFunc(slices.Clone(orgs), func(org string) bool { return !k.due(org, now) }))
	}
	// Whether the keys were ever read is part of the answer to callers.
	changed = len(ids) > 0 || err != nil && first || err == nil && k.good.IsZero() && k.fail != nil
	k.fail = err
	if err == nil {
		k.good = k.now()
	}
	return ids, changed, err
}

// fresh is refresh for one organisation, whether it is due or not.
func (k *keyring) fresh(ctx context.Context, org string) (ids map[string][]string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.look(ctx, []string{org})
}

// listen hears which organisations are about to change. mu is held.
func (k *keyring) listen(ctx context.Context, orgs []string) error {
	mark, news, all, err := k.store.News(ctx, k.mark)
	if err != nil {
		return err
	}
	if all {
		news = orgs
	}
	for _, org := range news {
		k.until[org] = k.now().Add(keySettled)
	}
	k.mark = mark
	return nil
}

// due reports whether an organisation is to be looked at. mu is held.
func (k *keyring) due(org string, now time.Time) bool {
	looked := k.looked[org]
	return looked.IsZero() || k.until[org].After(looked) || now.Sub(looked) >= keyNet
}

// look reads the changes of some organisations. It returns the ids of the keys that are different now. mu is held.
func (k *keyring) look(ctx context.Context, orgs []string) (map[string][]string, error) {
	ids, now := make(map[string][]string), k.now()
	if len(orgs) == 0 {
		return ids, nil
	}
	versions, err := k.store.Versions(ctx, orgs)
	if err != nil {
		return nil, err
	}
	for _, org := range orgs {
		known := k.of(org)
		if versions[org] != known.version {
			next, at, err := k.load(ctx, org, known, versions[org])
			if err != nil {
				return ids, err
			}
			if differ := known.differ(next, at); len(differ) > 0 {
				ids[org] = differ
			}
			k.replace(org, next)
		}
		k.looked[org] = now
	}
	return ids, nil
}

// load reads the keys of an organisation that have changed, if the store lists them, or
// else all, drops expired ones, and writes back those the store has lost. It returns the
// ids of those that were read, nil for all.
func (k *keyring) load(ctx context.Context, org string, known orgKeys, version string) (orgKeys, []string, error) {
	if known.version != "" {
		version, entries, listed, err := k.store.Changed(ctx, org, known.version, version)
		if err != nil {
			return known, nil, err
		}
		if listed {
			next, ids := orgKeys{version: version, records: known.records}, make([]string, len(entries))
			for i := range entries {
				ids[i] = entries[i].ID
				next.records = next.records.Without(ids[i])
			}
			return next, ids, k.read(ctx, org, entries, known, &next)
		}
	}
	version, entries, err := k.store.Load(ctx, org)
	if err != nil {
		return known, nil, err
	}
	next := orgKeys{version: version}
	if err := k.read(ctx, org, entries, known, &next); err != nil {
		return known, nil, err
	}
	return next, nil, k.writeBack(ctx, org, entries, known, &next)
}

// read enters the records that were found into next. It drops those that are over.
func (k *keyring) read(ctx context.Context, org string, entries []keystore.Entry, known orgKeys, next *orgKeys) error {
	now := k.now()
	for i := range entries {
		entry := &entries[i]
		if entry.Record == nil {
			continue
		}
		have, _ := known.records.Get(entry.ID)
		m, err := have.reread(entry)
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
			m.use = k.usage(org, entry.ID)
			m.Used = &m.use.seen
			next.records = next.records.With(entry.ID, m)
		}
	}
	return nil
}

// writeBack enters into next, and writes, the known keys that are missing from found or
// have changed since.
func (k *keyring) writeBack(ctx context.Context, org string, found []keystore.Entry, known orgKeys, next *orgKeys) error {
	entries := make(map[string]keystore.Entry, len(found))
	for _, e := range found {
		entries[e.ID] = e
	}
	now, lost := k.now(), []string(nil)
	for id, have := range known.records.All() {
		old, stored := entries[id]
		got, read := next.records.Get(id)
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
		next.records = next.records.With(id, &back)
		lost = append(lost, id)
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		k.logger.WarnContext(ctx, "the store had lost changes of keys; they were written back", "org", org, "keys", lost)
	}
	return nil
}

// swap replaces the known record of a key in the store and here. It reports whether the
// store had that record.
func (k *keyring) swap(ctx context.Context, org string, next madeKey) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.of(org)
	old := keystore.Entry{}
	if have, ok := known.records.Get(next.ID); ok {
		old = have.entry
	}
	old.ID = next.ID
	entry, done, err := k.store.Swap(ctx, org, old, next.text)
	if err != nil || !done {
		return false, err
	}
	next.entry, next.use = entry, k.usage(org, next.ID)
	next.Used = &next.use.seen
	version := changedHere
	if entry.Version != "" && entry.Was == known.version {
		version = entry.Version // and nothing else has changed
	}
	k.replace(org, orgKeys{version, known.records.With(next.ID, &next)})
	return true, nil
}

// flush tells the store of keys that were used.
func (k *keyring) flush(ctx context.Context, orgs []string) error {
	byOrg := make(map[string]map[string]time.Time)
	for name, u := range k.used.Range {
		if seen := u.(*keyUse).seen.Load(); seen > u.(*keyUse).stored.Load() {
			org, id, _ := strings.Cut(name.(string), "/")
			if byOrg[org] == nil {
				byOrg[org] = make(map[string]time.Time)
			}
			byOrg[org][id] = time.Unix(seen, 0)
		}
	}
	for _, org := range orgs {
		used := byOrg[org]
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

// lastUsed returns when keys of an organisation were last used, by id: the later of the
// store's times, if it answers, and this gateway's own.
func (k *keyring) lastUsed(ctx context.Context, org string) map[string]time.Time {
	used, err := k.store.Used(ctx, org)
	if err != nil {
		used = make(map[string]time.Time)
	}
	for name, u := range k.used.Range {
		id, of := strings.CutPrefix(name.(string), org+"/")
		if at := time.Unix(u.(*keyUse).seen.Load(), 0).UTC(); of && at.Unix() > 0 && at.After(used[id]) {
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

// failed notes that the data stored beside the keys could not be read.
func (k *keyring) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = err
}

// Refresh reads the keys made at run time and the revocations of tokens that have
// changed, and puts them in force. Run does so every second.
func (s *Keys) Refresh(ctx context.Context) error {
	of := orgsOf(s.deps.Config())
	tokens := s.deps.Tokens(ctx)
	ids, changed, err := s.keyring.refresh(ctx, of)
	if changed {
		s.apply(ids)
	}
	if err == nil && tokens != nil {
		err = tokens
		s.keyring.failed(err)
	}
	if err != nil {
		return err
	}
	return s.keyring.flush(ctx, of)
}

// Run refreshes until ctx ends.
func (s *Keys) Run(ctx context.Context) {
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		s.Poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// Poll refreshes once. That the store stops or begins to answer is one line each.
func (s *Keys) Poll(ctx context.Context) {
	_, before := s.keyring.state()
	polled, cancel := context.WithTimeout(ctx, s.deps.Config().Limits.Timeout)
	defer cancel()
	if err := s.Refresh(polled); (err == nil) != (before == nil) && ctx.Err() == nil {
		s.deps.Logger.WarnContext(ctx, "store of keys", "answers", err == nil, "error", fmt.Sprint(err))
	}
}
