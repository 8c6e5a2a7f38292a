package strictyaml_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// One file, its faults. The file name in front of each is left out.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, file, want string }{
		// Files.
		{"empty file", "", "1:1: the file is empty"},
		{"only comments", "# nothing\n\n", "1:1: the file is empty"},
		{"only a document start", "---\n", "1:1: the file is empty"},
		{"a list on top", "- a\n", "1:1: expected a mapping, found a list"},
		{"a scalar on top", "text\n", "1:1: expected a mapping, found a string"},
		{"null on top", "null\n", "1:1: expected a mapping, found null (omit the key to use the default)"},
		{"byte order mark", "\ufefflisten: a\n", "1:1: file begins with a byte order mark (save the file as UTF-8 without the mark)"},
		{"UTF-16", "\xff\xfel\x00", "1:1: file is encoded in UTF-16 (save the file as UTF-8)"},
		{"not UTF-8", "name: é\nlisten: \"a\xe9\"\n", "2:11: byte 0xe9 is not valid UTF-8"},
		{"overlong UTF-8", "name: \xc0\x80\n", "1:7: byte 0xc0 is not valid UTF-8"},
		{"control character", "name: a\x00b\n", `1:8: character U+0000 is not allowed (write it as an escape in double quotes: "\u0000")`},
		{"lone carriage return", "name: a\rlisten: b\n", `1:8: character U+000D is not allowed (write it as an escape in double quotes: "\u000D")`},
		{"text turned around", "name: \"a\u202eb\"\n", `1:9: character U+202E is not allowed (write it as an escape in double quotes: "\u202E")`},
		{"too large", "name: " + strings.Repeat("x", strictyaml.MaxSize) + "\n", "file has 1048583 bytes, more than the limit of 1048576"},
		{"second document", "name: a\n---\nname: b\n", "2:1: a second YAML document begins here, a configuration is one"},
		{"text behind the document's end", "name: a\n...\nname: b\n", "3:1: not valid YAML: line does not belong to any key before it (begin the keys of one mapping in the same column)"},

		// YAML we do without.
		{"anchor and alias", "nested: &x {a: 1}\nlimits: {m: *x}\n", `1:9: nested: anchors are not supported (write the value out, or quote a string that begins with &)
2:13: limits.m: aliases are not supported (write the value out, or quote a string that begins with *)`},
		{"alias bomb", "tags: &a [x]\nparams: {b: &b [*a,*a], c: [*b,*b]}\n", `1:7: tags: anchors are not supported (write the value out, or quote a string that begins with &)
2:13: params.b: anchors are not supported (write the value out, or quote a string that begins with &)
2:17: params.b[0]: aliases are not supported (write the value out, or quote a string that begins with *)
2:20: params.b[1]: aliases are not supported (write the value out, or quote a string that begins with *)
2:29: params.c[0]: aliases are not supported (write the value out, or quote a string that begins with *)
2:32: params.c[1]: aliases are not supported (write the value out, or quote a string that begins with *)`},
		{"merge key", "nested:\n  <<: {a: 1}\n", "2:3: nested[\"<<\"]: merge keys are not supported (write the keys out)"},
		{"tag", "count: !!int \"3\"\n", "1:8: count: tags are not supported (quote a string that begins with !)"},
		{"own tag", "key: !env NAME\n", "1:6: key: tags are not supported (quote a string that begins with !)"},
		{"directive", "%YAML 1.2\n---\nname: a\n", "1:1: directives are not supported (quote a string that begins with %)"},
		{"complex key", "? name\n: a\n", "1:3: name: keys marked with ? are not supported"},
		{"flow nested too deep", "params: {a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}\n", "1:75: params.a" + strings.Repeat("[0]", 62) + ": nested more than 64 levels deep"},
		{
			"block nested too deep", "params:\n  a:\n    " + strings.Repeat("- ", 70) + "x\n",
			`3:129: params.a` + strings.Repeat("[0]", 62) + `: nested more than 64 levels deep`,
		},
		{"block nested absurdly deep", "params:\n  a:\n    " + strings.Repeat("- ", 50_000) + "x\n", "2:3: not valid YAML: exceeded max depth of 10000"},
		{"flow nested absurdly deep", strings.Repeat("[", 500_000), "1:1: not valid YAML: exceeded max depth of 10000"},

		{"plain text over several lines", "nested: {a: 1}\nname: a\n  b\n", "2:1: name: unquoted string must be on one line, without tabs (quote it, or write it as a | block)"},
		{"tab within plain text", "name: a\t b\n", "1:1: name: unquoted string must be on one line, without tabs (quote it, or write it as a | block)"},
		{"plain key over two lines", "na\n  me: a\n", "2:3: not valid YAML: unexpected colon (align the key with the keys before it, or quote a text that contains a colon and a space)"},
		{"value left of its key", " max:\n1", "2:1: not valid YAML: line does not belong to any key before it (begin the keys of one mapping in the same column)"},
		{"value left of its dash", "tags:\n- a\n-\nname: b\n", "3:1: tags[1]: value is missing, expected a string (write \"\" for an empty string)"},
		{"tab within a number", "count:\t0\t.0\n", "1:1: count: unquoted string must be on one line, without tabs (quote it, or write it as a | block)"},
		{"flow entry without a space", "nested: {a:1}\n", "1:10: nested[\"a:1\"]: unknown key (known: a, b, c)"},

		// Syntax.
		{"tab for indentation", "nested:\n\ta: 1\n", "2:1: not valid YAML: text begins with a reserved character (indent with spaces, not with tabs)"},
		{"quote left open", "name: 'a\n", "1:1: not valid YAML: quoted text is not closed (write the closing quote)"},
		{"bracket left open", "tags: [a, b\nname: c\n", "2:1: not valid YAML: list in brackets is not closed (write a comma between its entries and ] at its end)"},
		{"mapping within a line", "name: a: b\n", "1:1: not valid YAML: unexpected colon (align the key with the keys before it, or quote a text that contains a colon and a space)"},
		{"indentation that ends nowhere", "  name: a\n listen: b\n", "2:2: not valid YAML: line does not belong to any key before it (begin the keys of one mapping in the same column)"},

		{"key indented too far", "nested:\n  a: 1\n   b: 2\n", "3:4: not valid YAML: unexpected colon (align the key with the keys before it, or quote a text that contains a colon and a space)"},
		{"key below a list", "orgs:\n  - id: a\n    keys: []\n   name: b\nname: c\n", "4:4: not valid YAML: line is not aligned with the entries before it (begin the entries of one list with - in the same column)"},
		{"entry left of its list", "tags:\n   - a\n  - b\n", "3:3: not valid YAML: line is not aligned with the keys before it (begin the keys of one mapping in the same column)"},

		// Keys.
		{"unknown key, nothing near", "nested: {zzzzzz: 1}\n", "1:10: nested.zzzzzz: unknown key (known: a, b, c)"},
		{"key in another case", "Listen: a\n", `1:1: Listen: unknown key (did you mean "listen"?)`},
		{"hidden field", "private: a\n", "1:1: private: unknown key"},
		{"skipped field", "Skipped: a\n", "1:1: Skipped: unknown key"},
		{"key needs quoting in a path", "\"a.b\": 1\n", `1:1: ["a.b"]: unknown key`},
		{"key is a number", "params: {1: a}\n", "1:10: params.1: key must be a string (quote it)"},
		{"key is true", "params: {true: a}\n", "1:10: params.true: key must be a string (quote it)"},
		{"key is null", "params:\n  ~: a\n", "2:3: params[\"~\"]: key must be a string (quote it)"},
		{"key is a list", "? [a]\n: b\n", "1:3: keys marked with ? are not supported"},
		{"duplicate key, deep", "params:\n  a:\n    b: 1\n    c: 2\n    \"b\": 3\n", "5:5: params.a.b: duplicate key, first at line 3"},
		{"duplicate key, flow", "nested: {a: 1, a: 2}\n", "1:16: nested.a: duplicate key, first at line 1"},
		{"unknown map key", "levels: {inof: 1}\n", `1:10: levels.inof: unknown value "inof" (did you mean "info"?)`},

		// Nothing where something belongs.
		{"no value", "listen:\ncount: 1\n", `1:1: listen: value is missing, expected a string (write "" for an empty string)`},
		{"no value for a list", "tags:\n", "1:1: tags: value is missing, expected a list (write [] for an empty list)"},
		{"no value for a mapping", "nested:\n  # a: 1\n", "1:1: nested: value is missing, expected a mapping (write {} for an empty mapping)"},
		{"no value for a pointer", "max:\n", "1:1: max: value is missing, expected an integer"},
		{"no value for an entry", "tags:\n  - a\n  -\n", "3:3: tags[1]: value is missing, expected a string (write \"\" for an empty string)"},
		{"no value in flow style", "nested: {a}\n", "1:10: nested.a: value is missing, expected an integer"},
		{"no value in any", "params: {a: }\n", "1:10: params.a: value is missing (write null for a null value)"},
		{"null", "max: null\ntags: ~\n", `1:6: max: expected an integer, found null (omit the key to use the default)
2:7: tags: expected a list, found null (omit the key to use the default)`},

		// Types.
		{"integer for a string", "name: 12\n", "1:7: name: expected a string, found an integer (quote it)"},
		{"number for a string", "name: 1.0\n", "1:7: name: expected a string, found a number (quote it)"},
		{"truth for a string", "name: true\n", "1:7: name: expected a string, found true or false (quote it)"},
		{"odd number for a string", "name: 0777\n", "1:7: name: expected a string, found an ambiguous number (quote it)"},
		{"mapping for a string", "name: {a: b}\n", "1:7: name: expected a string, found a mapping"},
		{"string for an integer", "count: \"80\"\n", "1:8: count: expected an integer, found a string (write it without quotes)"},
		{"number for an integer", "count: 1.0\n", "1:8: count: expected an integer, found a number (write only digits, such as 60)"},
		{"octal or not", "count: 0777\n", "1:8: count: expected an integer, found an ambiguous number (write it without leading zeros or underscores)"},
		{"underscores", "count: 100_000\n", "1:8: count: expected an integer, found an ambiguous number (write it without leading zeros or underscores)"},
		{"binary", "count: 0b11\n", "1:8: count: expected an integer, found an ambiguous number (write it without leading zeros or underscores)"},
		{"odd number for any", "params: {a: 0777}\n", "1:13: params.a: expected a value, found an ambiguous number (quote it, or write it without leading zeros or underscores)"},
		{"below an int8", "signed: -129\n", "1:9: signed: is out of range, expected -128 to 127"},
		{"above an int", "count: 9223372036854775808\n", "1:8: count: is out of range, expected -9223372036854775808 to 9223372036854775807"},
		{"negative for unsigned", "small: -1\n", "1:8: small: is out of range, expected 0 to 255"},
		{"above a uint64", "big: 18446744073709551616\n", "1:6: big: is out of range, expected 0 to 18446744073709551615"},
		{"any integer too wide", "params: {a: 9223372036854775808}\n", "1:13: params.a: integer exceeds 64 bits"},
		{"infinite", "ratio: .inf\n", "1:8: ratio: must be a finite number"},
		{"not a number", "params: {a: .nan}\n", "1:13: params.a: must be a finite number"},
		{"beyond a float", "ratio: 1e999\n", "1:8: ratio: is out of range for a number of 64 bits"},
		{"yes", "debug: yes\n", "1:8: debug: expected true or false, found a string (write true)"},
		{"off", "debug: off\n", "1:8: debug: expected true or false, found a string (write false)"},
		{"truth in quotes", "debug: \"true\"\n", "1:8: debug: expected true or false, found a string (write it without quotes)"},
		{"one for true", "debug: 1\n", "1:8: debug: expected true or false, found an integer"},
		{"scalar for a list", "tags: a\n", "1:7: tags: expected a list, found a string (write [...] around it, or - before it)"},
		{"mapping for a list", "tags: {a: b}\n", "1:7: tags: expected a list, found a mapping (write - before each entry)"},
		{"list for a mapping", "nested: [a]\n", "1:9: nested: expected a mapping, found a list (known keys: a, b, c)"},
		{"scalar for a map", "limits: a\n", "1:9: limits: expected a mapping, found a string"},
		{"element of a map", "limits: {m: {quota: x}}\n", "1:21: limits.m.quota: expected an integer, found a string (write only digits, such as 60)"},
		{"enumeration", "level: verbose\n", `1:8: level: unknown value "verbose" (known: debug, info, warn)`},
		{"enumeration of another type", "level: 1\n", "1:8: level: expected a string, found an integer (quote it)"},

		// Durations.
		{"duration without a unit", "timeout: 30\n", `1:10: timeout: expected a duration such as "1m30s", found an integer (write the unit)`},
		{"duration without a unit, quoted", "timeout: \"30\"\n", `1:10: timeout: expected a duration such as "1m30s" (valid units are h, m, s, ms, us and ns)`},
		{"duration in days", "timeout: 1d\n", `1:10: timeout: expected a duration such as "1m30s" (write days in hours: 24h)`},
		{"negative duration", "timeout: -5s\n", "1:10: timeout: duration must not have a sign"},
		{"duration too long", "timeout: 9999999h\n", `1:10: timeout: expected a duration such as "1m30s" (valid units are h, m, s, ms, us and ns)`},

		// Types that read themselves.
		{"money as text", "price: \"2.50\"\n", "1:8: price: expected a number, found a string (write it without quotes)"},
		{"money without cents", "price: 2\n", "1:8: price: expected an amount with cents, such as 2.50"},
		{"infinite money", "price: .inf\n", "1:8: price: must be a finite number"},
		{"text refused by its type", "amount: \"\"\n", "1:9: amount: expected an amount"},
		{"list for such a type", "amount: []\n", "1:9: amount: expected a string, found a list"},
		{"number for such a type", "amount: 7\n", "1:9: amount: expected a string, found an integer (quote it)"},

		// Secrets.
		{"secret in the file", "key: rk_live_hush\n", "1:6: key: must not contain a secret, because others can read, copy and log the file (write {env: NAME} or {file: PATH})"},
		{"number for a secret", "key: 12\n", "1:6: key: expected {env: NAME} or {file: PATH}, found an integer"},
		{"both references", "key: {env: A, file: /b}\n", "1:6: key: expected one of {env: NAME} or {file: PATH}"},
		{"neither reference", "key: {}\n", "1:6: key: expected one of {env: NAME} or {file: PATH}"},
		{"another reference", "key: {enw: A}\n", `1:7: key.enw: unknown key (did you mean "env"?)`},
		{"secret pasted as a variable", "key: {env: rk_live_hush}\n", "1:12: key.env: is not a valid name of an environment variable (use capital letters, digits and underscores)"},
		{"secret pasted as a path", "key: {file: rk_live_hush}\n", "1:13: key.file: is not a path (write ./NAME for a file in the working directory)"},
		{"variable is a list", "key: {env: [A]}\n", "1:12: key.env: expected a string, found a list"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := strictyaml.Decode("t", []byte(c.file), &sample{})
			if err == nil {
				t.Fatalf("no error, want %s", c.want)
			}
			var got []string
			for line := range strings.Lines(err.Error()) {
				line = strings.TrimSuffix(strings.TrimPrefix(line, "t:"), "\n")
				got = append(got, strings.TrimPrefix(line, " "))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

// Everything here is fine, however odd it looks.
func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file string
		want       sample
	}{
		{"document start and end", "---\nname: a\n...\n", sample{Common: common{"a"}}},
		{"JSON", "{\"name\":\"a\",\"tags\":[\"b\",\"c\"],\"nested\":{\"a\":1}}", sample{
			Common: common{"a"}, Tags: []string{"b", "c"}, Nested: nested{A: 1},
		}},
		{"CR LF", "name: a\r\nlisten: \"b\r\n  c\"\r\n", sample{Common: common{"a"}, Listen: "b c"}},
		{"tabs where YAML allows them", "name:\ta\t# comment\nlisten: |\n  x\n  \ty\n", sample{Common: common{"a"}, Listen: "x\n\ty\n"}},
		{"block scalar at the end of a file that ends within a line", "name: >\n    a\n    b", sample{Common: common{"a b\n"}}},
		{"block scalars", "name: >-\n  a\n  b\nlisten: |+\n  c\n\n", sample{Common: common{"a b"}, Listen: "c\n\n"}},
		{
			"quoted text that looks like something else", "name: \"true\"\ntags: ['1', \"~\", '*.example.com', \"&a\"]\n",
			sample{Common: common{"true"}, Tags: []string{"1", "~", "*.example.com", "&a"}},
		},
		{
			"words of YAML 1.1 are text", "tags: [yes, no, on, off, y, 1:30, 2026-01-01, NaN]\n",
			sample{Tags: []string{"yes", "no", "on", "off", "y", "1:30", "2026-01-01", "NaN"}},
		},
		{"escapes", `name: "\u00e9\t\"\u202e"`, sample{Common: common{"é\t\"\u202e"}}},
		{"empty collections", "tags: []\nlimits: {}\nnested: {}\norgs: []\n", sample{Tags: []string{}, Limits: map[string]limit{}, Orgs: []org{}}},
		{"zero duration", "timeout: \"0\"\n", sample{}},
		{"null in any", "params: {a: null, b: ~}\n", sample{Params: map[string]any{"a": nil, "b": nil}}},
		{"signs", "count: +12\nsmall: +3\nsigned: -0\nratio: -.5\n", sample{Count: 12, Small: 3, Ratio: -0.5}},
		{"hexadecimal number", "ratio: 0xff\n", sample{Ratio: 255}},
		{"text for a type that reads itself", "amount: \"7\"\n", sample{Amount: amount{"text 7"}}},
		{"list at the column of its key", "tags:\n- a\n- b\n", sample{Tags: []string{"a", "b"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got sample
			if err := strictyaml.Decode("t", []byte(c.file), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, compare); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeAcceptsTheGreatestDepth(t *testing.T) {
	t.Parallel()
	const lists = strictyaml.MaxDepth - 2 // below the document and params
	var got sample
	file := "params: {a: " + strings.Repeat("[", lists) + strings.Repeat("]", lists) + "}\n"
	if err := strictyaml.Decode("t", []byte(file), &got); err != nil {
		t.Fatal(err)
	}
	levels := 0
	for list, ok := got.Params["a"].([]any); ok; list, ok = first(list).([]any) {
		levels++
	}
	if levels != lists {
		t.Errorf("decoded %d nested lists, want %d", levels, lists)
	}
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func TestDecodePanicsOnTypesItCannotFill(t *testing.T) {
	t.Parallel()
	cases := map[string]any{
		"not a pointer": sample{},
		"nil":           (*sample)(nil),
		"channel": &struct {
			C chan int `yaml:"c"`
		}{},
		"interface": &struct {
			E error `yaml:"e"`
		}{},
		"field without a name": &struct{ A int }{},
		"unexported field": &struct {
			a int `yaml:"a"`
		}{},
		"name used twice": &struct {
			A, B int `yaml:"a"`
		}{},
		"inline scalar": &struct {
			A int `yaml:",inline"`
		}{},
		"keys are numbers": &map[int]string{},
	}
	for name, into := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if r := recover(); r == nil {
					t.Errorf("no panic for %T", into)
				}
			}()
			_ = strictyaml.Decode("t", []byte("a: 1"), into)
		})
	}
}
