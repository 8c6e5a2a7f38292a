# METADATA
# title: Working hours
# description: >-
#   Allows creating and starting billable resources only on the listed days, between from and to. If
#   from is later than to, the permitted period ends on the next day. Reading, stopping and deleting are
#   always allowed.
# custom:
#   params:
#     timezone:
#       description: Time zone, e.g. Europe/Berlin.
#       type: string
#       format: timezone
#       default: UTC
#     days:
#       description: Days of the week.
#       type: array
#       minItems: 1
#       items: {enum: [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday]}
#       default: [Monday, Tuesday, Wednesday, Thursday, Friday]
#     from:
#       description: Start time, hh:mm.
#       type: string
#       pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$"
#       default: "08:00"
#     to:
#       description: End time (exclusive), hh:mm; 24:00 means the end of the day.
#       type: string
#       pattern: "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
#       default: "18:00"
#   doubt: {differs: {to: from}}
#   example:
#     timezone: Europe/Berlin
#     from: "07:00"
#     to: "20:00"
package tollgate.library.working_hours

violations(params) := {{"message": message, "pointer": ""} |
	starting
	not open(params)
	message := sprintf("outside working hours (%s to %s, %s)", [params.from, params.to, params.timezone])
}

starting if {
	input.request.verb in {"create", "start", "restart"}
	input.resource.kind in {"pod", "cluster", "endpoint", "sandbox", "network_volume"}
}

starting if {
	input.request.verb == "update"
	input.resource.kind == "endpoint"
}

open(params) if {
	time.weekday([input.time.ns, params.timezone]) in params.days
	now := clock(params)
	now >= minutes(params.from)
	now < minutes(params.to)
}

# Past midnight: the end of an allowed day, and the morning after it.
open(params) if {
	minutes(params.from) > minutes(params.to)
	time.weekday([input.time.ns, params.timezone]) in params.days
	clock(params) >= minutes(params.from)
}

open(params) if {
	minutes(params.from) > minutes(params.to)
	yesterday := time.add_date(midday(params), 0, 0, -1)
	time.weekday([yesterday, params.timezone]) in params.days
	clock(params) < minutes(params.to)
}

# clock: minutes since midnight.
clock(params) := (hour * 60) + minute if {
	[hour, minute, _] := time.clock([input.time.ns, params.timezone])
}

# midday: noon of the day, which is one day away from the adjacent noons, except for an hour when
# clocks change.
midday(params) := input.time.ns + ((((12 * 60) - clock(params)) * 60) * 1000000000)

minutes(text) := (to_number(trim_left(hour, "0")) * 60) + rest if {
	[hour, minute] := split(text, ":")
	hour != "00"
	rest := to_number(digits(minute))
}

minutes(text) := to_number(digits(minute)) if {
	[hour, minute] := split(text, ":")
	hour == "00"
}

digits(text) := "0" if trim_left(text, "0") == ""

digits(text) := trim_left(text, "0") if trim_left(text, "0") != ""
