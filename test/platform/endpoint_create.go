package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// endpointRequest is what a create and a change have in common.
type endpointRequest struct {
	Name        *string             `body:"name" min:"1"`
	TemplateID  *string             `body:"templateId" min:"1"`
	GPU         *endpointGPURequest `body:"gpu"`
	CPU         []cpuRequest        `body:"cpu" least:"1" unique:"yes"`
	Scaling     *scaling            `body:"scaling" open:"yes"`
	DataCenters *[]string           `body:"dataCenterIds"`
	Volumes     *[]string           `body:"networkVolumes"`
	Timeout     *int64              `body:"timeout" min:"-9007199254740992" max:"9007199254740992"`
	containerPatch

	FlashBoot *string `body:"flashboot" enum:"OFF FLASHBOOT PRIORITY_FLASHBOOT"`
	Workers   struct {
		Min  *int `body:"min"`
		Max  *int `body:"max"`
		Idle *int `body:"idleTimeout" min:"1" max:"3600"`
	} `body:"workers"`
}

type endpointGPURequest struct {
	Pools    *[]string `body:"pools" least:"1"`
	Excluded *[]string `body:"excludedTypes" form:"GPU type" unique:"yes"`
	Count    *int      `body:"count" min:"1"`
	CUDA     *[]string `body:"allowedCudaVersions" form:"CUDA version"`
	MinCUDA  *string   `body:"minCudaVersion" form:"CUDA version or empty"` // empty clears
}

// newEndpoint is the body of a create.
type newEndpoint struct {
	endpointRequest

	Kind string `body:"type" enum:"QUEUE LOAD_BALANCER"`
}

func (r *newEndpoint) check(f fields) {
	f.require("scaling")
	if !f.has("templateId") {
		f.require("name", "image")
	}
	if gpu, given := f.inner("gpu"); given {
		gpu.require("pools")
		if r.GPU.MinCUDA != nil && *r.GPU.MinCUDA == "" {
			f.c.add(gpu.place("minCudaVersion"), "%s", cudaVersion(""))
		}
	}
	r.Kind = cmp.Or(r.Kind, typeQueue)
	if r.Kind == typeBalanced && r.Scaling != nil && r.Scaling.Type == queueDelay {
		f.c.add("$.scaling.type", "must be REQUEST_COUNT for a LOAD_BALANCER endpoint")
	}
}

// endpointChange is the body of a change.
type endpointChange struct{ endpointRequest }

func (r *endpointChange) check(f fields) {
	if gpu, given := f.inner("gpu"); given && r.GPU.Pools == nil && gpu.has("excludedTypes") {
		f.c.add(gpu.at, "excludedTypes needs pools beside it")
	}
}

// typeName says what is wrong with an entry of excludedTypes.
func typeName(s string) string {
	if trimmed := strings.TrimSpace(s); trimmed == "" || trimmed[0] == '-' {
		return "'" + s + "' is not the id of a GPU type"
	}
	return ""
}

// makeEndpointLocked sets up an endpoint; workers come with the requests, or at
// once as far as workers.min says.
func (x *exchange) makeEndpointLocked(e *endpoint, r *newEndpoint) (then func(), err error) {
	t := noTemplate()
	if r.TemplateID != nil {
		if t, err = x.templateLocked(*r.TemplateID, true); err != nil {
			return nil, err
		}
	}
	if (r.GPU == nil) == (r.CPU == nil) {
		return nil, badRequest("exactly one of gpu and cpu must be given")
	}
	*e = endpoint{
		Name: t.Name, Type: r.Kind, CreatedAt: x.now, Max: defaultMax, IdleTimeout: defaultIdle,
		Timeout: defaultTimeout, FlashBoot: "OFF", Container: t.Container,
	}
	if x.acct.templates.has(t.ID) {
		e.TemplateID = t.ID
	}
	if r.GPU != nil {
		if r.GPU.CUDA == nil && r.GPU.MinCUDA == nil {
			seeded := slices.Clone(t.CUDA)
			r.GPU.CUDA = &seeded
		}
		e.GPU = &endpointGPU{Count: 1}
	}
	if err := x.applyEndpointLocked(e, &r.endpointRequest, mergeEnv); err != nil {
		return nil, err
	}
	return func() {
		e.release(x.now, x.acct.ID, nil)
		x.s.scheduleLocked(x.acct, e, x.now)
	}, x.canPay(0)
}

