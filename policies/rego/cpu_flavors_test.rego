package tollgate.library.cpu_flavors_test

import data.tollgate.library.cpu_flavors
import data.tollgate.testing

params := {"flavors": ["cpu5c"], "max_vcpus": 8}

verdict(kind, cpu) := result if {
	result := testing.pointers(cpu_flavors.violations(params)) with input as testing.create(kind, {"cpu": cpu})
}

test_allow if {
	verdict("pod", {"id": "cpu5c", "vcpuCount": 8}) == set()
	verdict("pod", {"id": "cpu5c-4-8", "vcpuCount": 4}) == set()
	verdict("endpoint", [{"id": "cpu5c", "vcpuCount": 2}]) == set()
	verdict("pod", null) == set()
}

test_deny_flavor if {
	verdict("pod", {"id": "cpu3g", "vcpuCount": 2}) == {"/cpu/id"}
	verdict("pod", {"id": "cpu5c-x", "vcpuCount": 2}) == {"/cpu/id"}
	verdict("pod", {"vcpuCount": 2}) == {"/cpu/id"}
	verdict("endpoint", [{"id": "cpu5c", "vcpuCount": 2}, {"id": "cpu3g", "vcpuCount": 2}]) == {"/cpu/1/id"}
}

test_deny_size if {
	verdict("pod", {"id": "cpu5c", "vcpuCount": 16}) == {"/cpu/vcpuCount"}
	verdict("endpoint", [{"id": "cpu5c", "vcpuCount": "2"}]) == {"/cpu/0/vcpuCount"}
}

test_deny_size_in_the_name if {
	verdict("pod", {"id": "cpu5c-32-64", "vcpuCount": 2}) == {"/cpu/vcpuCount"}
	verdict("endpoint", [{"id": "cpu5c-4-8", "vcpuCount": 2}, {"id": "cpu5c-16-32", "vcpuCount": 2}]) == {"/cpu/1/vcpuCount"}
}

test_sandboxes if {
	verdict("sandbox", null) == {"/cpuFlavorId", "/vcpuCount"}
	sandbox({"cpuFlavorId": "cpu5c", "vcpuCount": 8}) == set()
	sandbox({"cpuFlavorId": "cpu3c", "vcpuCount": 16}) == {"/cpuFlavorId", "/vcpuCount"}
	sandbox({"cpuFlavorId": "cpu5c-32-64", "vcpuCount": 1}) == {"/vcpuCount"}
}

sandbox(after) := result if {
	result := testing.pointers(cpu_flavors.violations(params)) with input as testing.create("sandbox", after)
}
