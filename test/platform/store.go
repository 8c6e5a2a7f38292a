package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// store keeps the state in a file. What a request changed is written before its
// answer is; reads write nothing.
type store struct {
	db      *bbolt.DB
	changed map[change]bool // since the last write
}

// change is a record that is to be written, or an account if table is empty.
type change struct {
	account   *account
	table, id string
}

// kept is a table the store can write down.
type kept interface {
	track(keep func(id string))
	record(id string) any // nil if it does not exist
	load(*bbolt.Bucket) error
	empty()
}

// kept is every table of an account by the name of its bucket.
func (a *account) kept() map[string]kept {
	return map[string]kept{
		"pods": &a.pods, "volumes": &a.volumes, "registries": &a.registries, "templates": &a.templates,
		"delegations": &a.delegations, "clusters": &a.clusters, "endpoints": &a.endpoints,
		"publicJobs": &a.publicJobs, "meters": &a.meters, "secrets": &a.secrets, "sandboxes": &a.sandboxes,
	}
}

// accountRecord is what is kept of the account itself.
type accountRecord struct {
	Funds   funds
	SSHKeys []string
}

// tableEntry is one record with its place in the order.
type tableEntry[T any] struct {
	Seq    uint64
	Record *T
}

func (t *table[T]) track(keep func(id string)) { t.keep = keep }

func (t *table[T]) record(id string) any {
	if !t.has(id) {
		return nil
	}
	return tableEntry[T]{Seq: t.seqs[id], Record: t.byID[id]}
}

// load reads every record, in the order in which they were made.
func (t *table[T]) load(b *bbolt.Bucket) error {
	type loaded struct {
		id string
		tableEntry[T]
	}
	var list []loaded
	err := b.ForEach(func(key, text []byte) error {
		one := loaded{id: string(key)}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // the input of jobs keeps its numbers as they were
		if err := d.Decode(&one.tableEntry); err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		list = append(list, one)
		return nil
	})
	slices.SortFunc(list, func(a, b loaded) int { return int(int64(a.Seq - b.Seq)) })
	for _, one := range list {
		t.put(one.id, one.Record, one.Seq)
	}
	return err
}

// openStore reads the state of the accounts there are out of a file, which is
// made if it does not exist.
func (s *Server) openStore(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("data file %s: %w", path, err)
	}
	s.store = &store{db, map[change]bool{}}
	if err := db.View(s.loadAll); err != nil {
		return errors.Join(fmt.Errorf("data file %s: %w", path, err), db.Close())
	}
	return nil
}

func (s *Server) loadAll(tx *bbolt.Tx) error {
	if meta := tx.Bucket([]byte("meta")); meta != nil {
		var now time.Time
		if err := now.UnmarshalText(meta.Get([]byte("clock"))); err != nil {
			return err
		}
		s.clock.AdvanceTo(now)
	}
	changed := s.store.changed
	for id, a := range s.accounts {
		a.touch = func() { changed[change{account: a}] = true }
		for name, t := range a.kept() {
			t.track(func(id string) { changed[change{a, name, id}] = true })
		}
		b := tx.Bucket([]byte("account " + id))
		if b == nil {
			continue
		}
		if err := a.load(b); err != nil {
			return fmt.Errorf("account %s: %w", id, err)
		}
		s.recount(a)
	}
	return nil
}

func (a *account) load(b *bbolt.Bucket) error {
	var r accountRecord
	if err := json.Unmarshal(b.Get([]byte("account")), &r); err != nil {
		return err
	}
	a.funds, a.sshKeys = r.Funds, r.SSHKeys
	for name, t := range a.kept() {
		if one := b.Bucket([]byte(name)); one != nil {
			if err := t.load(one); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// recount works out what follows from the records: the stock in use, the rate
// at which money is spent, the index of jobs.
func (s *Server) recount(a *account) {
	for _, p := range a.pods.order {
		if p.holdsMachine() {
			s.catalog.takeLocked(p.kind())
		}
	}
	for _, b := range a.sandboxes.order {
		if b.EndedAt.IsZero() {
			s.catalog.takeLocked(b.Holds, b.VCPU)
		}
	}
	for _, e := range a.endpoints.order {
		e.jobs = map[string]*job{}
		for _, j := range slices.Concat(e.Active, e.Done) {
			e.jobs[j.ID] = j
			if j.Calls && j.Status == jobRunning { // what ran it has ended
				j.Ends, e.NextAt = s.clock.Now(), s.clock.Now()
			}
		}
		for _, w := range e.Fleet {
			s.catalog.takeLocked(w.Holds, w.Takes)
			e.throttled = e.throttled || w.Status == workerThrottled
		}
	}
	for _, m := range a.meters.order {
		if n := len(m.Spans); n > 0 && m.Spans[n-1].To.IsZero() {
			a.funds.charge(m.Spans[n-1].Rate.total())
		}
	}
}

// release gives the state up, after what changed has been written down.
func (s *Server) release() {
	defer s.mu.Unlock()
	if s.store == nil || len(s.store.changed) == 0 {
		return
	}
	if err := s.save(); err != nil {
		s.log.Error("emulator could not keep its state", "error", err)
	}
}

// save writes what changed; what could not be written stays marked as changed.
func (s *Server) save() error {
	err := s.store.db.Update(func(tx *bbolt.Tx) error {
		if err := s.saveClock(tx); err != nil {
			return err
		}
		for c := range s.store.changed {
			if err := c.save(tx); err != nil {
				return fmt.Errorf("account %s: %s: %w", c.account.ID, cmp.Or(c.table, "account"), err)
			}
		}
		return nil
	})
	if err == nil {
		clear(s.store.changed)
	}
	return err
}

func (s *Server) saveClock(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists([]byte("meta"))
	if err != nil {
		return err
	}
	now, err := s.clock.Now().MarshalText()
	if err != nil {
		return err
	}
	return meta.Put([]byte("clock"), now)
}

func (c change) save(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte("account " + c.account.ID))
	if err != nil {
		return err
	}
	if err := put(b, "account", accountRecord{Funds: c.account.funds, SSHKeys: c.account.sshKeys}); err != nil || c.table == "" {
		return err
	}
	t, err := b.CreateBucketIfNotExists([]byte(c.table))
	if err != nil {
		return err
	}
	if v := c.account.kept()[c.table].record(c.id); v != nil {
		return put(t, c.id, v)
	}
	return t.Delete([]byte(c.id))
}

func put(b *bbolt.Bucket, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), text)
}

// closeStore writes everything once more and closes the file.
func (s *Server) closeStore() error {
	if s.store == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, a := range s.accounts {
		s.advanceLocked(a, now)
		a.touch()
	}
	err := errors.Join(s.save(), s.store.db.Close())
	s.store = nil
	return err
}
