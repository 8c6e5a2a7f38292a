package fastcheck

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// addArrays adds the demands on arrays.
func (b *builder) addArrays(n *node, s *jsonschema.Schema) {
	if least := s.MinItems; least != -1 {
		n.arrays = append(n.arrays, func(items []any) verdict { return verdictOf(len(items) >= least) })
	}
	if most := s.MaxItems; most != -1 {
		n.arrays = append(n.arrays, func(items []any) verdict { return verdictOf(len(items) <= most) })
	}
	if len(s.PrefixItems) > 0 || s.Items2020 != nil {
		var rest *node
		if s.Items2020 != nil {
			rest = b.node(s.Items2020)
		}
		n.arrays = append(n.arrays, elements(b.all(s.PrefixItems), rest))
	}
	if s.UniqueItems {
		n.arrays = append(n.arrays, unique(maphash.MakeSeed()))
	}
	// The numbers are -1 where the dialect leaves validation out; then so does
	// jsonschema/v5.
	if s.Contains != nil && (s.MinContains != -1 || s.MaxContains != -1) {
		n.arrays = append(n.arrays, contains(b.node(s.Contains), s.MinContains, s.MaxContains))
	}
}

// elements holds the first elements against a schema each and all others, if
// rest is not nil, against rest.
func elements(first []*node, rest *node) test[[]any] {
	return func(items []any) verdict {
		for i, item := range items {
			n := rest
			if i < len(first) {
				n = first[i]
			}
			if n == nil {
				return yes
			}
			if r := n.judge(item); r != yes {
				return r
			}
		}
		return yes
	}
}

// contains wants the number of elements that fit n to be within bounds; -1 is
// none.
func contains(n *node, least, most int) test[[]any] {
	return func(items []any) verdict {
		matched := 0
		for _, item := range items {
			switch n.judge(item) {
			case yes:
				matched++
			case unsure:
				return unsure
			case no:
			}
		}
		return verdictOf(matched >= least && (most == -1 || matched <= most))
	}
}

// maxPairs is the length up to which all pairs of elements are compared.
const maxPairs = 20

// unique wants no two elements to be equal.
func unique(seed maphash.Seed) test[[]any] {
	return func(items []any) verdict {
		if len(items) <= maxPairs {
			return uniquePairs(items)
		}
		return uniqueHashes(seed, items)
	}
}

func uniquePairs(items []any) verdict {
	for i, item := range items {
		for _, earlier := range items[:i] {
			if r := equal(item, earlier); r != no {
				return not(r)
			}
		}
	}
	return yes
}

// uniqueHashes compares the elements that have the same hash, or every long
// array would cost as much as its square.
func uniqueHashes(seed maphash.Seed, items []any) verdict {
	type hashed struct {
		hash uint64
		item any
	}
	all := make([]hashed, len(items))
	for i, item := range items {
		h, ok := hash(seed, item)
		if !ok {
			return unsure
		}
		all[i] = hashed{h, item}
	}
	slices.SortFunc(all, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
	for i, a := range all {
		for j := i + 1; j < len(all) && all[j].hash == a.hash; j++ {
			if r := equal(a.item, all[j].item); r != no {
				return not(r)
			}
		}
	}
	return yes
}
