package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// API is the description of the v2 API or of the run interface. It is immutable and safe for concurrent use. Schemas are compiled on first
// use.
type API struct {
	document   *document
	operations []*Operation
	byID       map[string]*Operation
}

// Operation is one operation of an API. Its fields must not be modified.
type Operation struct {
	// ID is the operationId, for example "createPod".
	ID string
	// Method is the HTTP method in upper case.
	Method string
	// Path is the path template, for example "/v2/pods/{id}".
	Path string
	// Tag names the group of the operation, for example "Pods".
	Tag string
	// Query, PathParams and Headers hold the parameters in the order of the description.
	Query, PathParams, Headers []Parameter
	// HasBody is true if the operation accepts a JSON body. BodyRequired is true if it requires a body.
	HasBody, BodyRequired bool
	// Mutates is true for every method except GET.
	Mutates bool
	// Streams is true if successful responses can be text/event-stream. If the operation has a body, they are streams only if the body
	// contains "stream": true; otherwise always.
	Streams bool
	// SuccessStatus is the lowest 2xx status that the description lists for the operation.
	SuccessStatus int

	body       *validator // nil without a body
	document   *document
	defaults   *defaultTree
	bodyRules  []bodyRule
	queryRules []queryRule

	undescribed bool // parameters and response are unknown
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name     string
	Required bool
	// Type is the JSON type of the value, or of the elements of a list: "string", "integer" or "boolean".
	Type string
	// List is true if the value is a comma-separated list.
	List bool
	// Repeats is true if the parameter can be repeated to send a list.
	Repeats bool
	// Default is the documented default in the form used in a query. It is "" for parameters without a default.
	Default string
	// Maximum is the maximum value of an integer. 0 means no maximum.
	Maximum int

	validator *validator
}

// Load parses the embedded description of the v2 API. It returns an error if the description is invalid.
func Load() (*API, error) {
	text, err := join(openAPI, sandboxes)
	if err != nil {
		return nil, fmt.Errorf("join the API descriptions: %w", err)
	}
	return load(text)
}

// LoadRun parses the embedded description of the run interface. It returns an error if the description is invalid.
func LoadRun() (*API, error) { return load(runInterface) }

// Operations returns all operations, sorted by path and method. The caller may modify the returned slice.
func (a *API) Operations() []*Operation { return slices.Clone(a.operations) }

// Operation returns the operation with the given operationId, or nil.
func (a *API) Operation(id string) *Operation { return a.byID[id] }

// Document returns the description as compact JSON. The gateway serves it at GET /v2/openapi.json. The result must not be modified.
func (a *API) Document() []byte { return a.document.compact() }

// Subset returns the description as JSON, with only the operations whose IDs are in ids.
func (a *API) Subset(ids map[string]bool) []byte {
	var doc map[string]any
	if err := json.Unmarshal(a.document.compact(), &doc); err != nil {
		panic("schema: " + err.Error()) // the text was parsed by Load
	}
	paths, _ := doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		maps.DeleteFunc(methods, func(_ string, operation any) bool {
			o, _ := operation.(map[string]any)
			id, _ := o["operationId"].(string)
			return !ids[id]
		})
		if len(methods) == 0 {
			delete(paths, path)
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic("schema: " + err.Error())
	}
	return text
}

