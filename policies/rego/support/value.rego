# METADATA
# title: Comparisons that do not trust types
# description: >-
#   Rego orders values of different types (null is less than 8), so a plain
#   comparison lets a value of the wrong type slip below a maximum. These
#   functions treat whatever is not a number as out of bounds.
package tollgate.value

# exceeds: x is above the maximum, or no number at all.
exceeds(x, _) if not is_number(x)

exceeds(x, limit) if {
	is_number(x)
	x > limit
}

# excess: how far x is above the maximum, null if one is no number.
excess(x, limit) := x - limit if {
	is_number(x)
	is_number(limit)
} else := null

# below: x is under the minimum, or no number at all.
below(x, _) if not is_number(x)

below(x, limit) if {
	is_number(x)
	x < limit
}

# listed: names for people, in order, each in quotes.
listed(names) := concat(", ", sort([sprintf("%q", [name]) | some name in names]))
