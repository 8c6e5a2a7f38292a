package fastcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// newCompiler returns a compiler set up as the gateway's, with one schema.
func newCompiler(schema string) (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.New("nothing is fetched") }
	return c, c.AddResource("mem:///schema.json", strings.NewReader(schema))
}

// compile returns the schema and its program.
func compile(schema string) (*jsonschema.Schema, *Program, error) {
	c, err := newCompiler(schema)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.Compile("mem:///schema.json")
	if err != nil {
		return nil, nil, err
	}
	return s, Compile(c, s), nil
}

func mustCompile(tb testing.TB, schema string) (*jsonschema.Schema, *Program) {
	tb.Helper()
	s, p, err := compile(schema)
	if err != nil {
		tb.Fatalf("compile %s: %v", schema, err)
	}
	return s, p
}

func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func mustDecode(tb testing.TB, text string) any {
	tb.Helper()
	v, err := decode(text)
	if err != nil {
		tb.Fatalf("decode %s: %v", text, err)
	}
	return v
}

// disagreement says how the program's verdict on v contradicts the schema's, or
// is unsure without need; "" when it does neither.
func disagreement(s *jsonschema.Schema, p *Program, v any) string {
	got, err := p.root.judge(v), validate(s, v)
	switch {
	case got == yes && err != nil:
		return fmt.Sprintf("accepted, but jsonschema says: %v", err)
	case got == no && err == nil:
		return "refused, but jsonschema accepts it"
	case got == unsure && len(p.gaps) == 0 && allKnown([]any{v}):
		return "left open by a program without gaps"
	}
	return ""
}

// validate is s.Validate where a panic is an error.
func validate(s *jsonschema.Schema, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return s.Validate(v)
}
