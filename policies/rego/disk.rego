# METADATA
# title: Container disk
# description: >-
#   Bounds the container disk, which is billed while a container runs. A create
#   that names none is judged by the size it will have.
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
#     platform_default_gb:
#       description: The size that the platform gives a create that names none.
#       type: integer
#       minimum: 0
#       default: 20
#   required: [max_gb]
#   at_most: {default_gb: max_gb}
#   example:
#     max_gb: 100
#     default_gb: 20
package tollgate.library.disk

import data.tollgate.value

violations(params) := {{"message": message, "pointer": "/disk", "excess": value.excess(disk, params.max_gb)} |
	input.request.settles
	disk := size(params)
	value.exceeds(disk, params.max_gb)
	message := sprintf("%v GB of container disk are more than the %d allowed", [disk, params.max_gb])
}

# size: the disk there will be.
size(_) := input.resource.after.disk

size(params) := object.get(params, "default_gb", params.platform_default_gb) if unnamed

unnamed if {
	input.request.verb == "create"
	input.resource.kind in {"pod", "cluster", "endpoint"}
	not named
}

# named: only the member itself is read, so that verdicts do not depend on the rest
# of the resource and can be remembered.
named if _ = input.resource.after.disk

mutations(params) := {mutation |
	unnamed
	gb := params.default_gb
	mutation := {
		"op": "default",
		"pointer": "/disk",
		"value": gb,
		"message": sprintf("container disk of %d GB by default", [gb]),
	}
}
