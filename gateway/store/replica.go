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
	// announceWindow is how long an announced change may take: for this long after an announcement, every refresh reads the organisation.
	announceWindow = 10 * time.Second
	// maxReadAge is the time between two reads of an organisation without announcements, in case the store has lost an announcement.
	maxReadAge = time.Minute
	// replicatedIndex is the index of all records of an organisation.
	replicatedIndex = "all"
	// announcements is the list of the latest announcements of all organisations. A gateway that has missed more than maxNews reads every
	// organisation.
	announcements    = "news"
	maxAnnouncements = 256
	announcementTTL  = 10 * 365 * 24 * time.Hour
	// mixedVersion is the version of records that both this gateway and others have changed, or that may differ from those of the store. The
	// store never has this version, so the next read of the organisation finds a difference.
	mixedVersion = "-"
)

// Replicated is a record of a Replica. It is stored as JSON and is not changed once the replica has it.
type Replicated[T any] interface {
	// RecordID identifies the record in its organisation.
	RecordID() string
	// Later reports whether the record is a later state than another record with the same ID.
	Later(than T) bool
	// Ends returns the time from which the record is of no use, zero for never. The store and all replicas drop the record then.
	Ends() time.Time
}

// ReplicaConfig says how a Replica treats its records. All fields are required but Most, Always, Entered and Dropped.
type ReplicaConfig[T any] struct {
	// Name names the records in the log.
	Name   string
	Logger *slog.Logger
	Now    func() time.Time
	// Orgs lists the organisations whose records are read.
	Orgs func() []string
	// MaxLinesecords is how many records an organisation may have, 0 for any number.
	MaxRecords int
	// AlwaysRead has every refresh read every organisation, announced or not. Otherwise a loss of records that leaves the announcements is
	// found within a minute.
	AlwaysRead bool
	// OnAdd is called with a record before the replica has it; nil does nothing.
	OnAdd func(org string, record T)
	// OnRemove is called with the ID of a record that has ended; nil does nothing.
	OnRemove func(ctx context.Context, org, id string) error
}

// Replica is one gateway's copy of records that all gateways share. The known records are in force for the life of the process, whether
// the store answers or not. The replica writes records back that the store has lost in a restart or a failover: the later of two records
// with one ID wins. A Replica is safe for concurrent use. It does not own its client.
type Replica[T Replicated[T]] struct {
	config        ReplicaConfig[T]
	store         *Store[json.RawMessage]
	announcements CappedLog
	known         atomic.Pointer[map[string]*Records[T]] // by organisation; immutable

	mu       sync.Mutex // held while the store is asked; guards the fields below
	lastRead time.Time  // when the store was last read; zero for never
	lastErr  error      // of the last refresh
	// mark is the place of the latest announcement that was read. read is when an organisation was last read; until is the time until which every refresh
	// reads it.
	mark        string
	read, until map[string]time.Time
}

// NewReplica returns a replica of the records whose keys begin with prefix. It does not dial.
func NewReplica[T Replicated[T]](client Client, prefix string, config ReplicaConfig[T]) *Replica[T] {
	r := &Replica[T]{
		config: config, store: New[json.RawMessage](client, prefix), announcements: CappedLog{Client: client, Prefix: prefix, MaxLines: maxAnnouncements, Retention: announcementTTL},
		read: make(map[string]time.Time), until: make(map[string]time.Time),
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

// Known returns the known records by organisation.
func (r *Replica[T]) Known() map[string]*Records[T] { return *r.known.Load() }

// State returns when the store was last read, zero for never, and the error of the last refresh.
func (r *Replica[T]) State() (good time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastRead, r.lastErr
}

// Refresh reads the announced changes. changed reports whether the records are different, or whether this is the first read, the first
// failure, or the first read after failures.
func (r *Replica[T]) Refresh(ctx context.Context) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refresh(ctx)
}

// RefreshOrg reads the changes of an organisation, announced or not. If the store was never read, Fresh is Refresh.
func (r *Replica[T]) RefreshOrg(ctx context.Context, org string) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastRead.IsZero() {
		return r.refresh(ctx)
	}
	return r.readOrgs(ctx, []string{org})
}

// refresh is Refresh. The caller holds mu.
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

// readAnnouncements reads which organisations are about to change. The caller holds mu.
func (r *Replica[T]) readAnnouncements(ctx context.Context, orgs []string) error {
	lines, whole, err := r.announcements.After(ctx, announcements, cmp.Or(r.mark, "-"), maxAnnouncements)
	if err != nil {
		return err
	}
	if !whole && (r.mark != "" || len(lines) > 0 || len(r.Known()) > 0) {
		r.scheduleReads(orgs...) // there may have been others, or the store has lost them
		r.mark = ""
	}
	for _, l := range lines {
		r.scheduleReads(string(l.Text))
		r.mark = l.Position
	}
	return nil
}

// scheduleReads has the next refreshes read organisations. The caller holds mu.
func (r *Replica[T]) scheduleReads(orgs ...string) {
	for _, org := range orgs {
		r.until[org] = r.config.Now().Add(announceWindow)
	}
}

// due reports whether a refresh reads an organisation. The caller holds mu.
func (r *Replica[T]) due(org string, now time.Time) bool {
	read := r.read[org]
	return r.config.AlwaysRead || read.IsZero() || r.until[org].After(read) || now.Sub(read) >= maxReadAge
}

