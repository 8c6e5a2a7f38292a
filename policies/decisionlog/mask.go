package decisionlog

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// hidden replaces masked values.
const hidden = "***"

// body is the pointer of the request body in an event.
const body = "/input/request/body"

// inputs are the body members that contain the input of a job or a language model: user content, and most of the bytes.
var inputs = []string{"input", "messages", "prompt", "requests"}

// builtinMasks returns the masks that always apply: members that contain secrets and, unless withInputs is set, the inputs of jobs.
func builtinMasks(withInputs bool) []string {
	var out []string
	if !withInputs {
		for _, name := range inputs {
			out = append(out, body+"/"+name)
		}
	}
	for _, root := range roots() {
		for _, field := range []string{
			"/env/*", "/password", "/username", "/s3Config", "/webhook", "/webhookV2",
			"/keys/*",
		} {
			out = append(out, root+field)
		}
	}
	return append(out, "/input/request/unknown/*", "/result/mutate/*/value")
}

// commandMasks returns the masks for commands, which always apply in the log: passwords and tokens are often passed as arguments.
func commandMasks() []string {
	var out []string
	for _, root := range roots() {
		out = append(out, root+"/args", root+"/cmd/*", root+"/entrypoint/*")
	}
	return out
}

// roots returns the pointers of bodies and resource records in an event.
func roots() []string {
	return []string{body, "/input/resource/after", "/input/resource/current", "/input/resource/template/record"}
}

// Masked returns the body of a call as operators may see it: without secrets and without the inputs of jobs.
func Masked(given any) any {
	var whole any = map[string]any{"input": map[string]any{"request": map[string]any{"body": given}}}
	var masked []string
	for _, p := range builtinMasks(false) {
		if path, err := policyconfig.ParseMask(p); err == nil { // the built-in masks are valid
			whole = mask(whole, path, "", &masked)
		}
	}
	for _, name := range []string{"input", "request", "body"} {
		m, _ := whole.(map[string]any)
		whole = m[name]
	}
	return whole
}

// masksSomething reports whether an event can have a member at path. It returns true for any path below the result or a body,
// because bodies of jobs may have any members.
func masksSomething(path []string) bool {
	if path[0] == "result" {
		return true
	}
	schema := policyinput.DecodedSchema()
	for i, name := range path[1:] {
		properties, ok := schema["properties"].(map[string]any)
		others, open := schema["additionalProperties"].(map[string]any)
		switch next, listed := properties[name].(map[string]any); {
		case name == "*", !ok && !open:
			return !slices.Contains([]string{"after", "current"}, path[i]) || operation.States().HasSome(path[i+1:])
		case listed:
			schema = next
		case open:
			schema = others
		default:
			return false
		}
	}
	return true
}

// mask returns v with the values at path replaced, copying only the objects on the path. It appends the pointers of masked values
// to masked.
func mask(v any, path []string, at jsontext.Pointer, masked *[]string) any {
	if len(path) == 0 {
		*masked = append(*masked, string(at))
		return hidden
	}
	switch x := operation.Decoded(v).(type) {
	case map[string]any:
		out := maps.Clone(x)
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if path[0] != "*" && path[0] != name {
				continue
			}
			out[name] = mask(x[name], path[1:], at.AppendToken(name), masked)
		}
		return out
	case []any:
		out := slices.Clone(x)
		for i := range x {
			if path[0] == "*" || path[0] == strconv.Itoa(i) {
				out[i] = mask(x[i], path[1:], at.AppendToken(strconv.Itoa(i)), masked)
			}
		}
		return out
	default:
		return v
	}
}

// light returns an event without the inputs of jobs, which are masked anyway, and with copied strings, so that a queued event does
// not keep a large body in memory.
func light(e *Event) {
	given, ok := e.Input.Request.Body.(map[string]any)
	if !ok || !slices.ContainsFunc(inputs, func(name string) bool { return given[name] != nil }) {
		return
	}
	in := *e.Input
	out := make(map[string]any, len(given))
	e.Size = 0
	for name, v := range given {
		if slices.Contains(inputs, name) {
			v = hidden
		}
		out[strings.Clone(name)] = own(v, &e.Size)
	}
	in.Request.Body = out
	e.Input = &in
}

// own copies decoded JSON including its strings and adds their length to size.
func own(v any, size *int64) any {
	switch x := operation.Decoded(v).(type) {
	case string:
		*size += int64(len(x))
		return strings.Clone(x)
	case json.Number:
		return json.Number(strings.Clone(string(x)))
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = own(x[i], size)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, item := range x {
			*size += int64(len(name))
			out[strings.Clone(name)] = own(item, size)
		}
		return out
	default:
		return x
	}
}
