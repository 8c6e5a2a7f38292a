package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/gateway/schema/fastcheck"
)

// document is an API description. Data that not every gateway needs is computed on first use, and most gateways use few
// operations. A test checks that all schemas compile.
type document struct {
	text []byte

	mu       sync.Mutex
	compiler *jsonschema.Compiler

	tree   lazy[*source] // needed only to explain violations, so an idle gateway does not hold it
	short  lazy[[]byte]
	words  lazy[*vocabulary]
	looked lazy[*marks]
}

// lazy holds a value that is computed once.
type lazy[T any] struct {
	once  sync.Once
	value T
}

func (l *lazy[T]) get(compute func() T) T {
	l.once.Do(func() { l.value = compute() })
	return l.value
}

// compact returns the text without white space.
func (d *document) compact() []byte {
	return d.short.get(func() []byte {
		var b bytes.Buffer
		_ = json.Compact(&b, d.text) // the text was parsed by Load
		return b.Bytes()
	})
}

// src returns the description as a tree.
func (d *document) src() *source {
	return d.tree.get(func() *source {
		src, err := newSource(d.text)
		if err != nil {
			panic("schema: " + err.Error()) // the text was parsed by Load
		}
		return src
	})
}

func (d *document) names() *vocabulary {
	return d.words.get(func() *vocabulary { return newVocabulary(d.src()) })
}

func (d *document) marks() *marks {
	return d.looked.get(func() *marks { return newMarks(d.src()) })
}

// validator validates values by the schema at a pointer. The program accepts valid values quickly; the schema decides
// about all others and explains violations.
type validator struct {
	document *document
	pointer  string

	once    sync.Once
	schema  *jsonschema.Schema
	program *fastcheck.Program
}

// compiled compiles the schema on first use and returns j. It panics if the schema does not compile; see validate.
func (j *validator) compiled() *validator {
	j.once.Do(func() {
		d := j.document
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.compiler == nil {
			d.compiler = newCompiler(d.text)
		}
		j.schema = d.compiler.MustCompile(documentURL + "#" + j.pointer)
		j.program = fastcheck.Compile(d.compiler, j.schema)
	})
	return j
}

// ValidateBody validates a decoded body (map[string]any, []any, string, bool, json.Number or nil) against the operation's
// schema. It returns at most 50 violations in a fixed order, or none if the body is valid. For an operation without a
// body, every body is a violation.
//
// ValidateBody does not modify or retain doc.
func (op *Operation) ValidateBody(doc any) []Violation {
	if op.body == nil {
		return []Violation{at(http.StatusBadRequest, "body", "operation does not accept a body")}
	}
	return op.body.validate(doc)
}

// validate never accepts a value that the validators did not accept: a panic in them, or an unexplained error, is a
// violation.
func (j *validator) validate(doc any) (vs []Violation) {
	defer func() {
		if recover() != nil {
			vs = []Violation{at(http.StatusBadRequest, "internal", "cannot be validated")}
		}
	}()
	if j.compiled().program.Accepts(doc) {
		return nil
	}
	err := j.program.Narrow(j.schema, doc).Validate(doc)
	if err == nil {
		return nil
	}
	verr, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{at(http.StatusBadRequest, "internal", "cannot be validated")}
	}
	// The validator's pointers cannot refer to a member with an empty name. No object of the API has one, so it is
	// reported first.
	if hasEmptyName(doc) {
		return tidy(emptyNames(nil, doc))
	}
	if vs = j.document.violations(verr, doc); len(vs) == 0 {
		vs = []Violation{unprocessable("schema", "does not match the description of this operation")}
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

// emptyNames returns a violation for each object that has a member with an empty name.
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
