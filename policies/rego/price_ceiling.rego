# METADATA
# title: Price ceiling
# description: >-
#   Limits the hourly price of a resource with its disks, and the price of a GPU-hour without disks.
#   The price is the highest over all placements that the call allows. A call whose price is unknown
#   or outdated is refused.
# custom:
#   params:
#     max_usd_per_hour:
#       description: Maximum USD per hour of the whole resource.
#       type: number
#       exclusiveMinimum: 0
#     max_usd_per_gpu_hour:
#       description: Maximum USD per hour of one GPU.
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
	message := sprintf("the price per hour is unknown: %s", [input.cost.reason])
}

dear(params) := {{"message": message, "pointer": pointer, "excess": value.excess(input.cost.usd_per_hour, limit)} |
	input.request.settles
	input.cost.known
	limit := params.max_usd_per_hour
	value.exceeds(input.cost.usd_per_hour, limit)
	message := sprintf(
		"%s USD per hour exceeds the limit of %s USD (%s)",
		[value.usd(input.cost.usd_per_hour), value.usd(limit), input.cost.basis],
	)
}

dear_gpu(params) := {{"message": message, "pointer": pointer, "excess": value.excess(input.cost.usd_per_gpu_hour, limit)} |
	input.request.settles
	input.cost.known
	limit := params.max_usd_per_gpu_hour
	value.exceeds(input.cost.usd_per_gpu_hour, limit)
	message := sprintf(
		"%s USD per GPU-hour exceeds the limit of %s USD (%s)",
		[value.usd(input.cost.usd_per_gpu_hour), value.usd(limit), input.cost.basis],
	)
}

# pointer: the field that determines the price.
default pointer := ""

pointer := "/compute" if input.resource.kind == "cluster"

pointer := "/size" if input.resource.kind == "network_volume"

pointer := concat("", ["/", field]) if {
	input.resource.kind in {"pod", "endpoint"}
	field := compute_field
}

compute_field := "gpu" if input.resource.after.gpu

compute_field := "cpu" if not input.resource.after.gpu
