package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Upper limits of one request. Without limits in the API description, a typing error could order a million GPUs. These limits are far above
// everything that the platform offers; policies set the limits of callers.
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
	eachCPU(body, func(shape map[string]any, tokens ...any) {
		if exceeds(shape["vcpuCount"], maxVCPUs) {
			report(atMostMessage(maxVCPUs), append(tokens, "vcpuCount")...)
		}
	})
}

// eachCPU calls f for the CPU shape of a pod, or for each CPU shape of an endpoint. tokens is the path to the shape.
func eachCPU(body map[string]any, f func(shape map[string]any, tokens ...any)) {
	f(object(body, "cpu"), "cpu")
	for i, item := range list(body, "cpu") {
		shape, _ := item.(map[string]any)
		f(shape, "cpu", i)
	}
}

// atMost reports a violation if the number at the path tokens, which consists of member names, exceeds limit. A missing number is valid.
func atMost(body map[string]any, report reporter, limit int64, tokens ...any) {
	var v any = body
	for _, t := range tokens {
		node, _ := v.(map[string]any)
		name, _ := t.(string)
		v = node[name]
	}
	if exceeds(v, limit) {
		report(atMostMessage(limit), slices.Clone(tokens)...)
	}
}

func atMostMessage(limit int64) string { return fmt.Sprintf("must be at most %d", limit) }

// exceeds reports whether v is a number above limit.
func exceeds(v any, limit int64) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	f, err := n.Float64()
	return err != nil || f > float64(limit)
}

// exactlyOneOf returns a check that a body has one of two members, but not both.
func exactlyOneOf(a, b string) func(map[string]any, reporter) {
	return func(body map[string]any, report reporter) {
		if has(body, a) == has(body, b) {
			report(fmt.Sprintf("must have exactly one of '%s' and '%s'", a, b))
		}
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
	eachCPU(body, func(shape map[string]any, tokens ...any) {
		if n, ok := integer(shape, "vcpuCount"); ok && (n < 1 || n&(n-1) != 0) {
			report("must be a power of two", append(tokens, "vcpuCount")...)
		}
	})
}

// checkCUDA checks that a list of CUDA versions and a minimum version are not combined. An empty list or an empty version counts as
// missing.
func checkCUDA(body map[string]any, report reporter) {
	gpu := object(body, "gpu")
	if len(list(gpu, "allowedCudaVersions")) > 0 && text(gpu, "minCudaVersion") != "" {
		report("must not have both 'allowedCudaVersions' and 'minCudaVersion'", "gpu")
	}
}

// checkExcludedTypes checks that no excluded GPU type occurs twice. Names that differ only in white space at the beginning or end are
// equal, because the platform trims them.
func checkExcludedTypes(body map[string]any, report reporter) {
	names := words(list(object(body, "gpu"), "excludedTypes"))
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if slices.Contains(names[:i], names[i]) {
			report("is a duplicate", "gpu", "excludedTypes", i)
		}
	}
}

// workerRange returns a check that the minimum number of workers does not exceed the maximum. fewest and most are the defaults of the two.
func workerRange(fewest, most int64) func(map[string]any, reporter) {
	return func(body map[string]any, report reporter) {
		workers, fewest, most := object(body, "workers"), fewest, most
		if n, ok := integer(workers, "min"); ok {
			fewest = n
		}
		if n, ok := integer(workers, "max"); ok {
			most = n
		}
		if fewest > most {
			report(fmt.Sprintf("must be at most 'max', which is %d", most), "workers", "min")
		}
	}
}

// checkIdleTimeout checks that the idle timeout is allowed; see idleTimeoutRefused.
func checkIdleTimeout(body map[string]any, report reporter) {
	if has(object(body, "workers"), "idleTimeout") && idleTimeoutRefused(body) {
		report("cannot be set for a QUEUE endpoint that scales by REQUEST_COUNT", "workers", "idleTimeout")
	}
}

// idleTimeoutRefused reports whether a new endpoint must not have an idle timeout. An endpoint without a type counts as a QUEUE endpoint.
func idleTimeoutRefused(body map[string]any) bool {
	return text(body, "type") != "LOAD_BALANCER" && text(object(body, "scaling"), "type") == "REQUEST_COUNT"
}
