package tollgate.library.disk_test

import data.tollgate.library.disk
import data.tollgate.testing

params := {"max_gb": 100, "default_gb": 20, "platform_default_gb": 20}

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

# What names no disk gets one.
test_deny_default if {
	small := {"max_gb": 10, "platform_default_gb": 20}
	every kind in ["pod", "cluster", "endpoint"] {
		testing.pointers(disk.violations(small)) == {"/disk"} with input as testing.create(kind, {})
	}
	disk.violations(small) == set() with input as testing.create("template", {})
	disk.violations(small) == set() with input as testing.update("pod", {})
	disk.violations(object.union(small, {"default_gb": 5})) == set() with input as testing.create("pod", {})
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
