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

test_deny if {
	verdict("dear", {}) == {"/input"}
	verdict("wan", {"duration": 6}) == {"/input"}
	verdict("unknown", {}) == {""}
	verdict("wan", {"duration": "5"}) == {""}
	verdict("wan", {"duration": -5}) == {""}
	testing.pointers(run_cost.violations(params)) == {""} with input as {"request": {"verb": "run"}}
}

chat(body) := result if {
	result := testing.pointers(run_cost.violations(params)) with input as testing.job("chatCompletions", "llm", body)
}

test_tokens if {
	chat({}) == set()
	chat({"max_tokens": 5000}) == set()
	chat({"max_tokens": 5001}) == {""}
	chat({"max_tokens": null, "max_completion_tokens": 5001}) == {""}
	chat({"max_tokens": 1, "max_completion_tokens": 5001}) == {""}
	chat({"n": 5}) == set()
	chat({"n": 6}) == {""}
	chat({"n": null, "best_of": 6}) == {""}
	chat({"max_tokens": "1"}) == {""}
	chat({"n": "1"}) == {""}
	verdict("llm", {"max_tokens": 5001}) == {"/input"}
	verdict("llm", {"sampling_params": {"max_tokens": 2501, "n": 2}}) == {"/input"}
	verdict("llm", {"sampling_params": {"max_tokens": 2500, "n": 2}}) == set()
	verdict("llm", {"openai_input": {"max_completion_tokens": 5001}}) == {"/input"}
	verdict("llm", {"openai_input": {"n": 6}}) == {"/input"}
	verdict("llm", {"max_tokens": [1]}) == {""}
	verdict("llm", {"max_tokens": -1}) == {""}
}

batched(id, inputs) := result if {
	result := testing.pointers(run_cost.violations(params)) with input as testing.job("createBatch", id, {"requests": [{"input": given} | some given in inputs]})
}

test_batches if {
	batched("img", [{}, "text"]) == set()
	batched("wan", [{"duration": 5}, {"duration": 6}, {"duration": "5"}]) == {"/requests/1/input", "/requests/2/input"}
	batched("llm", [{}, {"max_tokens": 5001}, {"sampling_params": {"max_tokens": 2501, "n": 2}}, {"max_tokens": "1"}, {"openai_input": {"n": "1"}}]) == {
		"/requests/1/input",
		"/requests/2/input",
		"/requests/3/input",
		"/requests/4/input",
	}
	batched("unknown", [{}]) == {"/requests/0/input"}
	batched("mine", [{}]) == set()
	run_cost.violations(params) == set() with input as testing.job("finalizeBatch", "unknown", null)
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
