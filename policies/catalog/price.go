package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Cost is the highest possible price of a call.
type Cost struct {
	// Known is false if the price cannot be determined. Then all other amounts are meaningless, and a call that could cost money
	// must be refused.
	Known bool
	// Hourly is the highest price of the whole resource per hour, or 0 for a call that is not billed by the hour.
	Hourly Money
	// PerGPU is the highest price of one GPU per hour, or 0 without GPUs.
	PerGPU Money
	// Run is the highest price of a run, or of the most expensive run of a batch. It is 0 if the price is unknown, and for calls that start
	// no run.
	Run Money
	// FreeRun is set if the organisation has declared such runs free.
	FreeRun bool
	// GPUs is the highest number of GPUs the resource could hold at once.
	GPUs int64
	// Basis explains how Hourly was computed, for people and for the decision log, such as "2 x NVIDIA L4 (SECURE) at 0.43". It is
	// empty for a free call.
	Basis string
	// Reason explains why Known is false.
	Reason string
	// AsOf is when the prices were read, or the zero time for a free call.
	AsOf time.Time
}

// Price returns the highest price per hour of an operation. after is the resulting state: the body with defaults if the call creates a
// resource, the merged object for an update, and the current pod for an action. verb is the effect of the call; see
// operation.Spec.EffectiveVerb.
//
// An invalid value (a missing or mistyped count, a GPU type that the cloud does not offer, an unknown pool) makes the price unknown, never
// free.
func (s *Snapshot) Price(id string, verb operation.Verb, after map[string]any) Cost {
	row, ok := operation.Lookup(id)
	rule := row.Price
	switch {
	case !ok:
		return unknown("operation %q does not have a price rule", id)
	case rule == operation.PriceFree, verb == operation.VerbStop, verb == operation.VerbDelete:
		return Cost{Known: true}
	case !verb.HasResultState():
		return unknown("operation %q with verb %q does not have a price rule", id, verb)
	case after == nil:
		return unknown("the current resource is unknown")
	case s == nil && rule != operation.PriceVolume:
		return unknown("the price list is unavailable")
	}
	var c Cost
	switch rule { //nolint:exhaustive // free operations were handled above
	case operation.PricePod:
		c = s.withDisks(s.pod(after), after, 1)
		c = s.orStopped(c, after)
	case operation.PriceEndpoint:
		workers, _ := maxWorkers(after["workers"]) // an unreadable count makes the price of the workers unknown
		c = s.withDisks(s.endpoint(after), after, workers)
	case operation.PriceCluster:
		compute, _ := after["compute"].(map[string]any)
		pods, _ := countOr(compute["podCount"], 0) // as above
		c = s.withDisks(s.cluster(after), after, pods)
	case operation.PriceVolume:
		c = s.volume(after)
	case operation.PriceSandbox:
		c = s.sandbox(after)
	}
	c.AsOf = s.Fetched()
	return c
}

func unknown(format string, args ...any) Cost {
	return Cost{Reason: fmt.Sprintf(format, args...)}
}

func (s *Snapshot) pod(after map[string]any) Cost {
	cloud, ok := stringOr(after["cloud"], "SECURE")
	if !ok {
		return unknown("cloud is not a string")
	}
	gpu, cpu, problem := hardware(after)
	if problem != "" {
		return unknown("%s", problem)
	}
	if gpu != nil {
		return s.gpuPod(gpu, cloud)
	}
	c, ok := cpu.(map[string]any)
	if !ok {
		return unknown("cpu is not an object")
	}
	return s.cpuPod(c, cloud)
}

// hardware returns the GPU or the CPU member of a pod or endpoint. If it does not have exactly one of them, problem explains why.
func hardware(after map[string]any) (gpu map[string]any, cpu any, problem string) {
	given, cpu := after["gpu"], after["cpu"]
	gpu, isObject := given.(map[string]any)
	switch {
	case given != nil && cpu != nil:
		return nil, nil, "gpu and cpu are both set"
	case given == nil && cpu == nil:
		return nil, nil, "neither gpu nor cpu is set"
	case given != nil && (!isObject || gpu == nil):
		return nil, nil, "gpu is not an object"
	}
	return gpu, cpu, ""
}

func (s *Snapshot) gpuPod(gpu map[string]any, cloud string) Cost {
	id, _ := gpu["id"].(string)
	count, ok := countOr(gpu["count"], 1)
	if !ok {
		return unknown("gpu.count is not a positive whole number")
	}
	price, reason := s.gpuPrice(id, cloud)
	if reason != "" {
		return unknown("%s", reason)
	}
	return total(price, count, count, strconv.FormatInt(count, 10)+" x "+id+" ("+cloud+") at "+price.String())
}

