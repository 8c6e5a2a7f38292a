# METADATA
# title: GPU allow-list
# description: >-
#   Allows only the listed GPU types in gpu.id of a pod and compute.gpuTypeId of a cluster. For an
#   endpoint, all GPU types of its pools must be listed, except excluded types. Ids are compared
#   byte by byte.
# custom:
#   params:
#     gpus:
#       description: GPU type ids that are allowed everywhere.
#       type: array
#       items: {type: string, minLength: 1, format: gpu}
#       default: []
#     by_offer:
#       description: >-
#         GPU type ids for one offer only - SECURE or COMMUNITY pods, CLUSTER for clusters, SERVERLESS
#         for endpoints.
#       type: object
#       additionalProperties: false
#       default: {}
#       properties:
#         SECURE: {type: array, items: {type: string, minLength: 1, format: gpu}}
#         COMMUNITY: {type: array, items: {type: string, minLength: 1, format: gpu}}
#         CLUSTER: {type: array, items: {type: string, minLength: 1, format: gpu}}
#         SERVERLESS: {type: array, items: {type: string, minLength: 1, format: gpu}}
#   allow_lists: [gpus]
#   example:
#     gpus: [NVIDIA GeForce RTX 4090, NVIDIA L4]
package tollgate.library.gpu_allow_list

import data.tollgate.gpu
import data.tollgate.value

violations(params) := types(params) | pools(params)

types(params) := {{"message": message, "pointer": named.pointer} |
	input.request.settles
	some named in gpu.named
	allowed := allowed_in(params, named.offer)
	not named.id in allowed
	message := sprintf(
		"GPU type %s is not on the allow-list for the offer %s (allowed: %s)",
		[quoted(named.id), named.offer, value.listed(allowed)],
	)
}

pools(params) := {{"message": message, "pointer": entry.pointer} |
	input.request.settles
	some entry in gpu.pools
	allowed := allowed_in(params, "SERVERLESS")
	some message in pool_faults(entry, allowed)
}

pool_faults(entry, allowed) := {message |
	entry.known
	forbidden := entry.members - allowed
	count(forbidden) > 0
	message := sprintf(
		"pool %q contains GPU types that are not on the allow-list; add them to gpu.excludedTypes: %s (allowed: %s)",
		[entry.pool, value.listed(forbidden), value.listed(allowed)],
	)
} | {message |
	not entry.known
	message := sprintf("pool %s is not in the catalog, so its GPU types cannot be checked", [quoted(entry.pool)])
}

allowed_in(params, offer) := {id | some id in params.gpus} | {id | some id in params.by_offer[offer]}

quoted(x) := sprintf("%q", [x]) if is_string(x)

quoted(x) := json.marshal(x) if not is_string(x)
