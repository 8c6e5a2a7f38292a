package tollgate.library.read_only_test

import data.tollgate.library.read_only
import data.tollgate.testing

verdict(params, verb) := result if {
	result := testing.messages(read_only.violations(params)) with input as testing.plain("pod", verb)
}

strict := {"allow_stopping": false, "reason": ""}

lenient := {"allow_stopping": true, "reason": "audit"}

test_allow if {
	verdict(strict, "read") == set()
	verdict(strict, "logs") == set()
	verdict(lenient, "stop") == set()
	verdict(lenient, "delete") == set()
}

test_deny if {
	verdict(strict, "stop") == {"the organisation is read-only"}
	verdict(lenient, "create") == {"the organisation is read-only: audit"}
	verdict(lenient, "exec") == {"the organisation is read-only: audit"}
	verdict(lenient, "run") == {"the organisation is read-only: audit"}
}
