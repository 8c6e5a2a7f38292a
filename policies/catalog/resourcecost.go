package catalog

import "github.com/tollgate-dev/tollgate/policies/operation"

// ResourceCost returns the hourly cost of a resource, given as the platform's record or as the state that results from a call. A stopped
// pod costs its storage. A running pod costs the billed price in the platform's record, if the record has one and no prices were
// negotiated.
func (s *Snapshot) ResourceCost(kind operation.Kind, resource map[string]any) Cost {
	if s == nil && kind != operation.KindVolume {
		return unknown("the price list is unavailable")
	}
	switch kind { //nolint:exhaustive // nothing else is billed by the hour
	case operation.KindPod:
		if PodStopped(resource) {
			d, reason := s.disksOf(resource)
			monthly, ok := s.rates.PersistentStopped.times(d.persistent)
			if reason != "" || !ok {
				return unknown("the storage size of the resource is unknown")
			}
			return Cost{Known: true, Hourly: perHour(monthly)}
		}
		c := s.pod(resource)
		if rate, err := moneyOf(resource["cost"]); err == nil && rate > 0 && (s.listed == nil || !c.Known) {
			c = Cost{Known: true, Hourly: rate, GPUs: c.GPUs}
		}
		return s.withDisks(c, resource, 1)
	case operation.KindEndpoint:
		return s.Price("createEndpoint", operation.VerbCreate, resource)
	case operation.KindCluster:
		return s.Price("createCluster", operation.VerbCreate, resource)
	case operation.KindVolume:
		return s.volume(resource)
	case operation.KindSandbox:
		return s.sandbox(resource)
	}
	return Cost{Known: true}
}

// PodStopped reports whether a pod is stopped and holds no machine.
func PodStopped(pod map[string]any) bool {
	return pod["status"] == "EXITED" || pod["status"] == "TERMINATED"
}

// ResourceCounts returns the number of GPUs, pods and workers that a resource may have at once, and the size in GB of a network volume. A
// value that cannot be read counts as 0.
func ResourceCounts(kind operation.Kind, resource map[string]any) (gpus, pods, workers, volumeGB int64) {
	perUnit := func(section, count string, def int64) int64 {
		s, ok := resource[section].(map[string]any)
		if !ok {
			return 0
		}
		n, _ := countOr(s[count], def)
		return n
	}
	switch kind { //nolint:exhaustive // nothing else holds anything
	case operation.KindPod:
		pods = 1
		if !PodStopped(resource) {
			gpus = perUnit("gpu", "count", 1)
		}
	case operation.KindCluster:
		pods = perUnit("compute", "podCount", 0)
		gpus, _ = product(pods, perUnit("compute", "gpuCountPerPod", 0))
	case operation.KindEndpoint:
		workers, _ = maxWorkers(resource["workers"])
		gpus, _ = product(workers, perUnit("gpu", "count", 1))
	case operation.KindVolume:
		volumeGB, _ = countOr(resource["size"], 0)
	}
	return gpus, pods, workers, volumeGB
}

// ImplausibleMember returns the name of a member of a platform record whose value is impossible, such as "gpu.count". It returns "" if all
// values are possible: a running pod has GPUs or a CPU, and numbers of GPUs, pods and gigabytes are positive integers.
func ImplausibleMember(kind operation.Kind, resource map[string]any) string {
	positive := func(section, count string) bool {
		s, _ := resource[section].(map[string]any)
		n, ok := operation.WholeNumber(s[count])
		return ok && n > 0
	}
	switch kind { //nolint:exhaustive // nothing else is counted
	case operation.KindPod:
		_, hasGPU := resource["gpu"].(map[string]any)
		_, hasCPU := resource["cpu"].(map[string]any)
		switch {
		case hasGPU && !positive("gpu", "count"):
			return "gpu.count"
		case !hasGPU && !hasCPU && !PodStopped(resource):
			return "gpu"
		}
	case operation.KindCluster:
		for _, count := range []string{"podCount", "gpuCountPerPod"} {
			if !positive("compute", count) {
				return "compute." + count
			}
		}
	case operation.KindEndpoint:
		if _, hasGPU := resource["gpu"].(map[string]any); hasGPU && !positive("gpu", "count") {
			return "gpu.count"
		}
		if _, ok := maxWorkers(resource["workers"]); !ok {
			return "workers"
		}
	case operation.KindVolume:
		if n, ok := operation.WholeNumber(resource["size"]); !ok || n <= 0 {
			return "size"
		}
	}
	return ""
}
