# METADATA
# title: Lifetime
# description: >-
#   A pod older than the limit may not be started, restarted or updated any
#   more, so that it ends and is made anew by the present rules. A sandbox may
#   not ask for more time than the limits; without a member of its own it has
#   the platform's defaults, 3600 seconds and 600 seconds without activity.
# custom:
#   params:
#     max_hours:
#       description: Hours after its creation a pod may still be started or changed.
#       type: number
#       exclusiveMinimum: 0
#     max_sandbox_seconds:
#       description: Most seconds after its creation at which a sandbox ends.
#       type: integer
#       minimum: 1
#     max_sandbox_idle_seconds:
#       description: Most seconds without activity after which a sandbox ends.
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
	message := sprintf("the pod is older than the %v hours allowed", [limit])
}

long(params) := {{"message": message, "pointer": concat("", ["/", member]), "excess": value.excess(seconds, limit)} |
	input.resource.kind == "sandbox"
	input.request.settles
	some [name, member, seconds] in asked
	limit := params[name]
	value.exceeds(seconds, limit)
	message := sprintf("%v seconds are more than the %d allowed", [seconds, limit])
}

# asked: the times that the call asks for, with the parameter that limits each.
asked := [["max_sandbox_seconds", "maxLifetimeSeconds", lifetime], ["max_sandbox_idle_seconds", "idleTimeoutSeconds", idle]]

default lifetime := null

lifetime := input.resource.after.maxLifetimeSeconds

default idle := null

idle := input.resource.after.idleTimeoutSeconds

young(params) if {
	created := time.parse_rfc3339_ns(input.resource.current.createdAt)
	input.time.ns - created <= params.max_hours * 3600000000000
}
