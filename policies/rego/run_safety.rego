# METADATA
# title: Run interface - safety checker
# description: >-
#   Keeps the safety checker of image and video models on. Where a call turns
#   it off it is turned on again; for the listed models it is always set.
# custom:
#   params:
#     models:
#       description: Public models whose calls always carry the checker.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#   example:
#     models: [wan-2-5, qwen-image-t2i]
package tollgate.library.run_safety

mutations(params) := {mutation |
	input.request.operation in {"run", "runsync"}
	some pointer, value in forced(params)
	mutation := {"op": "force", "pointer": pointer, "value": value, "message": "the safety checker stays on"}
}

forced(params) := {pointer: value | some [pointer, value] in (sent | always(params))}

# sent: the checker as the call spells it.
sent contains ["/input/enable_safety_checker", true] if _ = input.request.body.input.enable_safety_checker

sent contains ["/input/disable_safety_checker", false] if _ = input.request.body.input.disable_safety_checker

always(params) := {["/input/enable_safety_checker", true] |
	input.request.params.id in params.models
	not disables
}

disables if _ = input.request.body.input.disable_safety_checker