// gpuPrice returns the price of one GPU-hour of a type in a cloud.
func (s *Snapshot) gpuPrice(id, cloud string) (price Money, reason string) {
	g, ok := s.gpuByID[id]
	if !ok {
		return 0, fmt.Sprintf("GPU type %q is not in the catalog", id)
	}
	var o Offer
	switch cloud {
	case "SECURE":
		o = g.Secure
	case "COMMUNITY":
		o = g.Community
	default:
		return 0, fmt.Sprintf("unknown cloud %q", cloud)
	}
	switch {
	case !o.Offered:
		return 0, fmt.Sprintf("GPU type %q is not offered in the %s cloud", id, cloud)
	case !o.Price.Known:
		return 0, fmt.Sprintf("price of GPU type %q in the %s cloud is not plausible", id, cloud)
	}
	return o.Price.PerHour, ""
}

func (s *Snapshot) cpuPod(cpu map[string]any, cloud string) Cost {
	if cloud != "SECURE" {
		return unknown("CPU pods are not priced in the %s cloud", cloud)
	}
	id, _ := cpu["id"].(string)
	vcpus, ok := countOr(cpu["vcpuCount"], 0)
	if !ok {
		return unknown("cpu.vcpuCount is not a positive whole number")
	}
	vcpus = atLeastNamed(vcpus, id)
	c, ok := s.CPU(id)
	if !ok {
		return unknown("CPU flavour %q is not in the catalog", id)
	}
	if !c.Secure.Known {
		return unknown("price of CPU flavour %q is not plausible", id)
	}
	return total(c.Secure.PerHour, vcpus, 0, fmt.Sprintf("%d vCPU of %s at %s", vcpus, id, c.Secure.PerHour))
}

// atLeastNamed returns the vCPU count, or the count in the flavour's ID if it is larger. Requests cannot contain different values,
// but existing resources may, and the platform could use either.
func atLeastNamed(vcpus int64, flavour string) int64 {
	_, named := sizeOf(flavour)
	return max(vcpus, named)
}

// cluster prices the members of a cluster as pods, because clusters have no list price. It assumes the more expensive of the two
// clouds, because the body cannot select one.
func (s *Snapshot) cluster(after map[string]any) Cost {
	compute, ok := after["compute"].(map[string]any)
	if !ok {
		return unknown("compute is not an object")
	}
	id, _ := compute["gpuTypeId"].(string)
	perPod, ok1 := countOr(compute["gpuCountPerPod"], 0)
	pods, ok2 := countOr(compute["podCount"], 0)
	if !ok1 || !ok2 {
		return unknown("compute.gpuCountPerPod or compute.podCount is not a positive whole number")
	}
	g, ok := s.gpuByID[id]
	if !ok {
		return unknown("GPU type %q is not in the catalog", id)
	}
	var price Money
	for _, o := range []Offer{g.Secure, g.Community} {
		if o.Offered && !o.Price.Known {
			return unknown("price of GPU type %q is not plausible", id)
		}
		if o.Offered {
			price = max(price, o.Price.PerHour)
		}
	}
	if price == 0 {
		return unknown("GPU type %q is not offered", id)
	}
	gpus, ok := product(perPod, pods)
	if !ok {
		return unknown("too many GPUs")
	}
	return total(price, gpus, gpus, fmt.Sprintf("%d pods x %d x %s at %s", pods, perPod, id, price))
}

// total multiplies a unit price. If GPUs are involved, the unit price is also the price per GPU.
func total(unit Money, units, gpus int64, basis string) Cost {
	hourly, ok := unit.times(units)
	if !ok {
		return unknown("the price is out of range: %s", basis)
	}
	c := Cost{Known: true, Hourly: hourly, GPUs: gpus, Basis: basis}
	if gpus > 0 {
		c.PerGPU = unit
	}
	return c
}

// stringOr returns a string member or its default. ok is false for any other type.
func stringOr(v any, def string) (s string, ok bool) {
	if v == nil {
		return def, true
	}
	s, ok = v.(string)
	return s, ok
}

// countOr returns a positive whole number or its default. A default of 0 means that the member is required.
func countOr(v any, def int64) (n int64, ok bool) {
	if v == nil {
		return def, def > 0
	}
	n, ok = operation.WholeNumber(v)
	return n, ok && n > 0
}

// maxGPUs limits the number of GPUs so that products stay in range. It is far above any real request.
const maxGPUs = 1_000_000_000

func product(a, b int64) (n int64, ok bool) {
	if a < 0 || b < 0 || a > maxGPUs || b > maxGPUs {
		return 0, false
	}
	n = a * b
	return n, n <= maxGPUs
}

// join lists the first few names and the number of the others.
func join(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}
