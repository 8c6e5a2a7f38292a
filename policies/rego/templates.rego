# METADATA
# title: Templates
# description: >-
#   Restricts the templates of pods, endpoints and sandboxes, and publishing templates. The other
#   policies evaluate the settings of a template as if they were in the body.
# custom:
#   params:
#     allow_own:
#       description: Allow the account's own templates.
#       type: boolean
#       default: true
#     allow_public:
#       description: Allow public templates of others.
#       type: boolean
#       default: false
#     allow:
#       description: Ids of additional allowed templates.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     allow_publishing:
#       description: Allow making templates public.
#       type: boolean
#       default: false
#   example:
#     allow_own: true
#     allow: [official-pytorch]
package tollgate.library.templates

violations(params) := used(params) | published(params)

used(params) := {{"message": message, "pointer": "/templateId"} |
	input.request.verb in {"create", "update"}
	id := input.request.body.templateId
	not allowed(params, id)
	message := sprintf("the template %v is not allowed", [id])
}

allowed(params, id) if id in params.allow

allowed(params, _) if {
	params.allow_own
	input.resource.template.own == true
}

allowed(params, _) if {
	params.allow_public
	input.resource.template.public == true
}

published(params) := {{"message": "templates must not be public", "pointer": "/public"} |
	input.request.settles
	input.resource.kind == "template"
	not params.allow_publishing
	input.resource.after.public != false
}
