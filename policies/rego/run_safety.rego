# METADATA
# title: Run interface - safety checker
# description: >-
#   Keeps the safety checker of image and video models enabled, also if a call disables it.
# custom:
#   params:
#     models:
#       description: Public models whose calls always get the safety checker.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#   example:
#     models: [wan-2-5, qwen-image-t2i]
package tollgate.library.run_safety

import data.tollgate.batch

mutations(params) := {mutation |
	input.request.operation in {"run", "runsync", "createBatch", "addBatchRequests"}
	some pointer, value in forced(params)
	mutation := {"op": "force", "pointer": pointer, "value": value, "message": "the safety checker is required"}
}

forced(params) := {pointer: value | some [pointer, value] in ((sent | always(params)) | always_batched(params))}

# sent: the safety checker members in the call.
sent contains ["/input/enable_safety_checker", true] if _ = input.request.body.input.enable_safety_checker

sent contains ["/input/disable_safety_checker", false] if _ = input.request.body.input.disable_safety_checker

sent contains [sprintf("%s/%s", [request.pointer, name]), value] if {
	some request in batch.requests
	some name, value in {"enable_safety_checker": true, "disable_safety_checker": false}
	_ = batch.at(request.input, [name])
}

always(params) := {["/input/enable_safety_checker", true] |
	input.request.operation in {"run", "runsync"}
	input.request.params.id in params.models
	not disables
}

always_batched(params) := {[sprintf("%s/enable_safety_checker", [request.pointer]), true] |
	input.request.params.id in params.models
	some request in batch.requests
	not request.input.disable_safety_checker == request.input.disable_safety_checker
}

disables if _ = input.request.body.input.disable_safety_checker
