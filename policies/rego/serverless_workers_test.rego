package tollgate.library.serverless_workers_test

import data.tollgate.library.serverless_workers
import data.tollgate.testing

params := {"max_workers": 5, "max_always_on": 1}

verdict(workers) := result if {
	result := testing.pointers(serverless_workers.violations(params)) with input as testing.update(
		"endpoint",
		{"workers": workers},
	)
}

test_allow if {
	verdict({"min": 1, "max": 5}) == set()
	verdict({}) == set()
	serverless_workers.violations(params) == set() with input as testing.create("endpoint", {})
	serverless_workers.violations(params) == set() with input as testing.create("pod", {})
}

test_deny if {
	verdict({"min": 0, "max": 6}) == {"/workers/max"}
	verdict({"min": 2, "max": 5}) == {"/workers/min"}
	verdict({"min": 50, "max": 3}) == {"/workers/max", "/workers/min"}
	verdict({"min": "0", "max": "6"}) == {"/workers/max", "/workers/min"}
}
