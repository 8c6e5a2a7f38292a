package tollgate.library.storage_test

import data.tollgate.library.storage
import data.tollgate.testing

verdict(kind, after, p) := result if {
	result := testing.pointers(storage.violations(p)) with input as testing.create(kind, after)
}

persistent(size) := {"mounts": {"persistent": {"size": size, "path": "/w"}}}

test_allow if {
	verdict("pod", persistent(20), {"allow_persistent": true, "max_persistent_gb": 20}) == set()
	verdict("pod", {"mounts": {}}, {"allow_persistent": false}) == set()
	verdict("network_volume", {"size": 500, "type": "STANDARD"}, {"allow_persistent": false, "max_volume_gb": 500, "volume_types": ["STANDARD"]}) == set()
	verdict("pod", {"mounts": {"network": [{"volumeId": "v1"}]}}, {"allow_persistent": false, "volumes": ["v1"]}) == set()
}

test_deny_persistent if {
	verdict("pod", persistent(20), {"allow_persistent": false}) == {"/mounts/persistent"}
	verdict("pod", persistent(21), {"allow_persistent": true, "max_persistent_gb": 20}) == {"/mounts/persistent/size"}
	verdict("pod", {"mounts": {"persistent": {}}}, {"allow_persistent": true, "max_persistent_gb": 20}) == {"/mounts/persistent/size"}
}

test_deny_volume if {
	verdict("network_volume", {"size": 501}, {"allow_persistent": false, "max_volume_gb": 500}) == {"/size"}
	verdict("network_volume", {"size": 1, "type": "HIGH_PERFORMANCE"}, {"allow_persistent": false, "volume_types": ["STANDARD"]}) == {"/type"}
	verdict("network_volume", {"size": 1}, {"allow_persistent": false, "volume_types": ["STANDARD"]}) == {"/type"}
}

test_deny_mounted if {
	p := {"allow_persistent": false, "volumes": ["v1"]}
	verdict("pod", {"mounts": {"network": [{"volumeId": "v2"}]}}, p) == {"/mounts/network/0/volumeId"}
	verdict("pod", {"mounts": {"network": [{}]}}, p) == {"/mounts/network/0/volumeId"}
	verdict("endpoint", {"networkVolumes": ["v1", "v2"]}, p) == {"/networkVolumes/1"}
}
