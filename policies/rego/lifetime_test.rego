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

bounds := {"max_sandbox_seconds": 3600, "max_sandbox_idle_seconds": 600}

sandbox(after) := result if {
	result := testing.pointers(lifetime.violations(bounds)) with input as testing.create("sandbox", after)
}

test_allow_sandboxes if {
	sandbox({"maxLifetimeSeconds": 3600, "idleTimeoutSeconds": 600}) == set()
	lifetime.violations({"max_hours": 1}) == set() with input as testing.create("sandbox", {"maxLifetimeSeconds": 86400})
	lifetime.violations(bounds) == set() with input as testing.start({})
}

test_deny_sandboxes if {
	sandbox({"maxLifetimeSeconds": 3601, "idleTimeoutSeconds": 600}) == {"/maxLifetimeSeconds"}
	sandbox({"maxLifetimeSeconds": 60, "idleTimeoutSeconds": 601}) == {"/idleTimeoutSeconds"}
	sandbox({"maxLifetimeSeconds": "60"}) == {"/idleTimeoutSeconds", "/maxLifetimeSeconds"}
}
