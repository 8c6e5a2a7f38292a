package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// announceWindow is the maximum duration of an announced change. For this time after an announcement, every refresh reads the
	// organisation.
	announceWindow = 10 * time.Second
	// maxReadAge is the time after which an organisation is read without an announcement, in case the store has lost one.
	maxReadAge = time.Minute
	// replicatedIndex is the index of all records of an organisation.
	replicatedIndex = "all"
	// announcements is the list of the latest announcements for all organisations. A gateway that has missed more than maxAnnouncements
	// reads every organisation.
	announcements    = "news"
	maxAnnouncements = 256
	announcementTTL  = 10 * 365 * 24 * time.Hour
	// mixedVersion is the version of records that were changed both here and by other gateways, or that may differ from the store. The
	// store never has this version, so the next read detects a difference.
	mixedVersion = "-"
)

// Replicated is a record of a Replica. It is stored as JSON, and must not be changed after it has been passed to the replica.
type Replicated[T any] interface {
	comparable
	// RecordID returns the ID of the record, unique within its organisation.
	RecordID() string
	// Later reports whether the record is a later state than other, a record with the same ID.
	Later(other T) bool
	// Ends returns the time when the record expires and the store and all replicas remove it. The zero time means never.
	Ends() time.Time
}

// ReplicaConfig configures a Replica. All fields are required except MaxRecords, AlwaysRead, OnAdd and OnRemove.
type ReplicaConfig[T any] struct {
	// Name identifies the records in log messages.
	Name   string
	Logger *slog.Logger
	Now    func() time.Time
	// Orgs returns the organisations whose records are read.
	Orgs func() []string
	// MaxRecords is the maximum number of records per organisation, 0 for no limit.
	MaxRecords int
	// AlwaysRead makes every refresh read every organisation. Otherwise, a loss of records that leaves the announcements intact is detected
	// within a minute.
	AlwaysRead bool
	// OnAdd is called before a record is added to the replica. It may be nil.
	OnAdd func(org string, record T)
	// OnRemove is called with the ID of a record that has expired. It may be nil.
	OnRemove func(ctx context.Context, org, id string) error
}

// Replica is one gateway's copy of records shared by all gateways. Records that have been read remain available while the store is down.
// The replica writes back records that the store lost in a restart or failover. Of two records with the same ID, it keeps the later one. A
// Replica is safe for concurrent use. It does not own its client.
type Replica[T Replicated[T]] struct {
	config        ReplicaConfig[T]
	store         *Store[json.RawMessage]
	announcements CappedLog
	known         atomic.Pointer[map[string]*Records[T]] // by organisation; the map is immutable

	mu       sync.Mutex // held during requests to the store; guards the fields below
	lastRead time.Time  // time of the last successful read, or zero
	lastErr  error      // error of the last refresh
	// mark is the position of the latest announcement read. read is the time of the last read of each organisation. Until the time in
	// until, every refresh reads the organisation.
	mark        string
	read, until map[string]time.Time
}

// NewReplica returns a replica of the records whose keys begin with prefix. It does not dial.
func NewReplica[T Replicated[T]](client Client, prefix string, config ReplicaConfig[T]) *Replica[T] {
	r := &Replica[T]{
		config: config, store: New[json.RawMessage](client, prefix),
		announcements: CappedLog{Client: client, Prefix: prefix, MaxLines: maxAnnouncements, Retention: announcementTTL},
		read:          make(map[string]time.Time), until: make(map[string]time.Time),
	}
	r.known.Store(&map[string]*Records[T]{})
	if config.OnAdd == nil {
		r.config.OnAdd = func(string, T) {}
	}
	if config.OnRemove == nil {
		r.config.OnRemove = func(context.Context, string, string) error { return nil }
	}
	return r
}

// Known returns the current records by organisation.
func (r *Replica[T]) Known() map[string]*Records[T] { return *r.known.Load() }

// State returns the time of the last successful read, which is zero if there was none, and the error of the last refresh.
func (r *Replica[T]) State() (good time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastRead, r.lastErr
}

