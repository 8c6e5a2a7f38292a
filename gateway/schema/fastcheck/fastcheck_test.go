package fastcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// disagreement returns how the program's verdict on v contradicts the schema's, is
// needlessly unsure, or how the narrowed schema's faults differ; "" when none of it is.
func disagreement(s *jsonschema.Schema, p *Program, v any) string {
	got, err := p.root.check(v), validate(s, v)
	switch {
	case got == yes && err != nil:
		return fmt.Sprintf("accepted, but jsonschema says: %v", err)
	case got == no && err == nil:
		return "refused, but jsonschema accepts it"
	case got == unsure && len(p.gaps) == 0 && decidable(v):
		return "left open by a program without gaps"
	}
	if diff := cmp.Diff(faults(err), faults(validate(p.Narrow(s, v), v))); diff != "" {
		return "narrowed, the schema finds other faults (-whole +narrowed):\n" + diff
	}
	return ""
}

// faults writes down an error of jsonschema's with all its causes, each indented below
// its effect, in a fixed order. Members that are not allowed are listed in a random one.
func faults(err error) string {
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return fmt.Sprint(err)
	}
	message := e.Message
	if strings.HasSuffix(e.KeywordLocation, "/additionalProperties") {
		names := strings.Split(strings.TrimSuffix(strings.TrimPrefix(message, "additionalProperties "), " not allowed"), ", ")
		slices.Sort(names)
		message = fmt.Sprint(names)
	}
	lines := []string{fmt.Sprintf("%s %s %s: %s", e.InstanceLocation, e.KeywordLocation, e.AbsoluteKeywordLocation, message)}
	var causes []string
	for _, c := range e.Causes {
		causes = append(causes, strings.ReplaceAll("\n"+faults(c), "\n", "\n  "))
	}
	slices.Sort(causes)
	return strings.Join(append(lines, causes...), "")
}

// decidable reports whether v holds only numbers and arrays that a program
// compares.
func decidable(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			if !decidable(item) {
				return false
			}
		}
	case []any:
		return len(v) <= maxUnique && !slices.ContainsFunc(v, func(item any) bool { return !decidable(item) })
	case json.Number:
		_, ok := parse(string(v))
		return ok
	}
	return true
}

// validate is s.Validate with panics returned as errors.
func validate(s *jsonschema.Schema, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return s.Validate(v)
}
