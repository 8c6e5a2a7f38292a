package tollgate.library.naming_test

import data.tollgate.library.naming
import data.tollgate.testing

params := {"pattern": "[a-z]+-[0-9]+|x", "max_length": 8, "kinds": ["pod"], "example": "train-1"}

verdict(kind, name) := result if {
	result := testing.messages(naming.violations(params)) with input as testing.create(kind, {"name": name})
}

test_allow if {
	verdict("pod", "train-1") == set()
	verdict("endpoint", "ANYTHING") == set()
	naming.violations(params) == set() with input as testing.start({"name": "OLD"})
}

test_deny if {
	verdict("pod", "Train-1") == {"the name must match [a-z]+-[0-9]+|x, e.g. train-1"}
	verdict("pod", "x-") == {"the name must match [a-z]+-[0-9]+|x, e.g. train-1"}
	verdict("pod", "train-12") == set()
	verdict("pod", "train-123") == {"the name has 9 characters, which exceeds the limit of 8"}
	verdict("pod", 7) == {"the name is not a string"}
	naming.violations({"pattern": "x", "kinds": ["pod"], "example": ""}) == {{"message": "the name must match x", "pointer": "/name"}} with input as testing.create(
		"pod",
		{"name": "y"},
	)
}

test_deny_sandboxes_without_a_name if {
	p := object.union(params, {"kinds": ["sandbox"]})
	naming.violations(params) == set() with input as testing.create("sandbox", {})
	testing.messages(naming.violations(p)) == {"the name of a sandbox is required"} with input as testing.create("sandbox", {})
	naming.violations(p) == set() with input as testing.create("sandbox", {"name": "a-1"})
	naming.violations(p) == set() with input as testing.create("endpoint", {})
	naming.violations(p) == set() with input as testing.plain("sandbox", "exec")
}
