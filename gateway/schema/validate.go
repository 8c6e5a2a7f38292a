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

// document is an API description. Derived data is computed on first use, because most gateways use few operations. A test checks that all
// schemas compile.
type document struct {
	text []byte

	mu       sync.Mutex
	compiler *jsonschema.Compiler

	src     func() *source // the text as a tree; needed only to explain violations
	compact func() []byte  // the text without white space
	names   func() *vocabulary
	marks   func() *marks
}

func newDocument(text []byte) *document {
	d := &document{text: text}
	d.src = sync.OnceValue(func() *source {
		src, err := newSource(text)
		if err != nil {
			panic("schema: " + err.Error()) // the text was parsed by Load
		}
		return src
	})
	d.compact = sync.OnceValue(func() []byte {
		var b bytes.Buffer
		_ = json.Compact(&b, text) // the text was parsed by Load
		return b.Bytes()
	})
	d.names = sync.OnceValue(func() *vocabulary { return newVocabulary(d.src()) })
	d.marks = sync.OnceValue(func() *marks { return newMarks(d.src()) })
	return d
}

// validator validates values by the schema at a pointer. The program quickly accepts most valid values. The compiled schema validates all
// other values and explains violations.
type validator struct {
	document *document
	pointer  string

	once    sync.Once
	schema  *jsonschema.Schema
	program *fastcheck.Program
}

// compiled returns j after compiling its schema on first use. It panics if the schema does not compile; validate recovers from the panic.
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

// ValidateBody validates a decoded body against the schema of the operation. doc consists of map[string]any, []any, string, bool,
// json.Number and nil. ValidateBody returns at most 50 violations in a fixed order, or none if doc is valid. If the operation has no body,
// every doc is a violation.
//
// ValidateBody does not modify or retain doc.
func (op *Operation) ValidateBody(doc any) []Violation {
	if op.body == nil {
		return []Violation{at(http.StatusBadRequest, "body", "operation does not accept a body")}
	}
	return op.body.validate(doc)
}

// validate returns the violations in a value. If a validator panics or returns an error that cannot be explained, validate also returns a
// violation, so that it never accepts a value that the validators did not accept.
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
	// Pointers of the validator cannot refer to a member with an empty name. The API has no such member, so it is always a violation and is
	// reported first.
	if vs = emptyNames(nil, doc); len(vs) > 0 {
		return tidy(vs)
	}
	if vs = j.document.violations(verr, doc); len(vs) == 0 {
		vs = []Violation{unprocessable("schema", "does not match the description of this operation")}
	}
	return vs
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
