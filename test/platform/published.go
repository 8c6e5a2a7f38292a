package platform

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

// published is the platform's published description: the schemas of its request bodies without prose. There is one
// difference: createEndpoint requires neither name nor type, since a template has its name and a queue needs no type at the
// platform. It shares nothing with the gateway's own description, which is wider.
//
//go:embed published.json
var published []byte

// PublishedFaults lists what the published description finds wrong with the body of an
// operation, nil if it fits or the operation has no body. It panics if the body is no
// JSON.
func PublishedFaults(operation string, body []byte) []string {
	schema, ok := publishedSchemas()[operation]
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

// publishedSchemas are those of request bodies by operation.
var publishedSchemas = sync.OnceValue(func() map[string]*jsonschema.Schema { //nolint:gochecknoglobals // compiled once
	var doc map[string]any
	must(json.Unmarshal(published, &doc))
	c := jsonschema.NewCompiler()
	must(c.AddResource("published.json", bytes.NewReader(published)))
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
