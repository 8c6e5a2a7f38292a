package runs

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/tollgate-dev/tollgate/test/world"
)

// dollars gives the organisation a budget, and each token the price of a dollar.
const dollars = `budget: {per_day: 5000}
    model_paths: [responses, messages, rerank]
    prices:
      runs:
        llm: {usd_per_million_tokens: 1000000, usd_per_million_cached_tokens: 250000, default_tokens: 500}`

const (
	chatTarget = "/v2/llm/openai/v1/chat/completions"
	asksStream = `{"model":"llm","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	asksPlain  = `{"model":"llm","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`

	word    = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n"
	account = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\n"
	end     = "data: [DONE]\n\n"
)

// reservation returns the most that a chat costs: its bytes as those of the prompt, and max_tokens.
func reservation(body string) string { return fmt.Sprint(len(body) + 100) }

// model answers chats with a body of a media type.
func model(media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, body)
	}
}

// Each shape of a response is charged by its usage report, and by the reservation without one.
func TestShapesOfResponses(t *testing.T) {
	const events, plain, lines = "text/event-stream", "application/json", "application/x-ndjson"
	whole := `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	for name, tc := range map[string]struct {
		target, media, body string
		stream              bool
		spent               string
	}{
		"events":                   {chatTarget, events, word + account + end, true, "15"},
		"then other events":        {chatTarget, events, word + account + strings.Repeat("data: {\"timings\":{\"queue_ms\":3},\"trace\":\"abc\"}\n\n", 300) + end, true, "15"},
		"a total":                  {chatTarget, plain, `{"usage": {"total_tokens": 15}}`, false, "15"},
		"a total in events":        {chatTarget, events, word + "data: {\"usage\":{\"total_tokens\":15}}\n\n", true, "15"},
		"an error":                 {chatTarget, events, "data: {\"error\":{\"message\":\"busy\"}}\n\n" + end, true, "0"},
		"an error after content":   {chatTarget, events, word + "data: {\"error\":{\"message\":\"busy\"}}\n\n", true, reservation(asksStream)},
		"an error that is plain":   {chatTarget, plain, `{"error":{"message":"busy"}}`, false, "0"},
		"no report":                {chatTarget, events, word + end, true, reservation(asksStream)},
		"CR":                       {chatTarget, events, strings.ReplaceAll(word+account+end, "\n", "\r"), true, "15"},
		"text that looks so":       {chatTarget, events, account + strings.Replace(word, "hi", `\"usage\": {\"prompt_tokens\": 1}`, 1) + end, true, "15"},
		"plain":                    {chatTarget, plain, whole, false, "15"},
		"plain though streamed":    {chatTarget, plain, whole, true, "15"},
		"indented":                 {chatTarget, plain, strings.ReplaceAll(whole, ",", ",\n   "), false, "15"},
		"long and plain":           {chatTarget, plain, strings.Replace(whole, "hi", strings.Repeat("hi ", 40<<10), 1), false, "15"},
		"lines":                    {chatTarget, lines, "{\"response\":\"hi\",\"done\":false}\n{\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}\n", true, "15"},
		"Responses":                {"/v2/llm/openai/v1/responses", plain, `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[{"content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`, false, "15"},
		"Messages":                 {"/v2/llm/openai/v1/messages", events, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n", true, "15"},
		"a cache":                  {chatTarget, events, word + strings.Replace(account, `"total`, `"prompt_tokens_details":{"cached_tokens":8},"total`, 1) + end, true, "9"},
		"Messages with a cache":    {"/v2/llm/openai/v1/messages", plain, `{"content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":2,"cache_read_input_tokens":8,"output_tokens":5}}`, false, "9"},
		"a ranking":                {"/v2/llm/openai/v1/rerank", plain, `{"results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":15}}`, false, "15"},
		"the output alone":         {chatTarget, plain, `[{"generated_text":"hi","details":{"generated_tokens":5}}]`, false, fmt.Sprint(len(asksPlain) + 5)},
		"embeddings":               {"/v2/llm/openai/v1/embeddings", plain, `{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":15,"total_tokens":15}}`, false, "15"},
		"a job's chunks":           {"/v2/llm/runsync", plain, `{"id":"sync-1","status":"COMPLETED","output":[{"choices":[{"tokens":["h"]}],"usage":{"input":10,"output":2}},{"choices":[{"tokens":["i"]}],"usage":{"input":10,"output":5}}]}`, false, "15"},
		"a job without a report":   {"/v2/llm/runsync", plain, `{"id":"sync-1","status":"COMPLETED","output":{"error":"busy"}}`, false, ""},
		"a status of a completion": {chatTarget, plain, strings.Replace(whole, "{", `{"id":"x","status":"IN_PROGRESS",`, 1), false, "15"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, policies(dollars), upstream(t, model(tc.media, tc.body)))
			body := asksPlain
			if tc.stream {
				body = asksStream
			}
			switch {
			case strings.HasSuffix(tc.target, "/runsync"):
				body = `{"input":{"max_tokens":100}}`
			case strings.HasSuffix(tc.target, "/embeddings"):
				body = `{"model":"llm","input":"hi"}`
			}
			if tc.spent == "" {
				tc.spent = reservation(body)
			}
			if a := r.ask(t, "POST", tc.target, "key_research", body); a.Status != 200 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			r.spent(t, tc.spent, "0")
		})
	}
}

