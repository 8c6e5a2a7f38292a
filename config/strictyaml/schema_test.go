package strictyaml_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

var update = flag.Bool("update", false, "rewrite golden files")

func defaults() *sample {
	five := 5
	return &sample{
		Listen: "127.0.0.1:8080", Timeout: time.Minute, Level: "info", Small: 7, Ratio: 0.5, Max: &five,
		Tags: []string{"a", "b"}, Nested: nested{A: 1, C: &nested{B: 2}}, Default: &limit{Quota: 60, Window: 36 * time.Hour},
	}
}

func schema(tb testing.TB) []byte {
	tb.Helper()
	data, err := strictyaml.Schema(*defaults(), "Sample")
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestSchemaGolden(t *testing.T) {
	t.Parallel()
	const golden = "testdata/sample.schema.json"
	got := schema(t)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("schema (-want +got), -update rewrites it:\n%s", diff)
	}
}

func compile(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	if err := c.AddResource("sample.json", bytes.NewReader(schema(tb))); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("sample.json")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// asJSON reads YAML with another library and returns a value for a JSON Schema validator. Numbers keep their digits.
func asJSON(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// The schema and the decoder say the same, but where Schema says that it cannot.
func TestSchemaAgreesWithDecoder(t *testing.T) {
	t.Parallel()
	const (
		good        = "both accept"
		bad         = "both refuse"
		decoderOnly = "only the decoder refuses"
	)
	cases := map[string][]string{
		good: {
			"{}", "listen: a", "timeout: 1m30s", `timeout: "0"`, "timeout: 1.5h", "timeout: .5s", "timeout: 5µs", "debug: true",
			"level: warn", "small: 255", "signed: -128", "count: -9223372036854775808", "big: 18446744073709551615",
			"ratio: 1.5", "ratio: 2", "price: 2.50", "amount: text", "tags: []", "tags: [a]", "limits: {}",
			"limits: {m: {quota: 1, window: 5s}}", "levels: {info: 1}", "orgs: [{id: a, keys: [{sha256: x}]}]",
			"params: {a: [1, {b: null}]}", "max: 3", "default: {}", "key: {env: A_1}", "spare: {file: ./x}",
			"nested: {c: {c: {c: {}}}}", "name: x",
		},
		bad: {
			"[]", "text", "null", "nope: 1", "Listen: a", "private: a", "Skipped: a", "listen: 1", "listen: null", "listen:",
			"listen: [a]", "timeout: 5", `timeout: "5"`, "timeout: 1d", "timeout: -5s", "timeout: +5s", "timeout: 5 s",
			`timeout: ""`, "debug: 1", "debug: text", "level: verbose", "level: 1", "small: 256", "small: -1", "small: 1.5",
			"signed: 128", "signed: -129", "count: 9223372036854775808", "big: -1", "big: 18446744073709551616", "count: text",
			"ratio: text", "price: text", "amount: 7", "amount: []", "amount: true", "tags: a", "tags: {}", "tags: [1]", "tags: [[a]]", "tags: [null]",
			"limits: []", "limits: {m: 1}", "limits: {m: {nope: 1}}", "limits: {m: null}", "levels: {verbose: 1}", "levels: {info: x}",
			"orgs: [{}]", "orgs: [{id: a, keys: [{team: x}]}]", "params: []", "params: null", "max: null", "max: x", "default: null",
			"key: text", "key: {}", "key: {env: a}", "key: {file: a}", "key: {env: A, file: /b}", "key: {env: 1}", "key: {vault: x}",
			"spare: null", "nested: {c: {c: {c: {nope: 1}}}}", "common: {name: x}", "name: 1",
		},
		decoderOnly: {
			"count: 1.0",                           // an integer to JSON
			"timeout: 9999999h",                    // beyond 290 years
			`amount: ""`,                           // the type's own rule
			"price: 2",                             // the type's own rule
			"params: {a: 99999999999999999999999}", // wider than 64 bits
		},
	}
	validator := compile(t)
	for verdict, files := range cases {
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				value, err := asJSON([]byte(file))
				if err != nil {
					t.Fatal(err)
				}
				decoder := strictyaml.Decode("t", []byte(file), &sample{})
				schema := validator.Validate(value)
				if got, want := decoder == nil, verdict == good; got != want {
					t.Errorf("decoder accepts: %t, want %t: %v", got, want, decoder)
				}
				if got, want := schema == nil, verdict != bad; got != want {
					t.Errorf("schema accepts: %t, want %t: %v", got, want, schema)
				}
			})
		}
	}
}

// The decoder starts from a valid value, and the schema's defaults are values that a file could hold.
func TestSchemaDefaultsAreValid(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal(schema(t), &doc); err != nil {
		t.Fatal(err)
	}
	file := map[string]any{}
	properties, ok := doc["properties"].(map[string]any)
	if !ok {
		t.Fatal("no properties")
	}
	for name, p := range properties {
		if p, ok := p.(map[string]any); ok && p["default"] != nil {
			file[name] = p["default"]
		}
	}
	if len(file) < 5 {
		t.Fatalf("only %d defaults: %v", len(file), file)
	}
	data, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	got := defaults()
	if err := strictyaml.Decode("t", data, got); err != nil {
		t.Fatalf("defaults do not decode: %v\n%s", err, data)
	}
	if diff := cmp.Diff(defaults(), got, compare); diff != "" {
		t.Errorf("defaults decoded over themselves changed (-want +got):\n%s", diff)
	}
	if err := compile(t).Validate(any(file)); err != nil {
		t.Errorf("defaults are not valid: %v", err)
	}
}

func TestSchemaOfTypesThatHoldThemselves(t *testing.T) {
	t.Parallel()
	type tree struct {
		Name     string `yaml:"name,required"`
		Children []tree `yaml:"children"`
	}
	type forest struct {
		Trees []tree          `yaml:"trees"`
		Named map[string]tree `yaml:"named"`
	}
	data, err := strictyaml.Schema(forest{}, "Forest")
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.CompileString("forest.json", string(data))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{
		"trees: [{name: a, children: [{name: b, children: []}]}]": true,
		"trees: [{name: a, children: [{children: []}]}]":          false,
		"named: {x: {name: a, children: [{name: b, nope: 1}]}}":   false,
	} {
		value, err := asJSON([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(value); (err == nil) != want {
			t.Errorf("%s: schema says %v, want valid: %t", file, err, want)
		}
		if err := strictyaml.Decode("t", []byte(file), &forest{}); (err == nil) != want {
			t.Errorf("%s: decoder says %v, want valid: %t", file, err, want)
		}
	}
	if n := strings.Count(string(data), `"children"`); n != 1 {
		t.Errorf("tree is described %d times, want once", n)
	}
}
