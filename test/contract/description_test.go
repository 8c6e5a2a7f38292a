package contract

import (
	"bytes"
	"encoding/json"
	"mime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// description is the OpenAPI document a platform serves of itself.
type description struct {
	doc        map[string]any
	compiler   *jsonschema.Compiler
	operations map[string]*operation
	schemas    map[string]*jsonschema.Schema // compiled, by pointer
}

// operation is one operation of the document.
type operation struct {
	id, method, path string
	hasBody          bool
	responses        map[string]any
	pointer          string // JSON pointer to the operation
}

func describe(t *testing.T, document []byte) *description {
	t.Helper()
	d := &description{operations: map[string]*operation{}, schemas: map[string]*jsonschema.Schema{}}
	if err := json.Unmarshal(document, &d.doc); err != nil {
		t.Fatalf("the OpenAPI document: %v", err)
	}
	d.compiler = jsonschema.NewCompiler()
	d.compiler.Draft = jsonschema.Draft2020
	d.compiler.AssertFormat = true
	if err := d.compiler.AddResource("openapi.json", bytes.NewReader(document)); err != nil {
		t.Fatalf("the OpenAPI document: %v", err)
	}
	paths, _ := d.doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, v := range methods {
			op, _ := v.(map[string]any)
			id, _ := op["operationId"].(string)
			if id == "" {
				continue
			}
			responses, _ := op["responses"].(map[string]any)
			_, hasBody := op["requestBody"]
			d.operations[id] = &operation{
				id: id, method: strings.ToUpper(method), path: path, hasBody: hasBody, responses: responses,
				pointer: "#/paths/" + token(path) + "/" + method,
			}
		}
	}
	return d
}

// token writes one step of a JSON pointer.
func token(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(s)
}

func (d *description) operation(t *testing.T, id string) *operation {
	t.Helper()
	op := d.operations[id]
	if op == nil {
		t.Fatalf("the description has no operation %q", id)
	}
	return op
}

// ids are the operations in order.
func (d *description) ids() []string {
	var out []string
	for id := range d.operations {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// fill puts values into the path's parameters, and "nope" where there are none.
func (o *operation) fill(values []string) string {
	var b strings.Builder
	rest := o.path
	for {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, rest, _ = strings.Cut(after, "}")
		value := "nope"
		if len(values) > 0 {
			value, values = values[0], values[1:]
		}
		b.WriteString(escape(value))
	}
}

func (o *operation) hasParameter() bool { return strings.Contains(o.path, "{") }

// check holds an answer against the description: the status is documented, the
// media type is the one documented, and the body fits the schema.
func (d *description) check(t *testing.T, op *operation, a answer) {
	t.Helper()
	response, pointer := op.responses[strconv.Itoa(a.status)], op.pointer+"/responses/"+strconv.Itoa(a.status)
	if response == nil {
		t.Errorf("%s: status %d is not documented: %.300s", op.id, a.status, a.body)
		return
	}
	for {
		r, _ := response.(map[string]any)
		ref, isRef := r["$ref"].(string)
		if !isRef {
			break
		}
		pointer, response = ref, d.follow(ref)
	}
	r, _ := response.(map[string]any)
	content, _ := r["content"].(map[string]any)
	if len(content) == 0 {
		if len(a.body) > 0 {
			t.Errorf("%s: %d has a body, and the description has none: %.300s", op.id, a.status, a.body)
		}
		return
	}
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || content[media] == nil {
		t.Errorf("%s: %d is %q, which is not documented", op.id, a.status, a.header.Get("Content-Type"))
		return
	}
	if strings.Contains(media, "json") {
		d.validate(t, op, a, pointer+"/content/"+token(media)+"/schema")
	}
}

func (d *description) validate(t *testing.T, op *operation, a answer, pointer string) {
	t.Helper()
	schema := d.schemas[pointer]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile("openapi.json" + pointer); err != nil {
			t.Fatalf("%s: %v", pointer, err)
		}
		d.schemas[pointer] = schema
	}
	if err := schema.Validate(a.value); err != nil {
		t.Errorf("%s: %d does not fit its schema: %v\n%.500s", op.id, a.status, err, a.body)
	}
}

// follow finds the target of a reference within the document.
func (d *description) follow(ref string) any {
	var v any = d.doc
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}
