# METADATA
# title: GPUs named by a call
package tollgate.gpu

# named: the GPU types of a resource, each with the field that names it and its offer. A field that
# is missing or has the wrong type results in null, which is on no list.
named contains {"id": id, "pointer": "/gpu/id", "offer": cloud} if {
	input.resource.kind == "pod"
	gpu := input.resource.after.gpu
	gpu != null
	id := object.get(gpu, "id", null)
}

named contains {"id": id, "pointer": "/compute/gpuTypeId", "offer": "CLUSTER"} if {
	input.resource.kind == "cluster"
	id := object.get(compute, "gpuTypeId", null)
}

named contains {"id": null, "pointer": "/gpu/pools", "offer": "SERVERLESS"} if {
	input.resource.kind == "endpoint"
	gpu := input.resource.after.gpu
	gpu != null
	not names_pools(gpu)
}

names_pools(gpu) if {
	is_array(gpu.pools)
	count(gpu.pools) > 0
}

# pools: the serverless pools of an endpoint, each with the GPU types left after the exclusions. For
# a pool that is not in the catalog, known is false.
pools contains {"pool": pool, "pointer": pointer, "known": true, "members": members} if {
	input.resource.kind == "endpoint"
	some i, pool in input.resource.after.gpu.pools
	input.catalog.pools[pool]
	pointer := sprintf("/gpu/pools/%d", [i])
	members := {id | some id in input.catalog.pools[pool]} - excluded
}

pools contains {"pool": pool, "pointer": pointer, "known": false, "members": set()} if {
	input.resource.kind == "endpoint"
	some i, pool in input.resource.after.gpu.pools
	pointer := sprintf("/gpu/pools/%d", [i])
	not input.catalog.pools[pool]
}

excluded contains trim_space(id) if some id in input.resource.after.gpu.excludedTypes

# counts: the number of GPUs of one pod, worker or cluster member.
counts contains {"count": count, "pointer": "/gpu/count"} if {
	input.resource.kind in {"pod", "endpoint"}
	gpu := input.resource.after.gpu
	gpu != null
	count := object.get(gpu, "count", 1)
}

counts contains {"count": count, "pointer": "/compute/gpuCountPerPod"} if {
	input.resource.kind == "cluster"
	count := object.get(compute, "gpuCountPerPod", null)
}

# most_workers: the highest number of workers of an endpoint, including the platform's defaults. The
# platform does not check that min is below max.
most_workers := max([object.get(workers, "min", 0), object.get(workers, "max", 3)])

workers := input.resource.after.workers

workers := {} if not input.resource.after.workers

compute := input.resource.after.compute

compute := {} if not input.resource.after.compute

cloud := input.resource.after.cloud

cloud := "SECURE" if not input.resource.after.cloud

# total: the highest number of GPUs of the whole resource. It is null, which exceeds every maximum,
# if a factor is not a number.
total := times(object.get(compute, "gpuCountPerPod", null), object.get(compute, "podCount", null)) if {
	input.resource.kind == "cluster"
}

total := times(count, most_workers) if {
	input.resource.kind == "endpoint"
	some entry in counts
	count := entry.count
}

total := count if {
	input.resource.kind == "pod"
	some entry in counts
	count := entry.count
}

times(a, b) := a * b if numbers(a, b)

times(a, b) := null if not numbers(a, b)

numbers(a, b) if {
	is_number(a)
	is_number(b)
}
