package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

func decode(text string) (any, error) {
	return strictjson.Decode([]byte(text), strictjson.DefaultLimits())
}

func TestDecodeAccepts(t *testing.T) {
	tests := []struct {
		name, text string
		want       any
	}{
		{"object", `{"name":"a","gpu":{"id":"NVIDIA A40","count":1}}`, map[string]any{
			"name": "a", "gpu": map[string]any{"id": "NVIDIA A40", "count": json.Number("1")},
		}},
		{"white space", " \t\r\n{ \"a\" : [ 1 , 2 ] } \n", map[string]any{"a": []any{json.Number("1"), json.Number("2")}}},
		{"empty object", `{}`, map[string]any{}},
		{"empty array", `[]`, []any{}},
		{"null", `null`, nil},
		{"booleans", `[true,false]`, []any{true, false}},
		{"string", `"x"`, "x"},
		{"escapes", `"\"\\\/\t\r\n\u0041\ud83d\ude00"`, "\"\\/\t\r\nA😀"},
		{"non-ASCII", `"é…😀"`, "é…😀"},
		{"names that differ only in case are two names", `{"gpu":1,"GPU":2}`, map[string]any{"gpu": json.Number("1"), "GPU": json.Number("2")}},
		{"same name in siblings", `[{"a":1},{"a":2}]`, []any{map[string]any{"a": json.Number("1")}, map[string]any{"a": json.Number("2")}}},
		{"siblings of different sizes", `[{"a":1,"b":2},{},1,{"c":[{}]}]`, []any{
			map[string]any{"a": json.Number("1"), "b": json.Number("2")},
			map[string]any{},
			json.Number("1"),
			map[string]any{"c": []any{map[string]any{}}},
		}},
		{"same name nested", `{"a":{"a":1}}`, map[string]any{"a": map[string]any{"a": json.Number("1")}}},
		{"empty name", `{"":1}`, map[string]any{"": json.Number("1")}},
		{"fraction", `0.5`, json.Number("0.5")},
		{"whole numbers in plain digits", `[1e0,20.0,80e-1,-0,-0.0,1E+2,9007199254740991.0]`, []any{
			json.Number("1"), json.Number("20"), json.Number("8"), json.Number("0"), json.Number("0"), json.Number("100"), json.Number("9007199254740991"),
		}},
		{"other numbers stay as sent", `[0.50,9007199254740990.9,1e16]`, []any{
			json.Number("0.50"), json.Number("9007199254740990.9"), json.Number("1e16"),
		}},
		{"control characters", "\"\\u001b[0m\\u0001\x7f\"", "\x1b[0m\x01\x7f"},
		{"beyond int64", `18446744073709551617`, json.Number("18446744073709551617")},
		{"largest exponent", `1e999`, json.Number("1e999")},
		{"smallest exponent", `1e-999`, json.Number("1e-999")},
		{"32 digits", strings.Repeat("9", 32), json.Number(strings.Repeat("9", 32))},
		{"many members", object(5000), mustAny(t, object(5000))},
		{"many elements", array(20_000), mustAny(t, array(20_000))},
		{"a long string", `"` + strings.Repeat("x", 102_000) + `"`, strings.Repeat("x", 102_000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decode(tt.text)
			if err != nil {
				t.Fatalf("Decode = %v, want no error", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Decode (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	type want struct {
		Code         strictjson.Code
		Offset       int64
		Line, Column int
	}
	at := func(c strictjson.Code, off int64) want { return want{c, off, 1, int(off) + 1} }
	tests := []struct {
		name, text string
		want       want
	}{
		{"empty", ``, at(strictjson.CodeEmpty, 0)},
		{"white space only", "  ", at(strictjson.CodeEmpty, 0)},

		{"duplicate at the top", `{"gpu":{"id":"A"},"gpu":{"id":"B"}}`, at(strictjson.CodeDuplicate, 18)},
		{"duplicate in a member", `{"gpu":{"id":"A","id":"B"}}`, at(strictjson.CodeDuplicate, 17)},
		{"duplicate in env", `{"env":{"A":"1","A":"2"}}`, at(strictjson.CodeDuplicate, 16)},
		{"duplicate in an array", `[0,{"a":1,"a":1}]`, at(strictjson.CodeDuplicate, 10)},
		{"duplicate five deep", `{"a":{"b":{"c":{"d":{"e":1,"e":2}}}}}`, at(strictjson.CodeDuplicate, 27)},
		{"duplicate by escape", `{"gpu":1,"\u0067pu":2}`, at(strictjson.CodeDuplicate, 9)},
		{"duplicate by surrogate pair", `{"😀":1,"\ud83d\ude00":2}`, at(strictjson.CodeDuplicate, 10)},
		{"duplicate empty name", `{"":1,"":2}`, at(strictjson.CodeDuplicate, 6)},
		{"duplicate after white space", "{\n \"a\" : 1 ,\n \"a\" : 2}", want{strictjson.CodeDuplicate, 14, 3, 2}},
		{"pointer is escaped", `{"a/b~c":{"x":1,"x":2}}`, at(strictjson.CodeDuplicate, 16)},

		{"second document", `{"a":1}{"a":2}`, at(strictjson.CodeTrailing, 7)},
		{"second document on a new line", "{}\n{}", want{strictjson.CodeTrailing, 3, 2, 1}},
		{"trailing garbage", `{} x`, at(strictjson.CodeTrailing, 3)},
		{"trailing NUL", "{}\x00", at(strictjson.CodeTrailing, 2)},
		{"trailing BOM", "{}\ufeff", at(strictjson.CodeTrailing, 2)},
		{"trailing comma", `{},`, at(strictjson.CodeTrailing, 3)},
		{"two scalars", `1 2`, at(strictjson.CodeTrailing, 2)},

		{"invalid UTF-8 in a value", "{\"id\":\"H200\xff\"}", at(strictjson.CodeUTF8, 11)},
		{"invalid UTF-8 in a name", "{\"\xffid\":1}", at(strictjson.CodeUTF8, 2)},
		{"overlong UTF-8", "\"\xc0\xaf\"", at(strictjson.CodeUTF8, 1)},
		{"truncated UTF-8", "\"\xe2\x82\"", at(strictjson.CodeUTF8, 1)},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", at(strictjson.CodeUTF8, 1)},
		{"UTF-16 LE with mark", "\xff\xfe{\x00}\x00", at(strictjson.CodeUTF8, 0)},
		{"UTF-16 BE without mark", "\x00{\x00}", at(strictjson.CodeControl, 0)},
		{"BOM", "\ufeff{}", at(strictjson.CodeBOM, 0)},
		{"BOM alone", "\ufeff", at(strictjson.CodeBOM, 0)},

		{"lone high surrogate", `{"id":"H200\ud800"}`, at(strictjson.CodeSurrogate, 11)},
		{"lone low surrogate", `"\udc00"`, at(strictjson.CodeSurrogate, 1)},
		{"surrogates swapped", `"\udc00\ud800"`, at(strictjson.CodeSurrogate, 1)},
		{"high surrogate then a letter", `"\ud800\u0041"`, at(strictjson.CodeSurrogate, 1)},
		{"lone surrogate in a name", `{"\ud800":1}`, at(strictjson.CodeSurrogate, 2)},

		{"raw NUL in a string", "\"a\x00b\"", at(strictjson.CodeControl, 2)},
		{"raw newline in a string", "\"a\nb\"", at(strictjson.CodeControl, 2)},
		{"escaped NUL", `{"id":"A40\u0000H200"}`, at(strictjson.CodeControl, 6)},
		{"tab in a name", `{"a\tb":1}`, at(strictjson.CodeControl, 1)},

		{"truncated object", `{"a":1`, at(strictjson.CodeTruncated, 6)},
		{"truncated string", `{"a":"b`, at(strictjson.CodeTruncated, 7)},
		{"truncated literal", `tru`, at(strictjson.CodeTruncated, 3)},
		{"missing comma", `{"a":1 "b":2}`, at(strictjson.CodeSyntax, 7)},
		{"missing colon", `{"a" 1}`, at(strictjson.CodeSyntax, 5)},
		{"comma before the brace", `{"a":1,}`, at(strictjson.CodeSyntax, 6)},
		{"comma before the bracket", `[1,]`, at(strictjson.CodeSyntax, 2)},
		{"number as a name", `{1:2}`, at(strictjson.CodeSyntax, 1)},
		{"single quotes", `{'a':1}`, at(strictjson.CodeSyntax, 1)},
		{"comment", `{}//`, at(strictjson.CodeTrailing, 2)},
		{"NaN", `[NaN]`, at(strictjson.CodeSyntax, 1)},
		{"plus sign", `[+1]`, at(strictjson.CodeSyntax, 1)},
		{"leading zero", `[01]`, at(strictjson.CodeSyntax, 2)},
		{"leading point", `[.5]`, at(strictjson.CodeSyntax, 1)},
		{"hexadecimal", `[0x10]`, at(strictjson.CodeSyntax, 2)},
		{"bad escape", `"\x41"`, at(strictjson.CodeSyntax, 1)},
		{"mismatched brackets", `[1}`, at(strictjson.CodeSyntax, 2)},

		{"33 deep", strings.Repeat("[", 33) + strings.Repeat("]", 33), at(strictjson.CodeDepth, 32)},
		{"33 digits", strings.Repeat("9", 33), at(strictjson.CodeNumber, 0)},
		{"number bomb", `{"count":1e1000000}`, at(strictjson.CodeNumber, 9)},
		{"negative exponent bomb", `[1e-1000]`, at(strictjson.CodeNumber, 1)},
		{"exponent beyond int64", `1e99999999999999999999`, at(strictjson.CodeNumber, 0)},
		{"too many values", array(102_400), at(strictjson.CodeValues, int64(len(array(102_400))-2))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := decode(tt.text)
			e, ok := errors.AsType[*strictjson.SyntaxError](err)
			if !ok {
				t.Fatalf("Decode = %v, %v, want a SyntaxError", v, err)
			}
			got := want{e.Code, e.Offset, e.Line, e.Column}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Every single byte from 0x80 up is not UTF-8 by itself, whether it stands in a
// name, in a value or between tokens.
func TestDecodeRefusesEveryLoneByte(t *testing.T) {
	for b := 0x80; b <= 0xff; b++ {
		for _, format := range []string{"{\"a\":\"x%cy\"}", "{\"x%cy\":1}", "[1,%c]"} {
			text := strings.Replace(format, "%c", string([]byte{byte(b)}), 1)
			_, err := decode(text)
			if e, ok := errors.AsType[*strictjson.SyntaxError](err); !ok || e.Code != strictjson.CodeUTF8 {
				t.Errorf("Decode(%q) = %v, want code %s", text, err, strictjson.CodeUTF8)
			}
		}
	}
}

func TestDecodeDepth(t *testing.T) {
	for _, tt := range []struct {
		depth int
		ok    bool
	}{{1, true}, {31, true}, {32, true}, {33, false}, {5000, false}, {100_000, false}} {
		for _, p := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
			inner := map[string]string{"[": "", `{"a":`: "1"}[p[0]]
			text := strings.Repeat(p[0], tt.depth) + inner + strings.Repeat(p[1], tt.depth)
			if _, err := decode(text); (err == nil) != tt.ok {
				t.Errorf("%d times %s: %v, want accepted = %v", tt.depth, p[0], err, tt.ok)
			}
		}
	}
}

// A text made to cost much must cost little: the bounds are on work, not only on
// the verdict. The figures are wide; they catch arithmetic on a number
// of a million digits or memory in proportion to nesting. How long the machine
// lets a run wait says nothing, so one that is in time will do.
func TestDecodeBoundsWork(t *testing.T) {
	enough := 20 * time.Millisecond
	if raceDetector {
		enough = 200 * time.Millisecond
	}
	bombs := map[string]string{
		"exponent":      `{"count":1e1000000}`,
		"digits":        `{"count":` + strings.Repeat("9", 100_000) + `}`,
		"open brackets": strings.Repeat("[", 100_000),
		"open objects":  strings.Repeat(`{"a":`, 20_000),
		"wide object":   object(10_000),
		"wide array":    array(50_000),
		"empty objects": "[" + strings.Repeat("["+strings.Repeat("{},", 999)+"{}],", 30) + "1]",
		"long string":   `"` + strings.Repeat("x", 100_000) + `"`,
	}
	for name, text := range bombs {
		t.Run(name, func(t *testing.T) {
			took, allocated := cost(enough, func() {
				_, _ = decode(text)
			})
			if took > enough {
				t.Errorf("Decode took %v, want at most %v", took, enough)
			}
			if allocated > 8<<20 {
				t.Errorf("Decode allocated %d bytes, want at most 8 MiB", allocated)
			}
		})
	}
}

// cost returns the least time and memory of at least five runs of f, and of more
// until one takes no longer than enough.
func cost(enough time.Duration, f func()) (took time.Duration, allocated uint64) {
	took, allocated = math.MaxInt64, math.MaxUint64
	for n := 0; n < 5 || n < 200 && took > enough; n++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f()
		took = min(took, time.Since(start))
		runtime.ReadMemStats(&after)
		allocated = min(allocated, after.TotalAlloc-before.TotalAlloc)
	}
	return took, allocated
}

func TestLimitsZeroMeansDefault(t *testing.T) {
	if _, err := strictjson.Decode([]byte(strings.Repeat("[", 40)+strings.Repeat("]", 40)), strictjson.Limits{}); err == nil {
		t.Error("zero limits accepted a depth of 40")
	}
	if _, err := strictjson.Decode([]byte(`[[]]`), strictjson.Limits{Depth: 1}); err == nil {
		t.Error("a depth of 1 accepted [[]]")
	}
	if _, err := strictjson.Decode([]byte(`"\u0000"`), strictjson.Limits{AllowControls: true}); err != nil {
		t.Errorf("Controls refused an escaped NUL: %v", err)
	}
}

func TestDecodeLenient(t *testing.T) {
	text := `{"line":"\u001b[1mboot\u0000","cost":0.6900000000000000355271367880050092935562133789,"n":` + array(5000) + `}`
	got, err := strictjson.DecodeLenient([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := got.(map[string]any)
	if want := json.Number("0.6900000000000000355271367880050092935562133789"); m["cost"] != want {
		t.Errorf("cost = %v, want %v unchanged", m["cost"], want)
	}
	if want := "\x1b[1mboot\x00"; m["line"] != want {
		t.Errorf("line = %q, want %q", m["line"], want)
	}
	for _, bad := range []string{"{", `{"a":1,"a":2}`, "\ufeff{}", "{}{}", "\"\xff\"", "1e100000", strings.Repeat("[", 200)} {
		if v, err := strictjson.DecodeLenient([]byte(bad)); err == nil {
			t.Errorf("DecodeLenient(%.20q) = %v, want an error", bad, v)
		}
	}
}

// What an error says of the text is at most 64 characters of a name.
func TestErrorsDoNotCarryTheBody(t *testing.T) {
	name := strings.Repeat("é", 500)
	_, err := decode(`{"` + name + `":1,"` + name + `":2}`)
	e, ok := errors.AsType[*strictjson.SyntaxError](err)
	if !ok {
		t.Fatalf("error = %v, want a SyntaxError", err)
	}
	for what, s := range map[string]string{"message": e.Message, "text": e.Error()} {
		if n := strings.Count(s, "é"); n > 64 {
			t.Errorf("%s repeats %d characters of the name, want at most 64", what, n)
		}
	}
	_, err = decode(`{"password":"s3cret` + "\x01" + `"}`)
	if strings.Contains(fmt.Sprintf("%+v", err), "s3cret") {
		t.Errorf("error %v carries a value", err)
	}
}

func TestDecodeSharesNoMemory(t *testing.T) {
	data := []byte(`{"name":"value","n":12}`)
	v, err := strictjson.Decode(data, strictjson.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(data)
	for i := range data {
		data[i] = 'x'
	}
	want := mustAny(t, string(before))
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("the value changed with the text it came from (-want +got):\n%s", diff)
	}
}

func object(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func array(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }

// mustAny decodes by the standard library, as a second opinion.
func mustAny(tb testing.TB, text string) any {
	tb.Helper()
	v, err := standard(text)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func standard(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}
