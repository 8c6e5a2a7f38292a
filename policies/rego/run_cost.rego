# METADATA
# title: Run interface - cost per run
# description: >-
#   Bounds what one run of a public model may cost. The platform lists no
#   prices for runs, so they are given here; a public model without a price is
#   refused. Jobs for the account's own endpoints cost what their workers cost
#   and are not judged.
# custom:
#   params:
#     max_usd_per_run:
#       description: Most USD one run may cost.
#       type: number
#       exclusiveMinimum: 0
#     prices:
#       description: >-
#         Model to price. usd_per_run is taken as it is; usd_per_second is
#         multiplied by input.duration (default_seconds when absent).
#       type: object
#       additionalProperties:
#         type: object
#         additionalProperties: false
#         properties:
#           usd_per_run: {type: number, exclusiveMinimum: 0}
#           usd_per_second: {type: number, exclusiveMinimum: 0}
#           default_seconds: {type: number, exclusiveMinimum: 0}
#     endpoints:
#       description: The account's own endpoints, which are not judged.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#   required: [max_usd_per_run, prices]
#   example:
#     max_usd_per_run: 0.5
#     prices:
#       wan-2-5: {usd_per_second: 0.15, default_seconds: 5}
#       z-image-turbo: {usd_per_run: 0.005}
package tollgate.library.run_cost

import data.tollgate.value

violations(params) := {{"message": message, "pointer": pointer} |
	input.request.verb == "run"
	not target in params.endpoints
	some [message, pointer] in faults(params)
}

faults(params) := {[message, ""] |
	not priced(params)
	message := sprintf("the price of a run of %v is not known", [target])
} | {[message, "/input"] |
	usd := cost(params.prices[target])
	value.exceeds(usd, params.max_usd_per_run)
	message := sprintf("%v USD per run are more than the %v USD allowed", [usd, params.max_usd_per_run])
}

target := input.request.params.id

target := null if not input.request.params.id

priced(params) if cost(params.prices[target])

cost(price) := price.usd_per_run

cost(price) := price.usd_per_second * seconds if {
	not price.usd_per_run
	seconds := input.request.body.input.duration
	is_number(seconds)
	seconds > 0
}

cost(price) := price.usd_per_second * price.default_seconds if {
	not price.usd_per_run
	not input.request.body.input.duration
}
