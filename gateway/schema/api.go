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

// API is the description of the v2 API or of the run interface. It is immutable:
// what only some calls need is compiled when the first of them comes.
type API struct {
	document   *document
	operations []*Operation
	byID       map[string]*Operation
}

// Operation is one thing a caller can ask for. Its fields are for reading only.
type Operation struct {
	// ID is the operationId, e.g. "createPod".
	ID string
	// Method is the HTTP method in capitals.
	Method string
	// Path is the path template, e.g. "/v2/pods/{id}".
	Path string
	// Tag names the group of operations, e.g. "Pods".
	Tag string
	// Query, PathParams and Headers are the parameters in the order described.
	Query, PathParams, Headers []Parameter
	// HasBody reports whether the operation takes a JSON body, BodyRequired
	// whether it cannot do without.
	HasBody, BodyRequired bool
	// Mutates is true for every method but GET.
	Mutates bool
	// Streams is true when success is answered with text/event-stream, always or,
	// for an operation with a body, when that has stream: true.
	Streams bool
	// SuccessStatus is the lowest status of success.
	SuccessStatus int

	body       *validator // nil for none
	document   *document
	defaults   *defaultTree
	bodyRules  []bodyRule
	queryRules []queryRule

	undescribed bool // what it takes and answers is not known
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name        string
	Description string
	Required    bool
	// Type is the JSON type of the value, or of the elements of a list:
	// "string", "integer" or "boolean".
	Type string
	// List tells that the value is a list of elements separated by commas.
	List bool
	// Repeats tells that the parameter may be sent more than once, each time with one
	// element of a list.
	Repeats bool
	// Default is the documented default as it stands in a query, "" for none.
	Default string
	// Maximum is the largest value of an integer, 0 for no bound.
	Maximum int

	judge *validator
}

// Load reads the embedded description. An error means that the binary was built
// from a broken one.
func Load() (*API, error) {
	text, err := join(openAPI, sandboxes)
	if err != nil {
		return nil, fmt.Errorf("join the API descriptions: %w", err)
	}
	return load(text)
}

// LoadRun is Load for the run interface, which has a description of its own.
func LoadRun() (*API, error) { return load(runInterface) }

// Operations returns every operation, ordered by path and then by method. The
// slice is the caller's.
func (a *API) Operations() []*Operation { return slices.Clone(a.operations) }

// Operation returns the operation with the given operationId, nil when there is
// none.
func (a *API) Operation(id string) *Operation { return a.byID[id] }

// Document returns the description as compact JSON, as it is served at
// GET /v2/openapi.json. It must not be modified.
func (a *API) Document() []byte { return a.document.compact() }

// Subset returns the description of the named operations alone.
func (a *API) Subset(ids map[string]bool) []byte {
	var doc map[string]any
	if err := json.Unmarshal(a.document.compact(), &doc); err != nil {
		panic("schema: " + err.Error()) // it was read when it was loaded
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

// The parts of an OpenAPI document that are read as such; schemas are compiled
// from the text itself.
type (
	openAPIDocument struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Parameters map[string]openAPIParameter
			Schemas    map[string]json.RawMessage
		}
	}
	openAPIOperation struct {
		OperationID string
		Tags        []string
		Parameters  []openAPIReference
		RequestBody *struct {
			Required bool
			Content  map[string]struct{ Schema openAPIReference }
		}
		Responses map[string]struct {
			Content map[string]json.RawMessage
		}
	}
	openAPIParameter struct {
		Name, In, Description string
		Required              bool
		Explode               *bool
		Schema                openAPIType
	}
	openAPIType struct {
		Ref     string `json:"$ref"`
		Type    string
		Items   *openAPIType
		Default any
		Maximum int
	}
	openAPIReference struct {
		Ref string `json:"$ref"`
	}
)