// Refresh reads announced changes. changed is true if the records have changed. Until the first successful read, it is also true for the
// first failure and for the first success.
func (r *Replica[T]) Refresh(ctx context.Context) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refresh(ctx)
}

// RefreshOrg reads the changes of one organisation, whether announced or not. If the store has never been read, it is equivalent to
// Refresh.
func (r *Replica[T]) RefreshOrg(ctx context.Context, org string) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastRead.IsZero() {
		return r.refresh(ctx)
	}
	return r.readOrgs(ctx, []string{org})
}

// refresh implements Refresh. r.mu must be held.
func (r *Replica[T]) refresh(ctx context.Context) (changed bool, err error) {
	orgs := r.config.Orgs()
	if err = r.readAnnouncements(ctx, orgs); err == nil {
		now := r.config.Now()
		changed, err = r.readOrgs(ctx, slices.DeleteFunc(slices.Clone(orgs), func(org string) bool { return !r.due(org, now) }))
	}
	changed = changed || r.lastRead.IsZero() && (r.lastErr == nil || err == nil)
	if r.lastErr = err; err == nil {
		r.lastRead = r.config.Now()
	}
	return changed, err
}

// readAnnouncements reads which organisations are changing. r.mu must be held.
func (r *Replica[T]) readAnnouncements(ctx context.Context, orgs []string) error {
	lines, whole, err := r.announcements.After(ctx, announcements, cmp.Or(r.mark, "-"), maxAnnouncements)
	if err != nil {
		return err
	}
	if !whole && (r.mark != "" || len(lines) > 0 || len(r.Known()) > 0) {
		r.scheduleReads(orgs...) // announcements may have been missed, or the store has lost them
		r.mark = ""
	}
	for _, l := range lines {
		r.scheduleReads(string(l.Text))
		r.mark = l.Position
	}
	return nil
}

// scheduleReads makes the next refreshes read the given organisations. r.mu must be held.
func (r *Replica[T]) scheduleReads(orgs ...string) {
	for _, org := range orgs {
		r.until[org] = r.config.Now().Add(announceWindow)
	}
}

// due reports whether a refresh must read an organisation. r.mu must be held.
func (r *Replica[T]) due(org string, now time.Time) bool {
	read := r.read[org]
	return r.config.AlwaysRead || read.IsZero() || r.until[org].After(read) || now.Sub(read) >= maxReadAge
}

// readOrgs reads the changes of organisations and reports whether there were any. Records read before an error are kept; the failed
// organisation is then read on every refresh until that succeeds. r.mu must be held.
func (r *Replica[T]) readOrgs(ctx context.Context, orgs []string) (changed bool, err error) {
	if len(orgs) == 0 {
		return false, nil
	}
	versions, err := r.store.Versions(ctx, orgs)
	if err != nil {
		return false, err
	}
	now, next := r.config.Now(), make(map[string]*Records[T])
	var errs []error
	for _, org := range orgs {
		known := r.Of(org)
		is, err := r.update(ctx, org, known, versions[org])
		if is != known {
			next[org] = is
		}
		if r.read[org] = now; err != nil {
			delete(r.read, org)
			errs = append(errs, fmt.Errorf("organisation %s: %w", org, err))
		}
	}
	return r.publish(next), errors.Join(errs...)
}

// update returns the records of an organisation at the given version. It returns known if nothing has changed or could be read. r.mu must
// be held.
func (r *Replica[T]) update(ctx context.Context, org string, known *Records[T], version string) (*Records[T], error) {
	kept, err := r.prune(ctx, org, known)
	if err != nil || kept.version == version {
		return kept, err
	}
	return r.load(ctx, org, kept, version)
}

