package tollgate.library.gpu_allow_list_test

import data.tollgate.library.gpu_allow_list
import data.tollgate.testing

params := {"gpus": ["NVIDIA L4"], "by_offer": {"COMMUNITY": ["NVIDIA GeForce RTX 4090"], "SERVERLESS": ["NVIDIA GeForce RTX 4090"]}}

verdict := testing.pointers(gpu_allow_list.violations(params))

test_allow_listed if verdict == set() with input as testing.create("pod", {"gpu": {"id": "NVIDIA L4"}})

test_allow_by_offer if {
	verdict == set() with input as testing.create("pod", {"gpu": {"id": "NVIDIA GeForce RTX 4090"}, "cloud": "COMMUNITY"})
	verdict == set() with input as testing.create("endpoint", {"gpu": {"pools": ["ADA_24"]}})
}

test_allow_excluded_member if {
	verdict == set() with input as testing.create("endpoint", {"gpu": {
		"pools": ["ADA_24", "ADA_80_PRO"],
		"excludedTypes": ["NVIDIA H100 80GB HBM3"],
	}})
}

test_allow_stopping if verdict == set() with input as testing.plain("pod", "stop")

test_deny_other_offer if {
	verdict == {"/gpu/id"} with input as testing.create("pod", {"gpu": {"id": "NVIDIA GeForce RTX 4090"}, "cloud": "SECURE"})
	verdict == {"/compute/gpuTypeId"} with input as testing.create("cluster", {"compute": {"gpuTypeId": "NVIDIA GeForce RTX 4090"}})
}

test_deny_update_and_start if {
	verdict == {"/gpu/id"} with input as testing.update("pod", {"gpu": {"id": "NVIDIA H100 80GB HBM3"}})
	verdict == {"/gpu/id"} with input as testing.start({"gpu": {"id": "NVIDIA H100 80GB HBM3"}})
}

test_deny_pool_member if {
	verdict == {"/gpu/pools/1"} with input as testing.create("endpoint", {"gpu": {"pools": ["ADA_24", "ADA_80_PRO"]}})
}

test_deny_unknown_pool if verdict == {"/gpu/pools/0"} with input as testing.create("endpoint", {"gpu": {"pools": [7]}})

test_deny_another_spelling if {
	every id in ["nvidia l4", " NVIDIA L4", "NVIDIA L4 ", null, 4, ["NVIDIA L4"]] {
		verdict == {"/gpu/id"} with input as testing.create("pod", {"gpu": {"id": id}})
	}
}

test_deny_says_what_is_allowed if {
	testing.messages(gpu_allow_list.violations(params)) == {`GPU type "H" is not on the allow-list for the offer SECURE (allowed: "NVIDIA L4")`} with input as testing.create(
		"pod",
		{"gpu": {"id": "H"}},
	)
}
