# METADATA
# title: Data centres and regions
# description: >-
#   Resources may only be placed in the listed data centres. A call that leaves
#   the choice to the scheduler is refused, or, with choose, gets the list of
#   allowed data centres as its own, a sandbox the first of them. The platform
#   takes the data centre of a sandbox for a preference, and may place it
#   elsewhere.
# custom:
#   params:
#     allow:
#       description: >-
#         Data centre ids, or prefixes that end in *, such as EU-* for a region.
#       type: array
#       minItems: 1
#       items: {type: string, minLength: 1, format: data_center}
#     choose:
#       description: >-
#         Data centres put into a create that names none. Each must be allowed.
#       type: array
#       items: {type: string, minLength: 1, format: data_center}
#       default: []
#   required: [allow]
#   among: {choose: allow}
#   allow_lists: [allow]
#   example:
#     allow: [EU-RO-1, EU-SE-1, EUR-IS-*]
#     choose: [EU-RO-1, EU-SE-1]
package tollgate.library.data_centers

import data.tollgate.value

violations(params) := unchosen(params) | outside(params)

# choosing: kinds whose body lists data centres the scheduler picks from.
choosing if input.resource.kind in {"pod", "cluster", "endpoint", "sandbox"}

# member: where a create names its places; a sandbox names one.
default member := "/dataCenterIds"

member := "/dataCenterId" if input.resource.kind == "sandbox"

chosen(params) := params.choose if input.resource.kind != "sandbox"

chosen(params) := params.choose[0] if input.resource.kind == "sandbox"

unchosen(params) := {{"message": message, "pointer": member} |
	input.request.settles
	choosing
	count(places) == 0
	message := sprintf("a data centre must be named (allowed: %s)", [value.listed(params.allow)])
}

outside(params) := {{"message": message, "pointer": place.pointer} |
	input.request.settles
	some place in places
	not allowed(params.allow, place.id)
	message := sprintf("the data centre %v is not allowed (allowed: %s)", [place.id, value.listed(params.allow)])
}

mutations(params) := {mutation |
	input.request.verb == "create"
	choosing
	count(params.choose) > 0
	count(places) == 0
	mutation := {
		"op": "force",
		"pointer": member,
		"value": chosen(params),
		"message": "placed in the data centres of the organisation",
	}
}

# places: every data centre the resource is or may be in.
places contains {"id": id, "pointer": sprintf("/dataCenterIds/%d", [i])} if {
	some i, id in input.resource.after.dataCenterIds
}

places contains {"id": id, "pointer": "/dataCenterId"} if {
	id := input.resource.after.dataCenterId
	id != null
}

places contains {"id": id, "pointer": "/dataCenter"} if {
	input.resource.kind == "network_volume"
	id := input.resource.after.dataCenter
}

allowed(patterns, id) if {
	is_string(id)
	some pattern in patterns
	matches(pattern, id)
}

matches(pattern, id) if pattern == id

matches(pattern, id) if {
	endswith(pattern, "*")
	startswith(id, trim_suffix(pattern, "*"))
}
