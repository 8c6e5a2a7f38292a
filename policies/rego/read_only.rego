# METADATA
# title: Read-only
# description: >-
#   Refuses everything that changes something. Stopping and deleting, which
#   only save money, can be left possible.
# custom:
#   params:
#     allow_stopping:
#       description: Leave stopping, deleting and cancelling possible.
#       type: boolean
#       default: false
#     reason:
#       description: Shown to the caller.
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
