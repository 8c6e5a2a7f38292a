# METADATA
# title: Remote access
# description: Controls SSH, Jupyter and the global network of pods and clusters.
# custom:
#   params:
#     ssh:
#       description: Allow startSsh.
#       type: boolean
#       default: true
#     jupyter:
#       description: Allow startJupyter.
#       type: boolean
#       default: true
#     global_networking:
#       description: Allow globalNetworking.
#       type: boolean
#       default: true
#   example:
#     jupyter: false
#     global_networking: false
package tollgate.library.remote_access

violations(params) := {{"message": message, "pointer": concat("/", ["", field])} |
	input.request.settles
	input.resource.kind in {"pod", "cluster", "template"}
	some field, wanted in asked
	wanted != false
	not params[switches[field]]
	message := sprintf("%s is not allowed", [field])
}

switches := {"startSsh": "ssh", "startJupyter": "jupyter", "globalNetworking": "global_networking"}

asked["startSsh"] := input.resource.after.startSsh

asked["startJupyter"] := input.resource.after.startJupyter

asked["globalNetworking"] := input.resource.after.globalNetworking