// applyEndpointLocked applies a request to an endpoint and checks the rules
// across fields. On an error the endpoint is left half changed: work on a copy.
func (x *exchange) applyEndpointLocked(e *endpoint, r *endpointRequest, mode envMode) error {
	var err error
	if e.Container, err = r.over(e.Container, mode); err != nil {
		return err
	}
	if err := x.checkRegistryLocked(e.Container.Registry); err != nil {
		return err
	}
	set(&e.Name, r.Name)
	set(&e.Timeout, r.Timeout)
	set(&e.FlashBoot, r.FlashBoot)
	set(&e.Scaling, r.Scaling)
	set(&e.DataCenterIDs, r.DataCenters)
	set(&e.Volumes, r.Volumes)
	set(&e.Min, r.Workers.Min)
	set(&e.Max, r.Workers.Max)
	set(&e.IdleTimeout, r.Workers.Idle)
	if err := x.checkScaleLocked(e, r); err != nil {
		return err
	}
	if err := x.checkPlacesLocked(e); err != nil {
		return err
	}
	if r.GPU != nil {
		return x.applyPoolsLocked(e, r.GPU)
	}
	if r.CPU != nil {
		return x.applyFlavorsLocked(e, r.CPU)
	}
	return nil
}

// checkScaleLocked checks workers and scaling, and the account's worker quota.
func (x *exchange) checkScaleLocked(e *endpoint, r *endpointRequest) error {
	switch {
	case e.Min > e.Max:
		return badRequest("workers.min must not exceed workers.max")
	case e.Type == typeBalanced && e.Scaling.Type != requestCount:
		return badRequest("a LOAD_BALANCER endpoint scales by REQUEST_COUNT only")
	case e.hidesIdle() && r.Workers.Idle != nil:
		return badRequest("workers.idleTimeout does not go with QUEUE and REQUEST_COUNT")
	}
	sum := e.Max
	for _, other := range x.acct.endpoints.order {
		if other.ID != e.ID {
			sum += other.Max
		}
	}
	if sum > x.acct.workerQuota {
		return badRequest(fmt.Sprintf("the sum of max workers over all endpoints may not exceed the quota of %d", x.acct.workerQuota))
	}
	return nil
}

// checkPlacesLocked checks data centers and network volumes: at most one volume
// per data center.
func (x *exchange) checkPlacesLocked(e *endpoint) error {
	if err := x.s.catalog.checkDCs(e.DataCenterIDs); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, id := range e.Volumes {
		v := x.acct.volumes.get(id)
		if v == nil {
			return badRequest("no network volume is called '" + id + "'")
		}
		if taken[v.DataCenter] {
			return badRequest("there is more than one network volume in data center " + v.DataCenter)
		}
		taken[v.DataCenter] = true
	}
	return nil
}

// applyPoolsLocked applies the gpu block. Naming pools anew clears exclusions;
// of the two CUDA constraints neither clears the other.
func (x *exchange) applyPoolsLocked(e *endpoint, r *endpointGPURequest) error {
	g := *e.GPU
	if r.Pools != nil {
		g.Pools, g.Excluded = *r.Pools, nil
	}
	if r.Excluded != nil {
		g.Excluded = nil
		for _, s := range *r.Excluded {
			g.Excluded = append(g.Excluded, strings.TrimSpace(s))
		}
	}
	set(&g.Count, r.Count)
	set(&g.CUDA, r.CUDA)
	set(&g.MinCUDA, r.MinCUDA)
	if len(g.CUDA) > 0 && g.MinCUDA != "" {
		return badRequest("gpu.allowedCudaVersions and gpu.minCudaVersion exclude each other")
	}
	types, err := x.s.catalog.inPools(&g)
	if err != nil {
		return err
	}
	if len(types) == 0 {
		return badRequest("gpu.excludedTypes leaves no GPU type of the pools")
	}
	for _, t := range types {
		if err := x.acct.mayUse(secureCloud, t.ID); err != nil {
			return err
		}
	}
	e.GPU = &g
	return nil
}

// inPools are the GPU types a selection leaves, in the order of its pools.
func (c *catalog) inPools(g *endpointGPU) ([]*GPU, error) {
	var types []*GPU
	listed := map[string]bool{}
	for _, pool := range g.Pools {
		found := false
		for i := range c.GPUs {
			one := &c.GPUs[i]
			if one.Pool != pool {
				continue
			}
			found, listed[one.ID] = true, true
			if !slices.Contains(g.Excluded, one.ID) {
				types = append(types, one)
			}
		}
		if !found {
			return nil, badRequest("no GPU pool is called '" + pool + "'")
		}
	}
	for _, id := range g.Excluded {
		if !listed[id] {
			return nil, badRequest("gpu.excludedTypes: '" + id + "' is not a type of the pools")
		}
	}
	return types, nil
}

func (x *exchange) applyFlavorsLocked(e *endpoint, list []cpuRequest) error {
	e.CPU = nil
	for _, r := range list {
		f, err := x.s.catalog.flavorFor(&r)
		if err != nil {
			return err
		}
		e.CPU = append(e.CPU, podCPU{ID: f.ID, VCPU: r.VCPU, Memory: f.memory(r.VCPU)})
	}
	return nil
}
