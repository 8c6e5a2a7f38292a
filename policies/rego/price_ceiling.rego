# METADATA
# title: Price ceiling
# description: >-
#   Bounds what a resource may cost per hour, in the worst case over the
#   placements the call allows, its disks included, and what one GPU-hour may
#   cost, GPUs alone. A price that is unknown or stale is refused.
# custom:
#   params:
#     max_usd_per_hour:
#       description: Most USD per hour for the whole resource.
#       type: number
#       exclusiveMinimum: 0
#     max_usd_per_gpu_hour:
#       description: Most USD per hour for one GPU.
#       type: number
#       exclusiveMinimum: 0
#   any_of: [max_usd_per_hour, max_usd_per_gpu_hour]
#   example:
#     max_usd_per_hour: 4
package tollgate.library.price_ceiling

import data.tollgate.value

violations(params) := (unknown | dear(params)) | dear_gpu(params)

unknown := {{"message": message, "pointer": pointer} |
	input.request.settles
	not input.cost.known
	message := sprintf("the price per hour is not known: %s", [input.cost.reason])
}

dear(params) := {{"message": message, "pointer": pointer, "excess": value.excess(input.cost.usd_per_hour, limit)} |
	input.request.settles
	input.cost.known
	limit := params.max_usd_per_hour
	value.exceeds(input.cost.usd_per_hour, limit)
	message := sprintf(
		"%v USD per hour is above the ceiling of %v USD (%s)",
		[input.cost.usd_per_hour, limit, input.cost.basis],
	)
}

dear_gpu(params) := {{"message": message, "pointer": pointer, "excess": value.excess(input.cost.usd_per_gpu_hour, limit)} |
	input.request.settles
	input.cost.known
	limit := params.max_usd_per_gpu_hour
	value.exceeds(input.cost.usd_per_gpu_hour, limit)
	message := sprintf(
		"%v USD per GPU-hour is above the ceiling of %v USD (%s)",
		[input.cost.usd_per_gpu_hour, limit, input.cost.basis],
	)
}

# pointer: the field that settles the price.
default pointer := ""

pointer := "/compute" if input.resource.kind == "cluster"

pointer := "/size" if input.resource.kind == "network_volume"

pointer := concat("", ["/", field]) if {
	input.resource.kind in {"pod", "endpoint"}
	field := compute_field
}

compute_field := "gpu" if input.resource.after.gpu

compute_field := "cpu" if not input.resource.after.gpu
