package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Catalog is what an emulator rents, where and for how much.
type Catalog struct {
	GPUs        []GPU
	CPUs        []CPU
	DataCenters []DataCenter
	Templates   []PublicTemplate
}

// Price is a list price in USD per card and hour. A cloud with no price is not
// offered; a type with no serverless price is in no pool.
type Price struct{ Secure, Community, Serverless float64 }

// GPU is one type of GPU.
type GPU struct {
	ID, Name     string
	Pool         string // serverless pool; empty is none
	Memory       int    // GB of video memory
	Price        Price
	MaxSecure    int      // most cards per pod, SECURE cloud
	MaxCommunity int      // most cards per pod, COMMUNITY cloud
	VCPU, RAM    int      // of the host, per card; RAM in GB
	CUDA         []string // versions of the hosts, taking turns over the data centers
	AMD          bool     // not made by NVIDIA
	DataCenters  []string // ids of where it stands
	// Stock is how many cards stand in each data center for each cloud: zero is
	// 64, negative is without end.
	Stock int
}

// CPU is one flavor of CPU.
type CPU struct {
	ID, Name, Group    string
	MinVCPU, MaxVCPU   int
	RAMPerVCPU         float64 // GB
	Secure, Serverless float64 // USD per vCPU and hour
	DataCenters        []string
	// Stock is how many vCPU stand in each data center: zero is 1024, negative
	// is without end.
	Stock int
}

// DataCenter is one place.
type DataCenter struct {
	ID            string
	Name          string // empty is the id
	Region        string
	Country       string   // two letters
	VolumeTypes   []string // network volume tiers, the primary one first
	Compliance    []string
	GlobalNetwork bool
}

// PublicTemplate is a template of the public catalog.
type PublicTemplate struct {
	ID, Name       string
	Source         string // official, verified or community
	Image, Args    string
	Disk           int // GB
	Env            map[string]string
	Ports          []string
	PersistentGB   int // size of the persistent mount; zero is none
	PersistentPath string
	Serverless     bool
	Category       string // CPU, NVIDIA or AMD
	SSH, Jupyter   bool
	CUDA           []string
}

const (
	secureCloud    = "SECURE"
	communityCloud = "COMMUNITY"
)

// stockKey is one kind of machine in one place. CPU stock has no cloud.
type stockKey struct{ Type, Cloud, DataCenter string }

// stock counts cards (vCPU for CPU flavors); a negative total has no end.
type stock struct{ Total, Used int }

func (s *stock) free() int {
	if s.Total < 0 {
		return 1 << 30
	}
	return max(s.Total-s.Used, 0)
}

// level is the availability the platform would call this stock when need cards
// are wanted on one machine.
func (s *stock) level(need int) string {
	free := s.free()
	switch {
	case free < need:
		return "NONE"
	case s.Total < 0 || free*10 > s.Total*6:
		return "HIGH"
	case free*4 > s.Total:
		return "MEDIUM"
	default:
		return "LOW"
	}
}

// catalog is a Catalog with its indexes and what of it is taken.
type catalog struct {
	Catalog
	gpus   map[string]*GPU
	cpus   map[string]*CPU
	dcs    map[string]*DataCenter
	public map[string]*template
	stock  map[stockKey]*stock
}

// clone copies the lists, and nil as nil.
func (c *Catalog) clone() *Catalog {
	if c == nil {
		return nil
	}
	return &Catalog{
		GPUs: slices.Clone(c.GPUs), CPUs: slices.Clone(c.CPUs),
		DataCenters: slices.Clone(c.DataCenters), Templates: slices.Clone(c.Templates),
	}
}

func newCatalog(listed *Catalog) (*catalog, error) {
	c := &catalog{
		Catalog: *listed.clone(),
		gpus:    map[string]*GPU{}, cpus: map[string]*CPU{}, dcs: map[string]*DataCenter{},
		public: map[string]*template{}, stock: map[stockKey]*stock{},
	}
	for _, t := range c.Templates {
		c.public[t.ID] = t.record()
	}
	for i := range c.DataCenters {
		dc := &c.DataCenters[i]
		dc.Name = cmp.Or(dc.Name, dc.ID)
		c.dcs[dc.ID] = dc
	}
	for i := range c.GPUs {
		g := &c.GPUs[i]
		c.gpus[g.ID] = g
		for _, dc := range g.DataCenters {
			if c.dcs[dc] == nil {
				return nil, fmt.Errorf("catalog: %s: no data center is called %q", g.ID, dc)
			}
			for _, cloud := range []string{secureCloud, communityCloud} {
				if g.price(cloud) > 0 {
					c.stock[stockKey{g.ID, cloud, dc}] = &stock{Total: cmp.Or(g.Stock, 64)}
				}
			}
		}
	}
	for i := range c.CPUs {
		f := &c.CPUs[i]
		c.cpus[f.ID] = f
		for _, dc := range f.DataCenters {
			if c.dcs[dc] == nil {
				return nil, fmt.Errorf("catalog: %s: no data center is called %q", f.ID, dc)
			}
			c.stock[stockKey{f.ID, "", dc}] = &stock{Total: cmp.Or(f.Stock, 1024)}
		}
	}
	return c, nil
}

