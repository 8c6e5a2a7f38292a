package tollgate.library.run_cost_test

import data.tollgate.library.run_cost
import data.tollgate.testing

params := {
	"max_usd_per_run": 0.5,
	"prices": {"wan": {"usd_per_second": 0.1, "default_seconds": 5}, "img": {"usd_per_run": 0.005}, "dear": {"usd_per_run": 1}},
	"endpoints": ["mine"],
}

verdict(id, given) := result if {
	result := testing.pointers(run_cost.violations(params)) with input as testing.job("run", id, {"input": given})
}

test_allow if {
	verdict("img", {}) == set()
	verdict("wan", {}) == set()
	verdict("wan", {"duration": 5}) == set()
	verdict("mine", {"duration": 500}) == set()
	run_cost.violations(params) == set() with input as testing.plain("job", "read")
}

test_deny if {
	verdict("dear", {}) == {"/input"}
	verdict("wan", {"duration": 6}) == {"/input"}
	verdict("unknown", {}) == {""}
	verdict("wan", {"duration": "5"}) == {""}
	verdict("wan", {"duration": -5}) == {""}
	testing.pointers(run_cost.violations(params)) == {""} with input as {"request": {"verb": "run"}}
}
