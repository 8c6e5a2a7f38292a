package tollgate.library.cloud_tier_test

import data.tollgate.library.cloud_tier
import data.tollgate.testing

verdict(clouds) := testing.pointers(cloud_tier.violations({"clouds": clouds}))

test_allow if {
	verdict(["SECURE"]) == set() with input as testing.create("pod", {"cloud": "SECURE"})
	verdict(["SECURE"]) == set() with input as testing.create("pod", {})
	verdict(["COMMUNITY"]) == set() with input as testing.create("endpoint", {})
}

test_deny if {
	verdict(["SECURE"]) == {"/cloud"} with input as testing.create("pod", {"cloud": "COMMUNITY"})
	verdict(["COMMUNITY"]) == {"/cloud"} with input as testing.create("pod", {})
	verdict(["SECURE"]) == {"/cloud"} with input as testing.start({"cloud": "COMMUNITY"})
}
