package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Snapshot is an organisation's price list at one point in time. It is immutable. A nil Snapshot is valid and treats every price as
// unknown.
type Snapshot struct {
	gpus    []GPU
	cpus    []CPU
	tiers   map[string]string
	gpuByID map[string]*GPU
	cpuByID map[string]*CPU
	pools   map[string][]*GPU
	rates   Rates
	listed  *Snapshot
	fetched time.Time
	digest  string
}

// NewSnapshot returns a snapshot of a price list fetched at the given time. Types are sorted by ID, so equal lists make equal
// snapshots.
func NewSnapshot(l Lists, rates Rates, fetched time.Time) *Snapshot {
	s := &Snapshot{
		tiers:   l.Tiers,
		gpus:    slices.SortedFunc(slices.Values(l.GPUs), func(a, b GPU) int { return strings.Compare(a.ID, b.ID) }),
		cpus:    slices.SortedFunc(slices.Values(l.CPUs), func(a, b CPU) int { return strings.Compare(a.ID, b.ID) }),
		gpuByID: make(map[string]*GPU, len(l.GPUs)),
		cpuByID: make(map[string]*CPU, len(l.CPUs)),
		pools:   map[string][]*GPU{},
		rates:   rates,
		fetched: fetched,
	}
	if l.ListPrices != nil {
		s.listed = NewSnapshot(*l.ListPrices, rates, fetched)
	}
	for i := range s.gpus {
		g := &s.gpus[i]
		s.gpuByID[g.ID] = g
		if g.Pool != "" {
			s.pools[g.Pool] = append(s.pools[g.Pool], g)
		}
	}
	for i := range s.cpus {
		s.cpuByID[s.cpus[i].ID] = &s.cpus[i]
	}
	s.nameFlavours()
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v|%+v|%+v|%+v|%t", s.gpus, s.cpus, s.tiers, rates, s.listed != nil))
	s.digest = hex.EncodeToString(sum[:12])
	return s
}

// sharing returns s with the memory of other if both have the same contents.
func (s *Snapshot) sharing(other *Snapshot) *Snapshot {
	if other == nil || s.digest != other.digest || s.listed.Digest() != other.listed.Digest() {
		return s
	}
	shared := *other
	shared.fetched = s.fetched
	return &shared
}

// nameFlavours adds entries for bare CPU flavours that the list contains only as instances. Prices are per vCPU, so all instances of a
// flavour should cost the same. If they do not, the flavour has the highest of their prices, and an unknown price if one of them is
// unknown.
func (s *Snapshot) nameFlavours() {
	made := map[string]*CPU{}
	for i := range s.cpus {
		c := &s.cpus[i]
		flavour, _ := sizeOf(c.ID)
		if s.cpuByID[flavour] != nil && made[flavour] == nil {
			continue
		}
		if made[flavour] == nil {
			made[flavour] = &CPU{ID: flavour, Name: flavour, Group: c.Group, Secure: c.Secure, Serverless: c.Serverless}
			s.cpuByID[flavour] = made[flavour]
			continue
		}
		made[flavour].Secure = higherPrice(made[flavour].Secure, c.Secure)
		made[flavour].Serverless = higherPrice(made[flavour].Serverless, c.Serverless)
	}
}

func higherPrice(a, b Price) Price {
	if !a.Known || !b.Known {
		return Price{}
	}
	return Price{Known: true, PerHour: max(a.PerHour, b.PerHour)}
}

// orEmpty returns s, or an empty snapshot if s is nil.
func (s *Snapshot) orEmpty() *Snapshot {
	if s == nil {
		return new(Snapshot)
	}
	return s
}

// GPUs returns the GPU types, sorted by ID. Callers must not modify the slice.
func (s *Snapshot) GPUs() []GPU { return s.orEmpty().gpus }

// CPUs returns the CPU flavours, sorted by ID. Callers must not modify the slice.
func (s *Snapshot) CPUs() []CPU { return s.orEmpty().cpus }

