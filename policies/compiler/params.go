package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Param describes a parameter of a policy.
type Param struct {
	// Name is the name of the parameter in params.
	Name string
	// Description describes the parameter in plain text.
	Description string
	// Required reports whether the parameter is required.
	Required bool
	// Schema is its JSON Schema (2020-12), including the default.
	Schema map[string]any
}

// params holds the parameters of one policy with their compiled schemas.
type params struct {
	list   []Param
	byName map[string]*jsonschema.Schema
	anyOf  []string // at least one of these is required
	// allowLists are the parameters that list allowed values. A parameter that is absent and has no default allows everything.
	allowLists []string
	// rules are relations between parameters; a violated rule is an error. A violated doubt is a warning, because the entry never applies
	// or refuses everything.
	rules, doubts []relation
}

// newParams reads the parameters in a policy's METADATA. custom.params maps names to JSON Schemas; custom.required and custom.any_of list
// names. A relation maps a parameter to the parameter that it depends on; relations below custom.doubt cause warnings.
func newParams(policy string, custom map[string]any) (params, error) {
	p := params{byName: map[string]*jsonschema.Schema{}}
	specs, _ := custom["params"].(map[string]any)
	required, err := names(custom["required"])
	if err != nil {
		return params{}, fmt.Errorf("required: %w", err)
	}
	if p.anyOf, err = names(custom["any_of"]); err != nil {
		return params{}, fmt.Errorf("any_of: %w", err)
	}
	if p.allowLists, err = names(custom["allow_lists"]); err != nil {
		return params{}, fmt.Errorf("allow_lists: %w", err)
	}
	if p.rules, err = relationsOf(custom, specs); err != nil {
		return params{}, err
	}
	doubt, _ := custom["doubt"].(map[string]any)
	if p.doubts, err = relationsOf(doubt, specs); err != nil {
		return params{}, fmt.Errorf("doubt: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		spec, ok := specs[name].(map[string]any)
		if !ok {
			return params{}, fmt.Errorf("params.%s: not a JSON Schema", name)
		}
		if hasEmptyEnum(spec) {
			return params{}, fmt.Errorf("params.%s: enum is empty", name)
		}
		text, _ := json.Marshal(spec) // decoded JSON
		schema, err := compileSchema(policy+"/"+name+".json", string(text))
		if err != nil {
			return params{}, fmt.Errorf("params.%s: %w", name, err)
		}
		p.byName[name] = schema
		description, _ := spec["description"].(string)
		p.list = append(p.list, Param{
			Name: name, Description: description, Required: slices.Contains(required, name), Schema: spec,
		})
	}
	for _, name := range slices.Concat(required, p.anyOf, p.allowLists) {
		if p.byName[name] == nil {
			return params{}, fmt.Errorf("%s is not a parameter", name)
		}
	}
	return p, nil
}

// hasEmptyEnum reports whether a schema or one of its parts has an empty enum, which the library accepts and nothing satisfies.
func hasEmptyEnum(schema any) bool {
	switch x := schema.(type) {
	case map[string]any:
		list, ok := x["enum"].([]any)
		return ok && len(list) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(x)), hasEmptyEnum)
	case []any:
		return slices.ContainsFunc(x, hasEmptyEnum)
	}
	return false
}

// compileSchema compiles the schema of one parameter. It enables format checks, so that a bad pattern is found when it is
// configured.
func compileSchema(name, text string) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	if err := c.AddResource(name, strings.NewReader(text)); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

func names(v any) ([]string, error) {
	if v == nil {
		return nil, nil
	}
	items, ok := v.([]any)
	if !ok {
		return nil, errors.New("not a list")
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		name, ok := item.(string)
		if !ok {
			return nil, errors.New("not a list of names")
		}
		out = append(out, name)
	}
	return out, nil
}

