# METADATA
# title: CPU flavours
# description: Bounds which CPU flavours may be used and how many vCPUs one pod or worker gets.
# custom:
#   params:
#     flavors:
#       description: >-
#         CPU flavours that may be used, e.g. cpu5c. The platform's longer
#         spelling with size (cpu5c-4-8) counts as its flavour. Absent - any.
#       type: array
#       items: {type: string, minLength: 1, format: cpu_flavor}
#     max_vcpus:
#       description: Most vCPUs of one pod or worker. Where a flavour's name carries a size, it counts too.
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

# named: the flavours a pod or the workers of an endpoint may get.
named contains {"cpu": cpu, "pointer": "/cpu"} if {
	input.resource.kind == "pod"
	cpu := input.resource.after.cpu
	cpu != null
}

named contains {"cpu": cpu, "pointer": sprintf("/cpu/%d", [i])} if {
	input.resource.kind == "endpoint"
	some i, cpu in input.resource.after.cpu
}

# A sandbox has the members of a CPU shape beside its others; what it leaves out, the platform chooses.
named contains {"cpu": cpu, "pointer": ""} if {
	input.resource.kind == "sandbox"
	cpu := {"id": sandbox_flavor, "vcpuCount": sandbox_vcpus}
}

default sandbox_flavor := null

sandbox_flavor := input.resource.after.cpuFlavorId

default sandbox_vcpus := null

sandbox_vcpus := input.resource.after.vcpuCount

# flavor_member: the name of the member with the flavour's id.
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
	message := sprintf("%v vCPUs are more than the %d allowed", [vcpus, limit])
}

# sizes: how many vCPUs an entry asks for, in its count and in its flavour's name.
# What is asked for has them alike; what exists may not.
sizes(cpu) := {object.get(cpu, "vcpuCount", null)} | {to_number(parts[1]) |
	is_string(cpu.id)
	regex.match(`^[A-Za-z0-9]+-[0-9]+-[0-9]+$`, cpu.id)
	parts := split(cpu.id, "-")
}
