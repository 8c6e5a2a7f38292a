package strictjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyLimits are bounds that differ in every way.
func everyLimits() []Limits {
	return []Limits{
		DefaultLimits(), RunLimits(), ResponseLimits(),
		{Depth: 2, Values: 5, NumberChars: 4, Exponent: 9},
	}
}

// standard returns the value of a text by the standard library, with numbers as the limits ask.
func standard(t *testing.T, text string, l Limits) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%.200q is accepted; the standard library says %v", text, err)
	}
	var asked func(v any) any
	asked = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, item := range v {
				v[name] = asked(item)
			}
		case []any:
			for i, item := range v {
				v[i] = asked(item)
			}
		case json.Number:
			if l.NormalizeIntegers {
				return json.Number(plain(string(v)))
			}
		}
		return v
	}
	return asked(v)
}

// built compares the builder's verdict on a text with findError's, and its value with the standard library's.
func built(t *testing.T, text string, l Limits) {
	t.Helper()
	refused := findError([]byte(text), l.orDefault())
	for _, separate := range []bool{false, true} {
		data := []byte(text)
		b := builder{data: data, text: text, separate: separate, lim: l.orDefault()}
		got, ok := b.document()
		if ok != (refused == nil) {
			t.Fatalf("%.200q, %+v: accepted = %v; findError says %v", text, l, ok, refused)
		}
		if !ok {
			continue
		}
		clear(data) // the values share no memory with it
		if diff := cmp.Diff(standard(t, text, l), got); diff != "" {
			t.Fatalf("%.200q, %+v (-standard +builder):\n%s", text, l, diff)
		}
	}
}

// FuzzBuilder: it accepts what has no error, and makes of it what the standard library makes.
func FuzzBuilder(f *testing.F) {
	for _, seed := range buildSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range everyLimits() {
			built(t, text, l)
		}
	})
}

func buildSeeds() []string {
	name := func(i int) string { return `"` + strings.Repeat("n", i) + `":{"a":[]},` }
	var wide strings.Builder
	for i := range 40 {
		wide.WriteString(name(i))
	}
	return []string{
		`{"pods":[{"id":"a","env":{"A":"1","B":null},"cost":0.43,"on":true},{"id":"b","env":{},"ports":[]}]}`,
		`{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":2}}`, `[{"a":1},{"a":1}]`, `{` + wide.String() + `"z":1}`, `{` + wide.String() + `"nn":1}`,
		"{\"a\x7f\":1}", `{"a\u007f":1}`, `{"a":"\u0000"}`, `{"\u0000":1}`, "\"\x7f\\u0001\"", `"\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"", "\xef\xbb\xbf{}",
		`1e0`, `[20.0,-0,-0.0,1e+0009,1e10,1E-9,1e,1.,-,01,1e99999999999999999999]`, `-1.5e3`, `12345`, `[[[]]]`, `[[[[]]]]`, `{"a":{"b":{}}}`, `{"a":{}}`,
		` [ 1 , 2 ] `, `[1,2,3,4]`, `[1,2,3,4,5]`, `[1,]`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `[`, `{`, `"`, `tru`, `nul`, `{}{}`, `[]x`, ``, ` `, `{1:2}`,
		`"` + strings.Repeat("x", 3*blockSize) + `"`, `["` + strings.Repeat(strings.Repeat("y", 100)+`","`, 40) + `"]`, `"` + strings.Repeat("é", maxShort) + `"`,
	}
}

// TestKeptStringsKeepLittle: a string of an answer that is kept keeps a block at most,
// not the answer.
func TestKeptStringsKeepLittle(t *testing.T) {
	list := `["` + strings.Repeat(strings.Repeat("y", 100)+`","`, 2000) + `"]`
	b := builder{data: []byte(list), separate: true, lim: ResponseLimits()}
	v, ok := b.document()
	if !ok || len(v.([]any)) != 2001 {
		t.Fatalf("%v, %d items", ok, len(v.([]any)))
	}
	if cap(b.block) > blockSize {
		t.Errorf("strings share a block of %d bytes, want %d at most", cap(b.block), blockSize)
	}
	if got, want := v.([]any)[1999], any(strings.Repeat("y", 100)); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestDecodeLenientAllocates: little more than the values themselves.
func TestDecodeLenientAllocates(t *testing.T) {
	text := []byte(`{"pods":[` + strings.Repeat(`{"id":"a","name":"b","gpu":{"id":"c","count":1}},`, 49) + `{}]}`)
	allocated := testing.AllocsPerRun(10, func() {
		if _, err := DecodeLenient(text); err != nil {
			t.Fatal(err)
		}
	})
	// An object is one or two, and each string and number in an interface one.
	if most := 49*(2*2+4) + 50; allocated > float64(most) {
		t.Errorf("%v allocations, want %d at most", allocated, most)
	}
}