func load(text []byte) (*API, error) {
	src, err := newSource(text)
	if err != nil {
		return nil, fmt.Errorf("parse the API description: %w", err)
	}
	paths, ok := src.at("/paths").(map[string]any)
	if !ok {
		return nil, errors.New("parse the API description: paths is missing")
	}
	b, err := newBuilder(newDocument(text), src)
	if err != nil {
		return nil, fmt.Errorf("compile the API description: %w", err)
	}
	api := &API{document: b.document, byID: make(map[string]*Operation)}
	for path := range paths {
		ops, err := b.operations(path, object(paths, path))
		if err != nil {
			return nil, fmt.Errorf("compile the API description: %s: %w", path, err)
		}
		for _, op := range ops {
			if api.byID[op.ID] != nil {
				return nil, fmt.Errorf("compile the API description: duplicate operationId %q", op.ID)
			}
			api.byID[op.ID] = op
			api.operations = append(api.operations, op)
		}
	}
	slices.SortFunc(api.operations, func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return api, nil
}

// builder creates the operations of an API.
type builder struct {
	*document
	src        *source
	parameters map[string]placed // by reference
}

// placed is a parameter with its location (query, path or header).
type placed struct {
	in string
	Parameter
}

func newBuilder(of *document, src *source) (*builder, error) {
	b := &builder{document: of, src: src, parameters: make(map[string]placed)}
	all := src.schemaAt("/components/parameters")
	for name := range all {
		var err error
		if b.parameters["#/components/parameters/"+name], err = b.parameter(name, object(all, name)); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return b, nil
}

// validator returns the validator for the schema at pointer.
func (b *builder) validator(pointer string) (*validator, error) {
	if b.src.schemaAt(pointer) == nil {
		return nil, fmt.Errorf("no schema at %q", pointer)
	}
	return &validator{document: b.document, pointer: pointer}, nil
}

func (b *builder) parameter(name string, node map[string]any) (placed, error) {
	v, err := b.validator("/components/parameters/" + name + "/schema")
	if err != nil {
		return placed{}, err
	}
	schema := object(node, "schema")
	most, _ := integer(schema, "maximum")
	out := placed{in: text(node, "in"), Parameter: Parameter{
		Name: text(node, "name"), Required: node["required"] == true, Type: b.typeOf(schema), Maximum: int(most), validator: v,
	}}
	if has(schema, "default") {
		out.Default = fmt.Sprint(schema["default"])
	}
	if out.Type == "array" {
		explode, given := node["explode"].(bool)
		if !given {
			return placed{}, errors.New("parameter of type array must set explode")
		}
		out.List, out.Repeats, out.Type = !explode, explode, b.typeOf(schema["items"])
	}
	return out, nil
}

// typeOf returns the type of the values that a schema or a reference to it describes.
func (b *builder) typeOf(schema any) string { return text(b.src.follow(schema), "type") }

func (b *builder) operations(path string, item map[string]any) (ops []*Operation, err error) {
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		name := strings.ToLower(method)
		if !has(item, name) {
			continue
		}
		op, err := b.operation(method, path, object(item, name), list(item, "parameters"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// operation returns an operation. shared are the parameters of its path.
func (b *builder) operation(method, path string, node map[string]any, shared []any) (*Operation, error) {
	id, tags := text(node, "operationId"), words(list(node, "tags"))
	if len(tags) != 1 || id == "" {
		return nil, errors.New("operation must have an operationId and exactly one tag")
	}
	op := &Operation{
		ID: id, Method: method, Path: path, Tag: tags[0],
		Mutates: method != http.MethodGet, document: b.document,
		bodyRules: bodyRules(id), queryRules: queryRules(id),
	}
	for _, item := range slices.Concat(shared, list(node, "parameters")) {
		reference, _ := item.(map[string]any)
		p, ok := b.parameters[text(reference, "$ref")]
		if !ok {
			return nil, fmt.Errorf("unknown parameter %q", text(reference, "$ref"))
		}
		switch p.in {
		case "query":
			op.Query = append(op.Query, p.Parameter)
		case "path":
			op.PathParams = append(op.PathParams, p.Parameter)
		case "header":
			op.Headers = append(op.Headers, p.Parameter)
		}
	}
	responses := object(node, "responses")
	for code := range responses {
		status, err := strconv.Atoi(code)
		if err != nil || status < 200 || status > 299 {
			continue
		}
		if op.SuccessStatus == 0 || status < op.SuccessStatus {
			op.SuccessStatus = status
		}
		if has(object(object(responses, code), "content"), "text/event-stream") {
			op.Streams = true
		}
	}
	return op, b.addBody(op, node)
}

func (b *builder) addBody(op *Operation, node map[string]any) (err error) {
	if !has(node, "requestBody") {
		return nil
	}
	op.HasBody, op.BodyRequired = true, object(node, "requestBody")["required"] == true
	ref, _ := resolve(node, bodySchema).(string)
	pointer := strings.TrimPrefix(ref, "#")
	if op.body, err = b.validator(pointer); err != nil {
		return err
	}
	if !b.src.isObject(pointer) {
		return errors.New("body schema must allow only objects")
	}
	if op.SuccessStatus == http.StatusCreated {
		op.defaults = b.src.defaultsOf(pointer)
	}
	return nil
}
