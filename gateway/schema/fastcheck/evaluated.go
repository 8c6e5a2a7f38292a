package fastcheck

import (
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// coverage is what a schema and those it applies in place evaluate of an object
// or array.
type coverage struct {
	// names and patterns are of members; all stands for every member.
	names    map[string]bool
	patterns []*regexp.Regexp
	all      bool
	// items is the number of elements from the first; allItems stands for every
	// element; someItems is set where "contains" picks elements.
	items     int
	allItems  bool
	someItems bool
	// unknown is set where a gap might evaluate anything.
	unknown bool
}

// surely returns what is evaluated by s, not counting its unevaluatedProperties
// and unevaluatedItems, whenever its other keywords accept the value.
func (b *builder) surely(s *jsonschema.Schema) *coverage {
	c := &coverage{names: make(map[string]bool)}
	b.cover(c, s, always)
	return c
}

// evaluationKnown reports whether the value has no say in what is left to the
// unevaluatedProperties and unevaluatedItems of s. It is so where branches
// evaluate only what is evaluated beside them anyway.
func (b *builder) evaluationKnown(s *jsonschema.Schema) bool {
	if s.UnevaluatedProperties == nil && s.UnevaluatedItems == nil {
		return true
	}
	surely, perhaps := b.surely(s), &coverage{names: make(map[string]bool)}
	b.cover(perhaps, s, func(s *jsonschema.Schema) []*jsonschema.Schema {
		return slices.Concat(always(s), sometimes(s))
	})
	return !perhaps.unknown &&
		(s.UnevaluatedProperties == nil || surely.hasMembersOf(perhaps)) &&
		(s.UnevaluatedItems == nil || surely.hasItemsOf(perhaps))
}

// hasMembersOf reports whether c covers the members that d does. All of c is in
// d.
func (c *coverage) hasMembersOf(d *coverage) bool {
	return c.all || !d.all && len(c.names) == len(d.names) && len(c.patterns) == len(d.patterns)
}

// hasItemsOf reports whether c covers the elements that d does.
func (c *coverage) hasItemsOf(d *coverage) bool {
	return c.allItems || !d.allItems && !d.someItems && c.items >= d.items
}

// cover adds to c what s evaluates itself and by the schemas that edges names.
func (b *builder) cover(c *coverage, s *jsonschema.Schema, edges func(*jsonschema.Schema) []*jsonschema.Schema) {
	for name := range s.Properties {
		c.names[name] = true
	}
	for re := range s.PatternProperties {
		if !slices.Contains(c.patterns, re) {
			c.patterns = append(c.patterns, re)
		}
	}
	c.all = c.all || s.AdditionalProperties != nil
	c.items = max(c.items, len(s.PrefixItems))
	c.allItems = c.allItems || s.Items2020 != nil
	c.someItems = c.someItems || s.Contains != nil
	for _, sub := range edges(s) {
		if b.gap(sub) != "" {
			c.unknown = true
			continue
		}
		c.all = c.all || sub.UnevaluatedProperties != nil
		c.allItems = c.allItems || sub.UnevaluatedItems != nil
		b.cover(c, sub, edges)
	}
}

// addUnevaluated adds the demands on what no other keyword has seen. They come
// last: they hold only of values that the others accept.
func (b *builder) addUnevaluated(n *node, s *jsonschema.Schema) {
	if s.UnevaluatedProperties == nil && s.UnevaluatedItems == nil {
		return
	}
	surely := b.surely(s)
	if s.UnevaluatedProperties != nil && !surely.all {
		rest := b.node(s.UnevaluatedProperties)
		n.values = append(n.values, func(v any) verdict {
			o, _ := v.(map[string]any)
			return surely.judgeMembers(o, rest)
		})
	}
	if s.UnevaluatedItems != nil && !surely.allItems {
		rest := b.node(s.UnevaluatedItems)
		n.values = append(n.values, func(v any) verdict {
			items, _ := v.([]any)
			return surely.judgeItems(items, rest)
		})
	}
}

// judgeMembers holds the members that are not covered against rest.
func (c *coverage) judgeMembers(o map[string]any, rest *node) verdict {
	for name, v := range o {
		if c.names[name] || slices.ContainsFunc(c.patterns, func(re *regexp.Regexp) bool { return re.MatchString(name) }) {
			continue
		}
		if r := rest.judge(v); r != yes {
			return r
		}
	}
	return yes
}

// judgeItems holds the elements that are not covered against rest.
func (c *coverage) judgeItems(items []any, rest *node) verdict {
	for _, item := range items[min(c.items, len(items)):] {
		if r := rest.judge(item); r != yes {
			return r
		}
	}
	return yes
}
