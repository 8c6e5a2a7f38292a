package tollgate.library.kill_switch_test

import data.tollgate.library.kill_switch
import data.tollgate.testing

test_deny if {
	p := {"reason": "", "stopping": "allowed"}
	testing.messages(kill_switch.violations(p)) == {"all calls are refused"} with input as testing.plain("pod", "read")
	named := object.union(p, {"reason": "x"})
	testing.messages(kill_switch.violations(named)) == {"all calls are refused: x"} with input as testing.plain("pod", "create")
}

# What saves money passes.
test_allow_stopping if {
	every verb in ["stop", "delete", "cancel"] {
		kill_switch.violations({"reason": "", "stopping": "allowed"}) == set() with input as testing.plain("pod", verb)
	}
}

test_deny_everything if {
	every verb in ["read", "create", "stop", "delete", "run"] {
		count(kill_switch.violations({"reason": "", "stopping": "refused"})) == 1 with input as testing.plain("pod", verb)
	}
}
