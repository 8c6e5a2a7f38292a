# METADATA
# title: Container disk
# description: Bounds the container disk, which is billed while a container runs.
# custom:
#   params:
#     max_gb:
#       description: Most GB of container disk.
#       type: integer
#       minimum: 1
#     default_gb:
#       description: The size put into a create that names none and no template.
#       type: integer
#       minimum: 1
#   required: [max_gb]
#   example:
#     max_gb: 100
#     default_gb: 20
package tollgate.library.disk

import data.tollgate.value

violations(params) := {{"message": message, "pointer": "/disk"} |
	input.request.settles
	disk := input.resource.after.disk
	value.exceeds(disk, params.max_gb)
	message := sprintf("%v GB of container disk are more than the %d allowed", [disk, params.max_gb])
}

mutations(params) := {mutation |
	input.request.verb == "create"
	input.resource.kind in {"pod", "cluster", "endpoint"}
	size := params.default_gb
	not input.resource.after.disk
	mutation := {
		"op": "default",
		"pointer": "/disk",
		"value": size,
		"message": sprintf("container disk of %d GB by default", [size]),
	}
}
