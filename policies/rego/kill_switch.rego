# METADATA
# title: Kill switch
# description: Refuses all calls, except calls that stop or delete billed resources.
# custom:
#   params:
#     reason:
#       description: Reason shown to the caller.
#       type: string
#       default: ""
#     stopping:
#       description: Allow or refuse stopping and deleting.
#       type: string
#       enum: [allowed, refused]
#       default: allowed
#   example:
#     reason: account under investigation
package tollgate.library.kill_switch

violations(params) := {{"message": message, "pointer": ""} |
	not stops(params)
	message := concat("", ["all calls are refused", suffix(params)])
}

stops(params) if {
	params.stopping == "allowed"
	input.request.verb in {"stop", "delete", "cancel"}
}

suffix(params) := concat("", [": ", params.reason]) if params.reason != ""

suffix(params) := "" if params.reason == ""