// CPU returns a CPU flavour by its ID: the bare flavour (cpu5c), or the instance form with vCPUs and memory (cpu5c-4-8). If the
// catalog lists instances, a bare flavour is the most expensive of its instances.
func (s *Snapshot) CPU(id string) (CPU, bool) {
	if s == nil {
		return CPU{}, false
	}
	if c := s.cpuByID[id]; c != nil {
		return *c, true
	}
	flavour, _ := sizeOf(id)
	if c := s.cpuByID[flavour]; c != nil {
		return *c, true
	}
	return CPU{}, false
}

// sizedFlavour matches the instance form of a CPU flavour ID.
var sizedFlavour = regexp.MustCompile(`^([A-Za-z0-9]+)-([0-9]+)-[0-9]+$`)

// sizeOf splits the instance form of a CPU flavour ID. vcpus is 0 for a bare flavour, and out of range for a number that is too
// long.
func sizeOf(id string) (flavour string, vcpus int64) {
	m := sizedFlavour.FindStringSubmatch(id)
	if m == nil {
		return id, 0
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	return m[1], n
}

// Pools returns the serverless pools, sorted by name.
func (s *Snapshot) Pools() []string { return slices.Sorted(maps.Keys(s.orEmpty().pools)) }

// PoolMembers returns the sorted IDs of the GPU types in a serverless pool.
func (s *Snapshot) PoolMembers(pool string) []string {
	var ids []string
	for _, g := range s.orEmpty().pools[pool] {
		ids = append(ids, g.ID)
	}
	return ids
}

// Unlisted reports whether the catalog has no entry with the given ID. kind is gpu, pool, cpu_flavor or data_center, as in policy
// parameters. A data centre ID that ends in * matches every data centre with that prefix. meant suggests the GPU types that id abbreviates,
// or their pools.
func (s *Snapshot) Unlisted(kind, id string) (meant []string, lacks bool) {
	switch {
	case s == nil:
	case kind == "gpu" && s.gpuByID[id] == nil:
		return s.abbreviated(id, func(g *GPU) string { return g.ID }), true
	case kind == "pool" && s.pools[id] == nil:
		return s.abbreviated(id, func(g *GPU) string { return g.Pool }), true
	case kind == "cpu_flavor":
		_, has := s.CPU(id)
		return nil, !has
	case kind == "data_center":
		prefix, open := strings.CutSuffix(id, "*")
		for centre := range s.tiers {
			if centre == id || open && strings.HasPrefix(centre, prefix) {
				return nil, false
			}
		}
		return nil, len(s.tiers) > 0
	}
	return nil, false
}

// abbreviated returns the distinct results of the function of for the GPU types whose ID, name or pool starts with a short name.
func (s *Snapshot) abbreviated(short string, of func(*GPU) string) []string {
	var names []string
	var types []*GPU
	for i := range s.gpus {
		if g := &s.gpus[i]; of(g) != "" {
			names, types = append(names, g.ID+" "+g.Name+" "+g.Pool), append(types, g)
		}
	}
	var meant []string
	for _, i := range fault.Abbreviates(short, names) {
		if name := of(types[i]); !slices.Contains(meant, name) {
			meant = append(meant, name)
		}
	}
	return meant
}

// ListPrices returns the platform's own price list if the organisation has negotiated prices, and s otherwise.
func (s *Snapshot) ListPrices() *Snapshot {
	if s == nil || s.listed == nil {
		return s
	}
	return s.listed
}

// Fetched returns when the list was read from the platform.
func (s *Snapshot) Fetched() time.Time { return s.orEmpty().fetched }

// Digest identifies the content: snapshots with equal digests have the same types, prices and rates, regardless of when they were
// fetched. It is "" for a nil Snapshot.
func (s *Snapshot) Digest() string { return s.orEmpty().digest }
