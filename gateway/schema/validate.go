package schema

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/gateway/schema/fastcheck"
)

// compiler compiles schemas of the description, each when it is first needed: most
// gateways use few of the operations. That all of them compile is tested.
type compiler struct {
	text []byte

	mu  sync.Mutex
	all *jsonschema.Compiler
}

// judge panics where the schema does not compile: see explainer.validate.
func (c *compiler) judge(pointer string) *judge {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = newCompiler(c.text)
	}
	s := c.all.MustCompile(documentURL + "#" + pointer)
	return &judge{schema: s, program: fastcheck.Compile(c.all, s)}
}

// judge is one schema in two forms: the program accepts valid bodies, quickly; all others
// the schema decides, and explains.
type judge struct {
	schema  *jsonschema.Schema
	program *fastcheck.Program
}

// ValidateBody holds a decoded body (map[string]any, []any, string, bool,
// json.Number or nil) against the operation's schema. It returns nothing when
// the body is valid, else at least one and at most 50 violations, one for each
// fault, in a fixed order. An operation that takes no body refuses every body.
//
// ValidateBody does not change doc and does not keep it.
func (op *Operation) ValidateBody(doc any) []Violation {
	if op.body == nil {
		return []Violation{at(http.StatusBadRequest, "body", "this operation takes no body")}
	}
	return op.explain.validate(op.body, doc)
}

// validate passes no body that the validators did not pass: a panic inside them, or an
// error that cannot be explained, is a violation of its own.
func (x *explainer) validate(judge func() *judge, doc any) (vs []Violation) {
	defer func() {
		if recover() != nil {
			vs = []Violation{at(http.StatusBadRequest, "internal", "could not be checked")}
		}
	}()
	j := judge()
	if j.program.Accepts(doc) {
		return nil
	}
	err := j.program.Narrow(j.schema, doc).Validate(doc)
	if err == nil {
		return nil
	}
	verr, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{at(http.StatusBadRequest, "internal", "could not be checked")}
	}
	// The validator's pointers cannot name a member whose name is empty. No
	// object of the API has one, so it is the fault to tell first.
	if hasEmptyName(doc) {
		return tidy(emptyNames(nil, doc))
	}
	if vs = x.violations(verr, doc); len(vs) == 0 {
		vs = []Violation{unprocessable("schema", "does not fit the description of this operation")}
	}
	return vs
}

func hasEmptyName(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			if name == "" || hasEmptyName(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasEmptyName)
	}
	return false
}

// emptyNames returns a violation for each object that has a member with an
// empty name.
func emptyNames(vs []Violation, v any, tokens ...any) []Violation {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			if name == "" {
				vs = append(vs, unprocessable("propertyNames", "a member's name must not be empty", tokens...))
			}
			vs = emptyNames(vs, item, append(slices.Clip(tokens), name)...)
		}
	case []any:
		for i, item := range v {
			vs = emptyNames(vs, item, append(slices.Clip(tokens), i)...)
		}
	}
	return vs
}
