# METADATA
# title: Storage kinds and sizes
# description: >-
#   Limits persistent mounts (host-local, deprecated by the platform) and network volumes.
# custom:
#   params:
#     allow_persistent:
#       description: Allow persistent mounts.
#       type: boolean
#       default: false
#     max_persistent_gb:
#       description: Maximum size of a persistent mount in GB.
#       type: integer
#       minimum: 0
#     max_volume_gb:
#       description: Maximum size of a network volume in GB.
#       type: integer
#       minimum: 0
#     volume_types:
#       description: Allowed types of new network volumes; a create request must contain one.
#       type: array
#       items: {enum: [STANDARD, HIGH_PERFORMANCE]}
#     volumes:
#       description: Network volumes that may be mounted; default any.
#       type: array
#       items: {type: string, minLength: 1}
#   allow_lists: [volume_types, volumes]
#   example:
#     max_volume_gb: 500
#     volume_types: [STANDARD]
package tollgate.library.storage

import data.tollgate.value

violations(params) := persistent(params) | (volume(params) | mounted(params))

persistent(params) := {{"message": message, "pointer": pointer, "excess": excess} |
	input.request.settles
	mount := input.resource.after.mounts.persistent
	some [message, pointer, excess] in persistent_faults(mount, params)
}

persistent_faults(mount, params) := {["persistent mounts are not allowed: use a network volume", "/mounts/persistent", null] |
	mount != null
	not params.allow_persistent
} | {[message, "/mounts/persistent/size", value.excess(size, limit)] |
	mount != null
	params.allow_persistent
	size := object.get(mount, "size", null)
	limit := params.max_persistent_gb
	value.exceeds(size, limit)
	message := sprintf("a persistent mount of %v GB exceeds the limit of %d GB", [size, limit])
}

volume(params) := {{"message": message, "pointer": "/size", "excess": value.excess(size, limit)} |
	input.request.settles
	input.resource.kind == "network_volume"
	limit := params.max_volume_gb
	size := input.resource.after.size
	value.exceeds(size, limit)
	message := sprintf("a network volume of %v GB exceeds the limit of %d GB", [size, limit])
} | {{"message": message, "pointer": "/type"} |
	input.request.verb == "create"
	input.resource.kind == "network_volume"
	allowed := params.volume_types
	not volume_type in allowed
	message := sprintf("a network volume must be of an allowed type (allowed: %s)", [value.listed(allowed)])
}

volume_type := input.resource.after.type

volume_type := null if not input.resource.after.type

mounted(params) := {{"message": message, "pointer": pointer} |
	input.request.settles
	allowed := params.volumes
	some [id, pointer] in mounts
	not id in allowed
	message := sprintf("the network volume %v must not be mounted", [id])
}

mounts contains [id, pointer] if {
	some i, mount in input.resource.after.mounts.network
	id := object.get(mount, "volumeId", null)
	pointer := sprintf("/mounts/network/%d/volumeId", [i])
}

mounts contains [id, pointer] if {
	some i, id in input.resource.after.networkVolumes
	pointer := sprintf("/networkVolumes/%d", [i])
}
