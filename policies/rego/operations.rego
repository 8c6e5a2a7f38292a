# METADATA
# title: Operations
# description: >-
#   Allows or refuses whole operations by name. read_only leaves only what
#   changes nothing; kill_switch refuses everything.
# custom:
#   params:
#     allow:
#       description: The only operations allowed, e.g. createPod. Absent - all.
#       type: array
#       items: {type: string, format: operation}
#     deny:
#       description: Operations refused.
#       type: array
#       items: {type: string, format: operation}
#       default: []
#   any_of: [allow, deny]
#   doubt: {apart: {allow: deny}}
#   allow_lists: [allow]
#   example:
#     deny: [updateSshKeys, createRegistry]
package tollgate.library.operations

violations(params) := {{"message": message, "pointer": ""} |
	input.request.operation in params.deny
	message := sprintf("the operation %s is not allowed", [input.request.operation])
} | {{"message": message, "pointer": ""} |
	allowed := params.allow
	not input.request.operation in allowed
	message := sprintf("the operation %s is not among those allowed", [input.request.operation])
}
