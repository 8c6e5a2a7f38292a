package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Snapshot is one organisation's price list at one time. It never changes;
// a nil Snapshot is an unknown one and prices nothing.
type Snapshot struct {
	gpus     []GPU
	cpus     []CPU
	tiers    map[string]string
	gpuByID  map[string]*GPU
	cpuByID  map[string]*CPU
	pools    map[string][]*GPU
	rates    Rates
	listed   *Snapshot
	fetched  time.Time
	digest   string
	poolList []string
}

// NewSnapshot indexes a price list fetched at the given time. Types are kept
// in order of their ids, so equal lists make equal snapshots.
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
	s.nameFlavours()
	slices.Sort(s.poolList)
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v|%+v|%+v|%+v|%t", s.gpus, s.cpus, s.tiers, rates, s.listed != nil))
	s.digest = hex.EncodeToString(sum[:12])
	return s
}

// sharing returns s with the contents of other, if both list the same.
func (s *Snapshot) sharing(other *Snapshot) *Snapshot {
	if other == nil || s.digest != other.digest || s.listed.Digest() != other.listed.Digest() {
		return s
	}
	shared := *other
	shared.fetched = s.fetched
	return &shared
}

// nameFlavours makes bare flavours known that the list has as instances only.
// Prices are per vCPU, so the instances of one flavour should not differ: if
// they do the dearer counts, and an unknown price makes the flavour's unknown.
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
		made[flavour].Secure = dearer(made[flavour].Secure, c.Secure)
		made[flavour].Serverless = dearer(made[flavour].Serverless, c.Serverless)
	}
}

func dearer(a, b Price) Price {
	if !a.Known || !b.Known {
		return Price{}
	}
	return Price{Known: true, PerHour: max(a.PerHour, b.PerHour)}
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

// CPU finds a CPU flavour by its id: the bare flavour (cpu5c) or the
// instance-style spelling that carries vCPUs and memory (cpu5c-4-8). Where the
// catalog itself lists instances, a bare flavour is the dearest of its own.
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

// sizedFlavour is the instance-style spelling of a flavour.
var sizedFlavour = regexp.MustCompile(`^([A-Za-z0-9]+)-([0-9]+)-[0-9]+$`)

// sizeOf splits the instance-style spelling of a flavour. vcpus is 0 for a bare
// one, and out of every range for a number too long to read.
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

// Pools lists the serverless pools by name. The caller must not change it.
func (s *Snapshot) Pools() []string {
	if s == nil {
		return nil
	}
	return s.poolList
}

// PoolMembers lists the ids of the GPU types in a serverless pool, in order.
func (s *Snapshot) PoolMembers(pool string) []string {
	if s == nil {
		return nil
	}
	ids := make([]string, 0, len(s.pools[pool]))
	for _, g := range s.pools[pool] {
		ids = append(ids, g.ID)
	}
	return ids
}

// Unlisted reports whether the lists have nothing of a kind (gpu, pool, cpu_flavor or
// data_center, the kinds of parameters) under an id. An id of data centres that ends in *
// stands for every centre whose id begins with the rest. meant are the ids of the GPU types
// that id abbreviates, or of their pools.
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

// abbreviated returns what of gives of the GPU types whose id, name or pool a short name abbreviates, without duplicates.
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

// ListPrices is the platform's own list where other prices were agreed, and else the list
// itself.
func (s *Snapshot) ListPrices() *Snapshot {
	if s == nil || s.listed == nil {
		return s
	}
	return s.listed
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
