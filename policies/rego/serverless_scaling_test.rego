package tollgate.library.serverless_scaling_test

import data.tollgate.library.serverless_scaling
import data.tollgate.testing

params := {
	"max_idle_seconds": 60,
	"max_timeout_ms": 600000,
	"scalers": ["QUEUE_DELAY", "REQUEST_COUNT"],
	"flashboot": ["OFF"],
	"min_requests_per_worker": 2,
}

verdict(after) := result if {
	result := testing.pointers(serverless_scaling.violations(params)) with input as testing.create("endpoint", after)
}

test_allow if {
	verdict({"workers": {"idleTimeout": 60}, "timeout": 600000, "scaling": {"type": "REQUEST_COUNT", "requestCount": 2}, "flashboot": "OFF"}) == set()
	verdict({}) == set()
	serverless_scaling.violations(params) == set() with input as testing.create("pod", {"timeout": 9999999})
}

test_deny if {
	verdict({"workers": {"idleTimeout": 61}}) == {"/workers/idleTimeout"}
	verdict({"timeout": 600001}) == {"/timeout"}
	verdict({"timeout": 0}) == {"/timeout"}
	serverless_scaling.violations({"max_idle_seconds": 60}) == set() with input as testing.create("endpoint", {"timeout": 0})
	verdict({"scaling": {"type": "X"}}) == {"/scaling/type"}
	verdict({"scaling": {"type": "REQUEST_COUNT", "requestCount": 1}}) == {"/scaling/requestCount"}
	verdict({"flashboot": "FLASHBOOT"}) == {"/flashboot"}
	every x in [null, true, "", [], {}, "9"] {
		verdict({"timeout": x}) == {"/timeout"}
	}
}
