package storetest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// MemoryStore is a translate.Store in this process: a reference for the contract and
// a stand-in for tests. Use NewMemoryStore.
type MemoryStore struct {
	now func() time.Time

	mu      sync.Mutex // guards records
	records map[translate.Key]memoryRecord
}

type memoryRecord struct {
	value   json.RawMessage
	expires time.Time // zero: never
}

// NewMemoryStore returns an empty store that expires its records by now.
func NewMemoryStore(now func() time.Time) *MemoryStore {
	return &MemoryStore{now: now, records: make(map[translate.Key]memoryRecord)}
}

// Get implements translate.Store.
func (s *MemoryStore) Get(_ context.Context, key translate.Key) (json.RawMessage, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.liveLocked(key)
	return slices.Clone(record.value), ok, nil
}

// Put implements translate.Store.
func (s *MemoryStore) Put(_ context.Context, key translate.Key, value json.RawMessage, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(key, value, ttl)
	return nil
}

// AddAll implements translate.Store.
func (s *MemoryStore) AddAll(_ context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, value := range values {
		key := translate.Key{Account: account, Kind: kind, ID: id}
		if _, ok := s.liveLocked(key); !ok {
			s.putLocked(key, value, ttl)
		}
	}
	return nil
}

// Delete implements translate.Store.
func (s *MemoryStore) Delete(_ context.Context, key translate.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, key)
	return nil
}

// Find implements translate.Store.
func (s *MemoryStore) Find(_ context.Context, account, kind string, ids []string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([]string, len(ids))
	for i, id := range ids {
		if record, ok := s.liveLocked(translate.Key{Account: account, Kind: kind, ID: id}); ok {
			values[i] = string(record.value)
		}
	}
	return values, nil
}

// List implements translate.Store.
func (s *MemoryStore) List(_ context.Context, account, kind string) (map[string]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make(map[string]json.RawMessage)
	for _, key := range slices.Collect(maps.Keys(s.records)) {
		if key.Account != account || key.Kind != kind {
			continue
		}
		if record, ok := s.liveLocked(key); ok {
			values[key.ID] = slices.Clone(record.value)
		}
	}
	return values, nil
}

func (s *MemoryStore) putLocked(key translate.Key, value json.RawMessage, ttl time.Duration) {
	record := memoryRecord{value: slices.Clone(value)}
	if ttl > 0 {
		record.expires = s.now().Add(ttl)
	}
	s.records[key] = record
}

func (s *MemoryStore) liveLocked(key translate.Key) (memoryRecord, bool) {
	record, ok := s.records[key]
	if ok && !record.expires.IsZero() && !s.now().Before(record.expires) {
		delete(s.records, key)
		return memoryRecord{}, false
	}
	return record, ok
}
