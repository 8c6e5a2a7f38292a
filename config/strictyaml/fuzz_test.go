package strictyaml_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// seeds are documents with everything in them that goes wrong easily.
func seeds(f *testing.F) {
	f.Helper()
	for _, s := range []string{
		"listen: a\ntimeout: 1m\n", "orgs:\n  - id: acme\n    keys:\n      - {sha256: ab, team: t}\n  - id: b\n",
		"params:\n  a: [1, -2.5, true, null, ~, \"x\", 'y''z']\n  b: |\n    text\n     more\n\n  c: >-\n    folded\n    text\n",
		"key: {env: A}\nspare:\n  file: /x\n", "a: &x [1]\nb: *x\n", "---\na: 1\n---\n", "\ta: 1", "a:\n\tb: 1\n", "? a\n: b\n", "<<: {a: 1}",
		"params: {\"a.b\": 1, \"c d\": {e: [{f: g}]}}\r\nname: \"x\r\n  y\"\r\n", "a: 0777\nb: 1_0\nc: 0o7\nd: 0x1f\ne: .inf\nf: 1e3\n",
		"name: a # comment\n# another\ntags:\n- a\n-\n- b: c\n", "params: {a, b: , \"c\": }\n", "[1,2", "{a: [}", "a: 'b", "a: \"\\x41\\u00e9\\U0001F600\"",
		"- - - a\n  - b\n", "a: b: c", "a:\n  b\n  c\nd: e\n", "name: é\nlisten: \"日本\"\n", "a: !!int 1", "a: @b", "%YAML 1.2\n---\n", "\ufeffa: 1",
	} {
		f.Add([]byte(s))
	}
	good, err := filepath.Glob("../testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range good {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// With any bytes, decoding ends, with faults that point into the file and in its order, and accepted files are valid under the
// schema.
func FuzzDecode(f *testing.F) {
	seeds(f)
	validator := compile(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var into sample
		pos, err := strictyaml.Load("f", data, &into)
		if err == nil {
			value, err := asJSON(data)
			if err != nil {
				return // another library's limits: FuzzValues compares
			}
			if err := validator.Validate(value); err != nil {
				t.Errorf("decoded, but not valid under the schema: %v", err)
			}
			return
		}
		faults, ok := errors.AsType[strictyaml.Errors](err)
		if !ok || len(faults) == 0 {
			t.Fatalf("error is %T with no faults: %v", err, err)
		}
		if !slices.IsSortedFunc(faults, func(a, b strictyaml.Fault) int { return a.Line - b.Line }) {
			t.Errorf("faults are not in order:\n%v", err)
		}
		lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
		for _, f := range faults {
			if f.Line < 0 || f.Line > len(lines) || f.Message == "" {
				t.Fatalf("fault outside of %d lines or without a message: %#v", len(lines), f)
			}
			if f.Line > 0 && (f.Column < 1 || f.Column > utf8.RuneCountInString(lines[f.Line-1])+1) {
				t.Fatalf("fault outside of line %q: %#v", lines[f.Line-1], f)
			}
			pos.Lookup(f.Path)
		}
	})
}

// A document that we and another library both read means the same to both, and is in the same places.
func FuzzValues(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append(data, '\n') // a text file: the end of a block scalar without one is read in two ways
		var ours map[string]any
		pos, err := strictyaml.Load("f", data, &ours)
		if err != nil {
			return
		}
		var doc yaml.Node
		var theirs any
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return
		}
		if err := doc.Decode(&theirs); err != nil {
			return
		}
		if odd(&doc) {
			return
		}
		got, want := plainJSON(t, ours), plainJSON(t, theirs)
		if got != want {
			t.Errorf("read %s\nwant %s", got, want)
		}
		if diff := cmp.Diff(places(&doc), placesOf(pos, places(&doc))); diff != "" {
			t.Errorf("places (-want +got):\n%s", diff)
		}
	})
}

// odd tells documents whose scalars YAML 1.1 and 1.2 resolve differently, which the other library does in the older way.
func odd(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && n.Style == 0 {
		if n.Tag == "!!timestamp" || n.Tag == "!!float" && strings.Contains(n.Value, "_") || n.Tag == "!!merge" {
			return true
		}
	}
	return slices.ContainsFunc(n.Content, odd)
}

func plainJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Skip("not to be compared as JSON: ", err)
	}
	return string(data)
}

// places maps the path of every scalar to its line and column, of the other library's tree.
func places(doc *yaml.Node) map[string][2]int {
	out := map[string][2]int{}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		switch n.Kind {
		case yaml.DocumentNode:
			walk(n.Content[0], path)
		case yaml.MappingNode:
			for i := 0; i < len(n.Content); i += 2 {
				walk(n.Content[i+1], fault.Key(path, n.Content[i].Value))
			}
		case yaml.SequenceNode:
			for i, item := range n.Content {
				walk(item, fault.Index(path, i))
			}
		case yaml.ScalarNode:
			out[path] = [2]int{n.Line, n.Column}
		case yaml.AliasNode:
		}
	}
	walk(doc, "")
	return out
}

func placesOf(pos *strictyaml.Positions, want map[string][2]int) map[string][2]int {
	out := map[string][2]int{}
	for path := range want {
		_, line, col := pos.Lookup(path)
		out[path] = [2]int{line, col}
	}
	return out
}
