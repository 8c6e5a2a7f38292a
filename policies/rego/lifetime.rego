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
	some name, member in {"max_sandbox_seconds": "maxLifetimeSeconds", "max_sandbox_idle_seconds": "idleTimeoutSeconds"}
	limit := params[name]
	seconds := object.get(input.resource.after, member, null)
	value.exceeds(seconds, limit)
	message := sprintf("%v seconds are more than the %d allowed", [seconds, limit])
}

young(params) if {
	created := time.parse_rfc3339_ns(input.resource.current.createdAt)
	input.time.ns - created <= params.max_hours * 3600000000000
}
