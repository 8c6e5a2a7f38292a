package tollgate.library.kill_switch_test

import data.tollgate.library.kill_switch
import data.tollgate.testing

test_deny if {
	testing.messages(kill_switch.violations({"reason": ""})) == {"all calls are refused"} with input as testing.plain("pod", "read")
	testing.messages(kill_switch.violations({"reason": "x"})) == {"all calls are refused: x"} with input as testing.plain("pod", "stop")
}

# It allows nothing; whom it applies to is the entry's to say.
test_allow_nothing if {
	every verb in ["read", "create", "stop", "run"] {
		count(kill_switch.violations({"reason": ""})) == 1 with input as testing.plain("pod", verb)
	}
}
