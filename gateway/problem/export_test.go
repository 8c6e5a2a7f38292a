package problem

import (
	"iter"
	"maps"
)

// Kinds returns every kind, in no order.
func Kinds() iter.Seq[Kind] { return maps.Keys(kinds) }
