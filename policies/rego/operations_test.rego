package tollgate.library.operations_test

import data.tollgate.library.operations
import data.tollgate.testing

verdict(params) := result if {
	result := count(operations.violations(params)) with input as testing.plain("pod", "read")
}

test_allow if {
	verdict({"deny": ["deletePod"]}) == 0
	verdict({"allow": ["getPod"], "deny": []}) == 0
}

test_deny if {
	verdict({"deny": ["getPod"]}) == 1
	verdict({"allow": ["deletePod"], "deny": []}) == 1
	verdict({"allow": ["getPod"], "deny": ["getPod"]}) == 1
}