// A batch's items are different tokens.
func TestItemsOfABatchAreAddedUp(t *testing.T) {
	r := newRig(t, policies(dollars), upstream(t, model("application/json", `{"id":"sync-1","status":"COMPLETED","output":[{"usage":{"input":10,"output":5}},{"usage":{"input":10,"output":5}}]}`)))
	r.ask(t, "POST", "/v2/llm/runsync", "key_research", `{"input":{"max_tokens":100,"batch":[{"prompt":"a"},{"prompt":"b"}]}}`)
	r.spent(t, "30", "0")
}

// leave reads a stream up to a text and closes the connection.
func leave(t *testing.T, r *rig, after string) {
	t.Helper()
	conn := world.Dial(t, r.addr)
	if _, err := io.WriteString(conn, world.Request("POST", chatTarget, "key_research", asksStream)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, after) {
			break
		}
	}
	_ = conn.Close()
}

// A caller that leaves, as the OpenAI client does at the end marker, is charged by the usage report,
// wherever in the stream the report is. The gateway reads on until the stream ends.
func TestLeavingIsChargedByTheReport(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after, rest, spent string
	}{
		"at the end marker":   {word + account + end, "[DONE]", "", "15"},
		"with events behind":  {word + account + end, "[DONE]", strings.Repeat(": ping\n\n", 1000), "15"},
		"before the report":   {word, "hi", word + account + end, "15"},
		"without a report":    {word, "hi", word + end, reservation(asksStream)},
		"before an error":     {": ping\n\n", "ping", "data: {\"error\":\"busy\"}\n\n", "0"},
		"a megabyte before":   {word, "hi", strings.Repeat("data: {\"x\":\""+strings.Repeat("x", 1<<10)+"\"}\n\n", 1100) + account, reservation(asksStream)},
		"half a MB before":    {word, "hi", strings.Repeat("data: {\"x\":\""+strings.Repeat("x", 1<<10)+"\"}\n\n", 500) + account, "15"},
		"content after a sum": {account + word, "hi", "", "15"},
	} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{})
			r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
				_, _ = io.Copy(io.Discard, q.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, tc.before)
				_ = http.NewResponseController(w).Flush()
				<-left
				select {
				case <-q.Context().Done():
				case <-time.After(50 * time.Millisecond): // by when the gateway knows that the caller has left
					_, _ = io.WriteString(w, tc.rest)
				}
			}))
			leave(t, r, tc.after)
			close(left)
			r.wantOutcome(t, "canceled")
			r.spent(t, tc.spent, "0")
		})
	}
}

