# METADATA
# title: Run interface - limits
# description: Limits tokens, execution time and media length of a job.
# custom:
#   params:
#     max_tokens:
#       description: >-
#         Maximum tokens that a text model may produce, for all choices of all prompts together.
#       type: integer
#       minimum: 1
#     max_execution_ms:
#       description: Maximum execution time in milliseconds (policy.executionTimeout).
#       type: integer
#       minimum: 5000
#     max_ttl_ms:
#       description: Maximum lifetime of a job in milliseconds (policy.ttl).
#       type: integer
#       minimum: 10000
#     max_duration_seconds:
#       description: Maximum length of video or audio in seconds (input.duration).
#       type: number
#       exclusiveMinimum: 0
#     set_defaults:
#       description: >-
#         Add max_tokens and max_execution_ms to calls that set none. max_tokens is added to chats,
#         completions and jobs whose input has openai_input, sampling_params, messages or a prompt,
#         except jobs of published models that do not produce text.
#       type: boolean
#       default: false
#   any_of: [max_tokens, max_execution_ms, max_ttl_ms, max_duration_seconds]
#   example:
#     max_tokens: 4096
#     max_execution_ms: 600000
package tollgate.library.run_limits

import data.tollgate.batch
import data.tollgate.value

violations(params) := exceeded(params) | unreadable(params)

exceeded(params) := {{"message": message, "pointer": entry.pointer} |
	input.request.verb == "run"
	some entry in asked
	limit := params[entry.limit]
	value.exceeds(entry.value, limit)
	message := sprintf("%v exceeds the limit of %v", [entry.value, limit])
}

unreadable(params) := {{"message": message, "pointer": run.at} |
	some run in input.request.runs
	run.wrong
	reason := "counts must be whole numbers above 0, and openai_input and sampling_params must be objects"
	message := sprintf("the number of tokens is unknown, and limited to %v: %s", [params.max_tokens, reason])
}

asked contains {"limit": "max_tokens", "pointer": run.at, "value": run.tokens} if {
	some run in input.request.runs
	is_number(run.tokens)
}

# Each choice has at least one token.
asked contains {"limit": "max_tokens", "pointer": run.pointer, "value": run.choices} if {
	some run in input.request.runs
	not is_number(run.tokens)
}

asked contains {"limit": "max_execution_ms", "pointer": "/policy/executionTimeout", "value": x} if {
	x := input.request.body.policy.executionTimeout
}

asked contains {"limit": "max_ttl_ms", "pointer": "/policy/ttl", "value": x} if x := input.request.body.policy.ttl

asked contains {"limit": "max_duration_seconds", "pointer": "/input/duration", "value": x} if {
	x := input.request.body.input.duration
}

asked contains {"limit": "max_duration_seconds", "pointer": sprintf("%s/duration", [request.pointer]), "value": x} if {
	some request in batch.requests
	x := batch.at(request.input, ["duration"])
}

mutations(params) := {mutation |
	params.set_defaults
	some [op, pointer, limit] in wanted(params)
	mutation := {"op": op, "pointer": pointer, "value": limit, "message": sprintf("%s by default", [pointer])}
}

wanted(params) := tokens_wanted(params) | time_wanted(params)

# tokens_wanted: the limit is divided between the choices. A null member counts as absent and is set.
tokens_wanted(params) := {["force", run.at, floor(params.max_tokens / run.choices)] |
	some run in input.request.runs
	not is_number(run.tokens)
	not run.wrong
	is_string(run.at)
	run.choices <= params.max_tokens
}

time_wanted(params) := {["default", "/policy/executionTimeout", params.max_execution_ms] |
	input.request.operation in {"run", "runsync"}
}
