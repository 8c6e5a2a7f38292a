# METADATA
# title: Kill switch
# description: Refuses every call of the callers it applies to.
# custom:
#   params:
#     reason:
#       description: Shown to the caller.
#       type: string
#       default: ""
#   example:
#     reason: account under investigation
package tollgate.library.kill_switch

violations(params) := {{"message": message, "pointer": ""} |
	message := concat("", ["all calls are refused", suffix(params)])
}

suffix(params) := concat("", [": ", params.reason]) if params.reason != ""

suffix(params) := "" if params.reason == ""