// price is what one card costs per hour on a cloud; zero is not offered.
func (g *GPU) price(cloud string) float64 {
	if cloud == communityCloud {
		return g.Price.Community
	}
	return g.Price.Secure
}

// ceiling is the most cards one pod can have on a cloud.
func (g *GPU) ceiling(cloud string) int {
	if cloud == communityCloud {
		return g.MaxCommunity
	}
	return g.MaxSecure
}

// cudaAt is the CUDA version of the type's hosts in a data center; empty for
// types without CUDA.
func (g *GPU) cudaAt(dc string) string {
	if len(g.CUDA) == 0 {
		return ""
	}
	return g.CUDA[max(slices.Index(g.DataCenters, dc), 0)%len(g.CUDA)]
}

// flavor finds a CPU flavor by its bare id (cpu5c) or by the form that carries
// vCPU and RAM (cpu5c-4-8).
func (c *catalog) flavor(id string) *CPU {
	if f := c.cpus[id]; f != nil {
		return f
	}
	bare, size, _ := strings.Cut(id, "-")
	vcpu, ram, complete := strings.Cut(size, "-")
	if !complete || !digits(vcpu) || !digits(ram) {
		return nil
	}
	return c.cpus[bare]
}

// SetPrice changes what a GPU type costs from now on. Pods that run keep the
// rate they were rented at.
func (s *Server) SetPrice(gpuID string, p Price) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.catalog.gpus[gpuID]
	if g == nil {
		return fmt.Errorf("no GPU type is called %q", gpuID)
	}
	g.Price = p
	return nil
}

// SetStock sets how many cards of a type (vCPU of a flavor) stand in a data
// center, those in use included. An empty data center means each one it stands
// in; cloud is ignored for CPU flavors, and empty means both for GPU types. A
// negative total has no end.
func (s *Server) SetStock(typeID, cloud, dataCenter string, total int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	hits := 0
	for key, stock := range s.catalog.stock {
		if key.Type == typeID && (cloud == "" || key.Cloud == "" || key.Cloud == cloud) &&
			(dataCenter == "" || key.DataCenter == dataCenter) {
			stock.Total = total
			hits++
		}
	}
	if hits == 0 {
		return fmt.Errorf("no stock of %q, cloud %q, in data center %q", typeID, cloud, dataCenter)
	}
	return nil
}

// part is one list of the catalog: what can be asked about its entries, and how they are
// shown.
type part[T, Q any] struct {
	noun, member string
	query        func(*exchange) (Q, error)
	all          func(*catalog) []T
	find         func(c *catalog, id string) *T
	wants        func(c *catalog, v *T, q Q) bool // filters the list; nil lets all through
	show         func(c *catalog, v *T, q Q) object
}

func (p part[T, Q]) listAll(x *exchange) (reply, error) {
	q, err := p.query(x)
	if err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	c, wanted := x.s.catalog, []*T{}
	all := p.all(c)
	for i := range all {
		if p.wants == nil || p.wants(c, &all[i], q) {
			wanted = append(wanted, &all[i])
		}
	}
	return ok(object{p.member, objects(wanted, func(v *T) object { return p.show(c, v, q) })}), nil
}

func (p part[T, Q]) getOne(x *exchange) (reply, error) {
	q, err := p.query(x)
	if err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	v := p.find(x.s.catalog, x.params[0])
	if v == nil {
		return reply{}, notFound(p.noun)
	}
	return ok(p.show(x.s.catalog, v, q)), nil
}

// catalogRoutes is every operation on the catalog.
func catalogRoutes() []route {
	return []route{
		getRoute("/v2/catalog/gpus", "listGpuTypes", gpuTypes().listAll, gpuParameters()...),
		getRoute("/v2/catalog/gpus/{id}", "getGpuType", gpuTypes().getOne, gpuParameters()...),
		getRoute("/v2/catalog/cpus", "listCpuTypes", cpuTypes().listAll, "include", "product", "vcpuCount"),
		getRoute("/v2/catalog/cpus/{id}", "getCpuType", cpuTypes().getOne, "include", "product", "vcpuCount"),
		getRoute("/v2/catalog/datacenters", "listDataCenters", dataCenters().listAll, "include", "regions", "networkVolumeTypes", "compliance", "globalNetwork"),
		getRoute("/v2/catalog/datacenters/{id}", "getDataCenter", dataCenters().getOne, "include"),
		getRoute("/v2/catalog/templates", "listPublicTemplates", (*exchange).listPublicTemplates, "source"),
	}
}
