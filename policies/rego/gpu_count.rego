# METADATA
# title: GPUs per pod
# description: >-
#   Limits the GPUs of a pod, worker or cluster member, and of a whole cluster (pods times GPUs) or
#   endpoint (workers times GPUs).
# custom:
#   params:
#     max_per_pod:
#       description: Maximum GPUs of a pod, worker or cluster member.
#       type: integer
#       minimum: 0
#     max_per_resource:
#       description: >-
#         Maximum GPUs of a whole cluster or endpoint; default max_per_pod for a cluster, no limit
#         for an endpoint.
#       type: integer
#       minimum: 0
#   required: [max_per_pod]
#   doubt: {at_most: {max_per_pod: max_per_resource}}
#   example:
#     max_per_pod: 2
package tollgate.library.gpu_count

import data.tollgate.gpu
import data.tollgate.value

violations(params) := each(params) | whole(params)

each(params) := {{"message": message, "pointer": entry.pointer, "excess": value.excess(entry.count, params.max_per_pod)} |
	input.request.settles
	some entry in gpu.counts
	value.exceeds(entry.count, params.max_per_pod)
	message := sprintf("%v GPUs per pod exceed the limit of %d", [entry.count, params.max_per_pod])
}

whole(params) := {{"message": message, "pointer": pointer, "excess": value.excess(gpu.total, limit)} |
	input.request.settles
	limit := limit_of(params)
	value.exceeds(gpu.total, limit)
	message := sprintf("%v GPUs at once exceed the limit of %d for a %s", [gpu.total, limit, input.resource.kind])
}

limit_of(params) := object.get(params, "max_per_resource", params.max_per_pod) if input.resource.kind == "cluster"

limit_of(params) := params.max_per_resource if input.resource.kind == "endpoint"

pointer := "/compute/podCount" if input.resource.kind == "cluster"

pointer := "/workers/max" if input.resource.kind == "endpoint"
