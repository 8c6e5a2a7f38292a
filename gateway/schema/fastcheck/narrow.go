package fastcheck

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Narrow returns a schema that finds the same errors in v as s, but omits parts of s for which v is certainly valid: members of objects,
// and schemas that apply to an object as a whole. p must have been compiled from s.
func (p *Program) Narrow(s *jsonschema.Schema, v any) *jsonschema.Schema {
	if o, ok := v.(map[string]any); ok && p.gaps == nil {
		return p.narrow(s, o)
	}
	return s
}

func (p *Program) narrow(s *jsonschema.Schema, o map[string]any) *jsonschema.Schema {
	if s.Always != nil {
		return s
	}
	c := *s
	c.Properties = make(map[string]*jsonschema.Schema, len(o))
	for name, v := range o {
		if of := s.Properties[name]; of != nil {
			c.Properties[name] = p.member(of, v)
		}
	}
	if s.Ref != nil {
		if c.Ref = nil; !p.absorb(&c, o, s.Ref) {
			c.Ref = p.narrow(s.Ref, o)
		}
	}
	if c.AllOf = nil; !p.absorb(&c, o, s.AllOf...) {
		c.AllOf = p.narrowAll(s.AllOf, o)
	}
	c.OneOf = p.narrowAll(s.OneOf, o)
	if s.If != nil && s.Then != nil && (p.nodes[s.If].check(o) == no || p.absorb(&c, o, s.If, s.Then)) {
		c.If = nil
	}
	return &c
}

func (p *Program) narrowAll(all []*jsonschema.Schema, o map[string]any) []*jsonschema.Schema {
	narrowed := slices.Clone(all)
	for i, s := range all {
		narrowed[i] = p.narrow(s, o)
	}
	return narrowed
}

// member narrows the schema of a member. Evaluation inside the member's value does not affect the enclosing object.
func (p *Program) member(s *jsonschema.Schema, v any) *jsonschema.Schema {
	if p.nodes[s].check(v) == yes {
		return anything
	}
	if o, ok := v.(map[string]any); ok {
		return p.narrow(s, o)
	}
	return s
}

// anything is a schema that accepts every value and evaluates no members.
var anything = &jsonschema.Schema{Always: new(true)}

// absorb reports whether the schemas all, which apply to o in addition to c, can be omitted. This is the case if all of them accept o and
// the members that they evaluate do not depend on o. absorb then makes c evaluate these members; otherwise it does not modify c.
func (p *Program) absorb(c *jsonschema.Schema, o map[string]any, all ...*jsonschema.Schema) bool {
	for _, s := range all {
		if n := p.nodes[s]; n.evaluates == nil || n.check(o) != yes {
			return false
		}
	}
	if c.AdditionalProperties != nil {
		return true // c already evaluates all members; the members that it validates must not change
	}
	for _, s := range all {
		covered := p.nodes[s].evaluates
		for name := range o {
			if c.Properties[name] == nil && (covered.all || covered.names[name]) {
				c.Properties[name] = anything
			}
		}
	}
	return true
}

// evaluates returns the members that s evaluates in every object that s accepts. It returns nil if they depend on the object.
func evaluates(s *jsonschema.Schema) *coverage {
	surely, perhaps := evaluated(s, always), evaluated(s, possible)
	surely.all = surely.all || s.UnevaluatedProperties != nil
	if surely.all || !perhaps.all && len(surely.names) == len(perhaps.names) {
		return surely
	}
	return nil
}
