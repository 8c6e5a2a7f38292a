# METADATA
# title: Data centres and regions
# description: >-
#   Restricts the data centres of resources. A call that leaves the choice to the scheduler is
#   refused unless choose is set. The platform treats the data centre of a sandbox as a preference.
# custom:
#   params:
#     allow:
#       description: Data centre ids, or prefixes that end in *, such as EU-* for a region.
#       type: array
#       minItems: 1
#       items: {type: string, minLength: 1, format: data_center}
#     choose:
#       description: >-
#         Data centres to set in create requests without one (for a sandbox, only the first). Each
#         must be allowed.
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

# choosing: kinds whose body lists data centres from which the scheduler chooses.
choosing if input.resource.kind in {"pod", "cluster", "endpoint", "sandbox"}

# member: the member that names the data centres; a sandbox names only one.
default member := "/dataCenterIds"

member := "/dataCenterId" if input.resource.kind == "sandbox"

chosen(params) := params.choose if input.resource.kind != "sandbox"

chosen(params) := params.choose[0] if input.resource.kind == "sandbox"

unchosen(params) := {{"message": message, "pointer": member} |
	input.request.settles
	choosing
	count(places) == 0
	message := sprintf("a data centre is required (allowed: %s)", [value.listed(params.allow)])
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
		"message": "set to the organisation's data centres",
	}
}

# places: every data centre in which the resource is or may be.
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
