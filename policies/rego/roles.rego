# METADATA
# title: Roles
# description: >-
#   What each role may do. A caller may do what any of its roles allows; a role
#   that is not listed allows nothing. The defaults: a viewer reads, without
#   logs; an operator also makes, changes and deletes pods, clusters,
#   endpoints, templates, network volumes, registries and sandboxes, starts and stops
#   what runs, runs commands in sandboxes, reads logs and runs jobs; an admin may do everything. Whose
#   resources a caller may change, isolation says. SSH keys and delegations,
#   which have no owner, are for admins. In force for every organisation whose
#   configuration does not list it; list it with grants of your own, or with
#   mode shadow to switch it off. A key that names no role is an operator.
# custom:
#   params:
#     grants:
#       description: >-
#         What each role may do, as kind:verb, * for all. Kinds - pod, cluster,
#         endpoint, template, network_volume, registry, sandbox, delegation, account,
#         catalog, billing, job, gateway. Verbs - read, logs, create, update,
#         delete, start, stop, restart, run, cancel, exec. Replaces the defaults.
#       type: object
#       propertyNames: {format: role}
#       additionalProperties:
#         type: array
#         items: {type: string, pattern: "^(\\*|[a-z_]+):(\\*|[a-z]+)$", format: grant}
#   example:
#     grants:
#       viewer: ["*:read"]
#       operator: ["*:read", "pod:*", "job:*"]
#       admin: ["*:*"]
package tollgate.library.roles

violations(params) := {{"message": message, "pointer": ""} |
	not granted(params)
	message := sprintf("none of the caller's roles may do %s:%s", [input.resource.kind, input.request.verb])
}

granted(params) if {
	some role in input.caller.roles
	some grant in grants(params)[role]
	some wanted in wanteds
	grant == wanted
}

# wanteds: the grants that would allow the call.
wanteds := {
	"*:*",
	sprintf("%s:*", [input.resource.kind]),
	sprintf("*:%s", [input.request.verb]),
	sprintf("%s:%s", [input.resource.kind, input.request.verb]),
}

grants(params) := params.grants

grants(params) := defaults if not params.grants

defaults := {
	"viewer": ["*:read"],
	"operator": [
		"*:read",
		"*:logs",
		"pod:*",
		"cluster:*",
		"endpoint:*",
		"template:*",
		"network_volume:*",
		"registry:*",
		"sandbox:*",
		"job:*",
	],
	"admin": ["*:*"],
}
