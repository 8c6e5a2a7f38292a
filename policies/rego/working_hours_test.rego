package tollgate.library.working_hours_test

import data.tollgate.library.working_hours
import data.tollgate.testing

params := {"timezone": "Europe/Berlin", "days": ["Monday"], "from": "08:05", "to": "18:00"}

verdict(kind, verb, at, p) := result if {
	result := count(working_hours.violations(p)) with input as object.union(
		testing.settled(kind, verb, {}),
		{"time": {"ns": time.parse_rfc3339_ns(at)}},
	)
}

# 2 March 2026 is a Monday; Berlin is one hour ahead of UTC.
test_allow if {
	verdict("pod", "create", "2026-03-02T07:05:00Z", params) == 0
	verdict("pod", "start", "2026-03-02T16:59:59Z", params) == 0
	verdict("pod", "stop", "2026-03-03T03:00:00Z", params) == 0
	verdict("template", "create", "2026-03-03T03:00:00Z", params) == 0
	verdict("pod", "create", "2026-03-01T23:30:00Z", object.union(params, {"from": "00:00", "to": "24:00"})) == 0
}

# From Monday evening into Tuesday.
night := object.union(params, {"from": "22:00", "to": "06:00"})

test_allow_past_midnight if {
	verdict("pod", "create", "2026-03-02T21:00:00Z", night) == 0
	verdict("pod", "create", "2026-03-03T04:59:59Z", night) == 0
}

test_deny_past_midnight if {
	verdict("pod", "create", "2026-03-02T20:59:59Z", night) == 1
	verdict("pod", "create", "2026-03-03T05:00:00Z", night) == 1
	verdict("pod", "create", "2026-03-02T04:00:00Z", night) == 1
	verdict("pod", "create", "2026-03-03T21:30:00Z", night) == 1
}

test_deny if {
	verdict("pod", "create", "2026-03-02T07:04:59Z", params) == 1
	verdict("pod", "start", "2026-03-02T17:00:00Z", params) == 1
	verdict("network_volume", "create", "2026-03-02T17:00:00Z", params) == 1
	verdict("endpoint", "update", "2026-03-03T10:00:00Z", params) == 1
	verdict("pod", "create", "2026-03-02T00:05:00Z", object.union(params, {"timezone": "UTC", "from": "00:10", "to": "00:20"})) == 1
}

test_deny_sandboxes if {
	count(working_hours.violations(object.union(hours, {"days": ["Sunday"]}))) == 1 with input as testing.create("sandbox", {})
	working_hours.violations(object.union(hours, {"days": ["Sunday"]})) == set() with input as testing.plain("sandbox", "exec")
}

hours := {"timezone": "UTC", "days": ["Sunday"], "from": "08:00", "to": "18:00"}
