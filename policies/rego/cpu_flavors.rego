# METADATA
# title: CPU flavours
# description: Restricts the CPU flavours and the number of vCPUs of pods and workers.
# custom:
#   params:
#     flavors:
#       description: >-
#         Allowed CPU flavours, such as cpu5c; default any. A form with a size (cpu5c-4-8) counts as
#         its flavour.
#       type: array
#       items: {type: string, minLength: 1, format: cpu_flavor}
#     max_vcpus:
#       description: Maximum vCPUs of a pod or worker, including a size in the name of a flavour.
#       type: integer
#       minimum: 0
#   any_of: [flavors, max_vcpus]
#   allow_lists: [flavors]
#   example:
#     flavors: [cpu5c, cpu3c]
#     max_vcpus: 16
package tollgate.library.cpu_flavors

import data.tollgate.value

violations(params) := flavor(params) | size(params)

# named: the flavours that a pod or the workers of an endpoint may use.
named contains {"cpu": cpu, "pointer": "/cpu"} if {
	input.resource.kind == "pod"
	cpu := input.resource.after.cpu
	cpu != null
}

named contains {"cpu": cpu, "pointer": sprintf("/cpu/%d", [i])} if {
	input.resource.kind == "endpoint"
	some i, cpu in input.resource.after.cpu
}

# A sandbox has the CPU members at its top level; the platform chooses the omitted ones.
named contains {"cpu": cpu, "pointer": ""} if {
	input.resource.kind == "sandbox"
	cpu := {"id": sandbox_flavor, "vcpuCount": sandbox_vcpus}
}

default sandbox_flavor := null

sandbox_flavor := input.resource.after.cpuFlavorId

default sandbox_vcpus := null

sandbox_vcpus := input.resource.after.vcpuCount

# flavor_member: the name of the member that contains the flavour's id.
default flavor_member := "/id"

flavor_member := "/cpuFlavorId" if input.resource.kind == "sandbox"

flavor(params) := {{"message": message, "pointer": concat("", [entry.pointer, flavor_member])} |
	input.request.settles
	allowed := params.flavors
	some entry in named
	id := object.get(entry.cpu, "id", null)
	not listed(allowed, id)
	message := sprintf("the CPU flavour %v is not allowed (allowed: %s)", [id, value.listed(allowed)])
}

listed(allowed, id) if id in allowed

listed(allowed, id) if {
	is_string(id)
	regex.match(`^[A-Za-z0-9]+-[0-9]+-[0-9]+$`, id)
	split(id, "-")[0] in allowed
}

size(params) := {{"message": message, "pointer": concat("", [entry.pointer, "/vcpuCount"]), "excess": value.excess(vcpus, limit)} |
	input.request.settles
	limit := params.max_vcpus
	some entry in named
	some vcpus in sizes(entry.cpu)
	value.exceeds(vcpus, limit)
	message := sprintf("%v vCPUs exceed the limit of %d", [vcpus, limit])
}

# sizes: the vCPUs of an entry, from its count and from its flavour's name. In requests both are
# equal; in existing resources they may differ.
sizes(cpu) := {object.get(cpu, "vcpuCount", null)} | {to_number(parts[1]) |
	is_string(cpu.id)
	regex.match(`^[A-Za-z0-9]+-[0-9]+-[0-9]+$`, cpu.id)
	parts := split(cpu.id, "-")
}