// knowing is a model server that refuses requests with stream_options with a status, and counts them.
func knowing(status int, refused *[]bool) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
			panic(err)
		}
		_, asked := body["stream_options"]
		if *refused = append(*refused, asked); asked {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, word+"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"+end)
	}
}

// A server that does not know stream_options gets the chat without the member, which the caller did not send. The
// endpoint is remembered.
func TestStreamOptionsThatAServerDoesNotKnow(t *testing.T) {
	long := strings.Replace(asksStream, `"hi"`, `"`+strings.Repeat("x", 300<<10)+`"`, 1)
	for name, tc := range map[string]struct {
		status int
		body   string
		sent   []bool // two calls
		want   int
		spent  string
	}{
		"400":               {400, asksStream, []bool{true, false, false}, 200, "30"},
		"422":               {422, asksStream, []bool{true, false, false}, 200, "30"},
		"a long body":       {400, long, []bool{true, false, false}, 200, "30"},
		"another status":    {500, asksStream, []bool{true, true}, 500, "0"},
		"the caller's own":  {400, strings.Replace(asksStream, "{", `{"stream_options":{"include_usage":true},`, 1), []bool{true, true}, 400, "0"},
		"the caller's part": {400, strings.Replace(asksStream, "{", `{"stream_options":{"chunk_size":1},`, 1), []bool{true, true}, 400, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []bool
			r := newRig(t, policies(strings.Replace(dollars, "5000", "9000000", 1)), upstream(t, knowing(tc.status, &sent)))
			for range 2 {
				a := r.ask(t, "POST", chatTarget, "key_research", tc.body)
				if a.Status != tc.want || tc.want == 200 && !strings.Contains(a.Body, "[DONE]") {
					t.Errorf("%d %.300s, want %d", a.Status, a.Body, tc.want)
				}
			}
			if fmt.Sprint(sent) != fmt.Sprint(tc.sent) {
				t.Errorf("requests with stream_options: %v, want %v", sent, tc.sent)
			}
			r.spent(t, tc.spent, "0")
		})
	}
}

// A chat that is refused for another reason is refused twice, and the endpoint is not remembered.
func TestRefusedChatsAreNotRemembered(t *testing.T) {
	var asked int
	r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if bytes.Contains(body, []byte("stream_options")) {
			asked++
		}
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"error":{"message":"too long"}}`)
	}))
	for range 3 {
		if a := r.ask(t, "POST", chatTarget, "key_research", asksStream); a.Status != 400 || !strings.Contains(a.Body, "too long") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if asked != 3 {
		t.Errorf("%d requests asked for the report, want 3", asked)
	}
	r.spent(t, "0", "0")
}

// layers is a writer of several codings.
type layers struct {
	io.WriteCloser
	outer []io.Closer
}

func (l layers) Close() error {
	err := l.WriteCloser.Close()
	for _, c := range l.outer {
		err = errors.Join(err, c.Close())
	}
	return err
}

// A worker that compresses its response although the request accepts identity alone is read, and its caller gets the text.
func TestCompressedResponses(t *testing.T) {
	codings := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"GZIP":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, _ := zstd.NewWriter(w)
			return z
		},
		"identity,gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"gzip,br,deflate": func(w io.Writer) io.WriteCloser {
			outer := zlib.NewWriter(w)
			middle := brotli.NewWriter(outer)
			return layers{gzip.NewWriter(middle), []io.Closer{middle, outer}}
		},
		"deflate without a header": func(w io.Writer) io.WriteCloser {
			z, _ := flate.NewWriter(w, flate.DefaultCompression)
			return z
		},
	}
	whole := `{"choices":[{"message":{"content":"key pk-acme-` + canary + `"}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	for name, code := range codings {
		for media, text := range map[string]string{"application/json": whole, "text/event-stream": word + account + end} {
			t.Run(name+" "+media, func(t *testing.T) {
				var coded bytes.Buffer
				z := code(&coded)
				_, _ = io.WriteString(z, text)
				_ = z.Close()
				coding, _, _ := strings.Cut(name, " ")
				r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
					w.Header().Set("Content-Encoding", coding)
					model(media, coded.String())(w, q)
				}))
				body := asksPlain
				if media == "text/event-stream" {
					body = asksStream
				}
				a := r.ask(t, "POST", chatTarget, "key_research", body)
				if want := text[:20]; a.Status != 200 || a.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(a.Body, want) || strings.Contains(a.Body, canary) {
					t.Errorf("%d %v %.300q, want %q", a.Status, a.Header, a.Body, want)
				}
				r.spent(t, "15", "0")
			})
		}
	}
	t.Run("another coding", func(t *testing.T) {
		r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Encoding", "compress")
			model("application/json", whole)(w, q)
		}))
		if a := r.ask(t, "POST", chatTarget, "key_research", asksPlain); a.Status != 502 {
			t.Errorf("%d %s, want 502: its text cannot be read", a.Status, a.Body)
		}
	})
}

