# METADATA
# title: Account changes
# description: >-
#   Who may change what belongs to the whole platform account, and so to
#   everybody who works in it: its SSH keys and its delegations. Templates,
#   network volumes and registries belong to whoever made them, and isolation
#   says who may change them. Reading is left alone. In force for every
#   organisation whose configuration does not list it; list it with roles of
#   your own, or with mode shadow to switch it off. A caller who wants an SSH
#   key in a pod of its own sets PUBLIC_KEY in the pod's env.
# custom:
#   params:
#     roles:
#       description: Roles that may; a caller needs one of them. admin when not given.
#       type: array
#       items: {type: string, format: role}
#   example:
#     roles: [admin, operator]
package tollgate.library.account_changes

violations(params) := {{"message": message, "pointer": ""} |
	input.resource.kind in {"account", "delegation"}
	input.request.verb in {"create", "update", "delete"}
	not trusted(params)
	message := sprintf(
		"only callers with the role %s may change what belongs to the whole account",
		[concat(" or ", roles(params))],
	)
}

trusted(params) if {
	some role in input.caller.roles
	role in roles(params)
}

roles(params) := params.roles

roles(params) := ["admin"] if not params.roles