// prune returns the records without expired ones. It returns known if none have expired.
func (r *Replica[T]) prune(ctx context.Context, org string, known *Records[T]) (*Records[T], error) {
	kept, now := known.with(known.version), r.config.Now()
	kept.items = slices.DeleteFunc(kept.items, func(i *item[T]) bool { return ended(i.value, now) })
	if len(kept.items) == len(known.items) {
		return known, nil
	}
	for _, id := range known.Diff(kept) {
		at, _ := known.find(id)
		if err := errors.Join(r.config.OnRemove(ctx, org, id), r.drop(ctx, org, known.items[at])); err != nil {
			return known, err
		}
	}
	return kept, nil
}

// drop deletes an expired record that the store still has, because earlier versions wrote some records without an expiry time. The store's
// clock decides, because this gateway's clock may be wrong.
func (r *Replica[T]) drop(ctx context.Context, org string, one *item[T]) error {
	is, err := r.store.Get(ctx, org, one.id)
	if err != nil || is.Record == nil || !ended(one.value, is.Now) {
		return err
	}
	_, _, err = r.store.Swap(ctx, org, one.entry, Write[json.RawMessage]{Version: true, Indexes: []Index{{Name: replicatedIndex}}})
	return err
}

// ended reports whether a record has expired.
func ended[T Replicated[T]](record T, now time.Time) bool {
	end := record.Ends()
	return !end.IsZero() && !end.After(now)
}

// Of returns the current records of an organisation.
func (r *Replica[T]) Of(org string) *Records[T] {
	if k := r.Known()[org]; k != nil {
		return k
	}
	return new(Records[T])
}

// publish replaces the records of the given organisations and reports whether there are any. r.mu must be held.
func (r *Replica[T]) publish(records map[string]*Records[T]) bool {
	if len(records) == 0 {
		return false
	}
	next := maps.Clone(r.Known())
	maps.Copy(next, records)
	r.known.Store(&next)
	return true
}

// load reads the changed records of an organisation if the store lists the changes. Otherwise it reads all records and writes back those
// that the store has lost. r.mu must be held.
func (r *Replica[T]) load(ctx context.Context, org string, known *Records[T], version string) (*Records[T], error) {
	if known.version != "" {
		version, entries, listed, err := r.store.Changed(ctx, org, known.version, version)
		if err != nil {
			return known, err
		}
		if listed {
			next := known.with(version)
			for i := range entries {
				next.remove(entries[i].ID)
			}
			return next, r.addEntries(ctx, org, entries, known, next)
		}
	}
	entries, err := r.store.Entries(ctx, org, replicatedIndex) // at least as new as version
	if err != nil {
		return known, err
	}
	next := &Records[T]{version: version}
	err = r.addEntries(ctx, org, entries, known, next)
	return next, errors.Join(err, r.writeBack(ctx, org, lost(entries, known, next), next))
}

// addEntries adds entries of the store to next. It logs and skips entries that cannot be decoded, and deletes expired ones.
func (r *Replica[T]) addEntries(ctx context.Context, org string, entries []Entry[json.RawMessage], known, next *Records[T]) (err error) {
	now := r.config.Now()
	for _, e := range entries {
		if e.Record == nil {
			continue
		}
		one, unread := r.parse(org, e, known)
		switch {
		case unread != nil:
			r.config.Logger.ErrorContext(ctx, "cannot decode a record, ignoring it", "records", r.config.Name, "org", org, "id", e.ID,
				"error", unread.Error())
		case ended(one.value, now):
			err = cmp.Or(err, r.drop(ctx, org, one))
		default:
			next.set(one)
		}
	}
	return err
}

// parse decodes an entry, or reuses the known record if its JSON is unchanged.
func (r *Replica[T]) parse(org string, e Entry[json.RawMessage], known *Records[T]) (*item[T], error) {
	one := &item[T]{id: e.ID, text: string(*e.Record), entry: e}
	if at, ok := known.find(e.ID); ok && known.items[at].text == one.text {
		one.value = known.items[at].value
		return one, nil
	}
	if err := json.Unmarshal(*e.Record, &one.value); err != nil {
		return nil, err
	}
	if one.text == "null" {
		return nil, errReply
	}
	if id := one.value.RecordID(); id != e.ID {
		return nil, fmt.Errorf("stored ID is %q", id)
	}
	r.config.OnAdd(org, one.value)
	return one, nil
}

