package tollgate.library.operations_test

import data.tollgate.library.operations
import data.tollgate.testing

verdict(params) := result if {
	result := count(operations.violations(params)) with input as testing.plain("pod", "read")
}

test_allow if {
	verdict({"deny": ["pod_delete"]}) == 0
	verdict({"allow": ["pod_read"], "deny": []}) == 0
}

test_deny if {
	verdict({"deny": ["pod_read"]}) == 1
	verdict({"allow": ["pod_delete"], "deny": []}) == 1
	verdict({"allow": ["pod_read"], "deny": ["pod_read"]}) == 1
}
