# METADATA
# title: Account changes
# description: >-
#   Restricts who may change the SSH keys and delegations of the platform account, which affect all
#   users of the account and have no owner. Everyone may read them. The policy is always enabled;
#   to change or disable it, add an entry with other roles or with mode shadow. To use an SSH key in
#   your own pod, set PUBLIC_KEY in the pod's env.
# custom:
#   params:
#     roles:
#       description: Roles that may make these changes; default admin. A caller needs one of them.
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
		"only callers with the role %s can change SSH keys and delegations of the account",
		[concat(" or ", roles(params))],
	)
}

trusted(params) if {
	some role in input.caller.roles
	role in roles(params)
}

roles(params) := params.roles

roles(params) := ["admin"] if not params.roles