// loss is a known record together with the entry that the store has in its place.
type loss[T any] struct {
	have  *item[T]
	entry Entry[json.RawMessage]
}

// lost returns the known records that are missing from the entries, or later than those in next.
func lost[T Replicated[T]](entries []Entry[json.RawMessage], known, next *Records[T]) (list []loss[T]) {
	stored := make(map[string]Entry[json.RawMessage], len(entries))
	for _, e := range entries {
		stored[e.ID] = e
	}
	for _, have := range known.items {
		old, found := stored[have.id]
		at, readable := next.find(have.id)
		if !found || readable && have.value.Later(next.items[at].value) {
			old.ID = have.id
			list = append(list, loss[T]{have, old})
		}
	}
	return list
}

// writeBack adds lost records to next and writes them to the store. Records that exceed the store's limit remain in this replica only.
func (r *Replica[T]) writeBack(ctx context.Context, org string, lost []loss[T], next *Records[T]) (err error) {
	version := next.version
	var back, full []string
	for _, l := range lost {
		next.version = mixedVersion
		next.set(l.have)
	}
	for _, l := range lost {
		one := *l.have
		if _, err = r.put(ctx, org, l.entry, &one); errors.Is(err, ErrFull) {
			full, err = append(full, one.id), nil
			continue
		}
		if err != nil {
			break
		}
		next.set(&one)
		back = append(back, one.id)
	}
	if len(full) == len(lost) {
		next.version = version // nothing was written
	}
	if len(back) > 0 {
		r.config.Logger.WarnContext(ctx, "restored records that the store had lost", "records", r.config.Name, "org", org, "ids", back)
	}
	if len(full) > 0 {
		r.config.Logger.WarnContext(ctx, "cannot restore records that the store had lost: limit reached", "records", r.config.Name,
			"org", org, "ids", full)
	}
	return err
}

// put announces a change and replaces the entry old with the record next. It reports whether the store still had the old entry.
func (r *Replica[T]) put(ctx context.Context, org string, old Entry[json.RawMessage], next *item[T]) (bool, error) {
	if err := r.announcements.Add(ctx, announcements, []byte(org)); err != nil {
		return false, err
	}
	r.scheduleReads(org) // the store may lose the record before this gateway reads the announcement
	text := json.RawMessage(next.text)
	w := Write[json.RawMessage]{Record: &text, Version: true, Indexes: []Index{{Name: replicatedIndex, MaxRecords: r.config.MaxRecords}}}
	if end := next.value.Ends(); !end.IsZero() {
		w.TTL = max(end.Sub(r.config.Now()), time.Second)
	}
	e, done, err := r.store.Swap(ctx, org, old, w)
	if done && err == nil {
		next.entry = e
	}
	return done, err
}

// Swap writes next to the store and to the replica, in place of old, the record with the same ID that the caller has read with Of, or the
// zero value if there was none. It writes nothing and returns false if the record has changed since, in the replica or in the store. It
// returns ErrFull if the organisation has the maximum number of records.
func (r *Replica[T]) Swap(ctx context.Context, org string, old, next T) (bool, error) {
	text, err := json.Marshal(next)
	if err != nil {
		return false, fmt.Errorf("encode a record: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, one := r.Of(org), &item[T]{id: next.RecordID(), text: string(text), value: next}
	if known.Get(one.id) != old {
		return false, nil
	}
	replaced := Entry[json.RawMessage]{}
	if at, ok := known.find(one.id); ok {
		replaced = known.items[at].entry
	}
	replaced.ID = one.id
	if done, err := r.put(ctx, org, replaced, one); err != nil || !done {
		return false, err
	}
	r.config.OnAdd(org, next)
	version := mixedVersion
	if one.entry.Version != "" && one.entry.PreviousVersion == known.version {
		version = one.entry.Version // nothing else has changed
	}
	records := known.with(version)
	records.set(one)
	r.publish(map[string]*Records[T]{org: records})
	return true, nil
}
