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

	"github.com/tollgate-dev/tollgate/gateway/view"
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
	store  *KeyStore
	clock  *view.Current
	logger *slog.Logger
	known  atomic.Pointer[map[string]*orgKeys] // by organisation; immutable
	used   sync.Map                            // ORG/ID to *keyUse

	mu   sync.Mutex // held while the store is asked; guards the fields below
	good time.Time  // when the store was last read; zero for never
	fail error      // of the last attempt
	// mark is that of the latest announcement heard. Organisations were looked at, and are to be looked at until.
	mark          string
	looked, until map[string]time.Time
}

// orgKeys are the keys of one organisation. They are immutable once they are known. A list is copied and compared with another in a few
// microseconds where a map of 10,000 keys takes a few hundred.
type orgKeys struct {
	version string
	records []*madeKey // in the order of their IDs
}

// keysOf returns the keys of an organisation, of which there may be none.
func keysOf(known map[string]*orgKeys, org string) *orgKeys {
	if k := known[org]; k != nil {
		return k
	}
	return new(orgKeys)
}

// find returns the index of a key, or the index at which it would be inserted.
func (k *orgKeys) find(id string) (at int, ok bool) {
	return slices.BinarySearchFunc(k.records, id, func(m *madeKey, id string) int { return strings.Compare(m.ID, id) })
}

// get returns a key, nil for none.
func (k *orgKeys) get(id string) *madeKey {
	if at, ok := k.find(id); ok {
		return k.records[at]
	}
	return nil
}

// set replaces the key with an ID, or removes it if m is nil.
func (k *orgKeys) set(id string, m *madeKey) {
	at, ok := k.find(id)
	if ok {
		k.records = slices.Delete(k.records, at, at+1)
	}
	if m != nil {
		k.records = slices.Insert(k.records, at, m)
	}
}

// with returns a copy of the keys, to be changed, under another version.
func (k *orgKeys) with(version string) *orgKeys { return &orgKeys{version, slices.Clone(k.records)} }

// differ lists the IDs of records that only one of k and other has, or that have another text.
func (k *orgKeys) differ(other *orgKeys) (ids []string) {
	for a, b := k.records, other.records; len(a)+len(b) > 0; {
		switch {
		case len(a) > 0 && len(b) > 0 && (a[0] == b[0] || a[0].ID == b[0].ID):
			if a[0] != b[0] && string(a[0].text) != string(b[0].text) {
				ids = append(ids, a[0].ID)
			}
			a, b = a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0].ID < b[0].ID:
			ids, a = append(ids, a[0].ID), a[1:]
		default:
			ids, b = append(ids, b[0].ID), b[1:]
		}
	}
	return ids
}

// keyUse is the last use of a key, and the last one stored, in Unix seconds.
type keyUse struct{ seen, stored atomic.Int64 }

func newKeyring(store *KeyStore, clock *view.Current, logger *slog.Logger) *keyring {
	k := &keyring{store: store, clock: clock, logger: logger, looked: make(map[string]time.Time), until: make(map[string]time.Time)}
	k.known.Store(new(map[string]*orgKeys))
	return k
}

// of returns the known keys of an organisation.
func (k *keyring) of(org string) *orgKeys { return keysOf(*k.known.Load(), org) }

// learn replaces the known keys of some organisations, and reports whether there were any. mu is held.
func (k *keyring) learn(keys map[string]*orgKeys) bool {
	next := make(map[string]*orgKeys, len(keys))
	maps.Copy(next, *k.known.Load())
	maps.Copy(next, keys)
	k.known.Store(&next)
	return len(keys) > 0
}

// usage returns where the use of a key is noted.
func (k *keyring) usage(org, id string) *keyUse {
	if u, ok := k.used.Load(org + "/" + id); ok {
		return u.(*keyUse)
	}
	u, _ := k.used.LoadOrStore(org+"/"+id, new(keyUse))
	return u.(*keyUse)
}