// check validates parameters against the schemas. It returns them as decoded JSON with defaults, or the errors, each with its path relative
// to params.
func (p params) check(given map[string]any) (map[string]any, []error) {
	var faults fault.Found
	out := make(map[string]any, len(p.list))
	known := make([]string, 0, len(p.list))
	for _, spec := range p.list {
		known = append(known, spec.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if p.byName[name] == nil {
			faults = append(faults, unknownParam(name, known))
			continue
		}
		v, err := policyinput.Plain(given[name])
		if err != nil {
			faults = append(faults, fault.Errorf(name, "%w", err))
			continue
		}
		faults = append(faults, schemaFaults(name, p.byName[name], v)...)
		i := slices.Index(known, name)
		faults = append(faults, formatFaults(name, p.list[i].Schema, v)...)
		out[name] = v
	}
	for _, spec := range p.list {
		def, hasDefault := spec.Schema["default"]
		switch {
		case given[spec.Name] != nil:
		case spec.Required:
			faults = append(faults, fault.Errorf(spec.Name, "is required"))
		case hasDefault:
			v, err := policyinput.Plain(def)
			faults.If(err != nil, spec.Name, "default: %w", err)
			out[spec.Name] = v
		}
	}
	faults.If(len(p.anyOf) > 0 && !slices.ContainsFunc(p.anyOf, func(n string) bool { return given[n] != nil }),
		"", "at least one of %s is required", strings.Join(p.anyOf, ", "))
	return out, append(faults, contradictions(p.rules, out)...)
}

// formatFaults checks formats that JSON Schema does not define: timezone, operation, and body_pointer, for which the enclosing
// object's name is the operation. An unknown name would otherwise silently disable a rule. Unknown roles are checked by
// params.roles.
func formatFaults(path string, schema map[string]any, v any) []error {
	var faults fault.Found
	eachFormat(path, schema, v, func(path, format, value string) {
		switch {
		case format == "timezone" && !isZone(value):
			faults = append(faults, fault.Errorf(path, "unknown time zone %q", value))
		case format == "operation":
			_, known := operation.Lookup(value)
			faults.If(!known, path, "unknown operation %q", value)
		case format == "body_pointer":
			faults = append(faults, fault.At(path, bodyPointer(path[strings.LastIndex(path, ".")+1:], value)))
		}
	})
	return faults
}

// eachFormat calls visit for each string whose schema has a format. A member's name is visited with the path of its object.
func eachFormat(path string, schema map[string]any, v any, visit func(path, format, value string)) {
	switch x := v.(type) {
	case string:
		if format, ok := schema["format"].(string); ok {
			visit(path, format, x)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range x {
			eachFormat(fault.Index(path, i), items, item, visit)
		}
	case map[string]any:
		names, _ := schema["propertyNames"].(map[string]any)
		others, _ := schema["additionalProperties"].(map[string]any)
		listed, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(x)) {
			eachFormat(path, names, name, visit)
			inner, ok := listed[name].(map[string]any)
			if !ok {
				inner = others
			}
			eachFormat(fault.Key(path, name), inner, x[name], visit)
		}
	}
}

// bodyPointer returns an error if the body of an operation cannot have the member at a pointer. Bodies of jobs may have any member.
func bodyPointer(id, pointer string) error {
	path, err := policyinput.SplitPointer(pointer)
	if err != nil {
		return err
	}
	row, ok := operation.Lookup(id)
	if shape := operation.BodyShape(id); ok && row.Kind != operation.KindJob && (shape == nil || !shape.Has(path)) {
		return fmt.Errorf("the body of %s does not have a member %s", id, pointer)
	}
	return nil
}

func isZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "Local"
}

func unknownParam(name string, known []string) error {
	if near := nearest(name, known); near != "" {
		return fault.Errorf(name, "unknown parameter, did you mean %q?", near)
	}
	return fault.Errorf(name, "unknown parameter")
}

// schemaFaults returns the errors in a value, each with its path.
func schemaFaults(name string, schema *jsonschema.Schema, v any) []error {
	err := schema.Validate(v)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []error{fault.Errorf(name, "%w", err)}
	}
	var faults []error
	for _, leaf := range leaves(invalid) {
		faults = append(faults, fault.Errorf(pathOf(name, leaf.InstanceLocation), "%s", leaf.Message))
	}
	return faults
}

// leaves returns the innermost causes; the outer errors only summarise them.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, c := range e.Causes {
		out = append(out, leaves(c)...)
	}
	return out
}

// pathOf returns a configuration path with a JSON Pointer appended.
func pathOf(path, pointer string) string {
	for part := range jsontext.Pointer(pointer).Tokens() {
		if i, err := strconv.Atoi(part); err == nil {
			path = fault.Index(path, i)
		} else if part != "" {
			path = fault.Key(path, part)
		}
	}
	return path
}