// Compressed events reach the caller one by one.
func TestCompressedEventsArriveAtOnce(t *testing.T) {
	for coding, code := range map[string]func(io.Writer) flusher{
		"gzip": func(w io.Writer) flusher { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) flusher { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) flusher {
			z, _ := zstd.NewWriter(w)
			return z
		},
	} {
		t.Run(coding, func(t *testing.T) {
			next := make(chan struct{})
			r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
				_, _ = io.Copy(io.Discard, q.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", coding)
				z := code(w)
				for range 3 {
					_, _ = io.WriteString(z, word)
					_ = z.Flush()
					_ = http.NewResponseController(w).Flush()
					<-next
				}
				_, _ = io.WriteString(z, account+end)
				_ = z.Close()
			}))
			_, body := openWith(t, r, asksStream)
			for range 3 {
				got := make([]byte, len(word))
				if _, err := io.ReadFull(body, got); err != nil || string(got) != word {
					t.Fatalf("%q, %v", got, err)
				}
				next <- struct{}{}
			}
			if rest, err := io.ReadAll(body); err != nil || string(rest) != end {
				t.Errorf("%q, %v", rest, err)
			}
			r.spent(t, "15", "0")
		})
	}
}

// flusher writes a content coding.
type flusher interface {
	io.WriteCloser
	Flush() error
}

// A caller that leaves before the response begins is charged by the report, too.
func TestLeavingBeforeTheResponse(t *testing.T) {
	asked := make(chan struct{})
	r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		close(asked)
		select {
		case <-q.Context().Done():
		case <-time.After(50 * time.Millisecond): // by when the gateway knows that the caller has left
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
		}
	}))
	conn := world.Dial(t, r.addr)
	if _, err := io.WriteString(conn, world.Request("POST", chatTarget, "key_research", asksPlain)); err != nil {
		t.Fatal(err)
	}
	<-asked
	_ = conn.Close()
	r.wantOutcome(t, "canceled")
	r.spent(t, "15", "0")
}

// A stream that the platform breaks off is charged by its report, if no content follows the report.
func TestBrokenStreamsAreChargedByTheReport(t *testing.T) {
	for name, tc := range map[string]struct{ text, spent string }{
		"after the report":  {word + account, "15"},
		"before the report": {word, reservation(asksStream)},
		"after content":     {strings.Replace(account, "[]", `[{"delta":{"content":"hi"}}]`, 1) + word, reservation(asksStream)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, policies(dollars), upstream(t, func(w http.ResponseWriter, q *http.Request) {
				model("text/event-stream", tc.text)(w, q)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}))
			_, body := openWith(t, r, asksStream)
			if _, err := io.ReadAll(body); err == nil {
				t.Error("the stream looks whole")
			}
			r.wantOutcome(t, "upstream")
			r.spent(t, tc.spent, "0")
		})
	}
}
