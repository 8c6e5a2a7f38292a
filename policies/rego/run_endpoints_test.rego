package tollgate.library.run_endpoints_test

import data.tollgate.library.run_endpoints
import data.tollgate.testing

params := {"endpoints": ["e1"], "models": ["m1"], "allow_webhooks": false}

verdict(operation, id, body) := result if {
	result := testing.pointers(run_endpoints.violations(params)) with input as testing.job(operation, id, body)
}

test_allow if {
	verdict("run", "e1", {"input": {}}) == set()
	verdict("chatCompletions", "e1", {"model": "m1"}) == set()
	verdict("run", "e1", {"input": {"model": "m1", "openai_input": {"model": "m1"}}}) == set()
	run_endpoints.violations(params) == set() with input as testing.create("pod", {})
}

test_deny if {
	verdict("run", "e2", {"input": {}}) == {""}
	verdict("chatCompletions", "e1", {"model": "m2"}) == {"/model"}
	verdict("completions", "e1", {}) == {"/model"}
	verdict("embeddings", "e1", {"model": "m2"}) == {"/model"}
	verdict("run", "e1", {"input": {"model": "m2"}}) == {"/input/model"}
	verdict("runsync", "e1", {"input": {"openai_input": {"model": "m2"}}}) == {"/input/openai_input/model"}
	verdict("runsync", "e1", {"webhook": "https://x", "webhookV2": "https://y"}) == {"/webhook", "/webhookV2"}
	testing.pointers(run_endpoints.violations(params)) == {""} with input as testing.plain("job", "read")
}

test_batches if {
	verdict("createBatch", "e1", {"requests": [{"input": {"model": "m1"}}, {"input": {"openai_input": {"model": "m2"}}}]}) == {"/requests/1/input/openai_input/model"}
	verdict("addBatchRequests", "e1", {"requests": [{"input": {"model": null}}]}) == {"/requests/0/input/model"}
	verdict("createBatch", "e2", {"requests": []}) == {""}
}
