package tollgate.library.run_limits_test

import data.tollgate.library.run_limits
import data.tollgate.testing

params := {"max_tokens": 100, "max_execution_ms": 60000, "max_ttl_ms": 90000, "max_duration_seconds": 8, "set_defaults": true}

verdict(operation, body) := result if {
	result := testing.pointers(run_limits.violations(params)) with input as testing.job(operation, "e1", body)
}

changes(operation, body) := result if {
	result := {[c.pointer, c.value] | some c in run_limits.mutations(params)} with input as testing.job(operation, "e1", body)
}

test_allow if {
	verdict("run", {"input": {"duration": 8}, "policy": {"executionTimeout": 60000, "ttl": 90000}}) == set()
	run_limits.violations({"max_tokens": 1, "set_defaults": false}) == set() with input as testing.job("run", "e1", {"policy": {"ttl": 99999999}})
	run_limits.violations(params) == set() with input as testing.plain("job", "read")
}

test_deny if {
	verdict("run", {"input": {"duration": 9}}) == {"/input/duration"}
	verdict("runsync", {"policy": {"executionTimeout": 60001, "ttl": 90001}}) == {"/policy/executionTimeout", "/policy/ttl"}
}

asking(runs) := testing.asking("run", "e1", {"input": {}}, runs)

tokens(runs) := result if {
	result := testing.pointers(run_limits.violations(params)) with input as asking(runs)
}

test_tokens if {
	tokens([testing.run("/max_tokens", 100, 50)]) == set()
	tokens([testing.run("/max_tokens", 101, 1)]) == {"/max_tokens"}
	tokens([testing.run("/max_tokens", null, 100)]) == set()
	tokens([testing.run("/max_tokens", null, 101)]) == {""}
	tokens([object.union(testing.run("/n", null, 1), {"wrong": true})]) == {"/n"}
	testing.messages(run_limits.violations(params)) == {"the number of tokens is unknown, and limited to 100: counts must be whole numbers above 0, and openai_input and sampling_params must be objects"} with input as asking([object.union(testing.run("/n", null, 1), {"wrong": true})])
	tokens([testing.run("/requests/0/input/max_tokens", 100, 1), testing.run("/requests/1/input/max_tokens", 101, 1)]) == {"/requests/1/input/max_tokens"}
	run_limits.violations({"max_ttl_ms": 90000}) == set() with input as asking([object.union(testing.run("/n", 101, 1), {"wrong": true})])
}

defaults(runs) := result if {
	result := {[c.op, c.pointer, c.value] | some c in run_limits.mutations({"max_tokens": 100, "set_defaults": true})} with input as asking(runs)
}

test_change if {
	defaults([testing.run("/max_tokens", null, 1), testing.run("/b", null, 3)]) == {["force", "/max_tokens", 100], ["force", "/b", 33]}
	defaults([testing.run("/max_tokens", 5, 1), testing.run(null, null, 1), testing.run("/c", null, 101)]) == set()
	defaults([object.union(testing.run("/n", null, 1), {"wrong": true})]) == set()
	changes("run", {"input": {}}) == {["/policy/executionTimeout", 60000]}
	changes("chatCompletions", {}) == set()
	changes("retryJob", {}) == set()
}

test_batches if {
	verdict("createBatch", {"requests": [{"input": {"duration": 8}}, {"input": {"duration": 9}}, {"input": "text"}]}) == {"/requests/1/input/duration"}
}