func load(text []byte) (*API, error) {
	var doc openAPIDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("parse the API description: %w", err)
	}
	src, err := newSource(text)
	if err != nil {
		return nil, fmt.Errorf("parse the API description: %w", err)
	}
	b, err := newBuilder(&document{text: text}, src, &doc)
	if err != nil {
		return nil, fmt.Errorf("compile the API description: %w", err)
	}
	api := &API{document: b.document, byID: make(map[string]*Operation)}
	for path, item := range doc.Paths {
		ops, err := b.operations(path, item)
		if err != nil {
			return nil, fmt.Errorf("compile the API description: %s: %w", path, err)
		}
		for _, op := range ops {
			if api.byID[op.ID] != nil {
				return nil, fmt.Errorf("compile the API description: two operations are called %q", op.ID)
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

// builder makes operations out of the parts of the document.
type builder struct {
	*document
	src        *source
	parameters map[string]placed
}

// placed is a parameter together with the place it belongs to.
type placed struct {
	in string
	Parameter
}

func newBuilder(of *document, src *source, doc *openAPIDocument) (*builder, error) {
	b := &builder{document: of, src: src, parameters: make(map[string]placed)}
	var err error
	for name, p := range doc.Components.Parameters {
		if b.parameters["#/components/parameters/"+name], err = b.parameter(name, p); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return b, nil
}

// validator returns the judge of values by the schema at pointer.
func (b *builder) validator(pointer string) (*validator, error) {
	if b.src.schemaAt(pointer) == nil {
		return nil, fmt.Errorf("there is no schema at %q", pointer)
	}
	return &validator{document: b.document, pointer: pointer}, nil
}

func (b *builder) parameter(name string, p openAPIParameter) (placed, error) {
	judge, err := b.validator("/components/parameters/" + name + "/schema")
	if err != nil {
		return placed{}, err
	}
	out := placed{in: p.In, Parameter: Parameter{
		Name: p.Name, Description: p.Description, Required: p.Required, Type: b.typeOf(p.Schema), Maximum: p.Schema.Maximum, judge: judge,
	}}
	if p.Schema.Default != nil {
		out.Default = fmt.Sprint(p.Schema.Default)
	}
	if out.Type == "array" {
		if p.Explode == nil {
			return placed{}, errors.New("a list must say explode: false or true")
		}
		out.List, out.Repeats, out.Type = !*p.Explode, *p.Explode, b.typeOf(*p.Schema.Items)
	}
	return out, nil
}

func (b *builder) typeOf(t openAPIType) string {
	if t.Ref == "" {
		return t.Type
	}
	node, _ := b.src.at(strings.TrimPrefix(t.Ref, "#")).(map[string]any)
	s, _ := node["type"].(string)
	return s
}

func (b *builder) operations(path string, item map[string]json.RawMessage) ([]*Operation, error) {
	var shared []openAPIReference
	if raw, ok := item["parameters"]; ok {
		if err := json.Unmarshal(raw, &shared); err != nil {
			return nil, err
		}
	}
	var ops []*Operation
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		raw, ok := item[strings.ToLower(method)]
		if !ok {
			continue
		}
		var desc openAPIOperation
		if err := json.Unmarshal(raw, &desc); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		desc.Parameters = append(slices.Clone(shared), desc.Parameters...)
		op, err := b.operation(method, path, &desc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func (b *builder) operation(method, path string, desc *openAPIOperation) (*Operation, error) {
	op := &Operation{
		ID: desc.OperationID, Method: method, Path: path,
		Mutates: method != http.MethodGet, document: b.document,
		bodyRules: bodyRules(desc.OperationID), queryRules: queryRules(desc.OperationID),
	}
	if len(desc.Tags) != 1 || op.ID == "" {
		return nil, errors.New("an operation needs an operationId and one tag")
	}
	op.Tag = desc.Tags[0]
	for _, ref := range desc.Parameters {
		p, ok := b.parameters[ref.Ref]
		if !ok {
			return nil, fmt.Errorf("unknown parameter %q", ref.Ref)
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
	for code, r := range desc.Responses {
		status, err := strconv.Atoi(code)
		if err != nil || status < 200 || status > 299 {
			continue
		}
		if op.SuccessStatus == 0 || status < op.SuccessStatus {
			op.SuccessStatus = status
		}
		if _, ok := r.Content["text/event-stream"]; ok {
			op.Streams = true
		}
	}
	return op, b.addBody(op, desc)
}

func (b *builder) addBody(op *Operation, desc *openAPIOperation) error {
	if desc.RequestBody == nil {
		return nil
	}
	op.HasBody, op.BodyRequired = true, desc.RequestBody.Required
	pointer := strings.TrimPrefix(desc.RequestBody.Content["application/json"].Schema.Ref, "#")
	var err error
	if op.body, err = b.validator(pointer); err != nil {
		return err
	}
	if !b.src.isObject(pointer) {
		return errors.New("the body may be something else than an object")
	}
	if op.SuccessStatus == http.StatusCreated {
		op.defaults = b.src.defaultsOf(pointer)
	}
	return nil
}
