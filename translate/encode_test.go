package translate

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// reference is the output of encoding/json.
func reference(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), err
}

func compare(t rapid.TB, v any) {
	t.Helper()
	want, wantErr := reference(v)
	got, err := AppendJSON(nil, v)
	if string(got) != want && wantErr == nil || (err == nil) != (wantErr == nil) {
		t.Fatalf("AppendJSON(%#v) = %q, %v, want %q, %v", v, got, err, want, wantErr)
	}
}

func TestAnswersAreWrittenAsEncodingJSONDoes(t *testing.T) {
	for _, v := range []any{
		nil, true, "", "a<b>&c", "q\"\\\n\x00\x7f\u2028ä\xff", 0, int64(math.MinInt64), 1.5, math.NaN(), math.Inf(1), []any(nil),
		[]any{},
		map[string]any(nil),
		map[string]any{},
		[]string{"a"},
		map[string]string{"b": "c"},
		json.Number("0"), json.Number("0.5"), json.Number("10"), json.Number("01"),
		json.Number("-1"), json.Number("1e5"), json.Number("1."), json.Number(".5"), json.Number("1.2.3"), json.Number(""), json.Number("x"), json.Number("00.5"),
		map[string]any{"bad": math.NaN()},
		[]any{json.Number("1.")},
	} {
		compare(t, v)
	}
	for c := range 256 { // each byte at each place
		for at := range 20 {
			compare(t, strings.Repeat("x", at)+string([]byte{byte(c)})+"~ !#[]"+strings.Repeat("y", at%5))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.StringMatching(`[-.e0-9]{0,6}`), func(s string) any { return json.Number(s) }),
			rapid.Map(rapid.Int(), func(n int) any { return n }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		)
		list := rapid.Map(rapid.SliceOfN(leaf, 0, 4), func(l []any) any { return l })
		compare(t, any(rapid.MapOfN(rapid.String(), rapid.OneOf(leaf, list), 0, 6).Draw(t, "value")))
	})
}
