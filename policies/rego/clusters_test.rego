package tollgate.library.clusters_test

import data.tollgate.library.clusters
import data.tollgate.testing

params := {"allow": true, "types": ["TRAINING"], "max_pods": 4, "max_gpus": 8}

body(type, per_pod, pods) := {"type": type, "compute": {"gpuTypeId": "L4", "gpuCountPerPod": per_pod, "podCount": pods}}

verdict(after) := result if {
	result := testing.pointers(clusters.violations(params)) with input as testing.create("cluster", after)
}

test_allow if {
	verdict(body("TRAINING", 2, 4)) == set()
	clusters.violations({"allow": false}) == set() with input as testing.create("pod", {})
	clusters.violations({"allow": false}) == set() with input as testing.update("cluster", {"name": "b"})
}

test_deny if {
	verdict(body("RAY", 1, 2)) == {"/type"}
	verdict({"compute": {"gpuTypeId": "L4", "gpuCountPerPod": 1, "podCount": 2}}) == {"/type"}
	verdict(body("TRAINING", 1, 5)) == {"/compute/podCount"}
	verdict(body("TRAINING", 3, 3)) == {"/compute"}
	verdict(body("TRAINING", 1, "5")) == {"/compute", "/compute/podCount"}
	testing.messages(clusters.violations({"allow": false})) == {"clusters are not allowed"} with input as testing.create("cluster", {})
}
