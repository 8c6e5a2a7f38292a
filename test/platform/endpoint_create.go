package platform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// endpointRequest is the body of a create or a change, checked for its shape
// only; nil is left out.
type endpointRequest struct {
	name, templateID *string
	kind             string
	gpu              *endpointGPURequest
	cpu              []*cpuRequest
	min, max, idle   *int
	scaling          *scaling
	dataCenters      *[]string
	volumes          *[]string
	timeout          *int64
	flashBoot        *string
	container        containerPatch
}

type endpointGPURequest struct {
	pools, excluded, cuda *[]string
	count                 *int
	minCUDA               *string // empty clears
}

func endpointNames(more ...string) []string {
	return containerNames(append(more, "name", "templateId", "gpu", "cpu", "workers", "scaling", "dataCenterIds",
		"networkVolumes", "timeout", "flashboot")...)
}

// endpoint reads what a create and a change have in common.
func (f fields) endpoint(update bool) *endpointRequest {
	r := &endpointRequest{
		name:        given(f.text("name", 1)),
		templateID:  given(f.text("templateId", 1)),
		gpu:         f.endpointGPU(update),
		cpu:         f.endpointCPU(),
		scaling:     f.scaling(),
		dataCenters: given(f.list("dataCenterIds", nil)),
		volumes:     given(f.list("networkVolumes", nil)),
		timeout:     given(f.integer("timeout", -1<<53, 1<<53)),
		container:   f.container(),
		flashBoot:   given(f.enum("flashboot", "OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT")),
	}
	if w, ok := f.child("workers", "min", "max", "idleTimeout"); ok {
		r.min = w.count("min", 0, 1<<20)
		r.max = w.count("max", 0, 1<<20)
		r.idle = w.count("idleTimeout", 1, 3600)
	}
	return r
}

func (f fields) endpointGPU(update bool) *endpointGPURequest {
	g, ok := f.child("gpu", "pools", "excludedTypes", "count", "allowedCudaVersions", "minCudaVersion")
	if !ok {
		return nil
	}
	r := &endpointGPURequest{
		pools:    given(g.list("pools", nil)),
		excluded: given(g.list("excludedTypes", typeName)),
		count:    g.count("count", 1, 1<<20),
		cuda:     given(g.list("allowedCudaVersions", cudaVersion)),
	}
	switch {
	case r.pools != nil && len(*r.pools) == 0:
		g.c.add(g.place("pools"), "must have 1 item or more, but got 0")
	case !update:
		g.require("pools")
	case r.pools == nil && g.has("excludedTypes"):
		g.c.add(g.at, "excludedTypes needs pools beside it")
	}
	if r.excluded != nil {
		g.unique("excludedTypes", *r.excluded)
	}
	if s, isText := g.m["minCudaVersion"].(string); update && isText && s == "" {
		r.minCUDA = &s
	} else {
		r.minCUDA = g.version("minCudaVersion")
	}
	return r
}

// typeName says what is wrong with an entry of excludedTypes.
func typeName(s string) string {
	if trimmed := strings.TrimSpace(s); trimmed == "" || trimmed[0] == '-' {
		return "'" + s + "' is not the id of a GPU type"
	}
	return ""
}

// unique reports entries that are there twice.
func (f fields) unique(name string, list []string) {
	for i, s := range list {
		if first := slices.Index(list, s); first < i {
			f.c.add(f.place(name), "items %d and %d are equal", first, i)
		}
	}
}

func (f fields) endpointCPU() []*cpuRequest {
	list, ok := typed[[]any](f, "cpu", "array")
	if !ok {
		return nil
	}
	if len(list) == 0 {
		f.c.add(f.place("cpu"), "must have 1 item or more, but got 0")
	}
	out := []*cpuRequest{}
	var seen []string
	for i, v := range list {
		if one, ok := f.c.object(fmt.Sprintf("%s[%d]", f.place("cpu"), i), v, "id", "vcpuCount"); ok {
			r := one.cpu()
			out = append(out, r)
			seen = append(seen, r.id+"/"+strconv.Itoa(r.vcpu))
		}
	}
	f.unique("cpu", seen)
	return out
}

