package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The methods of document below turn the validator's tree of errors into violations: leaves only,
// one for each fault. The kind of a fault is read from the description at the place the error
// names, not from the error's text.

// marks are the facts about the whole description that explanations look up.
type marks struct {
	// declared holds, by pointer, the members a schema with
	// unevaluatedProperties knows in any of its parts. The validator calls such
	// a member unevaluated when another fault made its part fail; that is an
	// echo of the other fault.
	declared map[string]map[string]bool
	// tags holds, by pointer, the member that tells apart the variants of a
	// union to which the schema belongs.
	tags map[string]string
}

func newMarks(src *source) *marks {
	m := &marks{declared: make(map[string]map[string]bool), tags: make(map[string]string)}
	m.scan(src, "", src.root)
	return m
}

// scan collects them from a node and those under it.
func (m *marks) scan(src *source, pointer string, node any) {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			m.scan(src, fmt.Sprintf("%s/%d", pointer, i), item)
		}
	case map[string]any:
		for name, item := range node {
			m.scan(src, pointer+"/"+escapeToken(name), item)
		}
		if node["unevaluatedProperties"] == false {
			names := make(map[string]bool)
			src.inPlace(pointer, func(_ string, schema map[string]any) {
				properties, _ := schema["properties"].(map[string]any)
				for name := range properties {
					names[name] = true
				}
			})
			m.declared[pointer] = names
		}
		if tag, mapping := discriminator(node); tag != "" {
			for _, ref := range mapping {
				m.tags[strings.TrimPrefix(ref, "#")] = tag
			}
		}
	}
}

// discriminator returns the member that tells the variants of a union apart and
// the reference of each variant by the member's value.
func discriminator(schema map[string]any) (tag string, mapping map[string]string) {
	d, _ := schema["discriminator"].(map[string]any)
	tag, _ = d["propertyName"].(string)
	refs, _ := d["mapping"].(map[string]any)
	mapping = make(map[string]string)
	for value, ref := range refs {
		mapping[value], _ = ref.(string)
	}
	return tag, mapping
}

func sortedNames(mapping map[string]string) []any {
	names := make([]any, 0, len(mapping))
	for _, name := range slices.Sorted(maps.Keys(mapping)) {
		names = append(names, name)
	}
	return names
}

// finding is a violation and the schema it was found by.
type finding struct {
	Violation
	schema string // pointer
}

func (d *document) violations(err *jsonschema.ValidationError, doc any) []Violation {
	faults := ordered(d.faults(nil, err))
	found := make([]finding, 0, len(faults))
	for _, f := range faults {
		found = append(found, d.find(f, doc)...)
	}
	found = dropBesideType(d.dropWrongVariants(found))
	vs := make([]Violation, 0, len(found))
	for _, f := range found {
		vs = append(vs, f.Violation)
	}
	return tidy(vs)
}

// faults collects the errors that say something by themselves: the leaves of
// the tree, and the unions none of whose branches fits.
func (d *document) faults(faults []*jsonschema.ValidationError, err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(err.Causes) == 0 || isUnion(err) {
		return append(faults, err)
	}
	for _, cause := range err.Causes {
		faults = d.faults(faults, cause)
	}
	return faults
}

func isUnion(err *jsonschema.ValidationError) bool {
	at := fragment(err)
	return strings.HasSuffix(at, "/oneOf") || strings.HasSuffix(at, "/anyOf")
}

// ordered puts faults in a fixed order and bounds their number, before any more
// work is done on them: a body can have thousands.
func ordered(faults []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	slices.SortFunc(faults, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(
			cmp.Compare(a.InstanceLocation, b.InstanceLocation),
			cmp.Compare(a.AbsoluteKeywordLocation, b.AbsoluteKeywordLocation),
		)
	})
	return faults[:min(len(faults), maxFaults)]
}

// find explains one of the errors that faults returned.
func (d *document) find(err *jsonschema.ValidationError, doc any) []finding {
	if len(err.Causes) == 0 {
		return d.leaf(err, doc)
	}
	at := fragment(err)
	keyword := at[len(at)-len("oneOf"):]
	return d.union(strings.TrimSuffix(at, "/"+keyword), keyword, err, doc)
}

