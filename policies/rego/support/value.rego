# METADATA
# title: Type-safe comparisons
# description: >-
#   Rego orders values of different types (null is less than 8), so a plain
#   comparison would accept a value of the wrong type as below a maximum. These
#   functions treat any value that is not a number as out of range.
package tollgate.value

# exceeds: x is above the maximum, or not a number.
exceeds(x, _) if not is_number(x)

exceeds(x, limit) if {
	is_number(x)
	x > limit
}

# excess: the amount by which x exceeds the maximum, or null if either is not a number.
excess(x, limit) := x - limit if {
	is_number(x)
	is_number(limit)
} else := null

# below: x is below the minimum, or not a number.
below(x, _) if not is_number(x)

below(x, limit) if {
	is_number(x)
	x < limit
}

# usd: an amount of money with at least two decimals.
usd(x) := concat("", [sprintf("%v", [x]), padding(sprintf("%v", [x]))])

padding(text) := ".00" if {
	regex.match(`^[0-9]+$`, text)
} else := "0" if {
	regex.match(`^[0-9]+\.[0-9]$`, text)
} else := ""

# listed: the names in quotes, sorted and separated by commas.
listed(names) := concat(", ", sort([sprintf("%q", [name]) | some name in names]))
