# METADATA
# title: Serverless pools
# description: Restricts the pools of endpoints. See gpu_allow_list for the GPU types in a pool.
# custom:
#   params:
#     pools:
#       description: Allowed pools.
#       type: array
#       minItems: 1
#       items: {type: string, minLength: 1, format: pool}
#   required: [pools]
#   allow_lists: [pools]
#   example:
#     pools: [ADA_24, AMPERE_24]
package tollgate.library.pools

import data.tollgate.value

violations(params) := {{"message": message, "pointer": pointer} |
	input.request.settles
	input.resource.kind == "endpoint"
	some i, pool in input.resource.after.gpu.pools
	not pool in params.pools
	message := sprintf("the pool %v is not allowed (allowed: %s)", [pool, value.listed(params.pools)])
	pointer := sprintf("/gpu/pools/%d", [i])
}
