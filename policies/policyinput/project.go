package policyinput

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Projection is the part of the input that an organisation's policies can read, determined from all references in them. It is sufficient to
// convert that part, because a value that is never referenced cannot affect a result. This also allows caching: equal projected inputs have
// equal verdicts.
type Projection struct {
	whole   bool                   // everything below this point
	members map[string]*Projection // otherwise, these members
	order   []string               // their names, sorted
	keys    []*ast.Term            // their names as OPA terms
}

// NewProjection returns the projection for the values at or below the given paths.
func NewProjection(paths [][]string) *Projection {
	p := &Projection{}
	for _, path := range paths {
		p.add(path)
	}
	p.freeze()
	return p
}

// add adds the value at path.
func (p *Projection) add(path []string) {
	if p.whole {
		return
	}
	if len(path) == 0 {
		p.whole, p.members = true, nil
		return
	}
	member := p.members[path[0]]
	if member == nil {
		if p.members == nil {
			p.members = map[string]*Projection{}
		}
		member = &Projection{}
		p.members[path[0]] = member
	}
	member.add(path[1:])
}

// Touches reports whether anything at, above or below path is read.
func (p *Projection) Touches(path ...string) bool {
	for _, name := range path {
		if p.whole {
			return true
		}
		if p = p.members[name]; p == nil {
			return false
		}
	}
	return true
}

// Paths returns the paths that are read, dotted and sorted. The empty path is the whole input.
func (p *Projection) Paths() []string {
	if p.whole {
		return []string{""}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		for _, sub := range p.members[name].Paths() {
			if sub == "" {
				out = append(out, name)
			} else {
				out = append(out, name+"."+sub)
			}
		}
	}
	return out
}

// everything reads the whole input.
var everything = &Projection{whole: true} //nolint:gochecknoglobals // read-only

// freeze sorts the members after all have been added.
func (p *Projection) freeze() {
	p.order = slices.Sorted(maps.Keys(p.members))
	p.keys = make([]*ast.Term, len(p.order))
	for i, name := range p.order {
		p.keys[i] = ast.StringTerm(name)
	}
	for _, member := range p.members {
		member.freeze()
	}
}

// namesIn returns the members of an object that are read, sorted.
func (p *Projection) namesIn(s *shape) []string {
	if p.whole {
		return s.names
	}
	return p.order
}

// member returns the projection of a member.
func (p *Projection) member(name string) *Projection {
	if p.whole {
		return p
	}
	return p.members[name]
}

// errValue is wrapped by errors about values that JSON cannot represent.
var errValue = errors.New("not a JSON value")

// Converter converts documents to OPA values without reflection. It caches the value of the last price list, which is large and
// changes every few minutes.
type Converter struct {
	prices atomic.Pointer[pricesTerm]
}

type pricesTerm struct {
	digest string
	term   *ast.Term
}

// Term converts the part of a document that p reads.
func (c *Converter) Term(d *Document, p *Projection) (*ast.Term, error) {
	return c.object(d.part(), p)
}

func (c *Converter) catalog(list *catalog.Snapshot) (*ast.Term, error) {
	digest := list.Digest()
	if last := c.prices.Load(); last != nil && last.digest == digest {
		return last.term, nil
	}
	term, err := c.object(part{catalogShape, &prices{list}}, everything)
	if err != nil {
		return nil, err
	}
	c.prices.Store(&pricesTerm{digest: digest, term: term})
	return term, nil
}

// term converts the part of v that p reads.
func (c *Converter) term(v any, p *Projection) (*ast.Term, error) {
	switch x := v.(type) {
	case part:
		return c.object(x, p)
	case map[string]any:
		return mapTerm(c, x, p)
	case map[string]string:
		return mapTerm(c, x, p)
	case []any:
		terms := make([]*ast.Term, len(x))
		for i, item := range x {
			t, err := c.term(item, everything)
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
		return c.catalog(x)
	case operation.Deferred:
		return c.term(x.Decoded(), p)
	default:
		return scalarTerm(v)
	}
}

func (c *Converter) object(x part, p *Projection) (*ast.Term, error) {
	names := p.namesIn(x.shape)
	pairs := make([][2]*ast.Term, 0, len(names))
	for _, name := range names {
		m := x.byName[name]
		if m == nil {
			continue
		}
		v := m.value(x.of)
		if v == absent {
			continue
		}
		var t *ast.Term
		var err error
		if m.whole {
			t, err = c.object(part{m.inner, v}, p.member(name))
		} else {
			t, err = c.term(v, p.member(name))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pairs = append(pairs, [2]*ast.Term{m.key, t})
	}
	return ast.ObjectTerm(pairs...), nil
}

func mapTerm[V any](c *Converter, m map[string]V, p *Projection) (*ast.Term, error) {
	if p.whole {
		return wholeMap(c, m)
	}
	pairs := make([][2]*ast.Term, 0, len(p.order))
	for i, name := range p.order {
		v, present := m[name]
		if !present {
			continue
		}
		t, err := c.term(v, p.members[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pairs = append(pairs, [2]*ast.Term{p.keys[i], t})
	}
	return ast.ObjectTerm(pairs...), nil
}

func wholeMap[V any](c *Converter, m map[string]V) (*ast.Term, error) {
	pairs := make([][2]*ast.Term, 0, len(m))
	for name, v := range m {
		t, err := c.term(v, everything)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pairs = append(pairs, [2]*ast.Term{ast.InternedTerm(name), t})
	}
	return ast.ObjectTerm(pairs...), nil
}

// scalarTerm converts a value that is neither an object nor a list.
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
		return numberTerm(strconv.FormatInt(x, 10))
	case uint64:
		return ast.UIntNumberTerm(x), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%w: %v", errValue, x)
		}
		return ast.FloatNumberTerm(x), nil
	case error: // result of a Deferred
		return nil, x
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