// readOnlyOrgs reads the changes of organisations, and reports whether there were any. What was read is known even if there is an error; then every
// refresh reads the organisation again until it succeeds. The caller holds mu.
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

// update returns the records of an organisation at a version, known if nothing has changed or was read. The caller holds mu.
func (r *Replica[T]) update(ctx context.Context, org string, known *Records[T], version string) (*Records[T], error) {
	kept, err := r.prune(ctx, org, known)
	if err != nil || kept.version == version {
		return kept, err
	}
	return r.load(ctx, org, kept, version)
}

// prune returns the known records without ended ones, known if none has ended.
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

// drop deletes an ended record that the store keeps: earlier versions wrote some without their end. The store's clock decides, because
// that of this gateway may be wrong.
func (r *Replica[T]) drop(ctx context.Context, org string, one *item[T]) error {
	is, err := r.store.Get(ctx, org, one.id)
	if err != nil || is.Record == nil || !ended(one.value, is.Now) {
		return err
	}
	_, _, err = r.store.Swap(ctx, org, one.entry, Write[json.RawMessage]{Version: true, Indexes: []Index{{Name: replicatedIndex}}})
	return err
}

// ended reports whether a record is of no use any more.
func ended[T Replicated[T]](record T, now time.Time) bool {
	end := record.Ends()
	return !end.IsZero() && !end.After(now)
}

// Of returns the known records of an organisation.
func (r *Replica[T]) Of(org string) *Records[T] {
	if k := r.Known()[org]; k != nil {
		return k
	}
	return new(Records[T])
}

// publish replaces the known records of organisations, and reports whether there were any. The caller holds mu.
func (r *Replica[T]) publish(records map[string]*Records[T]) bool {
	if len(records) == 0 {
		return false
	}
	next := maps.Clone(r.Known())
	maps.Copy(next, records)
	r.known.Store(&next)
	return true
}

// load reads the records of an organisation that have changed, if the store lists them. Otherwise it reads all records, and writes those
// back that the store has lost. The caller holds mu.
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
	entries, err := r.store.Entries(ctx, org, replicatedIndex) // as new as the version, or newer
	if err != nil {
		return known, err
	}
	next := &Records[T]{version: version}
	err = r.addEntries(ctx, org, entries, known, next)
	return next, errors.Join(err, r.writeBack(ctx, org, lost(entries, known, next), next))
}

// addEntries adds entries of the store to next. It logs and leaves out those that cannot be read, and drops those that have ended.
func (r *Replica[T]) addEntries(ctx context.Context, org string, entries []Entry[json.RawMessage], known, next *Records[T]) (err error) {
	now := r.config.Now()
	for _, e := range entries {
		if e.Record == nil {
			continue
		}
		one, unread := r.parse(org, e, known)
		switch {
		case unread != nil:
			r.config.Logger.ErrorContext(ctx, "a record cannot be read and is not in force", "records", r.config.Name, "org", org, "id", e.ID, "error", unread.Error())
		case ended(one.value, now):
			err = cmp.Or(err, r.drop(ctx, org, one))
		default:
			next.set(one)
		}
	}
	return err
}

// parse reads an entry of the store, unless the record with its ID has the same text.
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
		return nil, fmt.Errorf("its id is %q", id)
	}
	r.config.OnAdd(org, one.value)
	return one, nil
}

// loss is a known record, and what the store has in its place.
type loss[T any] struct {
	have  *item[T]
	entry Entry[json.RawMessage]
}

// lost lists the known records that are missing from the entries of the store, or later than those in next.
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

// writeBack adds lost records to next, and writes them. Those for which the store has no room stay in force here.
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
		r.config.Logger.WarnContext(ctx, "the store had lost records; they were written back", "records", r.config.Name, "org", org, "ids", back)
	}
	if len(full) > 0 {
		r.config.Logger.WarnContext(ctx, "the store has lost records and has no room for them", "records", r.config.Name, "org", org, "ids", full)
	}
	return err
}

// put announces and writes a record in the place of an entry. It reports whether the store had that entry.
func (r *Replica[T]) put(ctx context.Context, org string, old Entry[json.RawMessage], next *item[T]) (bool, error) {
	if err := r.announcements.Add(ctx, announcements, []byte(org)); err != nil {
		return false, err
	}
	r.scheduleReads(org) // the store may lose the record before this gateway has read the announcement
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

// Swap writes a record in the place of the known one with its ID, in the store and here. It reports whether the store had the known one.
// The error is ErrFull if the organisation has as many records as it may.
func (r *Replica[T]) Swap(ctx context.Context, org string, record T) (bool, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return false, fmt.Errorf("encode a record: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, one := r.Of(org), &item[T]{id: record.RecordID(), text: string(text), value: record}
	old := Entry[json.RawMessage]{}
	if at, ok := known.find(one.id); ok {
		old = known.items[at].entry
	}
	old.ID = one.id
	if done, err := r.put(ctx, org, old, one); err != nil || !done {
		return false, err
	}
	r.config.OnAdd(org, record)
	version := mixedVersion
	if one.entry.Version != "" && one.entry.PreviousVersion == known.version {
		version = one.entry.Version // nothing else has changed
	}
	next := known.with(version)
	next.set(one)
	r.publish(map[string]*Records[T]{org: next})
	return true, nil
}
