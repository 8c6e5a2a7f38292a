package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The methods of document in this file convert the error tree of the validator to violations, one for each leaf. They determine the kind of
// an error from the schema at the error's location, not from the error message.

// marks holds facts about the whole description that are needed to explain errors.
type marks struct {
	// declared maps the pointer of each schema with unevaluatedProperties to the members that the parts of the schema declare. If validation
	// by a part fails, the validator also reports the members of this part as unevaluated. Such a report is only a consequence of the other
	// error.
	declared map[string]map[string]bool
	// tags maps the pointer of each variant of a union to the name of the member that distinguishes the variants.
	tags map[string]string
}

func newMarks(src *source) *marks {
	m := &marks{declared: make(map[string]map[string]bool), tags: make(map[string]string)}
	m.scan(src, "", src.root)
	return m
}

// scan collects the facts in marks from a node and its descendants.
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

// discriminator returns the name of the member that distinguishes the variants of a union, and a map from values of this member to
// references to the variants.
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

// finding is a violation with the schema that it violates.
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

// faults appends the errors in the tree err that can be explained by themselves: leaves, and unions without a matching branch.
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

// ordered sorts errors and limits their number, because a body can have thousands of errors.
func ordered(faults []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	slices.SortFunc(faults, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(
			cmp.Compare(a.InstanceLocation, b.InstanceLocation),
			cmp.Compare(a.AbsoluteKeywordLocation, b.AbsoluteKeywordLocation),
		)
	})
	return faults[:min(len(faults), maxFaults)]
}

// find explains an error that faults has returned.
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

// union explains why no branch of a oneOf or anyOf matches. If a member distinguishes the variants, union explains the errors of the
// variant that the member selects. Otherwise it returns one general message.
func (d *document) union(parent, keyword string, err *jsonschema.ValidationError, doc any) []finding {
	tokens := splitEscaped(err.InstanceLocation)
	where := places(doc, tokens)
	found := func(keyword, message string, tokens ...any) []finding {
		return []finding{{unprocessable(keyword, message, tokens...), parent}}
	}
	tag, mapping := discriminator(d.src().schemaAt(parent))
	if tag == "" {
		return found(keyword, "does not match any allowed form", where...)
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

// dropWrongVariants drops consequential errors. If an object is the wrong variant of a union, only the error about its distinguishing
// member remains.
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

// dropBesideType drops all other errors about a value that has the wrong type. For example, for a number spelled 8e-1, an error about the
// minimum would not help.
func dropBesideType(found []finding) []finding {
	mistyped := make(map[string]bool)
	for _, f := range found {
		mistyped[f.Pointer] = mistyped[f.Pointer] || f.Keyword == "type"
	}
	return slices.DeleteFunc(found, func(f finding) bool { return mistyped[f.Pointer] && f.Keyword != "type" })
}

// under reports whether pointer is prefix or a location inside it.
func under(pointer, prefix string) bool {
	rest, ok := strings.CutPrefix(pointer, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// fragment returns the pointer of the keyword or schema that caused an error.
func fragment(err *jsonschema.ValidationError) string {
	_, pointer, _ := strings.Cut(err.AbsoluteKeywordLocation, "#")
	return pointer
}

// places converts the tokens of a pointer to member names and array indexes of doc.
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
