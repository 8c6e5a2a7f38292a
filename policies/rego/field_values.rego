# METADATA
# title: Field values
# description: Sets fields of a body. The changed body is validated and evaluated again.
# custom:
#   params:
#     defaults:
#       description: Values to set if absent, by operation and pointer.
#       type: object
#       propertyNames: {format: operation}
#       additionalProperties: {type: object, propertyNames: {format: body_pointer}}
#       default: {}
#     force:
#       description: Values to always set, by operation and pointer.
#       type: object
#       propertyNames: {format: operation}
#       additionalProperties: {type: object, propertyNames: {format: body_pointer}}
#       default: {}
#   any_of: [defaults, force]
#   example:
#     defaults:
#       createPod: {/disk: 20}
#     force:
#       createPod: {/cloud: SECURE, /globalNetworking: false}
package tollgate.library.field_values

mutations(params) := set_by(params, "defaults", "default") | set_by(params, "force", "force")

set_by(params, list, op) := {mutation |
	some pointer, value in params[list][input.request.operation]
	mutation := {
		"op": op,
		"pointer": pointer,
		"value": value,
		"message": sprintf("%s is set by the organisation", [pointer]),
	}
}
