package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Snapshot is one organisation's price list at one time. It never changes;
// a nil Snapshot is an unknown one and prices nothing.
type Snapshot struct {
	gpus     []GPU
	cpus     []CPU
	gpuByID  map[string]*GPU
	cpuByID  map[string]*CPU
	pools    map[string][]*GPU
	rates    Rates
	fetched  time.Time
	digest   string
	poolList []string
}

// NewSnapshot indexes a price list fetched at the given time. Types are kept
// in order of their ids, so equal lists make equal snapshots.
func NewSnapshot(gpus []GPU, cpus []CPU, rates Rates, fetched time.Time) *Snapshot {
	s := &Snapshot{
		gpus:    slices.SortedFunc(slices.Values(gpus), func(a, b GPU) int { return strings.Compare(a.ID, b.ID) }),
		cpus:    slices.SortedFunc(slices.Values(cpus), func(a, b CPU) int { return strings.Compare(a.ID, b.ID) }),
		gpuByID: make(map[string]*GPU, len(gpus)),
		cpuByID: make(map[string]*CPU, len(cpus)),
		pools:   map[string][]*GPU{},
		rates:   rates,
		fetched: fetched,
	}
	for i := range s.gpus {
		g := &s.gpus[i]
		s.gpuByID[g.ID] = g
		if g.Pool == "" {
			continue
		}
		if s.pools[g.Pool] == nil {
			s.poolList = append(s.poolList, g.Pool)
		}
		s.pools[g.Pool] = append(s.pools[g.Pool], g)
	}
	for i := range s.cpus {
		s.cpuByID[s.cpus[i].ID] = &s.cpus[i]
	}
	slices.Sort(s.poolList)
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v|%+v|%+v", s.gpus, s.cpus, rates))
	s.digest = hex.EncodeToString(sum[:12])
	return s
}

// GPUs lists the GPU types by id. The caller must not change the list.
func (s *Snapshot) GPUs() []GPU {
	if s == nil {
		return nil
	}
	return s.gpus
}

// CPUs lists the CPU flavours by id. The caller must not change the list.
func (s *Snapshot) CPUs() []CPU {
	if s == nil {
		return nil
	}
	return s.cpus
}

// GPU finds a GPU type by its exact id.
func (s *Snapshot) GPU(id string) (GPU, bool) {
	if s == nil || s.gpuByID[id] == nil {
		return GPU{}, false
	}
	return *s.gpuByID[id], true
}

// CPU finds a CPU flavour by its id: the bare flavour (cpu5c) or the
// instance-style spelling that carries vCPUs and memory (cpu5c-4-8).
func (s *Snapshot) CPU(id string) (CPU, bool) {
	if s == nil {
		return CPU{}, false
	}
	if c := s.cpuByID[id]; c != nil {
		return *c, true
	}
	flavour, _, found := strings.Cut(id, "-")
	if c := s.cpuByID[flavour]; found && c != nil {
		return *c, true
	}
	return CPU{}, false
}

// Pools lists the serverless pools by name. The caller must not change it.
func (s *Snapshot) Pools() []string {
	if s == nil {
		return nil
	}
	return s.poolList
}

// Members lists the ids of the GPU types in a serverless pool, in order.
func (s *Snapshot) Members(pool string) []string {
	if s == nil {
		return nil
	}
	ids := make([]string, 0, len(s.pools[pool]))
	for _, g := range s.pools[pool] {
		ids = append(ids, g.ID)
	}
	return ids
}

// Fetched is when the list was read from the platform.
func (s *Snapshot) Fetched() time.Time {
	if s == nil {
		return time.Time{}
	}
	return s.fetched
}

// Digest names the content: two snapshots with equal digests hold the same
// types, prices and rates, whenever they were fetched. "" for a nil Snapshot.
func (s *Snapshot) Digest() string {
	if s == nil {
		return ""
	}
	return s.digest
}
