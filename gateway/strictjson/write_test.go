package strictjson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// TestWriteIsAppend: both write the same form, for any size and any end of a
// piece.
func TestWriteIsAppend(t *testing.T) {
	long := strings.Repeat("aé\u001b\"\\😀", 10_000)
	for name, v := range map[string]any{
		"null": nil, "number": json.Number("1.50"), "empty": "", "list": []any{}, "object": map[string]any{},
		"long string": long, "shifted": "x" + long, "shifted by two": "xy" + long, "long name": map[string]any{long: long, "b": []any{true, long}},
		"many": func() any {
			items := make([]any, 50_000)
			for i := range items {
				items[i] = map[string]any{"z": json.Number("1e3"), "a": "ü"}
			}
			return items
		}(),
	} {
		want, err := strictjson.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := strictjson.Write(&got, v); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: Write differs from Append: %v", name, err)
		}
	}
}

// TestWriteRefuses: what Append refuses, Write does.
func TestWriteRefuses(t *testing.T) {
	deep := any("x")
	for range 1001 {
		deep = []any{deep}
	}
	for name, v := range map[string]any{
		"type": 1, "number": json.Number("01"), "text": "\xff", "long text": strings.Repeat("\x80", 1<<20), "name": map[string]any{"\xff": nil}, "depth": deep,
	} {
		if err := strictjson.Write(io.Discard, v); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLargeDocumentsAreNotCopied: reading and writing 20 MB takes no second 20 MB.
func TestLargeDocumentsAreNotCopied(t *testing.T) {
	data := []byte(`{"input":{"image":"` + strings.Repeat("iVBORw0KGgo", 20<<20/11) + `"}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v, err := strictjson.DecodeInPlace(data, strictjson.RunLimits())
	if err == nil {
		err = strictjson.Write(io.Discard, v)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 1<<20 {
		t.Errorf("%v; %d bytes were allocated for a document of %d", err, took, len(data))
	}
}
