package fastcheck

import (
	"encoding/json"
	"slices"
)

func not(r verdict) verdict {
	switch r {
	case yes:
		return no
	case no:
		return yes
	case unsure:
	}
	return unsure
}

func exactlyOneOf(branches []*node) test[any] {
	return func(v any) verdict {
		matched := 0
		for _, n := range branches {
			switch n.check(v) {
			case yes:
				matched++
			case unsure:
				return unsure
			case no:
			}
		}
		return verdictOf(matched == 1)
	}
}

func conditional(condition, then *node) test[any] {
	return func(v any) verdict {
		switch condition.check(v) {
		case yes:
			return then.check(v)
		case no:
			return yes
		case unsure:
		}
		return unsure
	}
}

// oneOf returns a test that accepts only the given strings.
func oneOf(allowed []any) test[any] {
	return func(v any) verdict {
		s, ok := v.(string)
		return verdictOf(ok && slices.Contains(allowed, any(s)))
	}
}

func allStrings(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, ok := v.(string); return !ok })
}

func each(n *node) test[[]any] {
	return func(items []any) verdict {
		for _, item := range items {
			if r := n.check(item); r != yes {
				return r
			}
		}
		return yes
	}
}

// maxUnique is the maximum length of arrays in which unique compares all pairs of elements.
const maxUnique = 20

// unique tests that no two elements are equal.
func unique(items []any) verdict {
	if len(items) > maxUnique {
		return unsure
	}
	for i, item := range items {
		for _, earlier := range items[:i] {
			if r := equal(item, earlier); r != no {
				return not(r)
			}
		}
	}
	return yes
}

// equal compares values by the rules of JSON Schema: it compares numbers by value, and objects regardless of the order of members.
func equal(v, w any) verdict {
	switch v := v.(type) {
	case map[string]any:
		w, ok := w.(map[string]any)
		if !ok || len(v) != len(w) {
			return no
		}
		for name, item := range v {
			other, ok := w[name]
			if !ok {
				return no
			}
			if r := equal(item, other); r != yes {
				return r
			}
		}
		return yes
	case []any:
		w, ok := w.([]any)
		if !ok || len(v) != len(w) {
			return no
		}
		for i, item := range v {
			if r := equal(item, w[i]); r != yes {
				return r
			}
		}
		return yes
	case json.Number:
		return equalNumbers(v, w)
	case string, bool, nil:
		switch w.(type) {
		case map[string]any, []any:
			return no
		}
		return verdictOf(v == w)
	}
	return unsure
}

func equalNumbers(v json.Number, w any) verdict {
	n, ok := w.(json.Number)
	if !ok {
		return no
	}
	f, ok := parse(string(v))
	g, ok2 := parse(string(n))
	if !ok || !ok2 {
		return unsure
	}
	return verdictOf(f == g)
}
