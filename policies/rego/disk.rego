# METADATA
# title: Container disk
# description: Limits the container disk, which is billed while a container runs.
# custom:
#   params:
#     max_gb:
#       description: Maximum size in GB.
#       type: integer
#       minimum: 1
#     default_gb:
#       description: >-
#         Size in GB to set in create requests that have neither a disk size nor a template.
#       type: integer
#       minimum: 1
#     platform_default_gb:
#       description: Size in GB that the platform uses for create requests without a disk size.
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
	message := sprintf("%v GB of container disk exceed the limit of %d", [disk, params.max_gb])
}

# size: the resulting disk size.
size(_) := input.resource.after.disk

size(params) := object.get(params, "default_gb", params.platform_default_gb) if unnamed

unnamed if {
	input.request.verb == "create"
	input.resource.kind in {"pod", "cluster", "endpoint"}
	not named
}

# named: reads only the member itself, so that verdicts do not depend on the rest of the resource
# and can be cached.
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
