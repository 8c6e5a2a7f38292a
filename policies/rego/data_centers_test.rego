package tollgate.library.data_centers_test

import data.tollgate.library.data_centers
import data.tollgate.testing

params := {"allow": ["EU-RO-1", "EUR-IS-*"], "choose": []}

chooser := {"allow": ["EU-RO-1"], "choose": ["EU-RO-1"]}

verdict := testing.pointers(data_centers.violations(params))

test_allow if {
	verdict == set() with input as testing.create("pod", {"dataCenterIds": ["EU-RO-1", "EUR-IS-2"]})
	verdict == set() with input as testing.start({"dataCenterId": "EU-RO-1"})
	verdict == set() with input as testing.create("network_volume", {"dataCenter": "EUR-IS-1"})
	verdict == set() with input as testing.create("template", {})
}

test_deny_outside if {
	verdict == {"/dataCenterIds/1"} with input as testing.create("pod", {"dataCenterIds": ["EU-RO-1", "US-TX-3"]})
	verdict == {"/dataCenterId"} with input as testing.update("pod", {"dataCenterId": "US-TX-3"})
	verdict == {"/dataCenter"} with input as testing.create("network_volume", {"dataCenter": "EU-RO-10"})
	verdict == {"/dataCenterIds/0"} with input as testing.create("cluster", {"dataCenterIds": [7]})
}

test_deny_unchosen if {
	verdict == {"/dataCenterIds"} with input as testing.create("pod", {})
	verdict == {"/dataCenterIds"} with input as testing.create("endpoint", {"dataCenterIds": []})
	verdict == {"/dataCenterIds"} with input as testing.start({"dataCenterId": null})
}

test_change_unchosen if {
	some change in data_centers.mutations(chooser) with input as testing.create("pod", {})
	change.pointer == "/dataCenterIds"
	change.value == ["EU-RO-1"]
}

test_no_change if {
	data_centers.mutations(chooser) == set() with input as testing.create("pod", {"dataCenterIds": ["EU-RO-1"]})
	data_centers.mutations(chooser) == set() with input as testing.update("pod", {})
	data_centers.mutations(params) == set() with input as testing.create("pod", {})
}

test_sandboxes if {
	verdict == set() with input as testing.create("sandbox", {"dataCenterId": "EU-RO-1"})
	verdict == {"/dataCenterId"} with input as testing.create("sandbox", {"dataCenterId": "US-TX-3"})
	verdict == {"/dataCenterId"} with input as testing.create("sandbox", {})
	some change in data_centers.mutations(chooser) with input as testing.create("sandbox", {})
	[change.pointer, change.value] == ["/dataCenterId", "EU-RO-1"]
}
