package schema

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// vocabulary holds the names in an API description in normalised form: words in lower case without a plural s.
type vocabulary struct {
	// names holds the names of the members of all schemas, each alone and prefixed with the name of the enclosing member.
	names map[string]bool
	// subjects holds the names of the members of request bodies, split into words.
	subjects [][]string
	// parameters holds the names of query parameters.
	parameters map[string]bool
	// places holds the first segments of paths and, for the run interface, the segments after the ID of an endpoint. within maps first
	// segments to the other segments of their paths.
	places map[string]bool
	within map[string]map[string]bool
}

// bodySchema is the path from an operation to the reference of its body schema.
var bodySchema = []string{"requestBody", "content", "application/json", "schema", "$ref"} //nolint:gochecknoglobals // read only

// newVocabulary returns the names in a description.
func newVocabulary(src *source) *vocabulary {
	v := &vocabulary{
		names: make(map[string]bool), parameters: make(map[string]bool), places: make(map[string]bool),
		within: make(map[string]map[string]bool),
	}
	for name := range src.schemaAt("/components/schemas") {
		v.learn(src, "/components/schemas/"+name, "", 0)
	}
	for _, component := range src.schemaAt("/components/parameters") {
		parameter, _ := component.(map[string]any)
		name, _ := parameter["name"].(string)
		v.parameters[folded(wordsOf(name))] = true
	}
	for path, item := range src.schemaAt("/paths") {
		for _, operation := range item.(map[string]any) {
			if body, ok := resolve(operation, bodySchema).(string); ok {
				v.learnBody(src, strings.TrimPrefix(body, "#"))
			}
		}
		v.learnPath(strings.Split(strings.TrimPrefix(path, "/v2/"), "/"))
	}
	return v
}

// learnPath adds the segments of a path that are not parameters.
func (v *vocabulary) learnPath(segments []string) {
	literal := slices.DeleteFunc(segments, func(seg string) bool { return strings.HasPrefix(seg, "{") })
	if len(literal) == 0 {
		return
	}
	first := folded(wordsOf(literal[0]))
	v.places[first] = true
	if v.within[first] == nil {
		v.within[first] = make(map[string]bool)
	}
	for _, seg := range literal[1:] {
		v.within[first][folded(wordsOf(seg))] = true
	}
}

// learn adds the members of the schema at pointer. around is the name of the enclosing member, or "" at the top level.
func (v *vocabulary) learn(src *source, pointer, around string, depth int) {
	const deepest = 2 // deeper names are added with the component that defines them
	src.inPlace(pointer, func(at string, schema map[string]any) {
		if items, ok := schema["items"]; ok && items != nil {
			v.learn(src, at+"/items", around, depth)
		}
		properties, _ := schema["properties"].(map[string]any)
		for name := range properties {
			name := folded(wordsOf(name))
			v.names[name], v.names[around+name] = true, true
		}
		if depth == deepest {
			return
		}
		for name := range properties {
			v.learn(src, fmt.Sprintf("%s/properties/%s", at, escapeToken(name)), around+folded(wordsOf(name)), depth+1)
		}
	})
}

// learnBody adds the members of a request body with the schema at pointer.
func (v *vocabulary) learnBody(src *source, pointer string) {
	src.inPlace(pointer, func(_ string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name := range properties {
			v.subjects = append(v.subjects, wordsOf(name))
		}
	})
}

// isUnknown reports whether a well-formed name is not in the vocabulary and does not contain the name of a member of a request body.
func (v *vocabulary) isUnknown(name string) bool {
	given := wordsOf(name)
	if given == nil || v.names[folded(given)] {
		return false
	}
	return !slices.ContainsFunc(v.subjects, func(subject []string) bool { return contains(given, subject) })
}