// branch explains the errors of one branch of a union.
func (d *document) branch(prefix string, err *jsonschema.ValidationError, doc any) []finding {
	var faults []*jsonschema.ValidationError
	for _, cause := range err.Causes {
		if under(fragment(cause), prefix) {
			faults = d.faults(faults, cause)
		}
	}
	var found []finding
	for _, f := range ordered(faults) {
		found = append(found, d.find(f, doc)...)
	}
	return found
}

// union explains why no branch of a oneOf or anyOf fits: by the one variant the
// value claims to be, where a member tells the variants apart, and in one
// sentence elsewhere.
func (d *document) union(parent, keyword string, err *jsonschema.ValidationError, doc any) []finding {
	tokens := splitEscaped(err.InstanceLocation)
	where := places(doc, tokens)
	found := func(keyword, message string, tokens ...any) []finding {
		return []finding{{unprocessable(keyword, message, tokens...), parent}}
	}
	tag, mapping := discriminator(d.src().schemaAt(parent))
	if tag == "" {
		return found(keyword, "fits none of the forms allowed here", where...)
	}
	value := resolve(doc, tokens)
	object, ok := value.(map[string]any)
	if !ok {
		return found("type", typeMessage(map[string]bool{"object": true}), where...)
	}
	kind, ok := object[tag]
	if !ok {
		return found("required", "missing property "+quote(tag), where...)
	}
	name, _ := kind.(string)
	ref, ok := mapping[name]
	if !ok {
		return found("enum", oneOfMessage(sortedNames(mapping)...), append(where, tag)...)
	}
	branches, _ := d.src().schemaAt(parent)[keyword].([]any)
	i := slices.IndexFunc(branches, func(branch any) bool {
		b, _ := branch.(map[string]any)
		return b["$ref"] == ref
	})
	return d.branch(fmt.Sprintf("%s/%s/%d", parent, keyword, i), err, doc)
}

// dropWrongVariants keeps one fault of an object that is the wrong variant of a
// union: that its tag has the wrong value. The rest follows from it.
func (d *document) dropWrongVariants(found []finding) []finding {
	for variant, tag := range d.marks().tags {
		for _, wrong := range found {
			object, ok := strings.CutSuffix(wrong.Pointer, "/"+tag)
			if !ok || wrong.schema != variant+"/properties/"+tag {
				continue
			}
			found = slices.DeleteFunc(found, func(f finding) bool {
				return f.schema != wrong.schema && under(f.schema, variant) && under(f.Pointer, object)
			})
		}
	}
	return found
}

// dropBesideType keeps one fault of a value that is of the wrong type: that a
// number spelled 8e-1 is also below a minimum is no help.
func dropBesideType(found []finding) []finding {
	mistyped := make(map[string]bool)
	for _, f := range found {
		mistyped[f.Pointer] = mistyped[f.Pointer] || f.Keyword == "type"
	}
	return slices.DeleteFunc(found, func(f finding) bool { return mistyped[f.Pointer] && f.Keyword != "type" })
}

// under reports whether pointer is prefix or a place inside it.
func under(pointer, prefix string) bool {
	rest, ok := strings.CutPrefix(pointer, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// fragment returns the pointer of the keyword or schema an error stems from.
func fragment(err *jsonschema.ValidationError) string {
	_, pointer, _ := strings.Cut(err.AbsoluteKeywordLocation, "#")
	return pointer
}

// places turns the tokens of a pointer into doc into names and positions.
func places(doc any, tokens []string) []any {
	out := make([]any, 0, len(tokens)+1)
	for _, t := range tokens {
		if items, ok := doc.([]any); ok {
			if i, ok := index(t); ok && i < len(items) {
				out, doc = append(out, i), items[i]
				continue
			}
		}
		out = append(out, t)
		m, _ := doc.(map[string]any)
		doc = m[t]
	}
	return out
}
