package tollgate.batch_test

import data.tollgate.batch
import data.tollgate.testing

test_requests if {
	batch.requests == {
		{"pointer": "/requests/0/input", "input": 1},
		{"pointer": "/requests/1/input", "input": {}},
	} with input as testing.job("createBatch", "e1", {"requests": [{"input": 1}, {"input": {}}]})
	batch.requests == {{"pointer": "/requests/0/input", "input": null}} with input as testing.job("addBatchRequests", "e1", {"requests": [{"input": null}]})
	batch.requests == set() with input as testing.job("run", "e1", {"input": {}})
}

test_at if {
	batch.at({"a": {"b": null}}, ["a", "b"]) == null
	not batch.at({"a": 1}, ["a", "b"])
	given := json.unmarshal(`"text"`)
	not batch.at(given, ["a"])
}
