package strictjson_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"scalars", []any{nil, true, false, json.Number("-1.5e3"), "x"}, `[null,true,false,-1.5e3,"x"]`},
		{"members are sorted", map[string]any{"b": nil, "a": nil, "B": nil, "é": nil, "": nil}, `{"":null,"B":null,"a":null,"b":null,"é":null}`},
		{"empty containers", []any{map[string]any{}, []any{}}, `[{},[]]`},
		{"nil containers", []any{map[string]any(nil), []any(nil)}, `[{},[]]`},
		{"no HTML escaping", "<script>&'</script>", `"<script>&'</script>"`},
		{"short escapes", "\"\\\b\f\n\r\t/", `"\"\\\b\f\n\r\t/"`},
		{"other controls", "\x00\x1f\x7f", `"\u0000\u001f` + "\x7f" + `"`},
		{"line separators stay", "\u2028😀", "\"\u2028😀\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := strictjson.Append([]byte("> "), tt.v)
			if err != nil {
				t.Fatal(err)
			}
			if want := "> " + tt.want; string(got) != want {
				t.Errorf("Append = %s, want %s", got, want)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	loop := map[string]any{}
	loop["a"] = []any{loop}
	tests := map[string]any{
		"int":                 1,
		"float":               math.NaN(),
		"bytes":               []byte("x"),
		"struct":              struct{}{},
		"typed map":           map[string]string{"a": "b"},
		"empty number":        json.Number(""),
		"number with a space": json.Number("1 "),
		"number with a plus":  json.Number("+1"),
		"leading zero":        json.Number("01"),
		"open fraction":       json.Number("1."),
		"open exponent":       json.Number("1e"),
		"injection":           json.Number(`1,"x":2`),
		"lone minus":          json.Number("-"),
		"invalid UTF-8":       "\xff",
		"invalid UTF-8 name":  map[string]any{"\xff": nil},
		"nested":              map[string]any{"a": []any{1}},
	}
	for name, v := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := strictjson.Append([]byte("kept"), v)
			if err == nil || string(got) != "kept" {
				t.Errorf("Append = %q, %v, want an error and dst unchanged", got, err)
			}
		})
	}
	if _, err := strictjson.Append(nil, loop); !errors.Is(err, strictjson.ErrDepth) {
		t.Errorf("Append of a value that contains itself = %v, want ErrDepth", err)
	}
}

// values draws any value that Decode can return.
func values() *rapid.Generator[any] {
	return rapid.Deferred(func() *rapid.Generator[any] { return valuesOf(4) })
}

func valuesOf(depth int) *rapid.Generator[any] {
	text := rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool {
		return r >= 0x20 && r != 0x7f && (r < 0xd800 || r > 0xdfff)
	}), 0, 12, -1)
	gens := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		text.AsAny(),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`),
			func(s string) any { return json.Number(s) }),
	}
	if depth > 0 {
		inner := valuesOf(depth - 1)
		gens = append(gens,
			rapid.Map(rapid.SliceOfN(inner, 0, 5), func(s []any) any { return append([]any{}, s...) }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 5), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(gens...)
}

// asSpelled are the default limits with every number left as it is spelled.
func asSpelled() strictjson.Limits {
	l := strictjson.DefaultLimits()
	l.NormalizeIntegers = false
	return l
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "value")
		text, err := strictjson.Append(nil, v)
		if err != nil {
			t.Fatalf("Append: %v", err)
		}
		back, err := strictjson.Decode(text, asSpelled())
		if err != nil {
			t.Fatalf("Decode(%s): %v", text, err)
		}
		if diff := cmp.Diff(v, back); diff != "" {
			t.Errorf("%s came back changed (-want +got):\n%s", text, diff)
		}
		again, err := strictjson.Append(nil, back)
		if err != nil || string(again) != string(text) {
			t.Errorf("the canonical form changed: %s, then %s (%v)", text, again, err)
		}
	})
}

// FuzzDecode holds Decode against the standard library: a text that it
// accepts, the library reads as the same value, and each refusal beside the
// library's own has one of the documented reasons.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","gpu":{"id":"NVIDIA A40","count":1},"env":{"A":"1"},"ports":["22/tcp"]}`,
		`[1,-0,0.5,1e5,true,false,null,"\ud83d\ude00"]`, `{"a":1,"\u0061":2}`, `{}{}`, "\ufeff{}", "\"\xff\"",
		`"\ud800"`, `1e1000000`, strings.Repeat("[", 40), `"\u0000"`, `{"a":1,}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := strictjson.Decode(data, asSpelled())
		std, stdErr := standard(string(data))
		if err == nil {
			if stdErr != nil {
				t.Fatalf("Decode accepted %q, the standard library says %v", data, stdErr)
			}
			if diff := cmp.Diff(std, v); diff != "" {
				t.Fatalf("%q is read in two ways (-standard +ours):\n%s", data, diff)
			}
			if _, err := strictjson.Append(nil, v); err != nil {
				t.Fatalf("Append of a decoded value: %v", err)
			}
			return
		}
		e, ok := errors.AsType[*strictjson.SyntaxError](err)
		if !ok {
			t.Fatalf("Decode(%q) = %T, want *SyntaxError", data, err)
		}
		if e.Offset < 0 || e.Offset > int64(len(data)) || e.Line < 1 || e.Column < 1 || e.Message == "" {
			t.Fatalf("Decode(%q): bad place or message: %+v", data, e)
		}
		grammar := e.Code == strictjson.CodeSyntax || e.Code == strictjson.CodeTruncated || e.Code == strictjson.CodeEmpty
		if grammar && json.Valid(data) {
			t.Fatalf("Decode(%q) = %v, but it follows the grammar", data, e)
		}
	})
}