// contains reports whether part is a contiguous sublist of list.
func contains(list, part []string) bool {
	for i := 0; i+len(part) <= len(list); i++ {
		if slices.Equal(list[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// maxName is the maximum length of an unknown name that may be forwarded.
const maxName = 64

// wordsOf splits a name such as gpuCount, GPU_COUNT, gpu-count or gpu2count into its words, in lower case and without a
// plural s. It returns nil unless the name begins with an ASCII letter and consists of ASCII letters, digits, hyphens and
// underscores.
func wordsOf(name string) []string {
	var out []string
	var word strings.Builder
	end := func() {
		if s := word.String(); s != "" {
			out = append(out, strings.TrimSuffix(s, "s"))
		}
		word.Reset()
	}
	if len(name) > maxName {
		return nil
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			after := i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z'
			before := i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'
			if after || before {
				end()
			}
			word.WriteByte(c + 'a' - 'A')
		case c >= 'a' && c <= 'z':
			word.WriteByte(c)
		case i == 0:
			return nil
		case c >= '0' && c <= '9' || c == '_' || c == '-':
			end()
		default:
			return nil
		}
	}
	end()
	return out
}

// folded joins words to the normalised form of a name.
func folded(words []string) string { return strings.Join(words, "") }

// IsUnknownMember reports whether the name of a member of the operation's body has no similarity to names in the API description. It
// returns false if a schema has a member with the name in any spelling (gpu, GPU, gpus), or if a part of the name is a member of a request
// body (gpu_count, extraEnv).
func (op *Operation) IsUnknownMember(member string) bool {
	return op.body != nil && op.document.names().isUnknown(member)
}

// IsUnknownParameter reports whether a name is well-formed and no operation has a query parameter with this name in any spelling.
func (op *Operation) IsUnknownParameter(name string) bool {
	words := wordsOf(name)
	return words != nil && !op.document.names().parameters[folded(words)]
}

// UnknownRead returns an operation that reads a path that neither a nor run describes. The path must be in a collection that a does not
// have, or under a resource of a known collection; of is then the operation that reads the resource. For any other path, op is nil.
// Segments must consist of letters, digits, hyphens and underscores. The name of an unknown collection must not contain digits, because
// these occur in IDs. A segment under a resource must not be another spelling of a known segment.
func (a *API) UnknownRead(path string, run *API) (op, of *Operation) {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return nil, nil
	}
	segments := strings.Split(rest, "/")
	for i, seg := range segments {
		odd := func(c rune) bool {
			plain := c >= 'a' && c <= 'z' || c == '-'
			return !plain && (i == 0 || (c < '0' || c > '9') && (c < 'A' || c > 'Z') && c != '_')
		}
		if seg == "" || strings.ContainsFunc(seg, odd) {
			return nil, nil
		}
	}
	op = &Operation{ID: unknownRead, Method: http.MethodGet, Path: path, SuccessStatus: http.StatusOK, undescribed: true}
	place := func(a *API, seg string) bool { return a.document.names().places[folded(wordsOf(seg))] }
	switch first := wordsOf(segments[0]); {
	case first == nil:
		return nil, nil
	case place(a, segments[0]):
		i := slices.IndexFunc(a.operations, func(op *Operation) bool {
			collection, ok := strings.CutSuffix(op.Path, "{id}")
			return ok && op.Method == http.MethodGet && strings.HasPrefix(path, collection)
		})
		if i < 0 {
			return nil, nil
		}
		of = a.operations[i]
		below := strings.Split(strings.TrimPrefix(path, strings.TrimSuffix(of.Path, "{id}")), "/")
		within := a.document.names().within[folded(first)]
		known := slices.ContainsFunc(below, func(seg string) bool { return within[folded(wordsOf(seg))] })
		if len(below) < 2 || known {
			return nil, nil
		}
		op.Path, op.PathParams = of.Path+"/"+strings.Join(below[1:], "/"), of.PathParams
	case len(segments) > 1 && place(run, segments[1]):
		return nil, nil
	}
	return op, of
}

// unknownRead is the ID of the operations that [API.UnknownRead] returns.
const unknownRead = "unknownRead"

// plainQuery validates a query with unknown parameters. Each name must be well-formed and occur only once.
func plainQuery(query url.Values) (url.Values, []Violation) {
	var vs []Violation
	for name, values := range query {
		switch {
		case wordsOf(name) == nil:
			vs = append(vs, inQuery(http.StatusBadRequest, "name", "is not a valid name", clip(name)))
		case len(values) > 1:
			vs = append(vs, inQuery(http.StatusBadRequest, "repeated", "must not be sent more than once", name))
		}
	}
	return query, tidy(vs)
}
