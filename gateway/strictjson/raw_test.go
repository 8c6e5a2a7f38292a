package strictjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// whole returns v with every Raw in it decoded.
func whole(v any) any {
	switch v := v.(type) {
	case *strictjson.Raw:
		return whole(v.Decoded())
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[name] = whole(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = whole(item)
		}
		return out
	default:
		return v
	}
}

// same holds what DecodeAround makes of a text against what DecodeInPlace does, and
// reports whether the text was accepted.
func same(tb testing.TB, text string, l strictjson.Limits) bool {
	tb.Helper()
	want, refused := strictjson.DecodeInPlace([]byte(text), l)
	got, err := strictjson.DecodeWithRaw([]byte(text), "input", l)
	if fmt.Sprint(err) != fmt.Sprint(refused) {
		tb.Fatalf("%.200q: DecodeAround says %v, DecodeInPlace %v", text, err, refused)
	}
	if refused != nil {
		return false
	}
	// The canonical form tells different values apart.
	canonical := func(v any) string {
		text, err := strictjson.Append(nil, v)
		if err != nil {
			tb.Fatalf("%.200q: %v", text, err)
		}
		return string(text)
	}
	if one, other := canonical(want), canonical(whole(got)); one != other {
		tb.Fatalf("%.200q is read in two ways: %.200q, %.200q", text, one, other)
	}
	var pieces bytes.Buffer
	sent := canonical(got)
	if err := strictjson.Write(&pieces, got); err != nil || pieces.String() != sent {
		tb.Fatalf("%.200q: Write differs from Append: %v", text, err)
	}
	back, err := strictjson.Decode([]byte(sent), l)
	if err != nil {
		tb.Fatalf("%.200q is written as %.200q: %v", text, sent, err)
	}
	if judged, sent := canonical(want), canonical(back); judged != sent {
		tb.Fatalf("%.200q: judged as %.200q, sent as %.200q", text, judged, sent)
	}
	return true
}

// FuzzDecodeAround: it accepts what DecodeInPlace accepts, refuses the rest for the same
// reason, and the parts that it keeps decode, and are written, as the same value.
func FuzzDecodeAround(f *testing.F) {
	for _, seed := range append(spellings(),
		`{"input":{"a":1,"\u0061":2}}`, `{"input":{}}{}`, "\xef\xbb\xbf{}", "{\"input\":\"\xff\"}", `{"input":"\ud800"}`, `{"input":1e1000}`,
		`{"input":"\x"}`, `{"input":"\u00g0"}`, `{"input":[1,]}`, `{"input":01}`, `{"input":.5}`, `{"input":1.}`, `{"input":-}`, `{"input":tru}`, `{"input"`, `{`, ``,
		"{\"input\":\"\x1f\"}", `{"input":"\u+123"}`, `{"input":"\ud83d\u0041"}`, `{"in\u0070ut":1,"input":2}`, `{"input":"abcdefg\"`,
	) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		same(t, string(data), strictjson.RunLimits())
		same(t, string(data), strictjson.Limits{Depth: 3, Values: 6, NumberChars: 4, Exponent: 9, AllowControls: true})
		same(t, string(data), strictjson.DefaultLimits())
	})
}

// spellings are texts that are accepted.
func spellings() []string {
	return []string{
		`{"input":{"a":[1,-0.5e+3,true,false,null,"\ud83d\ude00\/\u00e9é😀"]},"policy":{"ttl":1}}`,
		" {\t\"\\u0069nput\" :\r\n [ ] , \"\" : { } } ",
		`{"input":"` + strings.Repeat("é", 100) + `"}`,
		`{"input":{"large":[` + strings.Repeat("0,", 5000) + `0],"small":[1],"text":"` + strings.Repeat("x", 5000) + `"}}`,
		`{"input":` + object(fewNames-1) + `}`, `{"input":` + object(fewNames) + `}`, `{"input":` + object(5000) + `}`,
		`{"input":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
		"{\"input\":\"\x7f\\u0000\"}", `{}`, `[]`, `1`, `{"input":null}`,
	}
}

const fewNames = 16

func TestDecodeAround(t *testing.T) {
	for _, text := range spellings() {
		if !same(t, text, strictjson.RunLimits()) {
			t.Errorf("%.100q is refused", text)
		}
	}
	doc, err := strictjson.DecodeWithRaw([]byte(`{"input": {"b": 1, "a": "\u00e9"}, "policy": {"z": 1, "a": 2}}`), "input", strictjson.RunLimits())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"input":{"b": 1, "a": "\u00e9"},"policy":{"a":2,"z":1}}`
	if got, err := strictjson.Append(nil, doc); string(got) != want || err != nil {
		t.Errorf("sent %s, %v; want %s", got, err, want)
	}
	standard, err := json.Marshal(doc)
	if back, rerr := strictjson.Decode(standard, asSpelled()); err != nil || rerr != nil || !cmp.Equal(back, whole(doc)) {
		t.Errorf("package json writes %s, %v, %v", standard, err, rerr)
	}
}

// TestDecodeAroundRefusesNamesGivenTwice, at any depth, at any place among few or many, however
// they are spelled.
func TestDecodeAroundRefusesNamesGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.IntRange(1, 40).Draw(t, "members")
		twice, at := rapid.IntRange(0, members-1).Draw(t, "twice"), rapid.IntRange(0, members).Draw(t, "at")
		var list []string
		for i := range members {
			list = append(list, fmt.Sprintf(`"n%d":0`, i))
		}
		again := rapid.SampledFrom([]string{`"n%d":1`, `"\u006e%d":1`}).Draw(t, "spelling")
		list = append(list[:at], append([]string{fmt.Sprintf(again, twice)}, list[at:]...)...)
		text := "{" + strings.Join(list, ",") + "}"
		for range rapid.IntRange(0, 5).Draw(t, "depth") {
			text = fmt.Sprintf(rapid.SampledFrom([]string{`[%s]`, `{"a":%s}`, `{"n1":{},"b":[0,%s]}`}).Draw(t, "around"), text)
		}
		_, err := strictjson.DecodeWithRaw([]byte(`{"input":`+text+`}`), "input", strictjson.RunLimits())
		if err == nil || !strings.Contains(err.Error(), "duplicate member name") {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// TestKeptIsNotCopied: a megabyte that is not looked at costs no memory.
func TestKeptIsNotCopied(t *testing.T) {
	data := []byte(job)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v, err := strictjson.DecodeWithRaw(data, "input", strictjson.RunLimits())
	if err == nil {
		err = strictjson.Write(discard{}, v)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 64<<10 {
		t.Errorf("%v; %d bytes were allocated for a document of %d", err, took, len(data))
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// job is a list of what documents for embeddings look like, of 1 MB.
var job = `{"input":{"parts":[` + strings.Repeat(`{"text":"the quick brown fox jumps over the lazy dog","score":0.125,"at":[1,2,3]},`, 13_000) + `{}]}}`

func BenchmarkDecodeAround(b *testing.B) {
	for name, text := range map[string]string{
		"parts": job, "text": `{"input":{"image":"` + strings.Repeat("iVBORw0KGgo", 95_000) + `"}}`, "escapes": `{"input":"` + strings.Repeat(`a line of it\n`, 75_000) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			data := []byte(text)
			for b.Loop() {
				if _, err := strictjson.DecodeWithRaw(data, "input", strictjson.RunLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