// refresh reads the changes in the store, and reports whether the keys, or whether they were ever read, have changed.
func (k *keyring) refresh(ctx context.Context, orgs []string) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.good.IsZero() && k.fail == nil
	if err = k.listen(ctx, orgs); err == nil {
		now := k.clock.Now()
		changed, err = k.look(ctx, slices.DeleteFunc(slices.Clone(orgs), func(org string) bool { return !k.due(org, now) }))
	}
	// Whether the keys were ever read is part of the answer to callers.
	changed = changed || err != nil && first || err == nil && k.good.IsZero() && k.fail != nil
	k.fail = err
	if err == nil {
		k.good = k.clock.Now()
	}
	return changed, err
}

// fresh is refresh for one organisation, whether it is due or not.
func (k *keyring) fresh(ctx context.Context, org string) (changed bool, err error) {
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
		k.until[org] = k.clock.Now().Add(keySettled)
	}
	k.mark = mark
	return nil
}

// due reports whether an organisation is to be looked at. mu is held.
func (k *keyring) due(org string, now time.Time) bool {
	looked := k.looked[org]
	return looked.IsZero() || k.until[org].After(looked) || now.Sub(looked) >= keyNet
}

// look reads the changes of some organisations, and reports whether there were any. mu is held.
func (k *keyring) look(ctx context.Context, orgs []string) (changed bool, err error) {
	if len(orgs) == 0 {
		return false, nil
	}
	versions, err := k.store.Versions(ctx, orgs)
	if err != nil {
		return false, err
	}
	now, read := k.clock.Now(), make(map[string]*orgKeys)
	for _, org := range orgs {
		if known := k.of(org); versions[org] != known.version {
			next, err := k.load(ctx, org, known, versions[org])
			if err != nil {
				return k.learn(read), err
			}
			read[org] = next
		}
		k.looked[org] = now
	}
	return k.learn(read), nil
}

// load reads the keys of an organisation that have changed, if the store lists them, or
// else all, drops expired ones, and writes back those the store has lost.
func (k *keyring) load(ctx context.Context, org string, known *orgKeys, version string) (*orgKeys, error) {
	if known.version != "" {
		version, entries, listed, err := k.store.Changed(ctx, org, known.version, version)
		if err != nil {
			return nil, err
		}
		if listed {
			next := known.with(version)
			for i := range entries {
				next.set(entries[i].ID, nil)
			}
			return next, k.read(ctx, org, entries, known, next)
		}
	}
	version, entries, err := k.store.Load(ctx, org)
	if err != nil {
		return nil, err
	}
	next := &orgKeys{version: version}
	if err := k.read(ctx, org, entries, known, next); err != nil {
		return nil, err
	}
	return next, k.writeBack(ctx, org, entries, known, next)
}

// read enters the records that were found into next. It drops those that are over.
func (k *keyring) read(ctx context.Context, org string, entries []KeyRecord, known, next *orgKeys) error {
	now := k.clock.Now()
	for i := range entries {
		entry := &entries[i]
		if entry.Record == nil {
			continue
		}
		m, err := known.get(entry.ID).reread(entry)
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
			next.set(entry.ID, m)
		}
	}
	return nil
}

// writeBack enters into next, and writes, the known keys that are missing from found or
// have changed since.
func (k *keyring) writeBack(ctx context.Context, org string, found []KeyRecord, known, next *orgKeys) error {
	entries := make(map[string]KeyRecord, len(found))
	for _, e := range found {
		entries[e.ID] = e
	}
	now, lost := k.clock.Now(), []string(nil)
	for _, have := range known.records {
		old, stored := entries[have.ID]
		got := next.get(have.ID)
		if stored && got == nil || have.over(now) || got != nil && !have.later(got) {
			continue
		}
		old.ID = have.ID
		entry, done, err := k.store.Swap(ctx, org, old, have.text)
		if err != nil {
			return err
		}
		back := *have
		if done {
			back.entry = entry
		}
		next.set(have.ID, &back)
		lost = append(lost, have.ID)
	}
	if len(lost) > 0 {
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
	old := KeyRecord{}
	if have := known.get(next.ID); have != nil {
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
	keys := known.with(version)
	keys.set(next.ID, &next)
	k.learn(map[string]*orgKeys{org: keys})
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
	tokens := s.Tokens.Refresh(ctx)
	changed, err := s.keyring.refresh(ctx, of)
	if changed {
		s.deps.Apply(s.with)
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
