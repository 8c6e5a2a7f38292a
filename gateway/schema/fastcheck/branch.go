package fastcheck

import "github.com/santhosh-tekuri/jsonschema/v5"

// addBranches adds the schemas that are applied to the value as a whole.
func (b *builder) addBranches(n *node, s *jsonschema.Schema) {
	for _, sub := range always(s) {
		n.values = append(n.values, b.node(sub).judge)
	}
	if len(s.AnyOf) > 0 {
		n.values = append(n.values, anyOf(b.all(s.AnyOf)))
	}
	if len(s.OneOf) > 0 {
		n.values = append(n.values, exactlyOneOf(b.all(s.OneOf)))
	}
	if s.Not != nil {
		sub := b.node(s.Not)
		n.values = append(n.values, func(v any) verdict { return not(sub.judge(v)) })
	}
	if s.If != nil {
		n.values = append(n.values, conditional(b.node(s.If), b.orTrue(s.Then), b.orTrue(s.Else)))
	}
}

// orTrue returns the node of s, or one that accepts everything.
func (b *builder) orTrue(s *jsonschema.Schema) *node {
	if s == nil {
		return &node{settled: true, fixed: yes}
	}
	return b.node(s)
}

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

func anyOf(branches []*node) test[any] {
	return func(v any) verdict {
		worst := no
		for _, n := range branches {
			switch n.judge(v) {
			case yes:
				return yes
			case unsure:
				worst = unsure
			case no:
			}
		}
		return worst
	}
}

func exactlyOneOf(branches []*node) test[any] {
	return func(v any) verdict {
		matched := 0
		for _, n := range branches {
			switch n.judge(v) {
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

func conditional(condition, then, otherwise *node) test[any] {
	return func(v any) verdict {
		switch condition.judge(v) {
		case yes:
			return then.judge(v)
		case no:
			return otherwise.judge(v)
		case unsure:
		}
		return unsure
	}
}
