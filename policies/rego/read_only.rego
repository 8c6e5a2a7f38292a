# METADATA
# title: Read-only
# description: Refuses all calls that change anything.
# custom:
#   params:
#     allow_stopping:
#       description: Allow calls that stop, delete or cancel, which only reduce costs.
#       type: boolean
#       default: false
#     reason:
#       description: Reason shown to the caller.
#       type: string
#       default: ""
#   example:
#     allow_stopping: true
#     reason: quarter end
package tollgate.library.read_only

violations(params) := {{"message": message, "pointer": ""} |
	not input.request.verb in {"read", "logs"}
	not saving(params)
	message := concat("", ["the organisation is read-only", suffix(params)])
}

saving(params) if {
	params.allow_stopping
	input.request.verb in {"stop", "delete", "cancel"}
}

suffix(params) := concat("", [": ", params.reason]) if params.reason != ""

suffix(params) := "" if params.reason == ""
