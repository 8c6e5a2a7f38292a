# METADATA
# title: Lifetime
# description: >-
#   A pod older than the limit may not be started, restarted or updated any
#   more, so that it ends and is made anew by the present rules.
# custom:
#   params:
#     max_hours:
#       description: Hours after its creation a pod may still be started or changed.
#       type: number
#       exclusiveMinimum: 0
#   required: [max_hours]
#   example:
#     max_hours: 72
package tollgate.library.lifetime

violations(params) := {{"message": message, "pointer": ""} |
	input.resource.kind == "pod"
	input.request.verb in {"start", "restart", "update"}
	not young(params)
	message := sprintf("the pod is older than the %v hours allowed", [params.max_hours])
}

young(params) if {
	created := time.parse_rfc3339_ns(input.resource.current.createdAt)
	input.time.ns - created <= params.max_hours * 3600000000000
}
