# METADATA
# title: Clusters
# description: Limits cluster types, and the pods and GPUs of a cluster.
# custom:
#   params:
#     allow:
#       description: Allow creating clusters.
#       type: boolean
#       default: true
#     types:
#       description: Allowed cluster types.
#       type: array
#       minItems: 1
#       items: {enum: [APPLICATION, TRAINING, SLURM, RAY]}
#     max_pods:
#       description: Maximum pods of a cluster.
#       type: integer
#       minimum: 0
#     max_gpus:
#       description: Maximum GPUs of a cluster (pods times GPUs per pod).
#       type: integer
#       minimum: 0
#   allow_lists: [types]
#   example:
#     types: [TRAINING]
#     max_pods: 8
#     max_gpus: 64
package tollgate.library.clusters

import data.tollgate.gpu
import data.tollgate.value

violations(params) := {v |
	input.request.verb == "create"
	input.resource.kind == "cluster"
	some v in faults(params)
}

faults(params) := (forbidden(params) | kind(params)) | (pods(params) | gpus(params))

forbidden(params) := {{"message": "clusters are not allowed", "pointer": ""} | not params.allow}

kind(params) := {{"message": message, "pointer": "/type"} |
	allowed := params.types
	not type in allowed
	message := sprintf("a cluster of type %v is not allowed (allowed: %s)", [type, value.listed(allowed)])
}

type := input.resource.after.type

type := null if not input.resource.after.type

pods(params) := {{"message": message, "pointer": "/compute/podCount"} |
	number := object.get(gpu.compute, "podCount", null)
	value.exceeds(number, params.max_pods)
	message := sprintf("%v pods exceed the limit of %d", [number, params.max_pods])
}

gpus(params) := {{"message": message, "pointer": "/compute"} |
	value.exceeds(gpu.total, params.max_gpus)
	message := sprintf("%v GPUs in the cluster exceed the limit of %d", [gpu.total, params.max_gpus])
}
