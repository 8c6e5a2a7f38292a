package schema

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Difference describes how two API descriptions differ in one operation.
type Difference struct {
	// Operation is the operationId in the older description or, if the older description lacks the operation, in the newer one. If there is no
	// operationId, Operation is the method and the path.
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	// Changes lists the changes. If only one of the descriptions has the operation, there is a single change in [InOperation].
	Changes []Change `json:"changes"`
}

// Change is one difference in an operation.
type Change struct {
	// What is one of the constants New, Gone and Changed.
	What string `json:"what"`
	// In is the part of the operation that differs. It is one of the constants whose names begin with In.
	In string `json:"in"`
	// Name is the name of the parameter or response header, the path of the member (such as gpu.count or ports[]) or the status, depending
	// on In.
	Name string `json:"name,omitempty"`
	// Older and Newer list, in terms of JSON Schema, the constraints that only the older or only the newer description contains.
	Older string `json:"older,omitempty"`
	Newer string `json:"newer,omitempty"`
}

// Values of Change.What.
const (
	New     = "new"
	Gone    = "gone"
	Changed = "changed"
)

// Values of Change.In.
const (
	InOperation      = "operation"
	InQuery          = "query"
	InHeader         = "header"
	InBody           = "body"
	InResponse       = "response"
	InResponseHeader = "response header"
	InError          = "error"
	InStatus         = "status"
)

// MaxDescription is the maximum size, in bytes, of an API description that is read from a file or server.
const MaxDescription = 16 << 20

// Compare returns the differences between two OpenAPI descriptions, sorted by path and method. It ignores prose, examples, servers, path
// parameters, the schemas of response headers, and the headers of errors. If a body has several media types, it compares the schema of only
// one. It does not report an error status as gone if the newer description has a response named default, and does not report
// an operation as gone if the operation has the extension x-unpublished.
func Compare(older, newer []byte) ([]Difference, error) {
	before, err := readOutline(older)
	if err != nil {
		return nil, fmt.Errorf("older description: %w", err)
	}
	after, err := readOutline(newer)
	if err != nil {
		return nil, fmt.Errorf("newer description: %w", err)
	}
	all := maps.Clone(after.operations)
	maps.Copy(all, before.operations)
	var out []Difference
	for at, op := range all {
		d := Difference{Operation: op.id, Method: op.method, Path: op.path}
		was, is := before.operations[at], after.operations[at]
		switch {
		case was == nil:
			d.Changes = []Change{{What: New, In: InOperation}}
		case is == nil && was.node["x-unpublished"] != true:
			d.Changes = []Change{{What: Gone, In: InOperation}}
		case is != nil:
			d.Changes = before.partsOf(was).changes(after.partsOf(is))
		}
		if len(d.Changes) > 0 {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
	return out, errors.Join(before.err, after.err)
}

// MissingOperations returns the method and path of each operation that is in newer, an OpenAPI description, but not in a.
func (a *API) MissingOperations(newer []byte) ([]string, error) {
	theirs, err := readOutline(newer)
	if err != nil {
		return nil, err
	}
	for _, op := range a.operations {
		delete(theirs.operations, op.Method+" "+anonymous(op.Path))
	}
	out := make([]string, 0, len(theirs.operations))
	for _, op := range theirs.operations {
		out = append(out, op.method+" "+op.path)
	}
	slices.Sort(out)
	return out, nil
}

// outline is an API description that is parsed leniently, because it may be incomplete or invalid.
type outline struct {
	*source
	operations map[string]*outlined // by method and anonymous path
	visits     int                  // number of schemas visited
	err        error                // set if schemas were not read completely
}

// outlined is an operation of an outline.
type outlined struct {
	id, method, path string
	node             map[string]any
	shared           []any // parameters of its path
}

func readOutline(document []byte) (*outline, error) {
	src, err := newSource(document)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	paths, ok := src.at("/paths").(map[string]any)
	if !ok {
		return nil, errors.New("not an OpenAPI description: paths is missing")
	}
	o := &outline{source: src, operations: make(map[string]*outlined)}
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			node := object(methods, strings.ToLower(method))
			if node == nil {
				continue
			}
			id := cmp.Or(text(node, "operationId"), method+" "+path)
			o.operations[method+" "+anonymous(path)] = &outlined{id, method, path, node, list(methods, "parameters")}
		}
	}
	return o, nil
}

// anonymous returns a path template without the names of its parameters.
func anonymous(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}
