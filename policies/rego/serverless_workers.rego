# METADATA
# title: Serverless workers
# description: >-
#   Limits the maximum and minimum workers of an endpoint. Refuses a minimum above the maximum,
#   which the platform does not check.
# custom:
#   params:
#     max_workers:
#       description: Maximum workers of an endpoint.
#       type: integer
#       minimum: 0
#     max_always_on:
#       description: Maximum workers without requests (workers.min).
#       type: integer
#       minimum: 0
#   any_of: [max_workers, max_always_on]
#   doubt: {at_most: {max_always_on: max_workers}}
#   example:
#     max_workers: 5
#     max_always_on: 0
package tollgate.library.serverless_workers

import data.tollgate.gpu
import data.tollgate.value

violations(params) := most(params) | (always_on(params) | inverted)

most(params) := {{"message": message, "pointer": "/workers/max", "excess": value.excess(gpu.most_workers, params.max_workers)} |
	judged
	value.exceeds(gpu.most_workers, params.max_workers)
	message := sprintf("%v workers exceed the limit of %d", [gpu.most_workers, params.max_workers])
}

always_on(params) := {{"message": message, "pointer": "/workers/min", "excess": value.excess(least, params.max_always_on)} |
	judged
	value.exceeds(least, params.max_always_on)
	message := sprintf("%v always-on workers exceed the limit of %d", [least, params.max_always_on])
}

inverted := {{"message": "workers.min exceeds workers.max", "pointer": "/workers/min"} |
	judged
	is_number(least)
	least > object.get(gpu.workers, "max", 3)
}

judged if {
	input.request.settles
	input.resource.kind == "endpoint"
}

least := object.get(gpu.workers, "min", 0)
