# The rules of five policies, written for OPA's Envoy plugin: callers by the digest
# of their key, the members of a create, and what tollgate's library judges. The
# data are callers (team and id by digest) and prices (USD per hour by GPU).
package bench

decision := refusal(401, "unknown key") if not caller

decision := refusal(422, concat("; ", faults)) if {
	caller
	count(faults) > 0
}

decision := refusal(403, concat("; ", violations)) if {
	caller
	count(faults) == 0
	count(violations) > 0
}

decision := {"allowed": true, "headers": {
	"authorization": "Bearer bench-platform-key",
	"x-caller": caller.id,
	"x-team": caller.team,
	"x-org": "bench",
}} if {
	caller
	count(faults) == 0
	count(violations) == 0
}

refusal(status, detail) := {
	"allowed": false, "http_status": status,
	"headers": {"content-type": "application/problem+json"},
	"body": json.marshal({"status": status, "detail": detail}),
}

request := input.attributes.request.http

caller := data.callers[crypto.sha256(trim_prefix(request.headers.authorization, "Bearer "))]

create if {
	request.method == "POST"
	input.parsed_path == ["v2", "pods"]
}

pod := input.parsed_body

members := {"name", "image", "gpu", "cloud", "disk", "ports", "env"}

faults contains sprintf("$: additional properties '%s' not allowed", [name]) if {
	create
	some name, _ in pod
	not name in members
}

faults contains sprintf("$.%s: expected a string", [name]) if {
	create
	some name in {"name", "image", "cloud"}
	not is_string(pod[name])
}

faults contains "$.disk: expected a number of 1 or more" if {
	create
	not pod.disk >= 1
}

faults contains "$.gpu: expected an id and a count" if {
	create
	not gpu_named
}

gpu_named if {
	is_string(pod.gpu.id)
	is_number(pod.gpu.count)
}

faults contains sprintf("$.ports[%d]: expected a port", [i]) if {
	create
	some i, port in pod.ports
	not regex.match(`^[0-9]{1,5}/(http|tcp)$`, port)
}

faults contains sprintf("$.env.%s: expected a string", [name]) if {
	create
	some name, value in pod.env
	not is_string(value)
}

violations contains "gpu_allow_list" if {
	create
	not pod.gpu.id in {"NVIDIA L4", "NVIDIA GeForce RTX 4090"}
}

violations contains "gpu_count" if {
	create
	pod.gpu.count > 2
}

violations contains "price_ceiling" if {
	create
	not (data.prices[pod.gpu.id] * pod.gpu.count) + (pod.disk * 0.1 / 730) <= 40
}

violations contains "cloud_tier" if {
	create
	pod.cloud != "SECURE"
}

violations contains "disk" if {
	create
	pod.disk > 100
}
