# METADATA
# title: Roles
# description: >-
#   Controls what each role may do. A caller may do what any of its roles allows; roles that are not
#   listed allow nothing, and a key without roles has the role operator. By default, a viewer can
#   read everything except logs. An operator can also create, change and delete pods, clusters,
#   endpoints, templates, network volumes, registries, secrets and sandboxes, start and stop
#   resources, run commands in sandboxes, read logs and run jobs. An admin can do everything. SSH
#   keys and delegations require the role admin. Isolation controls whose resources a caller may
#   change. The policy is always enabled; to change or disable it, add an entry with other grants or
#   with mode shadow.
# custom:
#   params:
#     grants:
#       description: >-
#         Grants of each role as kind:verb, in place of the defaults; * means all. Kinds - pod,
#         cluster, endpoint, template, network_volume, registry, secret, sandbox, delegation,
#         account, catalog, billing, job, gateway. Verbs - read, logs, create, update, delete,
#         start, stop, restart, run, cancel, exec.
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
	message := sprintf("none of the caller's roles allows %s:%s", [input.resource.kind, input.request.verb])
}

granted(params) if {
	some role in input.caller.roles
	some grant in grants(params)[role]
	some wanted in matching_grants
	grant == wanted
}

# matching_grants: the grants that would allow the call.
matching_grants := {
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
		"secret:*",
		"sandbox:*",
		"job:*",
	],
	"admin": ["*:*"],
}
