package tollgate.library.run_safety_test

import data.tollgate.library.run_safety
import data.tollgate.testing

changes(operation, id, body) := result if {
	result := {[c.pointer, c.value] | some c in run_safety.mutations({"models": ["wan"]})} with input as testing.job(operation, id, body)
}

test_change if {
	changes("run", "other", {"input": {"enable_safety_checker": false}}) == {["/input/enable_safety_checker", true]}
	changes("runsync", "other", {"input": {"disable_safety_checker": true}}) == {["/input/disable_safety_checker", false]}
	changes("run", "wan", {"input": {"prompt": "x"}}) == {["/input/enable_safety_checker", true]}
	changes("run", "wan", {"input": {"disable_safety_checker": true}}) == {["/input/disable_safety_checker", false]}
}

test_allow_others if {
	changes("run", "other", {"input": {"prompt": "x"}}) == set()
	changes("chatCompletions", "wan", {}) == set()
}

test_batches if {
	changes("createBatch", "other", {"requests": [{"input": {"enable_safety_checker": false}}, {"input": {"prompt": "x"}}]}) == {["/requests/0/input/enable_safety_checker", true]}
	changes("addBatchRequests", "wan", {"requests": [{"input": {"disable_safety_checker": true}}, {"input": {}}]}) == {
		["/requests/0/input/disable_safety_checker", false],
		["/requests/1/input/enable_safety_checker", true],
	}
	changes("finalizeBatch", "wan", null) == set()
}
