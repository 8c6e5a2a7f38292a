package policies

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// projection is the part of the input an organisation's policies can read,
// found by looking at every reference they make. Converting only that part is
// sound: a value nobody refers to cannot change a result. It also makes a
// verdict memorable: equal projected inputs get equal verdicts.
type projection struct {
	whole bool                   // everything below here
	kids  map[string]*projection // otherwise, these members
	order []string               // their names, in order
}

// add notes that the value at path is read.
func (p *projection) add(path []string) {
	if p.whole {
		return
	}
	if len(path) == 0 {
		p.whole, p.kids = true, nil
		return
	}
	kid := p.kids[path[0]]
	if kid == nil {
		if p.kids == nil {
			p.kids = map[string]*projection{}
		}
		kid = &projection{}
		p.kids[path[0]] = kid
	}
	kid.add(path[1:])
}

// reads tells whether anything at or below the member of the root is read.
func (p *projection) reads(member string) bool {
	return p.whole || p.kids[member] != nil
}

// paths lists what is read, for people: sorted, dotted.
func (p *projection) paths() []string {
	if p.whole {
		return []string{""}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.kids)) {
		for _, sub := range p.kids[name].paths() {
			if sub == "" {
				out = append(out, name)
			} else {
				out = append(out, name+"."+sub)
			}
		}
	}
	return out
}

// wholeProjection reads everything.
func wholeProjection() *projection { return &projection{whole: true} }

// freeze notes the order of members, once all are added.
func (p *projection) freeze() {
	p.order = slices.Sorted(maps.Keys(p.kids))
	for _, kid := range p.kids {
		kid.freeze()
	}
}

// namesOf are the members of a map that are read, in order. Some of them may
// not be there.
func namesOf[V any](p *projection, m map[string]V) []string {
	if p.whole {
		return slices.Sorted(maps.Keys(m))
	}
	return p.order
}

// namesIn are the members of a node that are read, in order.
func (p *projection) namesIn(n node) []string {
	if p.whole {
		return n.members() // in order already
	}
	return p.order
}

// kid is the projection of a member.
func (p *projection) kid(name string) *projection {
	if p.whole {
		return p
	}
	return p.kids[name]
}

// errValue is wrapped by errors about values that JSON does not have.
var errValue = errors.New("not a JSON value")

// converter makes OPA values of the input, without reflection.
type converter struct {
	// catalogTerm makes the value of a price list.
	catalogTerm func(*catalog.Snapshot) (*ast.Term, error)
}

// term converts the part of v that p reads; nil when v is absent.
func (c converter) term(v any, p *projection) (*ast.Term, error) {
	switch x := v.(type) {
	case absentValue:
		return nil, nil
	case node:
		names := p.namesIn(x)
		pairs := make([][2]*ast.Term, 0, len(names))
		for _, name := range names {
			var err error
			if pairs, err = c.pair(pairs, name, x.member(name), p); err != nil {
				return nil, err
			}
		}
		return ast.ObjectTerm(pairs...), nil
	case map[string]any:
		return mapTerm(c, x, p)
	case map[string]string:
		return mapTerm(c, x, p)
	case []any:
		terms := make([]*ast.Term, len(x))
		for i, item := range x {
			t, err := c.term(item, wholeProjection())
			if err != nil {
				return nil, err
			}
			terms[i] = t
		}
		return ast.ArrayTerm(terms...), nil
	case []string:
		terms := make([]*ast.Term, len(x))
		for i, item := range x {
			terms[i] = ast.InternedTerm(item)
		}
		return ast.ArrayTerm(terms...), nil
	case *catalog.Snapshot:
		return c.catalogTerm(x)
	default:
		return scalarTerm(v)
	}
}

func mapTerm[V any](c converter, m map[string]V, p *projection) (*ast.Term, error) {
	names := namesOf(p, m)
	pairs := make([][2]*ast.Term, 0, len(names))
	for _, name := range names {
		v, present := m[name]
		if !present {
			continue
		}
		var err error
		if pairs, err = c.pair(pairs, name, v, p); err != nil {
			return nil, err
		}
	}
	return ast.ObjectTerm(pairs...), nil
}