// scaling reads the union of the two ways to scale, told apart by type.
func (f fields) scaling() *scaling {
	m, _ := f.m["scaling"].(map[string]any)
	known := []string{"type", "queueDelay", "requestCount"}
	switch m["type"] {
	case queueDelay:
		known = known[:2]
	case requestCount:
		known = []string{"type", "requestCount"}
	}
	one, ok := f.child("scaling", known...)
	if !ok {
		return nil
	}
	one.require("type")
	s := &scaling{}
	s.Type, _ = one.enum("type", queueDelay, requestCount)
	switch s.Type {
	case queueDelay:
		one.require("queueDelay")
		s.QueueDelay, _ = one.number("queueDelay", 0.5)
	case requestCount:
		one.require("requestCount")
		s.RequestCount, _ = one.integer("requestCount", 1, 1<<40)
	}
	return s
}

func readNewEndpoint(f fields) *endpointRequest {
	f.require("scaling")
	if !f.has("templateId") {
		f.require("name", "image")
	}
	r := f.endpoint(false)
	r.kind = typeQueue
	if f.has("type") {
		r.kind, _ = f.enum("type", typeQueue, typeBalanced)
	}
	if r.kind == typeBalanced && r.scaling != nil && r.scaling.Type == queueDelay {
		f.c.add("$.scaling.type", "must be REQUEST_COUNT for a LOAD_BALANCER endpoint")
	}
	return r
}

// makeEndpointLocked sets up an endpoint; workers come with the requests, or at
// once as far as workers.min says.
func (x *exchange) makeEndpointLocked(e *endpoint, r *endpointRequest) (then func(), err error) {
	t := noTemplate()
	if r.templateID != nil {
		if t, err = x.templateLocked(*r.templateID, true); err != nil {
			return nil, err
		}
	}
	if (r.gpu == nil) == (r.cpu == nil) {
		return nil, badRequest("exactly one of gpu and cpu must be given")
	}
	*e = endpoint{
		Name: t.Name, Type: r.kind, CreatedAt: x.now, Max: defaultMax, IdleTimeout: defaultIdle,
		Timeout: defaultTimeout, FlashBoot: "OFF", Container: t.Container,
	}
	if x.acct.templates.has(t.ID) {
		e.TemplateID = t.ID
	}
	if r.gpu != nil {
		if r.gpu.cuda == nil && r.gpu.minCUDA == nil {
			seeded := slices.Clone(t.CUDA)
			r.gpu.cuda = &seeded
		}
		e.GPU = &endpointGPU{Count: 1}
	}
	if err := x.applyEndpointLocked(e, r, mergeEnv); err != nil {
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
	if e.Container, err = r.container.over(e.Container, mode); err != nil {
		return err
	}
	if err := x.checkRegistryLocked(e.Container.Registry); err != nil {
		return err
	}
	set(&e.Name, r.name)
	set(&e.Timeout, r.timeout)
	set(&e.FlashBoot, r.flashBoot)
	set(&e.Scaling, r.scaling)
	set(&e.DataCenterIDs, r.dataCenters)
	set(&e.Volumes, r.volumes)
	set(&e.Min, r.min)
	set(&e.Max, r.max)
	set(&e.IdleTimeout, r.idle)
	if err := x.checkScaleLocked(e, r); err != nil {
		return err
	}
	if err := x.checkPlacesLocked(e); err != nil {
		return err
	}
	if r.gpu != nil {
		return x.applyPoolsLocked(e, r.gpu)
	}
	if r.cpu != nil {
		return x.applyFlavorsLocked(e, r.cpu)
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
	case e.hidesIdle() && r.idle != nil:
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
	if r.pools != nil {
		g.Pools, g.Excluded = *r.pools, nil
	}
	if r.excluded != nil {
		g.Excluded = nil
		for _, s := range *r.excluded {
			g.Excluded = append(g.Excluded, strings.TrimSpace(s))
		}
	}
	set(&g.Count, r.count)
	set(&g.CUDA, r.cuda)
	set(&g.MinCUDA, r.minCUDA)
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

func (x *exchange) applyFlavorsLocked(e *endpoint, list []*cpuRequest) error {
	e.CPU = nil
	for _, r := range list {
		f, err := x.s.catalog.flavorFor(r)
		if err != nil {
			return err
		}
		e.CPU = append(e.CPU, podCPU{ID: f.ID, VCPU: r.vcpu, Memory: f.memory(r.vcpu)})
	}
	return nil
}
