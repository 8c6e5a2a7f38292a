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
	verdict("chatCompletions", {"max_tokens": 100}) == set()
	verdict("run", {"input": {"duration": 8}, "policy": {"executionTimeout": 60000, "ttl": 90000}}) == set()
	run_limits.violations({"max_tokens": 1, "set_defaults": false}) == set() with input as testing.job("run", "e1", {"policy": {"ttl": 99999999}})
	run_limits.violations(params) == set() with input as testing.plain("job", "read")
}

test_deny if {
	verdict("chatCompletions", {"max_tokens": 101}) == {"/max_tokens"}
	verdict("chatCompletions", {"max_completion_tokens": 101}) == {"/max_completion_tokens"}
	verdict("run", {"input": {"max_tokens": 101, "sampling_params": {"max_tokens": "1"}, "duration": 9}}) == {
		"/input/max_tokens",
		"/input/sampling_params/max_tokens",
		"/input/duration",
	}
	verdict("run", {"input": {"openai_input": {"max_tokens": 101, "max_completion_tokens": 101}}}) == {
		"/input/openai_input/max_tokens",
		"/input/openai_input/max_completion_tokens",
	}
	verdict("runsync", {"policy": {"executionTimeout": 60001, "ttl": 90001}}) == {"/policy/executionTimeout", "/policy/ttl"}
}

test_change if {
	changes("chatCompletions", {}) == {["/max_tokens", 100]}
	changes("run", {"input": {}}) == {["/policy/executionTimeout", 60000]}
	changes("chatCompletions", {"max_completion_tokens": 5}) == set()
	changes("retryJob", {}) == set()
}

test_batches if {
	verdict("createBatch", {"requests": [{"input": {"max_tokens": 100}}, {"input": {"sampling_params": {"max_tokens": 101}, "duration": 9}}]}) == {
		"/requests/1/input/sampling_params/max_tokens",
		"/requests/1/input/duration",
	}
	verdict("addBatchRequests", {"requests": [{"input": {"openai_input": {"max_tokens": null}}}, {"input": "text"}]}) == {
		"/requests/0/input/openai_input/max_tokens",
	}
	verdict("addBatchRequests", {"requests": [{"input": {"max_tokens": "1"}}]}) == {"/requests/0/input/max_tokens"}
}
