package schema_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// loadOnce spares every test the tens of milliseconds that loading takes.
var loadOnce = sync.OnceValues(schema.Load) //nolint:gochecknoglobals // an API is immutable

func load(tb testing.TB) *schema.API {
	tb.Helper()
	api, err := loadOnce()
	if err != nil {
		tb.Fatalf("Load: %v", err)
	}
	return api
}

func operation(tb testing.TB, id string) *schema.Operation {
	tb.Helper()
	op := load(tb).Operation(id)
	if op == nil {
		tb.Fatalf("there is no operation %q", id)
	}
	return op
}

// parse decodes a JSON text the way request bodies are decoded.
func parse(tb testing.TB, text string) any {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		tb.Fatalf("%s: more than one value", text)
	}
	return v
}

func lines(vs []schema.Violation) []string {
	var out []string
	for _, v := range vs {
		out = append(out, v.String())
	}
	return out
}
