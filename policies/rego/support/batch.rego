# METADATA
# title: Requests of batches
# description: >-
#   A call that adds jobs to a batch has several inputs. Each is evaluated like the
#   input of a job.
package tollgate.batch

# requests: the jobs that a call adds to a batch, with their pointers.
requests contains {"pointer": sprintf("/requests/%d/input", [i]), "input": request.input} if {
	input.request.operation in {"createBatch", "addBatchRequests"}
	some i, request in input.request.body.requests
}

# at: the member of an input at a path; undefined if there is none.
at(given, path) := value if {
	is_object(given)
	value := object.get(given, path, absent)
	value != absent
}

absent := {"no": "value"}
