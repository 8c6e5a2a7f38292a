package tollgate.library.run_cost_test

import data.tollgate.library.run_cost
import data.tollgate.testing

params := {
	"max_usd_per_run": 0.5,
	"prices": {"wan": {"usd_per_second": 0.1, "default_seconds": 5}, "img": {"usd_per_run": 0.005}, "dear": {"usd_per_run": 1}, "llm": {"usd_per_million_tokens": 100, "default_tokens": 1000}},
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

test_free if {
	declared := object.union(testing.job("run", "unknown", {"input": {}}), {"cost": {"known": true, "usd_per_run": 0, "run_free": true}})
	run_cost.violations(params) == set() with input as declared
	free := object.union(params, {"prices": {"img": {"usd_per_run": 0}, "llm": {"usd_per_million_tokens": 0}}})
	run_cost.violations(free) == set() with input as testing.job("run", "img", {"input": {}})
}

test_deny if {
	verdict("dear", {}) == {"/input"}
	verdict("wan", {"duration": 6}) == {"/input"}
	verdict("unknown", {}) == {""}
	verdict("wan", {"duration": "5"}) == {""}
	verdict("wan", {"duration": -5}) == {""}
	testing.pointers(run_cost.violations(params)) == {""} with input as {"request": {"verb": "run"}}
}

tokens(run) := result if {
	result := testing.pointers(run_cost.violations(params)) with input as testing.asking("chatCompletions", "llm", {}, [run])
}

test_tokens if {
	tokens(testing.run("/max_tokens", null, 1)) == set()
	tokens(testing.run("/max_tokens", null, 5)) == set()
	tokens(testing.run("/max_tokens", null, 6)) == {""}
	tokens(testing.run("/max_tokens", 5000, 5)) == set()
	tokens(testing.run("/max_tokens", 5001, 1)) == {""}
	testing.messages(run_cost.violations(params)) == {"the price of a run of llm is unknown"} with input as testing.asking("run", "llm", {}, [object.union(testing.run("/n", 1, 1), {"wrong": true})])
}

batched(id, inputs) := result if {
	result := testing.pointers(run_cost.violations(params)) with input as testing.job("createBatch", id, {"requests": [{"input": given} | some given in inputs]})
}

test_batches if {
	batched("img", [{}, "text"]) == set()
	batched("wan", [{"duration": 5}, {"duration": 6}, {"duration": "5"}]) == {"/requests/1/input", "/requests/2/input"}
	batched("unknown", [{}]) == {"/requests/0/input"}
	batched("mine", [{}]) == set()
	run_cost.violations(params) == set() with input as testing.job("finalizeBatch", "unknown", null)
}

# Each request of a batch is one run.
test_batched_tokens if {
	runs := [object.union(testing.run("/a", tokens, 1), {"pointer": sprintf("/requests/%d", [i])}) | some i, tokens in [null, 5001, 5000]]
	given := testing.asking("createBatch", "llm", {"requests": [{"input": {}}, {"input": {}}, {"input": {}}]}, runs)
	testing.pointers(run_cost.violations(params)) == {"/requests/1/input"} with input as given
}

agreed(id, operation, usd) := object.union(testing.job(operation, id, {"input": {}}), {"cost": {"known": true, "usd_per_run": usd}})

# The prices of the organisation, where the policy has none of its own.
test_agreed if {
	plain := {"max_usd_per_run": 0.5, "prices": {"img": {"usd_per_run": 0.005}}, "endpoints": []}
	run_cost.violations(plain) == set() with input as agreed("wan", "run", 0.5)
	testing.pointers(run_cost.violations(plain)) == {"/input"} with input as agreed("wan", "run", 0.6)
	testing.pointers(run_cost.violations(plain)) == {""} with input as agreed("wan", "run", 0)
	run_cost.violations(plain) == set() with input as agreed("img", "run", 0.6)
}
