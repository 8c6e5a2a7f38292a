package contract

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// description is the OpenAPI document a platform serves of itself, and beside it our own: the
// platform has operations that its document may lack. Sandboxes are in its documentation pages
// alone, and older documents have neither secrets nor builds.
type description struct {
	docs       map[string]map[string]any // by name
	compiler   *jsonschema.Compiler
	operations map[string]*operation
	schemas    map[string]*jsonschema.Schema // compiled, by pointer
}

// operation is one operation of a document.
type operation struct {
	id, method, path string
	document         string
	hasBody          bool
	responses        map[string]any
	pointer          string // JSON pointer to the operation
}

func describe(t *testing.T, served []byte) *description {
	t.Helper()
	d := &description{docs: map[string]map[string]any{}, operations: map[string]*operation{}, schemas: map[string]*jsonschema.Schema{}}
	d.compiler = jsonschema.NewCompiler()
	d.compiler.Draft = jsonschema.Draft2020
	d.compiler.AssertFormat = true
	d.add(t, "openapi.json", served)
	d.add(t, "ours.json", ours(t))
	return d
}

// ours returns our description of the platform, to which sandboxes.json adds paths and components.
func ours(t *testing.T) []byte {
	t.Helper()
	var doc, more struct {
		Paths      map[string]any            `json:"paths"`
		Components map[string]map[string]any `json:"components"`
	}
	for file, v := range map[string]any{"openapi.json": &doc, "sandboxes.json": &more} {
		text, err := os.ReadFile("../../gateway/schema/" + file)
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	maps.Copy(doc.Paths, more.Paths)
	for sort, components := range more.Components {
		maps.Copy(doc.Components[sort], components)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// add takes the operations of a document that no earlier one has.
func (d *description) add(t *testing.T, name string, document []byte) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d.docs[name] = doc
	if err := d.compiler.AddResource(name, bytes.NewReader(document)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	paths, _ := doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, v := range methods {
			op, _ := v.(map[string]any)
			id, _ := op["operationId"].(string)
			if id == "" || d.operations[id] != nil {
				continue
			}
			responses, _ := op["responses"].(map[string]any)
			_, hasBody := op["requestBody"]
			d.operations[id] = &operation{
				id: id, document: name, method: strings.ToUpper(method), path: path, hasBody: hasBody, responses: responses,
				pointer: "#/paths/" + token(path) + "/" + method,
			}
		}
	}
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
		pointer, response = ref, follow(d.docs[op.document], ref)
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
	place := op.document + pointer
	schema := d.schemas[place]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(place); err != nil {
			t.Fatalf("%s: %v", place, err)
		}
		d.schemas[place] = schema
	}
	if err := schema.Validate(a.value); err != nil {
		t.Errorf("%s: %d does not fit its schema: %v\n%.500s", op.id, a.status, err, a.body)
	}
}

// follow finds the target of a reference within a document.
func follow(doc map[string]any, ref string) any {
	var v any = doc
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}
