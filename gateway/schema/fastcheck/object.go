package fastcheck

import (
	"maps"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// addObjects adds the demands on objects.
func (b *builder) addObjects(n *node, s *jsonschema.Schema) {
	if least := s.MinProperties; least != -1 {
		n.objects = append(n.objects, func(o map[string]any) verdict { return verdictOf(len(o) >= least) })
	}
	if most := s.MaxProperties; most != -1 {
		n.objects = append(n.objects, func(o map[string]any) verdict { return verdictOf(len(o) <= most) })
	}
	if len(s.Required) > 0 {
		n.objects = append(n.objects, required(s.Required))
	}
	b.addDependencies(n, s)
	if s.PropertyNames != nil {
		n.objects = append(n.objects, names(b.node(s.PropertyNames)))
	}
	if m := b.members(s); len(m.byName) > 0 || len(m.patterns) > 0 || m.rest != nil {
		n.objects = append(n.objects, m.judge)
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

// names holds every member's name against n.
func names(n *node) test[map[string]any] {
	return func(o map[string]any) verdict {
		for name := range o {
			if r := n.judge(name); r != yes {
				return r
			}
		}
		return yes
	}
}

// addDependencies adds what a member demands by being there. "dependencies" is
// of an older dialect, but jsonschema/v5 obeys it in every one.
func (b *builder) addDependencies(n *node, s *jsonschema.Schema) {
	add := func(name string, demand test[map[string]any]) {
		n.objects = append(n.objects, func(o map[string]any) verdict {
			if _, ok := o[name]; !ok {
				return yes
			}
			return demand(o)
		})
	}
	whole := func(sub *jsonschema.Schema) test[map[string]any] {
		n := b.node(sub)
		return func(o map[string]any) verdict { return n.judge(o) }
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		add(name, required(s.DependentRequired[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		add(name, whole(s.DependentSchemas[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		switch d := s.Dependencies[name].(type) {
		case []string:
			add(name, required(d))
		case *jsonschema.Schema:
			add(name, whole(d))
		}
	}
}

// members is properties, patternProperties and additionalProperties.
type members struct {
	byName   map[string]*node
	sorted   []member // the same
	patterns []pattern
	rest     *node // nil when all others may be anything
}

type member struct {
	name string
	*node
}

type pattern struct {
	*regexp.Regexp
	*node
}

func (b *builder) members(s *jsonschema.Schema) *members {
	m := &members{byName: make(map[string]*node, len(s.Properties))}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		n := b.node(s.Properties[name])
		m.byName[name] = n
		m.sorted = append(m.sorted, member{name, n})
	}
	for re, sub := range s.PatternProperties {
		m.patterns = append(m.patterns, pattern{re, b.node(sub)})
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

func (m *members) judge(o map[string]any) verdict {
	if m.rest != nil || len(m.patterns) > 0 {
		return m.judgeAll(o)
	}
	// Whichever side is smaller is looked up in the other.
	if len(o) < len(m.sorted) {
		for name, v := range o {
			if n := m.byName[name]; n != nil {
				if r := n.judge(v); r != yes {
					return r
				}
			}
		}
		return yes
	}
	for _, known := range m.sorted {
		if v, ok := o[known.name]; ok {
			if r := known.judge(v); r != yes {
				return r
			}
		}
	}
	return yes
}

func (m *members) judgeAll(o map[string]any) verdict {
	for name, v := range o {
		n, known := m.byName[name]
		if known {
			if r := n.judge(v); r != yes {
				return r
			}
		}
		for _, p := range m.patterns {
			if !p.MatchString(name) {
				continue
			}
			known = true
			if r := p.judge(v); r != yes {
				return r
			}
		}
		if !known && m.rest != nil {
			if r := m.rest.judge(v); r != yes {
				return r
			}
		}
	}
	return yes
}
