package tollgate.library.disk_test

import data.tollgate.library.disk
import data.tollgate.testing

params := {"max_gb": 100, "default_gb": 20}

test_allow if {
	disk.violations(params) == set() with input as testing.create("pod", {"disk": 100})
	disk.violations(params) == set() with input as testing.create("pod", {})
}

test_deny if {
	testing.pointers(disk.violations(params)) == {"/disk"} with input as testing.update("pod", {"disk": 101})
	every x in [null, true, "", [], {}, "9"] {
		testing.pointers(disk.violations(params)) == {"/disk"} with input as testing.create("pod", {"disk": x})
	}
}

test_change if {
	some change in disk.mutations(params) with input as testing.create("pod", {})
	[change.op, change.pointer, change.value] == ["default", "/disk", 20]
}

test_no_change if {
	disk.mutations(params) == set() with input as testing.create("pod", {"disk": 5})
	disk.mutations(params) == set() with input as testing.update("pod", {})
	disk.mutations({"max_gb": 1}) == set() with input as testing.create("pod", {})
}
