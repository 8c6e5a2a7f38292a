# METADATA
# title: Serverless scaling and timeouts
# description: >-
#   Limits idle timeout, execution timeout, scaler and cold-start acceleration of endpoints.
# custom:
#   params:
#     max_idle_seconds:
#       description: Maximum workers.idleTimeout in seconds.
#       type: integer
#       minimum: 1
#     max_timeout_ms:
#       description: Maximum execution timeout in milliseconds. An endpoint without a timeout (0) violates it.
#       type: integer
#       minimum: 1
#     scalers:
#       description: Allowed scalers.
#       type: array
#       minItems: 1
#       items: {enum: [QUEUE_DELAY, REQUEST_COUNT]}
#     flashboot:
#       description: Allowed cold-start accelerations.
#       type: array
#       minItems: 1
#       items: {enum: ["OFF", FLASHBOOT, PRIORITY_FLASHBOOT]}
#     min_requests_per_worker:
#       description: Minimum scaling.requestCount, so that a burst does not start all workers.
#       type: integer
#       minimum: 1
#   any_of: [max_idle_seconds, max_timeout_ms, scalers, flashboot, min_requests_per_worker]
#   example:
#     max_idle_seconds: 60
#     max_timeout_ms: 600000
package tollgate.library.serverless_scaling

import data.tollgate.value

violations(params) := {v |
	input.request.settles
	input.resource.kind == "endpoint"
	some v in faults(params)
}

faults(params) := (idle(params) | timeout(params)) | (scaler(params) | (flash(params) | requests(params)))

idle(params) := {{"message": message, "pointer": "/workers/idleTimeout", "excess": value.excess(seconds, params.max_idle_seconds)} |
	seconds := input.resource.after.workers.idleTimeout
	value.exceeds(seconds, params.max_idle_seconds)
	message := sprintf("an idle timeout of %v s exceeds the limit of %d s", [seconds, params.max_idle_seconds])
}

timeout(params) := too_long(params) | unlimited(params)

too_long(params) := {{"message": message, "pointer": "/timeout", "excess": value.excess(ms, params.max_timeout_ms)} |
	ms := input.resource.after.timeout
	value.exceeds(ms, params.max_timeout_ms)
	message := sprintf("an execution timeout of %v ms exceeds the limit of %d ms", [ms, params.max_timeout_ms])
}

unlimited(params) := {{"message": message, "pointer": "/timeout"} |
	params.max_timeout_ms
	input.resource.after.timeout == 0
	message := sprintf("an execution timeout of 0 is no limit; the limit is %d ms", [params.max_timeout_ms])
}

scaler(params) := {{"message": message, "pointer": "/scaling/type"} |
	used := input.resource.after.scaling.type
	not used in params.scalers
	message := sprintf("the scaler %v is not allowed (allowed: %s)", [used, value.listed(params.scalers)])
}

flash(params) := {{"message": message, "pointer": "/flashboot"} |
	used := input.resource.after.flashboot
	not used in params.flashboot
	message := sprintf("flashboot %v is not allowed (allowed: %s)", [used, value.listed(params.flashboot)])
}

requests(params) := {{"message": message, "pointer": "/scaling/requestCount", "excess": value.excess(params.min_requests_per_worker, asked)} |
	asked := input.resource.after.scaling.requestCount
	value.below(asked, params.min_requests_per_worker)
	message := sprintf("%v requests per worker are below the minimum of %d", [asked, params.min_requests_per_worker])
}
