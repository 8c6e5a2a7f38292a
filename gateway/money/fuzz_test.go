package money_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzReader checks that the result of a response does not depend on where it is cut into parts,
// and that counts are in their bounds.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		sse(role, hello, final, done), sse(hello, strings.Replace(hello, "hello", " ", 1), strings.Replace(hello, "hello", "", 1), final, hello),
		sse(`{"id":"a","text":"x","text":"y\"z"}`, `{"id":"a","text":"x","text":"y\"","usage":{"input":1,"output":2},"b":"z"}`, `{"id":"a","text":"x","text":"y\"+"}`), sse(trap, `{"error":"busy"}`), "\ufeff: x\r\ndata: {\"usage\":\rdata: {\"total_tokens\":15}}\r\r",
		`[{"id":"a","usage":{"input":1,"output":2}},{"id":"b","usageMetadata":{"totalTokenCount":3}}]`,
		`{"id":"j","status":"COMPLETED","executionTime":3,"output":[{"cost":1.5,"text":"\ud83d\ude00\\"}]}`,
		"{\"response\":\"a\"}\n{\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}\n", "event: error\nerror: x\ndata\n\n",
		"event: content_block_delta\ndata: {\"delta\":{\"text\":\"a\"}}\n\nevent:  error\ndata: {\"text\":\"b\"}\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":5}}\n\n",
	} {
		f.Add(text, uint16(3), false, false)
		f.Add(text, uint16(1), true, true)
	}
	f.Fuzz(func(t *testing.T, text string, size uint16, lines, cut bool) {
		whole := read(&money.Reader{Lines: lines}, text, 0, cut)
		parts := read(&money.Reader{Lines: lines}, text, int(size), cut)
		if diff := cmp.Diff(whole, parts); diff != "" {
			t.Errorf("in parts of %d bytes (-whole +parts):\n%s", size, diff)
		}
		n := whole.Tokens
		if n.Input < 0 || n.Output < 0 || n.Unsplit < 0 || whole.Known && whole.Failed || !whole.Known && !whole.Partial && n != (money.Tokens{}) {
			t.Errorf("%+v", whole)
		}
	})
}

// The memory of a Reader does not grow with a response: of its strings, numbers, white space, lists, events and lines.
func TestMemoryIsBounded(t *testing.T) {
	const size, most = 8 << 20, 4 << 20
	for name, tc := range map[string]struct{ begin, part, end string }{
		"a string":       {`{"output":"`, strings.Repeat("x", 1<<10), `"}`},
		"escapes":        {`{"output":"`, strings.Repeat(`\u0041\n`, 1<<7), `"}`},
		"a name":         {`{"`, strings.Repeat("x", 1<<10), `":1}`},
		"white space":    {`{`, strings.Repeat(" \n", 1<<9), `"a":1}`},
		"a number":       {`{"a":`, strings.Repeat("1", 1<<10), `}`},
		"no JSON":        {`{"a":`, strings.Repeat("tru", 1<<9), `}`},
		"a list":         {`{"embedding":[1`, strings.Repeat(",0.25", 1<<8), `]}`},
		"a list we read": {`{"output":[1`, strings.Repeat(`,{"id":"x","usage":{"input":1,"output":2}}`, 1<<5), `]}`},
		"members":        {`{"a":1`, strings.Repeat(`,"b":{"c":2}`, 1<<7), `}`},
		"counts":         {`{"usage":{"input":1`, strings.Repeat(`,"input":1`, 1<<7), `}}`},
		"nesting":        {`{"a":1,"data":`, strings.Repeat(`[`, 1<<10), ``},
		"events":         {sse(hello), sse(strings.Repeat(hello, 4)), sse(final)},
		"an event":       {"data: {\"text\":\"", strings.Repeat("x", 1<<10), "\"}\n\n"},
		"data lines":     {"data: {\n", "data: \"a\":\ndata: 1,\n", "data: }\n\n"},
		"a field name":   {"data: {}\n\n", strings.Repeat("x", 1<<10), ": y\n\n"},
		"a comment":      {": ", strings.Repeat("x", 1<<10), "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(money.Reader)
			_, _ = r.Write([]byte(tc.begin))
			part := []byte(tc.part)
			before := inUse()
			for range size / len(part) {
				_, _ = r.Write(part)
			}
			if after := inUse(); after > before+most {
				t.Errorf("the Reader holds %d KB after %d MB", (after-before)>>10, size>>20)
			}
			_, _ = r.Write([]byte(tc.end))
			r.End(false)
		})
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func BenchmarkEvents(b *testing.B) {
	event := []byte(sse(hello))
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	r := new(money.Reader)
	for b.Loop() {
		_, _ = r.Write(event)
	}
	r.End(false)
}

func BenchmarkPlain(b *testing.B) {
	text := []byte(`{"id":"c","choices":[{"message":{"content":"` + strings.Repeat("hello ", 500) + `"}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := new(money.Reader)
		_, _ = r.Write(text)
		r.End(false)
	}
}
