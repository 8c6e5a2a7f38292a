package tollgate.gpu_test

import data.tollgate.gpu
import data.tollgate.testing

test_named_pod if {
	gpu.named == {{"id": "L4", "pointer": "/gpu/id", "offer": "COMMUNITY"}} with input as testing.create(
		"pod",
		{"gpu": {"id": "L4"}, "cloud": "COMMUNITY"},
	)
	gpu.named == {{"id": null, "pointer": "/gpu/id", "offer": "SECURE"}} with input as testing.create("pod", {"gpu": {}})
	gpu.named == set() with input as testing.create("pod", {"cpu": {"id": "cpu5c"}})
}

test_named_cluster if {
	gpu.named == {{"id": "L4", "pointer": "/compute/gpuTypeId", "offer": "CLUSTER"}} with input as testing.create(
		"cluster",
		{"compute": {"gpuTypeId": "L4"}},
	)
	gpu.named == {{"id": null, "pointer": "/compute/gpuTypeId", "offer": "CLUSTER"}} with input as testing.create("cluster", {})
}

test_named_endpoint_without_pools if {
	every pools in [[], {}, "ADA_24", null] {
		gpu.named == {{"id": null, "pointer": "/gpu/pools", "offer": "SERVERLESS"}} with input as testing.create(
			"endpoint",
			{"gpu": {"pools": pools}},
		)
	}
}

test_pools if {
	got := gpu.pools with input as testing.create(
		"endpoint",
		{"gpu": {"pools": ["ADA_24", "X"], "excludedTypes": [" NVIDIA L4 "]}},
	)
	got == {
		{"pool": "ADA_24", "pointer": "/gpu/pools/0", "known": true, "members": {"NVIDIA GeForce RTX 4090"}},
		{"pool": "X", "pointer": "/gpu/pools/1", "known": false, "members": set()},
	}
}

test_total if {
	gpu.total == 6 with input as testing.create("cluster", {"compute": {"gpuCountPerPod": 2, "podCount": 3}})
	gpu.total == null with input as testing.create("cluster", {"compute": {"gpuCountPerPod": 2, "podCount": "3"}})
	gpu.total == null with input as testing.create("cluster", {})
	gpu.total == 2 with input as testing.create("pod", {"gpu": {"count": 2}})
	gpu.total == 6 with input as testing.create("endpoint", {"gpu": {"pools": ["A"], "count": 2}})
	gpu.total == 20 with input as testing.create("endpoint", {"gpu": {"count": 2}, "workers": {"min": 10, "max": 3}})
}
