package tollgate.library.price_ceiling_test

import data.tollgate.library.price_ceiling
import data.tollgate.testing

verdict(params) := testing.pointers(price_ceiling.violations(params))

cost(known, hour, gpu_hour) := {"known": known, "usd_per_hour": hour, "usd_per_gpu_hour": gpu_hour, "basis": "b", "reason": "r"}

both := {"max_usd_per_hour": 4, "max_usd_per_gpu_hour": 2}

test_allow_at_the_ceiling if {
	verdict(both) == set() with input as testing.create("pod", {"gpu": {}}) with input.cost as cost(true, 4, 2)
	verdict({"max_usd_per_gpu_hour": 2}) == set() with input as testing.create("pod", {"gpu": {}}) with input.cost as cost(true, 400, 2)
}

test_allow_what_leaves_nothing if {
	verdict(both) == set() with input as testing.plain("pod", "delete") with input.cost as cost(false, 0, 0)
}

test_deny_above if {
	verdict(both) == {"/gpu"} with input as testing.create("pod", {"gpu": {"id": "L4"}}) with input.cost as cost(true, 4.01, 1)
	verdict(both) == {"/cpu"} with input as testing.create("pod", {"cpu": {}}) with input.cost as cost(true, 5, 0)
	verdict(both) == {"/compute"} with input as testing.create("cluster", {}) with input.cost as cost(true, 1, 2.01)
	verdict(both) == {"/size"} with input as testing.create("network_volume", {}) with input.cost as cost(true, 5, 0)
	verdict(both) == {""} with input as testing.update("template", {}) with input.cost as cost(true, 5, 0)
}

test_deny_unknown if {
	verdict({"max_usd_per_hour": 4}) == {"/gpu"} with input as testing.create("pod", {"gpu": {"id": "L4"}}) with input.cost as cost(false, 0, 0)
}

test_deny_wrong_types if {
	every x in testing.wrong {
		verdict(both) == {"/gpu"} with input as testing.start({"gpu": {"id": "L4"}}) with input.cost as cost(true, x, 1)
	}
}
