# METADATA
# title: Naming
# description: Requires the names of resources to match a pattern.
# custom:
#   params:
#     pattern:
#       description: RE2 pattern that the whole name must match.
#       type: string
#       format: regex
#     max_length:
#       description: Maximum length in characters.
#       type: integer
#       minimum: 1
#     kinds:
#       description: Kinds of resources to check.
#       type: array
#       minItems: 1
#       items: {enum: [pod, cluster, endpoint, template, network_volume, registry, sandbox]}
#       default: [pod, cluster, endpoint]
#     example:
#       description: Matching name, shown in refusals.
#       type: string
#       default: ""
#   any_of: [pattern, max_length]
#   doubt: {matches: {example: pattern}}
#   example:
#     pattern: "[a-z]+-[a-z0-9-]+"
#     max_length: 40
#     example: research-train-1
package tollgate.library.naming

violations(params) := {{"message": message, "pointer": "/name"} |
	input.request.verb in {"create", "update"}
	input.resource.kind in params.kinds
	name := input.resource.after.name
	some message in faults(params, name)
} | {{"message": "the name of a sandbox is required", "pointer": "/name"} |
	input.request.verb == "create"
	input.resource.kind == "sandbox"
	"sandbox" in params.kinds
	not named
}

named if _ = input.resource.after.name

faults(_, name) := {"the name is not a string"} if not is_string(name)

faults(params, name) := pattern(params, name) | length(params, name) if is_string(name)

pattern(params, name) := {message |
	wanted := params.pattern
	not regex.match(concat("", ["^(?:", wanted, ")$"]), name)
	message := sprintf("the name must match %s%s", [wanted, hint(params)])
}

length(params, name) := {message |
	limit := params.max_length
	count(name) > limit
	message := sprintf("the name has %d characters, which exceeds the limit of %d", [count(name), limit])
}

hint(params) := sprintf(", e.g. %s", [params.example]) if params.example != ""

hint(params) := "" if params.example == ""
