package tollgate.library.gpu_in_flight_test

import data.tollgate.library.gpu_in_flight
import data.tollgate.testing

team := {"max_per_team": 8}

running(known, team_gpus, org_gpus) := {"known": known, "team": {"gpus": team_gpus}, "org": {"gpus": org_gpus}}

verdict(params) := testing.pointers(gpu_in_flight.violations(params))

pod(count) := testing.create("pod", {"gpu": {"id": "L4", "count": count}})

test_allow if {
	verdict(team) == set() with input as pod(2) with input.spend as running(true, 6, 100)
	verdict(team) == set() with input as testing.update("pod", {"gpu": {"count": 8}}) with input.spend as running(true, 8, 8)
	verdict(team) == set() with input as testing.create("pod", {"cpu": {"id": "cpu5c"}}) with input.spend as running(false, 0, 0)
	verdict(team) == set() with input as testing.create("template", {}) with input.spend as running(false, 0, 0)
}

test_deny_above if {
	verdict(team) == {"/gpu"} with input as pod(3) with input.spend as running(true, 6, 0)
	verdict({"max_per_org": 8}) == {"/gpu"} with input as pod(3) with input.spend as running(true, 0, 6)
	verdict(team) == {"/gpu"} with input as testing.start({"gpu": {"id": "L4", "count": 3}}) with input.spend as running(true, 6, 0)
	verdict(team) == {"/compute"} with input as testing.create("cluster", {"compute": {"gpuCountPerPod": 3, "podCount": 3}}) with input.spend as running(true, 0, 0)
}

test_deny_unknown if verdict(team) == {"/gpu"} with input as pod(1) with input.spend as running(false, 0, 0)

test_deny_wrong_types if {
	every x in testing.wrong {
		verdict(team) == {"/gpu"} with input as pod(x) with input.spend as running(true, 0, 0)
	}
}

endpoint(count, most) := testing.update("endpoint", {"gpu": {"count": count}, "workers": {"min": 0, "max": most}})

test_update_counts_the_difference if {
	before := {"gpu": {"count": 1}, "workers": {"min": 0, "max": 4}}
	verdict(team) == set() with input as endpoint(1, 8) with input.resource.current as before with input.spend as running(true, 4, 4)
	verdict(team) == {"/gpu"} with input as endpoint(1, 9) with input.resource.current as before with input.spend as running(true, 4, 4)
	verdict(team) == set() with input as endpoint(1, 2) with input.resource.current as before with input.spend as running(true, 9, 9)
	verdict(team) == {"/gpu"} with input as endpoint("1", 2) with input.resource.current as before with input.spend as running(true, 0, 0)
	verdict(team) == {"/gpu"} with input as endpoint(1, 12) with input.resource.current as {"gpu": {}} with input.spend as running(true, 3, 3)
}
