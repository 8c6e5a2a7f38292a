# METADATA
# title: Run interface - limits
# description: >-
#   Bounds tokens, run time and media length of one job. With set_defaults the
#   limits are put into calls that name none.
# custom:
#   params:
#     max_tokens:
#       description: Most tokens a text model may produce.
#       type: integer
#       minimum: 1
#     max_execution_ms:
#       description: Longest run time of a job in milliseconds (policy.executionTimeout).
#       type: integer
#       minimum: 5000
#     max_ttl_ms:
#       description: Longest time a job may exist in milliseconds (policy.ttl).
#       type: integer
#       minimum: 10000
#     max_duration_seconds:
#       description: Longest video or audio asked for (input.duration).
#       type: number
#       exclusiveMinimum: 0
#     set_defaults:
#       description: Put max_tokens and max_execution_ms into calls that name none.
#       type: boolean
#       default: false
#   any_of: [max_tokens, max_execution_ms, max_ttl_ms, max_duration_seconds]
#   example:
#     max_tokens: 4096
#     max_execution_ms: 600000
package tollgate.library.run_limits

import data.tollgate.batch
import data.tollgate.value

violations(params) := {{"message": message, "pointer": entry.pointer} |
	input.request.verb == "run"
	some entry in asked
	limit := params[entry.limit]
	value.exceeds(entry.value, limit)
	message := sprintf("%v is more than the %v allowed", [entry.value, limit])
}

asked contains {"limit": "max_tokens", "pointer": "/max_tokens", "value": x} if x := input.request.body.max_tokens

asked contains {"limit": "max_tokens", "pointer": "/max_completion_tokens", "value": x} if {
	x := input.request.body.max_completion_tokens
}

asked contains {"limit": "max_tokens", "pointer": "/input/max_tokens", "value": x} if x := input.request.body.input.max_tokens

asked contains {"limit": "max_tokens", "pointer": "/input/sampling_params/max_tokens", "value": x} if {
	x := input.request.body.input.sampling_params.max_tokens
}

asked contains {"limit": "max_tokens", "pointer": sprintf("/input/openai_input/%s", [name]), "value": x} if {
	some name in ["max_tokens", "max_completion_tokens"]
	x := input.request.body.input.openai_input[name]
}

asked contains {"limit": "max_execution_ms", "pointer": "/policy/executionTimeout", "value": x} if {
	x := input.request.body.policy.executionTimeout
}

asked contains {"limit": "max_ttl_ms", "pointer": "/policy/ttl", "value": x} if x := input.request.body.policy.ttl

asked contains {"limit": "max_duration_seconds", "pointer": "/input/duration", "value": x} if {
	x := input.request.body.input.duration
}

asked contains {"limit": limit, "pointer": sprintf("%s/%s", [request.pointer, concat("/", path)]), "value": x} if {
	some request in batch.requests
	some limit, paths in in_batches
	some path in paths
	x := batch.at(request.input, path)
}

# in_batches: where the inputs of a batch say what is limited.
in_batches := {
	"max_tokens": [["max_tokens"], ["sampling_params", "max_tokens"], ["openai_input", "max_tokens"], ["openai_input", "max_completion_tokens"]],
	"max_duration_seconds": [["duration"]],
}

mutations(params) := {mutation |
	params.set_defaults
	some pointer, limit in wanted(params)
	mutation := {"op": "default", "pointer": pointer, "value": limit, "message": sprintf("%s by default", [pointer])}
}

wanted(params) := {"/max_tokens": params.max_tokens} if {
	input.request.operation in {"chatCompletions", "completions"}
	not input.request.body.max_completion_tokens
}

wanted(params) := {"/policy/executionTimeout": params.max_execution_ms} if {
	input.request.operation in {"run", "runsync"}
}
