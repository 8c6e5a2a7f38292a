package tollgate.library.lifetime_test

import data.tollgate.library.lifetime
import data.tollgate.testing

hour := 3600000000000

verdict(verb, age_hours) := result if {
	result := count(lifetime.violations({"max_hours": 72})) with input as object.union(
		testing.settled("pod", verb, {}),
		{
			"resource": {"current": {"createdAt": "2026-03-02T12:00:00Z"}},
			"time": {"ns": time.parse_rfc3339_ns("2026-03-02T12:00:00Z") + (age_hours * hour)},
		},
	)
}

test_allow if {
	verdict("start", 72) == 0
	verdict("stop", 100) == 0
	verdict("create", 100) == 0
}

test_deny if {
	verdict("start", 73) == 1
	verdict("update", 73) == 1
	count(lifetime.violations({"max_hours": 72})) == 1 with input as testing.start({})
}
