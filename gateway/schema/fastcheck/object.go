package fastcheck

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

func (b *builder) addObjects(n *node, s *jsonschema.Schema) {
	if least := s.MinProperties; least != -1 {
		n.objects = append(n.objects, func(o map[string]any) verdict { return verdictOf(len(o) >= least) })
	}
	if len(s.Required) > 0 {
		n.objects = append(n.objects, required(s.Required))
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		beside := required(s.DependentRequired[name])
		n.objects = append(n.objects, func(o map[string]any) verdict {
			if _, ok := o[name]; !ok {
				return yes
			}
			return beside(o)
		})
	}
	if m := b.members(s); len(m.byName) > 0 || m.rest != nil {
		n.objects = append(n.objects, m.check)
	}
}

func required(names []string) test[map[string]any] {
	return func(o map[string]any) verdict {
		for _, name := range names {
			if _, ok := o[name]; !ok {
				return no
			}
		}
		return yes
	}
}

// members implements the keywords properties and additionalProperties.
type members struct {
	byName map[string]*node
	sorted []member // the nodes of byName, sorted
	rest   *node    // nil if other members may have any value
}

type member struct {
	name string
	*node
}

func (b *builder) members(s *jsonschema.Schema) *members {
	m := &members{byName: make(map[string]*node, len(s.Properties))}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		n := b.node(s.Properties[name])
		m.byName[name] = n
		m.sorted = append(m.sorted, member{name, n})
	}
	switch additional := s.AdditionalProperties.(type) {
	case bool:
		if !additional {
			m.rest = &node{settled: true, fixed: no}
		}
	case *jsonschema.Schema:
		m.rest = b.node(additional)
	}
	return m
}

func (m *members) check(o map[string]any) verdict {
	// Iterate over the smaller set.
	if m.rest != nil || len(o) < len(m.sorted) {
		for name, v := range o {
			n := m.byName[name]
			if n == nil {
				n = m.rest
			}
			if n == nil {
				continue
			}
			if r := n.check(v); r != yes {
				return r
			}
		}
		return yes
	}
	for _, known := range m.sorted {
		if v, ok := o[known.name]; ok {
			if r := known.check(v); r != yes {
				return r
			}
		}
	}
	return yes
}
