# METADATA
# title: Cloud tier
# description: >-
#   Restricts the clouds of pods. A pod without a chosen cloud is placed in SECURE. Clusters and
#   endpoints cannot choose a cloud.
# custom:
#   params:
#     clouds:
#       description: Clouds that pods may use.
#       type: array
#       minItems: 1
#       items: {enum: [SECURE, COMMUNITY]}
#   required: [clouds]
#   allow_lists: [clouds]
#   example:
#     clouds: [SECURE]
package tollgate.library.cloud_tier

import data.tollgate.gpu
import data.tollgate.value

violations(params) := {{"message": message, "pointer": "/cloud"} |
	input.request.settles
	input.resource.kind == "pod"
	not gpu.cloud in params.clouds
	message := sprintf("the cloud %v is not allowed (allowed: %s)", [gpu.cloud, value.listed(params.clouds)])
}
