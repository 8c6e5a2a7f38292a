# METADATA
# title: Lifetime
# description: >-
#   Refuses to start, restart or update a pod older than the limit, so that it is created again
#   under the current rules. Limits the lifetime (default 3600 seconds) and the idle timeout
#   (default 600 seconds) that a sandbox may request.
# custom:
#   params:
#     max_hours:
#       description: Maximum age of a pod in hours.
#       type: number
#       exclusiveMinimum: 0
#     max_sandbox_seconds:
#       description: Maximum lifetime of a sandbox in seconds.
#       type: integer
#       minimum: 1
#     max_sandbox_idle_seconds:
#       description: Maximum idle timeout of a sandbox in seconds.
#       type: integer
#       minimum: 1
#   any_of: [max_hours, max_sandbox_seconds, max_sandbox_idle_seconds]
#   example:
#     max_hours: 72
package tollgate.library.lifetime

import data.tollgate.value

violations(params) := old(params) | long(params)

old(params) := {{"message": message, "pointer": ""} |
	input.resource.kind == "pod"
	input.request.verb in {"start", "restart", "update"}
	limit := params.max_hours
	not young(params)
	message := sprintf("the pod is older than the limit of %v hours", [limit])
}

long(params) := {{"message": message, "pointer": concat("", ["/", member]), "excess": value.excess(seconds, limit)} |
	input.resource.kind == "sandbox"
	input.request.settles
	some [name, member, seconds] in asked
	limit := params[name]
	value.exceeds(seconds, limit)
	message := sprintf("%v seconds exceed the limit of %d", [seconds, limit])
}

# asked: the times that the call requests, with the parameter that limits each.
asked := [["max_sandbox_seconds", "maxLifetimeSeconds", lifetime], ["max_sandbox_idle_seconds", "idleTimeoutSeconds", idle]]

default lifetime := null

lifetime := input.resource.after.maxLifetimeSeconds

default idle := null

idle := input.resource.after.idleTimeoutSeconds

young(params) if {
	created := time.parse_rfc3339_ns(input.resource.current.createdAt)
	input.time.ns - created <= params.max_hours * 3600000000000
}
