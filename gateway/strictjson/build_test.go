package strictjson

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyLimits are bounds that differ in every way.
func everyLimits() []Limits {
	return []Limits{
		DefaultLimits(), RunLimits(), AnswerLimits(),
		{Depth: 2, Values: 5, NumberChars: 4, Exponent: 9},
	}
}

// built holds what the builder makes of a text against what decoder does.
func built(t *testing.T, text string, l Limits) {
	t.Helper()
	want, refused := judge([]byte(text), l)
	for _, b := range []builder{{text: text}, {separate: true}, {separate: true, objects: true}} {
		data := []byte(text)
		b.data, b.lim = data, l.orDefault()
		got, ok := b.document()
		if ok != (refused == nil) {
			t.Fatalf("%.200q, %+v: accepted = %v; decoder says %v", text, l, ok, refused)
		}
		if !ok {
			continue
		}
		clear(data) // the values share no memory with it
		if diff := cmp.Diff(want, unlisted(got)); diff != "" {
			t.Fatalf("%.200q, %+v (-decoder +builder):\n%s", text, l, diff)
		}
	}
}

// TestDecodeListed: objects are read by name, large ones are maps.
func TestDecodeListed(t *testing.T) {
	v, err := DecodeListed([]byte(`{"b":{"c":null},"a":[{}]}`))
	o, ok := v.(Object)
	if err != nil || !ok || len(o) != 2 || o[0].Name != "b" {
		t.Fatalf("%#v, %v", v, err)
	}
	inner, _ := o.Get("b")
	if c, ok := inner.(Object).Get("c"); c != nil || !ok {
		t.Errorf("c is %v, %v, want null", c, ok)
	}
	if d, ok := o.Get("d"); d != nil || ok {
		t.Errorf("d is %v, %v, want none", d, ok)
	}
	if diff := cmp.Diff(map[string]any{"b": map[string]any{"c": nil}, "a": []any{map[string]any{}}}, unlisted(v)); diff != "" {
		t.Error(diff)
	}
	var wide strings.Builder
	for i := range maxListed + 1 {
		fmt.Fprintf(&wide, `"%d":0,`, i)
	}
	if v, err := DecodeListed([]byte("{" + wide.String() + `"x":1}`)); err != nil || len(v.(map[string]any)) != maxListed+2 {
		t.Errorf("a large object: %v, %v", v, err)
	}
	if _, err := DecodeListed([]byte("{" + wide.String() + `"7":1}`)); err == nil {
		t.Error("a name given twice in a large object is accepted")
	}
	_, want := DecodeLenient([]byte(`{"a":1,"a":2}`))
	if _, err := DecodeListed([]byte(`{"a":1,"a":2}`)); err == nil || err.Error() != want.Error() {
		t.Errorf("a name given twice: %v, want %v", err, want)
	}
}

// FuzzBuilder: it accepts what decoder accepts, and makes the same of it.
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
	b := builder{data: []byte(list), separate: true, lim: AnswerLimits()}
	v, ok := b.document()
	if !ok || len(v.([]any)) != 2001 {
		t.Fatalf("accepted %v: %T", ok, v)
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
