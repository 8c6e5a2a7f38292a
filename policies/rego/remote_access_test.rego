package tollgate.library.remote_access_test

import data.tollgate.library.remote_access
import data.tollgate.testing

closed := {"ssh": false, "jupyter": false, "global_networking": false}

verdict(params, after) := result if {
	result := testing.pointers(remote_access.violations(params)) with input as testing.create("pod", after)
}

everything := {"startSsh": true, "startJupyter": true, "globalNetworking": true}

test_allow if {
	verdict({"ssh": true, "jupyter": true, "global_networking": true}, everything) == set()
	verdict(closed, {"startSsh": false, "startJupyter": false, "globalNetworking": false}) == set()
	verdict(closed, {}) == set()
	remote_access.violations(closed) == set() with input as testing.create("endpoint", everything)
}

test_deny if {
	verdict(closed, everything) == {"/startSsh", "/startJupyter", "/globalNetworking"}
	verdict(object.union(closed, {"ssh": true}), everything) == {"/startJupyter", "/globalNetworking"}
}
