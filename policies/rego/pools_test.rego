package tollgate.library.pools_test

import data.tollgate.library.pools
import data.tollgate.testing

verdict(given) := result if {
	result := testing.pointers(pools.violations({"pools": ["ADA_24"]})) with input as testing.create(
		"endpoint",
		{"gpu": {"pools": given}},
	)
}

test_allow if {
	verdict(["ADA_24"]) == set()
	pools.violations({"pools": ["ADA_24"]}) == set() with input as testing.create("endpoint", {"cpu": []})
}

test_deny if verdict(["ADA_24", "ADA_80_PRO", 7]) == {"/gpu/pools/1", "/gpu/pools/2"}
