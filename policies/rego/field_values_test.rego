package tollgate.library.field_values_test

import data.tollgate.library.field_values
import data.tollgate.testing

params := {"defaults": {"createPod": {"/disk": 20}}, "force": {"createPod": {"/cloud": "SECURE"}, "updatePod": {}}}

changes := {[change.op, change.pointer, change.value] | some change in field_values.mutations(params)}

test_change if changes == {["default", "/disk", 20], ["force", "/cloud", "SECURE"]} with input as testing.create("pod", {})

test_allow_other_operations if {
	changes == set() with input as testing.update("pod", {})
	changes == set() with input as testing.plain("pod", "read")
}
