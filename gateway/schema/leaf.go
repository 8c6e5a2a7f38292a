package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// leaf converts an error without causes to findings. If the error concerns several members, leaf returns a finding for each of them.
func (d *document) leaf(err *jsonschema.ValidationError, doc any) []finding {
	pointer := fragment(err)
	if head, _, ok := strings.Cut(pointer, "/dependentRequired/"); ok {
		pointer = head + "/dependentRequired"
	}
	cut := strings.LastIndexByte(pointer, '/')
	if cut < 0 {
		return nil
	}
	parent, keyword := pointer[:cut], pointer[cut+1:]
	schema := d.src().schemaAt(parent)
	tokens := splitEscaped(err.InstanceLocation)
	value := resolve(doc, tokens)
	where := places(doc, tokens)

	found := func(keyword string, messages ...string) []finding {
		out := make([]finding, 0, len(messages))
		for _, m := range messages {
			out = append(out, finding{unprocessable(keyword, m, where...), parent})
		}
		return out
	}
	switch keyword {
	case "required":
		return found(keyword, missing(value, schema[keyword])...)
	case "dependentRequired":
		return found(keyword, dependents(value, schema[keyword])...)
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		unknown := found(keyword, additional(value, known)...)
		for i := range unknown {
			unknown[i].Status = unknownStatus(schema)
		}
		return unknown
	case "unevaluatedProperties":
		name, declared := tokens[len(tokens)-1], d.marks().declared[parent]
		if declared[name] {
			return nil
		}
		// The violation is the same for every keyword that can reject an unknown member.
		where = where[:len(where)-1]
		return found("additionalProperties", notAllowed(name, slices.Sorted(maps.Keys(declared))))
	}
	return found(keyword, message(keyword, schema, value))
}

// unknownStatus returns the HTTP status for an unknown member of an object. It is the value of x-unknown-status in the schema, or 422 by
// default.
func unknownStatus(schema map[string]any) int {
	n, _ := schema["x-unknown-status"].(json.Number)
	if status, err := strconv.Atoi(n.String()); err == nil {
		return status
	}
	return http.StatusUnprocessableEntity
}

// message describes the values that satisfy a keyword of the schema.
func message(keyword string, schema map[string]any, value any) string {
	switch limit := schema[keyword]; keyword {
	case "type":
		return typeFault(typesOf(schema), value)
	case "enum":
		allowed, _ := limit.([]any)
		return oneOfMessage(allowed...)
	case "const":
		return oneOfMessage(limit)
	case "minimum":
		return fmt.Sprintf("must be at least %v", limit)
	case "maximum":
		return fmt.Sprintf("must be at most %v", limit)
	case "exclusiveMinimum":
		return fmt.Sprintf("must be more than %v", limit)
	case "exclusiveMaximum":
		return fmt.Sprintf("must be less than %v", limit)
	case "multipleOf":
		return fmt.Sprintf("must be a multiple of %v", limit)
	case "minLength", "minItems", "minProperties":
		if fmt.Sprint(limit) == "1" {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %v %s", limit, unit(keyword))
	case "maxLength", "maxItems", "maxProperties":
		return fmt.Sprintf("must have at most %v %s", limit, unit(keyword))
	case "uniqueItems":
		return "must not contain duplicate elements"
	case "pattern":
		return fmt.Sprintf("must match the pattern %v", limit)
	case "format":
		return fmt.Sprintf("must be a %v", limit)
	case "oneOf":
		return "matches more than one allowed form"
	}
	return "is not allowed here"
}

func unit(keyword string) string {
	switch keyword[len("min"):] {
	case "Length":
		return "characters"
	case "Items":
		return "elements"
	}
	return "members"
}

// typeFault explains the error about a value that has the wrong type, or about a number in a spelling that is not accepted.
func typeFault(types map[string]bool, value any) string {
	n, ok := value.(json.Number)
	switch {
	case ok && types["integer"]:
		if fault := integerFault(n); fault != "" {
			return fault
		}
	case ok && types["number"]:
		if fault := numberFault(n); fault != "" {
			return fault
		}
	}
	return typeMessage(types)
}

func typeMessage(types map[string]bool) string {
	names := make([]string, 0, len(types))
	for _, t := range slices.Sorted(maps.Keys(types)) {
		switch t {
		case "object", "array", "integer":
			names = append(names, "an "+t)
		case "boolean":
			names = append(names, "true or false")
		case "null":
		default:
			names = append(names, "a "+t)
		}
	}
	if types["null"] {
		names = append(names, "null")
	}
	return "must be " + strings.Join(names, " or ")
}

func oneOfMessage(allowed ...any) string {
	names := make([]string, 0, len(allowed))
	for _, v := range allowed {
		name := fmt.Sprint(v)
		if _, ok := v.(string); ok {
			name = quote(name)
		}
		names = append(names, name)
	}
	if len(names) == 1 {
		return "must be " + names[0]
	}
	return "must be one of " + strings.Join(names, ", ")
}

// missing returns a message for each required member that is missing in value.
func missing(value, required any) []string {
	object, _ := value.(map[string]any)
	var out []string
	for _, name := range texts(required) {
		if _, ok := object[name]; !ok {
			out = append(out, "missing property "+quote(name))
		}
	}
	return out
}

// dependents returns a message for each missing member that another member requires.
func dependents(value, rules any) []string {
	object, _ := value.(map[string]any)
	byName, _ := rules.(map[string]any)
	var out []string
	for name, needs := range byName {
		if _, ok := object[name]; !ok {
			continue
		}
		for _, need := range texts(needs) {
			if _, ok := object[need]; !ok {
				out = append(out, fmt.Sprintf("missing property %s, which %s requires", quote(need), quote(name)))
			}
		}
	}
	return out
}

// additional returns a message for each unknown member of value.
func additional(value any, known map[string]any) []string {
	object, _ := value.(map[string]any)
	names := slices.Sorted(maps.Keys(known))
	var out []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, ok := known[name]; !ok && len(out) < maxViolations {
			out = append(out, notAllowed(name, names))
		}
	}
	return out
}

// notAllowed returns the message for an unknown member. The message suggests the known name that is most similar, if any.
func notAllowed(name string, known []string) string {
	message := "additional properties " + quote(name) + " not allowed"
	if near := fault.Nearest(name, known); near != "" {
		message += ", did you mean " + quote(near) + "?"
	}
	return message
}

// texts converts the elements of a list in the description to strings.
func texts(list any) []string {
	items, _ := list.([]any)
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}
