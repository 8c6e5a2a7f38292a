package platform

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// gpuRequest is the gpu block of a create.
type gpuRequest struct {
	ID      string   `body:"id" need:"yes"`
	Count   int      `body:"count" min:"1"`
	CUDA    []string `body:"allowedCudaVersions" form:"CUDA version"`
	MinCUDA *string  `body:"minCudaVersion" form:"CUDA version"`
	MinRAM  int      `body:"minRamPerGpu" min:"1"`       // GB per card
	MinVCPU int      `body:"minVcpuCountPerGpu" min:"1"` // per card
}

func (r *gpuRequest) check(fields) { r.Count = cmp.Or(r.Count, 1) }

// cpuRequest is one CPU choice.
type cpuRequest struct {
	ID   string `body:"id" need:"yes" min:"1"`
	VCPU int    `body:"vcpuCount" need:"yes" min:"2"`
}

// flavorFor finds the flavor of a CPU choice and checks its size.
func (c *catalog) flavorFor(r *cpuRequest) (*CPU, error) {
	f := c.flavor(r.ID)
	if f == nil {
		return nil, badRequest("no CPU flavor is called '" + r.ID + "'")
	}
	if r.VCPU&(r.VCPU-1) != 0 {
		return nil, badRequest("cpu.vcpuCount must be a power of two")
	}
	if r.VCPU < f.MinVCPU || r.VCPU > f.MaxVCPU {
		return nil, badRequest("cpu.vcpuCount must be from " + strconv.Itoa(f.MinVCPU) + " to " + strconv.Itoa(f.MaxVCPU) + " for " + f.ID)
	}
	return f, nil
}

func (f *CPU) memory(vcpu int) int { return max(int(float64(vcpu)*f.RAMPerVCPU), 1) }

// need is what a machine must be for a pod to stand on it.
type need struct {
	cloud         string
	dataCenters   []string // preference; empty leaves it to the scheduler
	globalNetwork bool
	volumeDC      string // data center of the network volume; empty is none
	members       int    // how many of them must fit into one data center; zero is one
}

const noCapacity = "there are no instances currently available with the requested specifications"

// checkDCs refuses names that are no data centers.
func (c *catalog) checkDCs(ids []string) error {
	for _, id := range ids {
		if c.dcs[id] == nil {
			return badRequest("no data center is called '" + id + "'")
		}
	}
	return nil
}

// candidates is where a type may be placed, in order of preference.
func (c *catalog) candidates(stands []string, n need) []string {
	list := stands
	if len(n.dataCenters) > 0 {
		list = n.dataCenters
	}
	return slices.DeleteFunc(slices.Clone(list), func(id string) bool {
		return !slices.Contains(stands, id) || n.globalNetwork && !c.dcs[id].GlobalNetwork ||
			n.volumeDC != "" && n.volumeDC != id
	})
}

// placeGPULocked picks a data center for a GPU pod and the CUDA version it gets.
func (c *catalog) placeGPULocked(r *gpuRequest, n need) (dc, cuda string, err error) {
	g := c.gpus[r.ID]
	if g == nil {
		return "", "", badRequest("no GPU type is called '" + r.ID + "'")
	}
	if err := c.checkDCs(n.dataCenters); err != nil {
		return "", "", err
	}
	if n.globalNetwork && g.AMD {
		return "", "", badRequest("global networking needs an NVIDIA GPU")
	}
	if g.price(n.cloud) <= 0 || r.Count > g.ceiling(n.cloud) || r.MinRAM > g.RAM || r.MinVCPU > g.VCPU {
		return "", "", badRequest(noCapacity)
	}
	for _, id := range c.candidates(g.DataCenters, n) {
		s := c.stock[stockKey{g.ID, n.cloud, id}]
		if s != nil && s.free() >= r.Count*max(n.members, 1) && r.takesCUDA(g.cudaAt(id)) {
			return id, g.cudaAt(id), nil
		}
	}
	return "", "", badRequest(noCapacity)
}

// takesCUDA reports whether a host with this version will do.
func (r *gpuRequest) takesCUDA(version string) bool {
	if len(r.CUDA) > 0 {
		return slices.Contains(r.CUDA, version)
	}
	return r.MinCUDA == nil || version != "" && compareVersions(version, *r.MinCUDA) >= 0
}

// placeCPULocked picks a data center for a CPU pod.
func (c *catalog) placeCPULocked(f *CPU, vcpu int, n need) (dc string, err error) {
	if err := c.checkDCs(n.dataCenters); err != nil {
		return "", err
	}
	if n.globalNetwork {
		return "", badRequest("global networking needs an NVIDIA GPU")
	}
	if n.cloud == communityCloud {
		return "", badRequest("CPU pods are available on the SECURE cloud only")
	}
	for _, id := range c.candidates(f.DataCenters, n) {
		if s := c.stock[stockKey{f.ID, "", id}]; s != nil && s.free() >= vcpu {
			return id, nil
		}
	}
	return "", badRequest(noCapacity)
}

// takeLocked and putBackLocked move stock in and out of use.
func (c *catalog) takeLocked(key stockKey, n int) bool {
	s := c.stock[key]
	if s == nil || s.free() < n {
		return false
	}
	s.Used += n
	return true
}

func (c *catalog) putBackLocked(key stockKey, n int) {
	if s := c.stock[key]; s != nil {
		s.Used = max(s.Used-n, 0)
	}
}

// isNVIDIA reports whether a GPU id names a type of that maker.
func (c *catalog) isNVIDIA(id string) bool {
	g := c.gpus[id]
	return g != nil && !g.AMD && !strings.HasPrefix(g.ID, "AMD")
}
