package tollgate.value_test

import data.tollgate.testing
import data.tollgate.value

test_exceeds if {
	value.exceeds(3, 2)
	not value.exceeds(2, 2)
	every x in testing.wrong {
		value.exceeds(x, 8)
	}
}

test_below if {
	value.below(1, 2)
	not value.below(2, 2)
	every x in testing.wrong {
		value.below(x, 0)
	}
}

test_listed if value.listed(["b", "a"]) == `"a", "b"`

test_usd if {
	value.usd(4) == "4.00"
	value.usd(0.4) == "0.40"
	value.usd(0.43) == "0.43"
	value.usd(0.006) == "0.006"
	value.usd(null) == "null"
}
