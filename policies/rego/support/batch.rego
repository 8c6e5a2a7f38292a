# METADATA
# title: Requests of batches
# description: >-
#   A call that collects jobs for a batch has several inputs, where others have
#   one. Each is judged like the input of a job.
package tollgate.batch

# requests: the jobs that a call adds to a batch, with their places.
requests contains {"pointer": sprintf("/requests/%d/input", [i]), "input": request.input} if {
	input.request.operation in {"createBatch", "addBatchRequests"}
	some i, request in input.request.body.requests
}

# at: the member of an input at a path, undefined where it has none.
at(given, path) := value if {
	is_object(given)
	value := object.get(given, path, absent)
	value != absent
}

absent := {"no": "value"}
