package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// embeddings are lists of numbers as clients send them, n values in all.
func embeddings(n int) string {
	const row = 1536
	one := "[" + strings.Repeat("-0.0123,", row-1) + "1e-3]"
	return "[" + strings.Repeat(one+",", n/row) + one + "]"
}

// Numbers in lists of the input of a job are as many as fit; all else is counted, duplicates are found, and nothing beyond the
// bounds is built.
func TestLongLists(t *testing.T) {
	l := strictjson.RunLimits()
	for _, tt := range []struct {
		name, text string
		code       strictjson.Code // "" is accepted
	}{
		{"embeddings", `{"input":{"vectors":` + embeddings(2_000_000) + `,"n":1}}`, ""},
		{"a list alone", `{"input":` + embeddings(600_000) + `}`, ""},
		{"a name twice behind them", `{"input":{"vectors":` + embeddings(600_000) + `,"n":1,"n":2}}`, strictjson.CodeDuplicate},
		{"not a number among them", `{"input":[` + strings.Repeat("1,", 600_000) + `01]}`, strictjson.CodeSyntax},
		{"elsewhere", `{"input":{},"policy":` + embeddings(600_000) + `}`, strictjson.CodeValues},
		{"strings", `{"input":[` + strings.Repeat(`"",`, 400_000) + `""]}`, strictjson.CodeValues},
		{"lists", `{"input":[` + strings.Repeat(`[],`, 400_000) + `[]]}`, strictjson.CodeValues},
		{"names", `{"input":[` + strings.Repeat(`{"a":1},`, 200_000) + `{}]}`, strictjson.CodeValues},
		{"too deep", `{"input":` + strings.Repeat("[", 64) + embeddings(600_000) + strings.Repeat("]", 64) + `}`, strictjson.CodeDepth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := strictjson.DecodeWithRaw([]byte(tt.text), "input", l)
			refused, _ := errors.AsType[*strictjson.SyntaxError](err)
			if got := codeOf(refused); got != tt.code {
				t.Fatalf("%v, want %q", err, tt.code)
			}
			if err != nil {
				return
			}
			sent, err := strictjson.Append(nil, v)
			if err != nil || string(sent) != tt.text {
				t.Errorf("it is not written as it was: %v", err)
			}
		})
	}
}

func codeOf(e *strictjson.SyntaxError) strictjson.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

// Members beside a long list can be read; the list itself, which would take a hundred times its bytes, cannot.
func TestLongListsAreNotBuilt(t *testing.T) {
	text := `{"input":{"vectors":` + embeddings(600_000) + `,"n":1}}`
	v, err := strictjson.DecodeWithRaw([]byte(text), "input", strictjson.RunLimits())
	if err != nil {
		t.Fatal(err)
	}
	input := v.(map[string]any)["input"].(*strictjson.Raw).Decoded().(map[string]any)
	if n := input["n"]; n != any(json.Number("1")) {
		t.Errorf("n is %v, want 1", n)
	}
	if long := input["vectors"].(*strictjson.Raw).Decoded(); long != any(strictjson.ErrTooManyNumbers) {
		t.Errorf("the list decodes to a %T, want ErrLong", long)
	}
}

// Short lists beside each other are not built together beyond a bound.
func TestManyShortLists(t *testing.T) {
	short := "[" + strings.Repeat("1,", 2000) + "1]"
	var b strings.Builder
	b.WriteString(`{"input":{`)
	for i := range 4000 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strings.Repeat("a", i%50) + string(rune('a'+i%26)) + strings.Repeat("b", i/50) + `":` + short)
	}
	b.WriteString(`}}`)
	v, err := strictjson.DecodeWithRaw([]byte(b.String()), "input", strictjson.RunLimits())
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	for _, item := range v.(map[string]any)["input"].(*strictjson.Raw).Decoded().(map[string]any) {
		if list, ok := item.([]any); ok {
			built += len(list)
		}
	}
	if built > 600_000 {
		t.Errorf("%d values were built of %d", built, 4000*2001)
	}
}

func BenchmarkRefuseValues(b *testing.B) {
	data := []byte(`{"input":[` + strings.Repeat(`"",`, 700_000) + `""]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.DecodeWithRaw(data, "input", strictjson.RunLimits()); err == nil {
			b.Fatal("it was accepted")
		}
	}
}

func BenchmarkEmbeddings(b *testing.B) {
	data := []byte(`{"input":{"vectors":` + embeddings(2_000_000) + `}}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.DecodeWithRaw(data, "input", strictjson.RunLimits()); err != nil {
			b.Fatal(err)
		}
	}
}
