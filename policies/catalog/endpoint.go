package catalog

import (
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// endpoint prices a serverless endpoint as if all its workers ran on the most expensive hardware allowed.
func (s *Snapshot) endpoint(after map[string]any) Cost {
	workers, ok := maxWorkers(after["workers"])
	if !ok {
		return unknown("workers is not an object with whole, non-negative counts")
	}
	gpu, cpu, problem := hardware(after)
	if problem != "" {
		return unknown("%s", problem)
	}
	if gpu != nil {
		return s.gpuEndpoint(gpu, workers)
	}
	list, ok := cpu.([]any)
	if !ok {
		return unknown("cpu is not a list")
	}
	return s.cpuEndpoint(list, workers)
}

// The platform's defaults for optional members of a create.
const (
	defaultMinWorkers = 0
	defaultMaxWorkers = 3
)

// maxWorkers returns the highest number of workers that the endpoint can have at once. It is the larger of min and max, because the
// platform does not check that min is at most max.
func maxWorkers(v any) (n int64, ok bool) {
	if v == nil {
		return defaultMaxWorkers, true
	}
	w, ok := v.(map[string]any)
	if !ok {
		return 0, false
	}
	lo, ok1 := nonNegativeOr(w["min"], defaultMinWorkers)
	hi, ok2 := nonNegativeOr(w["max"], defaultMaxWorkers)
	return max(lo, hi), ok1 && ok2
}

func nonNegativeOr(v any, def int64) (n int64, ok bool) {
	if v == nil {
		return def, true
	}
	n, ok = operation.WholeNumber(v)
	return n, ok && n >= 0
}

func (s *Snapshot) gpuEndpoint(gpu map[string]any, workers int64) Cost {
	count, ok := countOr(gpu["count"], 1)
	if !ok {
		return unknown("gpu.count is not a positive whole number")
	}
	pools, ok := operation.Strings(gpu["pools"])
	if !ok || len(pools) == 0 {
		return unknown("gpu.pools is not a list of pools")
	}
	excluded, ok := operation.Strings(gpu["excludedTypes"])
	if !ok && gpu["excludedTypes"] != nil {
		return unknown("gpu.excludedTypes is not a list of GPU types")
	}
	gpuType, reason := s.mostExpensive(pools, excluded)
	if reason != "" {
		return unknown("%s", reason)
	}
	gpus, ok := product(workers, count)
	if !ok {
		return unknown("too many GPUs")
	}
	unit := gpuType.Serverless.PerHour
	c := total(unit, gpus, gpus, fmt.Sprintf("%d workers x %d x %s (most expensive of %s) at %s",
		workers, count, gpuType.ID, join(pools), unit))
	if c.Known {
		c.PerGPU = unit // set even if no worker may run yet
	}
	return c
}

// mostExpensive returns the most expensive GPU type left in the pools after the exclusions. If one of the types has no price, the result
// is unknown.
func (s *Snapshot) mostExpensive(pools, excluded []string) (g *GPU, reason string) {
	out := make(map[string]bool, len(excluded))
	for _, id := range excluded {
		out[strings.TrimSpace(id)] = true // the platform trims them, too
	}
	for _, pool := range pools {
		members := s.pools[pool]
		if len(members) == 0 {
			return nil, fmt.Sprintf("serverless pool %q is not in the catalog", pool)
		}
		for _, m := range members {
			if out[m.ID] {
				continue
			}
			if !m.Serverless.Known {
				return nil, fmt.Sprintf("serverless price of GPU type %q in pool %q is not plausible", m.ID, pool)
			}
			if g == nil || m.Serverless.PerHour > g.Serverless.PerHour {
				g = m
			}
		}
	}
	if g == nil {
		return nil, "the exclusions remove every GPU type from the pools"
	}
	return g, ""
}

func (s *Snapshot) cpuEndpoint(flavours []any, workers int64) Cost {
	var worst Money
	basis := ""
	for _, item := range flavours {
		f, ok := item.(map[string]any)
		if !ok {
			return unknown("an entry of cpu is not an object")
		}
		id, _ := f["id"].(string)
		vcpus, ok := countOr(f["vcpuCount"], 0)
		if !ok {
			return unknown("vcpuCount is not a positive whole number")
		}
		vcpus = atLeastNamed(vcpus, id)
		c, ok := s.CPU(id)
		if !ok {
			return unknown("CPU flavour %q is not in the catalog", id)
		}
		if !c.Serverless.Known {
			return unknown("serverless price of CPU flavour %q is not plausible", id)
		}
		worker, ok := c.Serverless.PerHour.times(vcpus)
		if !ok {
			return unknown("too many vCPUs")
		}
		if worker > worst {
			worst = worker
			basis = fmt.Sprintf("%d workers x %d vCPU of %s at %s", workers, vcpus, id, c.Serverless.PerHour)
		}
	}
	if basis == "" {
		return unknown("cpu is an empty list")
	}
	return total(worst, workers, 0, basis)
}
