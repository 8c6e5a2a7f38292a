package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Upper limits of one request. The description does not set limits, so a typing error could order a million GPUs.
// They are far above anything the platform offers; policies set the limits of a caller.
const (
	maxGPUs         = 1024
	maxVCPUs        = 1024
	maxMemory       = 65_536      // GB
	maxDisk         = 65_536      // GB
	maxWorkers      = 1000        // per endpoint
	maxRequestCount = 100_000     // per worker
	maxQueueDelay   = 86_400      // seconds: one day
	maxTimeout      = 604_800_000 // milliseconds: one week, the maximum duration of a job
)

func checkPodBounds(body map[string]any, report reporter) {
	atMost(body, report, maxDisk, "disk")
	atMost(body, report, maxDisk, "mounts", "persistent", "size")
	atMost(body, report, maxGPUs, "gpu", "count")
	atMost(body, report, maxMemory, "gpu", "minRamPerGpu")
	atMost(body, report, maxVCPUs, "gpu", "minVcpuCountPerGpu")
	atMost(body, report, maxVCPUs, "cpu", "vcpuCount")
}

func checkClusterBounds(body map[string]any, report reporter) {
	checkPodBounds(body, report)
	atMost(body, report, maxGPUs, "compute", "gpuCountPerPod")
}

func checkEndpointBounds(body map[string]any, report reporter) {
	atMost(body, report, maxDisk, "disk")
	atMost(body, report, maxGPUs, "gpu", "count")
	atMost(body, report, maxWorkers, "workers", "min")
	atMost(body, report, maxWorkers, "workers", "max")
	atMost(body, report, maxRequestCount, "scaling", "requestCount")
	atMost(body, report, maxQueueDelay, "scaling", "queueDelay")
	atMost(body, report, maxTimeout, "timeout")
	if n, ok := integer(body, "timeout"); ok && n < 0 {
		report("must not be negative", "timeout")
	}
	for i := range list(body, "cpu") {
		atMost(body, report, maxVCPUs, "cpu", i, "vcpuCount")
	}
}

// atMost reports the number at the path tokens if it exceeds limit. A missing number is valid.
func atMost(body map[string]any, report reporter, limit int64, tokens ...any) {
	var v any = body
	for _, t := range tokens {
		switch node := v.(type) {
		case map[string]any:
			name, _ := t.(string)
			v = node[name]
		case []any:
			i, ok := t.(int)
			if !ok || i >= len(node) {
				return
			}
			v = node[i]
		default:
			return
		}
	}
	n, ok := v.(json.Number)
	if !ok {
		return
	}
	if f, err := n.Float64(); err != nil || f > float64(limit) {
		report(fmt.Sprintf("must be at most %d", limit), slices.Clone(tokens)...)
	}
}

// checkExactlyOneCompute checks that a new resource has either gpu or cpu.
func checkExactlyOneCompute(body map[string]any, report reporter) {
	if has(body, "gpu") == has(body, "cpu") {
		report("must have exactly one of 'gpu' and 'cpu'")
	}
}

// checkAtMostOneCompute checks that an update does not have both gpu and cpu.
func checkAtMostOneCompute(body map[string]any, report reporter) {
	if has(body, "gpu") && has(body, "cpu") {
		report("must not have both 'gpu' and 'cpu'")
	}
}

// checkVCPU checks that vCPU counts are powers of two, both in pods (one shape) and in endpoints (several).
func checkVCPU(body map[string]any, report reporter) {
	one := func(shape map[string]any, tokens ...any) {
		if n, ok := integer(shape, "vcpuCount"); ok && (n < 1 || n&(n-1) != 0) {
			report("must be a power of two", append(tokens, "vcpuCount")...)
		}
	}
	one(object(body, "cpu"), "cpu")
	for i, item := range list(body, "cpu") {
		shape, _ := item.(map[string]any)
		one(shape, "cpu", i)
	}
}

// checkCUDA checks that a list of versions and a minimum version are not combined. An empty list and an empty version are
// no constraint.
func checkCUDA(body map[string]any, report reporter) {
	gpu := object(body, "gpu")
	if len(list(gpu, "allowedCudaVersions")) > 0 && text(gpu, "minCudaVersion") != "" {
		report("must not have both 'allowedCudaVersions' and 'minCudaVersion'", "gpu")
	}
}

// checkExcludedTypes checks for duplicates. The platform trims these names, so names that differ only in white space are
// duplicates.
func checkExcludedTypes(body map[string]any, report reporter) {
	names := words(list(object(body, "gpu"), "excludedTypes"))
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if slices.Contains(names[:i], names[i]) {
			report("is a duplicate", "gpu", "excludedTypes", i)
		}
	}
}

// checkNewWorkerRange checks that the minimum of the workers does not exceed the maximum, with defaults applied.
func checkNewWorkerRange(body map[string]any, report reporter) {
	const defaultMin, defaultMax = 0, 3
	workers := object(body, "workers")
	fewest, ok := integer(workers, "min")
	if !ok {
		fewest = defaultMin
	}
	most, ok := integer(workers, "max")
	if !ok {
		most = defaultMax
	}
	if fewest > most {
		report(fmt.Sprintf("must be at most 'max', which is %d", most), "workers", "min")
	}
}

// checkWorkerRange is like checkNewWorkerRange for an update, where an omitted member keeps an unknown value.
func checkWorkerRange(body map[string]any, report reporter) {
	workers := object(body, "workers")
	fewest, ok1 := integer(workers, "min")
	most, ok2 := integer(workers, "max")
	if ok1 && ok2 && fewest > most {
		report(fmt.Sprintf("must be at most 'max', which is %d", most), "workers", "min")
	}
}

// checkIdleTimeout checks that the idle timeout is allowed; see idleTimeoutRefused.
func checkIdleTimeout(body map[string]any, report reporter) {
	if has(object(body, "workers"), "idleTimeout") && idleTimeoutRefused(body) {
		report("cannot be set for a QUEUE endpoint that scales by REQUEST_COUNT", "workers", "idleTimeout")
	}
}

// idleTimeoutRefused reports whether a new endpoint must not have an idle timeout. An endpoint without a type is a QUEUE.
func idleTimeoutRefused(body map[string]any) bool {
	return text(body, "type") != "LOAD_BALANCER" && text(object(body, "scaling"), "type") == "REQUEST_COUNT"
}