// pair appends a member, unless it is absent.
func (c converter) pair(pairs [][2]*ast.Term, name string, v any, p *projection) ([][2]*ast.Term, error) {
	t, err := c.term(v, p.kid(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t == nil {
		return pairs, nil
	}
	return append(pairs, [2]*ast.Term{ast.InternedTerm(name), t}), nil
}

// scalarTerm converts everything that is neither object nor list.
func scalarTerm(v any) (*ast.Term, error) {
	switch x := v.(type) {
	case nil:
		return ast.InternedNullTerm, nil
	case bool:
		return ast.InternedTerm(x), nil
	case string:
		return ast.InternedTerm(x), nil
	case json.Number:
		return numberTerm(string(x))
	case Money:
		return numberTerm(x.String())
	case int:
		return ast.InternedTerm(x), nil
	case int64:
		return numberTerm(numberText(x))
	case uint64:
		return ast.UIntNumberTerm(x), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%w: %v", errValue, x)
		}
		return ast.FloatNumberTerm(x), nil
	default:
		return nil, fmt.Errorf("%w: %T", errValue, v)
	}
}

func numberTerm(text string) (*ast.Term, error) {
	if t := ast.InternedIntNumberTermFromString(text); t != nil {
		return t, nil
	}
	v, err := ast.NumberChecked(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errValue, err)
	}
	return ast.NewTerm(v), nil
}

// The tags that tell values apart in a key.
const (
	tagNull    = 'n'
	tagFalse   = 'f'
	tagTrue    = 't'
	tagNumber  = '#'
	tagString  = '"'
	tagArray   = '['
	tagObject  = '{'
	tagEnd     = '}'
	tagCatalog = 'c'
)

// appendKey writes the part of v that p reads so that different values are
// written differently: every value begins with its type, strings and lists go
// on with their length, and objects end with a mark no member begins with. Numbers keep their spelling, so 1 and 1.0
// are different keys, which costs a hit and nothing else.
func appendKey(b []byte, v any, p *projection) ([]byte, error) {
	switch x := v.(type) {
	case node:
		return appendNode(b, x, p)
	case map[string]any:
		return appendMap(b, x, p)
	case map[string]string:
		return appendMap(b, x, p)
	case []any:
		b = binary.AppendUvarint(append(b, tagArray), uint64(len(x)))
		for _, item := range x {
			var err error
			if b, err = appendKey(b, item, wholeProjection()); err != nil {
				return nil, err
			}
		}
		return b, nil
	case []string:
		b = binary.AppendUvarint(append(b, tagArray), uint64(len(x)))
		for _, item := range x {
			b = appendText(b, tagString, item)
		}
		return b, nil
	case *catalog.Snapshot:
		return appendText(b, tagCatalog, x.Digest()), nil
	default:
		return appendScalar(b, v)
	}
}

func appendNode(b []byte, n node, p *projection) ([]byte, error) {
	b = append(b, tagObject)
	for _, name := range p.namesIn(n) {
		v := n.member(name)
		if v == absent {
			continue
		}
		var err error
		if b, err = appendKey(appendText(b, tagString, name), v, p.kid(name)); err != nil {
			return nil, err
		}
	}
	return append(b, tagEnd), nil
}

func appendMap[V any](b []byte, m map[string]V, p *projection) ([]byte, error) {
	b = append(b, tagObject)
	for _, name := range namesOf(p, m) {
		v, present := m[name]
		if !present {
			continue
		}
		var err error
		if b, err = appendKey(appendText(b, tagString, name), v, p.kid(name)); err != nil {
			return nil, err
		}
	}
	return append(b, tagEnd), nil
}

func appendScalar(b []byte, v any) ([]byte, error) {
	switch x := v.(type) {
	case nil:
		return append(b, tagNull), nil
	case bool:
		if x {
			return append(b, tagTrue), nil
		}
		return append(b, tagFalse), nil
	case string:
		return appendText(b, tagString, x), nil
	case json.Number:
		return appendText(b, tagNumber, string(x)), nil
	case Money:
		return appendText(b, tagNumber, x.String()), nil
	case int:
		return appendText(b, tagNumber, numberText(int64(x))), nil
	case int64:
		return appendText(b, tagNumber, numberText(x)), nil
	default:
		return nil, fmt.Errorf("%w for a key: %T", errValue, v)
	}
}

func appendText(b []byte, tag byte, s string) []byte {
	b = binary.AppendUvarint(append(b, tag), uint64(len(s)))
	return append(b, s...)
}
