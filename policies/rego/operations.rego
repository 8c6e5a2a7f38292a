# METADATA
# title: Operations
# description: Allows or refuses operations by name. See also read_only and kill_switch.
# custom:
#   params:
#     allow:
#       description: Operations to allow, such as createPod; default all.
#       type: array
#       items: {type: string, format: operation}
#     deny:
#       description: Operations to refuse.
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
	message := sprintf("the operation %s is not on the allow-list", [input.request.operation])
}
