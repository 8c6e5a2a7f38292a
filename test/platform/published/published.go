package published

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

//go:embed published.json
var description []byte

// Faults lists what the published description finds wrong with the body of an
// operation, nil if it fits or the operation has no body. It panics if the body is no
// JSON.
func Faults(operation string, body []byte) []string {
	schema, ok := schemas()[operation]
	if !ok {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc any
	must(dec.Decode(&doc))
	violation, ok := schema.Validate(doc).(*jsonschema.ValidationError) //nolint:errorlint // it is one, or nil
	if !ok {
		return nil
	}
	return leaves(violation)
}

// schemas are those of request bodies by operation.
var schemas = sync.OnceValue(func() map[string]*jsonschema.Schema { //nolint:gochecknoglobals // compiled once
	var doc map[string]any
	must(json.Unmarshal(description, &doc))
	c := jsonschema.NewCompiler()
	must(c.AddResource("published.json", bytes.NewReader(description)))
	out := make(map[string]*jsonschema.Schema)
	for operation, name := range doc["operations"].(map[string]any) {
		out[operation] = c.MustCompile(fmt.Sprintf("published.json#/components/schemas/%s", name))
	}
	return out
})

// leaves are the faults themselves. Where one part of a schema fails, its members
// count as unknown to the whole, too: that says nothing.
func leaves(v *jsonschema.ValidationError) []string {
	var said, unknown []string
	var walk func(v *jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		for _, cause := range v.Causes {
			walk(cause)
		}
		if len(v.Causes) > 0 {
			return
		}
		text := "$" + strings.ReplaceAll(v.InstanceLocation, "/", ".") + ": " + v.Message
		if strings.Contains(v.KeywordLocation, "unevaluatedProperties") {
			unknown = append(unknown, text)
		} else {
			said = append(said, text)
		}
	}
	walk(v)
	if len(said) == 0 {
		said = unknown
	}
	slices.Sort(said)
	return slices.Compact(said)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
