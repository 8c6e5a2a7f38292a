# METADATA
# title: Exposed ports
# description: Restricts the ports of a container.
# custom:
#   params:
#     allow:
#       description: Ports that may be exposed (8888/http), or a whole protocol (http); default any.
#       type: array
#       items: {type: string, pattern: "^([0-9]{1,5}/)?(http|tcp)$", format: port}
#     deny:
#       description: Ports that must not be exposed, in the same form.
#       type: array
#       items: {type: string, pattern: "^([0-9]{1,5}/)?(http|tcp)$", format: port}
#       default: []
#     max:
#       description: Maximum number of ports.
#       type: integer
#       minimum: 0
#   doubt: {apart: {allow: deny}}
#   allow_lists: [allow]
#   example:
#     allow: [http]
#     deny: [22/tcp]
#     max: 5
package tollgate.library.ports

import data.tollgate.value

violations(params) := refused(params) | too_many(params)

refused(params) := {{"message": message, "pointer": pointer} |
	input.request.settles
	some i, port in input.resource.after.ports
	some message in faults(params, port)
	pointer := sprintf("/ports/%d", [i])
}

faults(_, port) := {"a port must have the form <number>/<protocol>"} if not well_formed(port)

faults(params, port) := listed(params, port) | unlisted(params, port) if well_formed(port)

well_formed(port) if {
	is_string(port)
	regex.match(`^[0-9]{1,6}/(http|tcp)$`, port)
}

listed(params, port) := {message |
	some rule in params.deny
	covers(rule, port)
	message := sprintf("the port %s must not be exposed", [port])
}

unlisted(params, port) := {message |
	allow := params.allow
	not some_covers(allow, port)
	message := sprintf("the port %s must not be exposed (allowed: %s)", [port, value.listed(allow)])
}

some_covers(rules, port) if {
	some rule in rules
	covers(rule, port)
}

# covers: compares port numbers, so that 022/tcp equals 22/tcp.
covers(rule, port) if {
	[number, protocol] := split(port, "/")
	[wanted, protocol] = split(rule, "/")
	to_number(trim_zeros(wanted)) == to_number(trim_zeros(number))
}

covers(rule, port) if {
	not contains(rule, "/")
	endswith(port, concat("", ["/", rule]))
}

trim_zeros(digits) := concat("", ["0", trim_left(digits, "0")]) if trim_left(digits, "0") == ""

trim_zeros(digits) := trim_left(digits, "0") if trim_left(digits, "0") != ""

too_many(params) := {{"message": message, "pointer": "/ports", "excess": number - limit} |
	input.request.settles
	limit := params.max
	number := count(input.resource.after.ports)
	number > limit
	message := sprintf("%d ports exceed the limit of %d", [number, limit])
}
