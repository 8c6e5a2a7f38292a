package tollgate.library.gpu_count_test

import data.tollgate.library.gpu_count
import data.tollgate.testing

verdict(params) := testing.pointers(gpu_count.violations(params))

test_allow_at_the_limit if {
	verdict({"max_per_pod": 2}) == set() with input as testing.create("pod", {"gpu": {"id": "L4", "count": 2}})
	verdict({"max_per_pod": 1}) == set() with input as testing.create("pod", {"gpu": {"id": "L4"}})
	verdict({"max_per_pod": 2}) == set() with input as testing.create("endpoint", {"gpu": {"pools": ["A"], "count": 2}})
	verdict({"max_per_pod": 0}) == set() with input as testing.create("pod", {"cpu": {"id": "cpu5c"}})
}

test_deny_above if {
	verdict({"max_per_pod": 2}) == {"/gpu/count"} with input as testing.create("pod", {"gpu": {"id": "L4", "count": 3}})
	verdict({"max_per_pod": 0}) == {"/gpu/count"} with input as testing.create("pod", {"gpu": {"id": "L4"}})
	verdict({"max_per_pod": 2}) == {"/gpu/count"} with input as testing.update("endpoint", {"gpu": {"pools": ["A"], "count": 8}})
}

test_deny_wrong_types if {
	every x in testing.wrong {
		verdict({"max_per_pod": 8}) == {"/gpu/count"} with input as testing.create("pod", {"gpu": {"count": x}})
	}
}

test_cluster_product if {
	compute := {"gpuTypeId": "L4", "gpuCountPerPod": 2, "podCount": 4}
	verdict({"max_per_pod": 2, "max_per_resource": 8}) == set() with input as testing.create("cluster", {"compute": compute})
	verdict({"max_per_pod": 2, "max_per_resource": 7}) == {"/compute/podCount"} with input as testing.create("cluster", {"compute": compute})
	verdict({"max_per_pod": 2}) == {"/compute/podCount"} with input as testing.create("cluster", {"compute": compute})
	verdict({"max_per_pod": 1}) == {"/compute/gpuCountPerPod", "/compute/podCount"} with input as testing.create("cluster", {"compute": compute})
}

test_endpoint_product if {
	after := {"gpu": {"pools": ["A"], "count": 2}, "workers": {"min": 9, "max": 3}}
	verdict({"max_per_pod": 2, "max_per_resource": 18}) == set() with input as testing.update("endpoint", after)
	verdict({"max_per_pod": 2, "max_per_resource": 17}) == {"/workers/max"} with input as testing.update("endpoint", after)
}
