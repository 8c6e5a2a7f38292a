package money_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// read returns the result of a response that arrives in parts of a size, 0 for all at once.
func read(r *money.Reader, text string, size int, cut bool) money.Result {
	if size == 0 {
		size = max(1, len(text))
	}
	for len(text) > 0 {
		n := min(size, len(text))
		_, _ = r.Write([]byte(text[:n]))
		text = text[n:]
	}
	return r.End(cut)
}

// sse writes events with data.
func sse(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

const (
	hello = `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":null}],"usage":null}`
	role  = `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
	stop  = `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	final = `{"id":"c","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`
	trap  = `{"id":"c","choices":[{"index":0,"delta":{"content":"\"usage\": {\"prompt_tokens\": 900, \"completion_tokens\": 900}"}}]}`
	done  = "[DONE]"
)

// tokens returns the result of a response with a usage report.
func tokens(in, out int64) money.Result {
	return money.Result{Tokens: money.Tokens{Input: in, Output: out}, Known: true}
}

// hits returns the result of a response with a usage report of a prompt that was partly read from a cache.
func hits(in, hit, out int64) money.Result {
	return money.Result{Tokens: money.Tokens{Input: in, Cached: hit, Output: out}, Known: true}
}

// unsplit returns the result of a response that reports a total alone.
func unsplit(n int64) money.Result {
	return money.Result{Tokens: money.Tokens{Unsplit: n}, Known: true}
}

// unknown, failed and part are the results of responses without a complete report.
var unknown, failed, part = money.Result{}, money.Result{Failed: true}, money.Result{Tokens: money.Tokens{Output: 5}, Partial: true}

type shape struct {
	text string
	want money.Result
}

// run compares the result of each shape, however the response is cut into parts.
func run(t *testing.T, shapes map[string]shape, with money.Reader, cut bool) {
	t.Helper()
	for name, tc := range shapes {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{0, 1, 2, 3, 7, 64, 4096} {
				if size > 0 && size < 64 && len(tc.text) > 64<<10 {
					continue // takes long and shows nothing else
				}
				r := with
				got := read(&r, tc.text, size, cut)
				got.Job = money.Job{}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Fatalf("in parts of %d bytes (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat(`{"timings":{"queue_ms":3}}`+"\n\ndata: ", 400)
	run(t, map[string]shape{
		"last":                          {sse(hello, stop, final, done), tokens(10, 5)},
		"no end marker":                 {sse(hello, final), tokens(10, 5)},
		"no last line feed":             {"data: " + hello + "\n\ndata: " + final, tokens(10, 5)},
		"one last line feed":            {"data: " + hello + "\n\ndata: " + final + "\n", tokens(10, 5)},
		"no space":                      {"data:" + hello + "\n\ndata:" + final + "\n\ndata:[DONE]\n\n", tokens(10, 5)},
		"CRLF":                          {strings.ReplaceAll(sse(hello, final, done), "\n", "\r\n"), tokens(10, 5)},
		"CR":                            {strings.ReplaceAll(sse(hello, final, done), "\n", "\r"), tokens(10, 5)},
		"byte order mark":               {"\ufeff" + sse(hello, final, done), tokens(10, 5)},
		"comments":                      {": ping\n\n" + sse(hello) + ":\n: ping\n" + sse(final) + ": done\n\n", tokens(10, 5)},
		"other fields":                  {"id: 1\nevent: chunk\nretry: 5\ndata: " + final + "\nid: 2\n\n", tokens(10, 5)},
		"event after data":              {"data: " + final + "\nevent: chunk\n\n", tokens(10, 5)},
		"a long field name":             {strings.Repeat("x", 4000) + ": y\ndata: " + final + "\n\n", tokens(10, 5)},
		"data without a value":          {"data\ndata: " + final + "\n\n", tokens(10, 5)},
		"several lines":                 {"data: {\"choices\":[],\ndata: \"usage\":\ndata: {\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n", tokens(10, 5)},
		"no empty lines":                {"data: " + hello + "\ndata: " + final + "\ndata: [DONE]\n", tokens(10, 5)},
		"spaces":                        {sse(hello, `{ "choices" : [ ] , "usage" : { "total_tokens" : 15 , "prompt_tokens" : 10 , "completion_tokens" : 5 } }`), tokens(10, 5)},
		"a tab before":                  {"data:\t" + final + "\n\n", tokens(10, 5)},
		"more than 4 KiB behind":        {sse(hello, final) + "data: " + long + done + "\n\n", tokens(10, 5)},
		"before the end marker":         {sse(hello, done, final), tokens(10, 5)},
		"beside content":                {sse(role, strings.Replace(final, `[]`, `[{"delta":{"content":"x"}}]`, 1), done), tokens(10, 5)},
		"null after":                    {sse(hello, final, `{"choices":[],"usage":null}`), tokens(10, 5)},
		"empty after":                   {sse(hello, final, `{"choices":[],"usage":{}}`), tokens(10, 5)},
		"zeros before":                  {sse(strings.Replace(role, `"id"`, `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"id"`, 1), hello, final), tokens(10, 5)},
		"zeros after":                   {sse(hello, final, `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`), tokens(10, 5)},
		"cumulative":                    {sse(strings.Replace(hello, `"usage":null`, `"usage":{"prompt_tokens":10,"completion_tokens":1}`, 1), strings.Replace(hello, `"usage":null`, `"usage":{"prompt_tokens":10,"completion_tokens":5}`, 1), done), tokens(10, 5)},
		"twice":                         {sse(hello, final, final, done), tokens(10, 5)},
		"a part first":                  {sse(`{"usage":{"prompt_tokens":10}}`, hello, `{"usage":{"completion_tokens":5}}`), tokens(10, 5)},
		"text that looks so":            {sse(hello, final, trap, done), tokens(10, 5)},
		"text that looks so, only":      {sse(trap, done), unknown},
		"raw text that looks so":        {sse(hello, final, `"usage": {"prompt_tokens": 900, "completion_tokens": 900}`), tokens(10, 5)},
		"arguments that look so":        {sse(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}"}}]}}]}`, final), tokens(10, 5)},
		"arguments that are objects":    {sse(final, `{"message":{"tool_calls":[{"function":{"arguments":{"usage":{"prompt_tokens":1,"completion_tokens":1}}}}]}}`), tokens(10, 5)},
		"input of a tool":               {sse(final, `{"message":{"content":[{"type":"tool_use","input":{"usage":{"prompt_tokens":1,"completion_tokens":1}}}]}}`), tokens(10, 5)},
		"echo of the request":           {sse(final, `{"request":{"usage":{"prompt_tokens":1,"completion_tokens":1}},"metadata":{"usage":{"prompt_tokens":1,"completion_tokens":1}}}`), tokens(10, 5)},
		"several choices":               {sse(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`, final, done), tokens(10, 5)},
		"in a choice":                   {sse(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}]}`, done), tokens(10, 5)},
		"twice in an event":             {sse(hello, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5},"x_groq":{"id":"r","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"queue_time":0.1}}}`), tokens(10, 5)},
		"in x_groq":                     {sse(hello, `{"choices":[{"delta":{}}],"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":5}}}`), tokens(10, 5)},
		"in data":                       {sse(`{"code":0,"data":{"text":"x","usage":{"prompt_tokens":10,"completion_tokens":5}}}`), tokens(10, 5)},
		"in result":                     {sse(`{"result":{"usage":{"input_tokens":10,"output_tokens":5}}}`), tokens(10, 5)},
		"a total":                       {sse(hello, `{"usage":{"total_tokens":15}}`, done), unsplit(15)},
		"a total and its input":         {sse(hello, `{"usage":{"prompt_tokens":10,"total_tokens":15}}`, done), tokens(10, 5)},
		"a total and its output":        {sse(hello, `{"usage":{"completion_tokens":5,"total_tokens":15}}`, done), tokens(10, 5)},
		"a total with reasoning":        {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}}`), tokens(10, 8)},
		"details":                       {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8,"input_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}}}`), hits(10, 8, 5)},
		"a cache that is included":      {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2,"cache_read_input_tokens":8}}`), hits(10, 8, 5)},
		"two names":                     {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"input_tokens":0,"output_tokens":0}}`), tokens(10, 5)},
		"two equal names":               {sse(hello, `{"usage":{"prompt_tokens":900,"prompt_tokens":10,"completion_tokens":5}}`), tokens(10, 5)},
		"two reports":                   {sse(hello, `{"usage":{"prompt_tokens":900,"completion_tokens":5},"usage":{"prompt_tokens":10,"completion_tokens":5}}`), tokens(10, 5)},
		"a report and null":             {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5},"usage":null}`), tokens(10, 5)},
		"whole numbers":                 {sse(hello, `{"usage":{"prompt_tokens":10.0,"completion_tokens":5e0}}`), tokens(10, 5)},
		"an invalid total":              {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":-1}}`, `{"usage":{"total_tokens":1e30}}`), tokens(10, 5)},
		"an escaped name":               {sse(hello, `{"us\u0061ge":{"prompt\u005ftokens":10,"completion_tokens":5}}`), tokens(10, 5)},
		"a comment that looks so":       {sse(hello, final) + `: {"usage":{"prompt_tokens":900,"completion_tokens":900}}` + "\n\n", tokens(10, 5)},
		"an event of its own":           {sse(hello) + "event: usage\ndata: {\"prompt_tokens\":10,\"completion_tokens\":5}\n\n" + sse(done), tokens(10, 5)},
		"first":                         {sse(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, hello, done), tokens(10, 5)},
		"a list in an event":            {sse("["+hello+","+final+"]", done), tokens(10, 5)},
		"in metadata of the response":   {sse(`{"response_metadata":{"token_usage":{"prompt_tokens":10,"completion_tokens":5}}}`), tokens(10, 5)},
		"capital letters":               {sse(`{"Response":{"Choices":[],"Usage":{"PromptTokens":10,"CompletionTokens":5,"TotalTokens":15}}}`), tokens(10, 5)},
		"an invalid report after":       {sse(hello, final, `{"usage":{"prompt_tokens":-1,"completion_tokens":5}}`, `{"usage":{"prompt_tokens":"1","completion_tokens":1}}`, `{"usage":{"prompt_tokens":1.5,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":1e30,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":true,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":1,"completion_tokens":`+strings.Repeat("9", 5000)+`}}`, `{"usage":[1]}`, `{"usage":"x"}`, `{"usage":7}`), tokens(10, 5)},
		"an invalid report":             {sse(hello, `{"usage":{"prompt_tokens":"10","completion_tokens":5}}`), unknown},
		"a part that is null":           {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":null}}`), unknown},
		"no input":                      {sse(hello, `{"usage":{"completion_tokens":5}}`), part},
		"no report":                     {sse(hello, stop, done), unknown},
		"an input before content":       {sse(`{"usage":{"prompt_tokens":10,"completion_tokens":0}}`, hello, done), unknown},
		"an event that is no JSON":      {sse(hello, `{"usage":`, `]`, `hello`, final), tokens(10, 5)},
		"nothing":                       {"", unknown},
		"white space":                   {" \n\r\n", unknown},
		"an event that is cut":          {sse(hello, final) + `data: {"usage":{"prompt_tokens":11,"completion_tokens":99}`, tokens(10, 5)},
		"a long event between":          {sse(hello, final, `{"choices":[{"delta":{"content":"`+strings.Repeat("x", 300<<10)+`"}}]}`, done), tokens(10, 5)},
		"a long event with the report":  {sse(`{"output":[{"content":"`+strings.Repeat(`\"usage\":{\u0041`, 50<<10)+`"}],"logprobs":[`+strings.Repeat("0.25,", 50<<10)+`1],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, done), tokens(10, 5)},
		"an event that is nested often": {sse(final, strings.Repeat("[", 20000), strings.Repeat(`{"data":`, 20000), hello), tokens(10, 5)},
	}, money.Reader{}, false)
}

func TestVocabularies(t *testing.T) {
	event := func(names ...string) string {
		var b strings.Builder
		for i := 0; i < len(names); i += 2 {
			fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", names[i], names[i+1])
		}
		return b.String()
	}
	const delta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`
	run(t, map[string]shape{
		"Responses": {event("response.created", `{"type":"response.created","response":{"id":"r","status":"in_progress","instructions":"i","output":[],"error":null,"usage":null}}`,
			"response.output_text.delta", `{"type":"response.output_text.delta","delta":"hello"}`,
			"response.completed", `{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hello"}]}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}}}`), hits(10, 4, 5)},
		"Responses, incomplete": {event("response.incomplete", `{"type":"response.incomplete","response":{"usage":{"input_tokens":10,"output_tokens":5}}}`), tokens(10, 5)},
		"Messages": {event("message_start", `{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`,
			"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, "ping", `{"type":"ping"}`,
			"content_block_delta", delta, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, "message_stop", `{"type":"message_stop"}`), tokens(10, 5)},
		"Messages with a cache": {event("message_start", `{"type":"message_start","message":{"usage":{"input_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":3},"output_tokens":1}}}`,
			"content_block_delta", delta, "message_delta", `{"type":"message_delta","usage":{"output_tokens":5}}`), hits(10, 5, 5)},
		"Messages that repeat the input": {event("message_start", `{"type":"message_start","message":{"usage":{"input_tokens":2,"cache_read_input_tokens":8,"output_tokens":1}}}`,
			"content_block_delta", delta, "message_delta", `{"type":"message_delta","usage":{"input_tokens":2,"output_tokens":5}}`), hits(10, 8, 5)},
		"Messages, plain":          {`{"id":"m","type":"message","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":5}}`, hits(10, 3, 5)},
		"Ollama":                   {`{"model":"m","message":{"role":"assistant","content":"hello"},"done":false}` + "\n" + `{"model":"m","message":{"content":""},"done":true,"total_duration":99,"prompt_eval_count":10,"prompt_eval_duration":7,"eval_count":5,"eval_duration":7}` + "\n", tokens(10, 5)},
		"Ollama, a cached prompt":  {`{"response":"hello","done":false}` + "\n" + `{"response":"","done":true,"eval_count":5}` + "\n", tokens(0, 5)},
		"Ollama, embeddings":       {`{"embeddings":[[0.1,0.2]],"prompt_eval_count":10}`, tokens(10, 0)},
		"llama.cpp":                {sse(`{"content":"hello","stop":false,"tokens_predicted":1,"tokens_evaluated":10}`, `{"content":"","stop":true,"tokens_predicted":5,"tokens_evaluated":10,"tokens_cached":14,"timings":{"prompt_n":10,"predicted_n":5}}`), tokens(10, 5)},
		"llama.cpp, timings":       {sse(hello, `{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":6,"prompt_n":4,"prompt_ms":1.5,"predicted_n":5}}`, done), hits(10, 6, 5)},
		"llama.cpp, both":          {sse(hello, final, `{"timings":{"prompt_n":1,"predicted_n":5}}`, done), tokens(10, 5)},
		"TGI":                      {sse(`{"token":{"id":1,"text":"hello","special":false},"generated_text":null,"details":null}`, `{"token":{"id":2,"text":""},"generated_text":"hello","details":{"finish_reason":"length","generated_tokens":5,"input_length":10,"seed":null}}`), tokens(10, 5)},
		"TGI, plain":               {`[{"generated_text":"hello","details":{"finish_reason":"length","generated_tokens":5,"prefill":[` + strings.Repeat(`{"id":1,"text":"a","logprob":-1},`, 9) + `{"id":1}],"tokens":[{"id":2,"text":"hello"}]}}]`, tokens(10, 5)},
		"TGI without its prompt":   {`{"generated_text":"hello","details":{"generated_tokens":5,"prefill":[]}}`, part},
		"Gemini":                   {sse(`{"candidates":[{"content":{"parts":[{"text":"hello"}]}}],"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`), tokens(10, 5)},
		"Gemini in a list":         {`[{"candidates":[{"content":{"parts":[{"text":"hello"}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12}},` + "\n" + `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}]`, tokens(10, 5)},
		"Gemini with thoughts":     {sse(`{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":15}}`), tokens(10, 5)},
		"thoughts without a total": {sse(`{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2}}`), tokens(10, 5)},
		"Cohere":                   {sse(`{"type":"content-delta","delta":{"message":{"content":{"text":"hello"}}}}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":10,"output_tokens":5},"tokens":{"input_tokens":10,"output_tokens":5}}}}`), tokens(10, 5)},
		"Cohere, version 1":        {sse(`{"event_type":"stream-end","response":{"text":"hello","meta":{"billed_units":{"input_tokens":10,"output_tokens":5},"tokens":{"input_tokens":10,"output_tokens":5}}}}`), tokens(10, 5)},
		"Converse":                 {`{"output":{"message":{"content":[{"text":"hello"}]}},"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}`, tokens(10, 5)},
		"SGLang":                   {sse(`{"text":"hello","meta_info":{"prompt_tokens":10,"completion_tokens":1}}`, `{"text":"hello you","meta_info":{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":3}}`, done), hits(10, 3, 5)},
		"Gemini with a cache":      {sse(`{"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":15}}`), hits(10, 7, 5)},
		"Converse with a cache":    {`{"output":{"message":{"content":[{"text":"hello"}]}},"usage":{"inputTokens":2,"outputTokens":5,"totalTokens":15,"cacheReadInputTokens":6,"cacheWriteInputTokens":2}}`, hits(10, 6, 5)},
		"a cache, then no details": {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":8}}}`, final), hits(10, 8, 5)},
		"a cache of null":          {sse(hello, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null}}`), tokens(10, 5)},
		"more cached than read":    {`{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":99}}}`, hits(10, 10, 5)},
		"a cache of no number":     {`{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1},"cached_tokens":"8"}}`, tokens(10, 5)},
		"cached output of no name": {`{"usage":{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"cached_tokens":5}}}`, tokens(10, 5)},
		"watsonx":                  {`{"results":[{"generated_text":"hello","generated_token_count":5,"input_token_count":10}]}`, tokens(10, 5)},
		"embeddings":               {`{"object":"list","data":[{"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":10,"total_tokens":10}}`, tokens(10, 0)},
		"embeddings without total": {`{"data":[{"embedding":"AAAA"}],"usage":{"prompt_tokens":10}}`, tokens(10, 0)},
		"a ranking":                {`{"results":[{"index":0,"relevance_score":0.5,"document":{"text":"t"}}],"usage":{"total_tokens":15}}`, unsplit(15)},
		"a score of a prompt":      {`{"choices":[{"text":"prompt","logprobs":{}}],"usage":{"prompt_tokens":10,"completion_tokens":0,"total_tokens":10}}`, tokens(10, 0)},
	}, money.Reader{}, false)
}

func TestPlain(t *testing.T) {
	run(t, map[string]shape{
		"chat":                   {`{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, tokens(10, 5)},
		"indented":               {"{\n  \"choices\": [],\n  \"usage\": {\n    \"prompt_tokens\": 10,\n    \"completion_tokens\": 5\n  }\n}\n", tokens(10, 5)},
		"much white space":       {"{" + strings.Repeat(" \n", 50<<10) + `"usage":{"prompt_tokens":10,` + strings.Repeat("\t", 50<<10) + `"completion_tokens":5}}`, tokens(10, 5)},
		"usage first":            {`{"usage":{"prompt_tokens":10,"completion_tokens":5},"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}"}}]}`, tokens(10, 5)},
		"a total":                {`{"usage":{"total_tokens":15}}`, unsplit(15)},
		"a job":                  {`{"id":"j","status":"COMPLETED","output":{"choices":[{"tokens":["hello"]}],"usage":{"input":10,"output":5}}}`, tokens(10, 5)},
		"a job with a list":      {`{"id":"j","status":"COMPLETED","output":[{"choices":[{"tokens":["hello"]}],"cost":0.001,"usage":{"input":10,"output":5}}]}`, tokens(10, 5)},
		"a job's chunks":         {`{"id":"j","status":"COMPLETED","output":[{"choices":[{"tokens":["hel"]}],"usage":{"input":10,"output":2}},{"choices":[{"tokens":["lo"]}],"usage":{"input":10,"output":5}}]}`, tokens(10, 5)},
		"a job's Messages":       {`{"status":"COMPLETED","output":[{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}},{"type":"content_block_delta","delta":{"text":"x"}},{"type":"message_delta","usage":{"output_tokens":5}}]}`, tokens(10, 5)},
		"chunks of a chat":       {`{"output":[{"id":"c","choices":[{"delta":{"content":"x"}}],"usage":null},{"id":"c","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}},{"id":"c","choices":[]}]}`, tokens(10, 5)},
		"several completions":    {`{"output":[{"id":"a","usage":{"prompt_tokens":10,"completion_tokens":5}},{"id":"b","usage":{"prompt_tokens":10,"completion_tokens":5}}]}`, tokens(20, 10)},
		"several without ids":    {`{"output":[{"usage":{"input":10,"output":5}},{"usage":{"input":10,"output":3}},{"usage":{"input":7,"output":3}}]}`, tokens(27, 11)},
		"chunks of a stream":     {`{"status":"IN_PROGRESS","stream":[{"output":{"text":["a"],"usage":{"input":10,"output":2}},"metrics":{"input_tokens":900}},{"output":{"usage":{"input":10,"output":5}}}]}`, tokens(10, 5)},
		"a worker's counts":      {`{"status":"COMPLETED","output":{"text":"hello","input_tokens":10,"output_tokens":5}}`, tokens(10, 5)},
		"counts of items":        {`{"status":"IN_PROGRESS","stream":[{"output":{"text":["a"],"input_tokens":0,"output_tokens":1}},{"output":{"input_tokens":0,"output_tokens":1}}]}`, unknown},
		"a batch's list in text": {`{"output":["data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}"]}`, unknown},
		"an error":               {`{"error":{"message":"busy"}}`, failed},
		"an error as text":       {`{"error":"busy"}`, failed},
		"no error":               {`{"error":null,"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, tokens(10, 5)},
		"no error at all":        {`{"error":null,"choices":[]}`, unknown},
		"no JSON":                {"<html>", unknown},
		"other details":          {`{"output":{"details":{"input":3,"output":2,"total":7},"timings":{"total":1}}}`, unknown},
		"an id without a report": {`{"output":[{"id":"a"},{"id":"b","usage":{"input":10,"output":2}},{"id":"b","usage":{"input":10,"output":5}}]}`, tokens(10, 5)},
	}, money.Reader{}, false)
	run(t, map[string]shape{
		"a batch":        {`{"output":[{"usage":{"input":10,"output":5}},{"usage":{"input":10,"output":5}}]}`, tokens(20, 10)},
		"a batch of one": {`{"output":{"usage":{"input":10,"output":5}}}`, tokens(10, 5)},
		"a list of them": {`[{"generated_text":"a","details":{"generated_tokens":5,"input_length":10}},{"generated_text":"b","details":{"generated_tokens":5,"input_length":10}}]`, tokens(20, 10)},
	}, money.Reader{Batch: true}, false)
	run(t, map[string]shape{
		"lines":            {"{\"response\":\"a\"}\n{\"broken\":\n{\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}\n", tokens(10, 5)},
		"CRLF, no last LF": {"{\"response\":\"a\"}\r\n\r\nx\r\n{\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}", tokens(10, 5)},
	}, money.Reader{Lines: true}, false)
}

func TestErrors(t *testing.T) {
	run(t, map[string]shape{
		"first":               {sse(`{"error":{"message":"busy"}}`, done), failed},
		"after a role":        {sse(role, `{"error":"busy"}`), failed},
		"named":               {"event: error\ndata: {\"message\":\"busy\"}\n\n", failed},
		"named after":         {"data: {\"message\":\"busy\"}\nevent: error\n\n", failed},
		"as a type":           {sse(`{"type":"error","message":"busy"}`), failed},
		"as an object":        {sse(`{"object":"error","message":"busy","code":400}`), failed},
		"as a field":          {"error: {\"message\":\"busy\"}\n\n", failed},
		"of a response":       {sse(`{"type":"response.failed","response":{"error":{"code":"server_error"},"usage":null}}`), failed},
		"after content":       {sse(hello, `{"error":{"message":"busy"}}`), unknown},
		"after other content": {sse(`hello`, `{"error":{"message":"busy"}}`), unknown},
		"after a report":      {sse(hello, final, `{"error":{"message":"busy"}}`), tokens(10, 5)},
		"beside a report":     {sse(`{"error":{"message":"busy"},"usage":{"prompt_tokens":10,"completion_tokens":0}}`), tokens(10, 0)},
		"after an old report": {sse(`{"message":{"usage":{"input_tokens":10,"output_tokens":1}}}`, hello, `{"error":{"message":"busy"}}`), unknown},
	}, money.Reader{}, false)
}

// A response that is cut off is charged by its last report if no content follows the report.
func TestCut(t *testing.T) {
	run(t, map[string]shape{
		"after the report":             {sse(hello, final), tokens(10, 5)},
		"after other events":           {sse(hello, final, `{"timings":{"queue_ms":1}}`, `{"trace":"abc"}`) + "data: {\"tr", tokens(10, 5)},
		"before the report":            {sse(hello), unknown},
		"between reports":              {sse(strings.Replace(hello, `"usage":null`, `"usage":{"prompt_tokens":10,"completion_tokens":5}`, 1)), tokens(10, 5)},
		"after content":                {sse(`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`, `{"type":"content_block_delta","delta":{"text":"x"}}`), unknown},
		"after the end marker":         {sse(hello, final, trap, done), tokens(10, 5)},
		"in the report":                {sse(hello) + `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}`, unknown},
		"with an error":                {sse(`{"error":"busy"}`), failed},
		"in a plain response":          {`{"choices":[{"message":{"content":"hel`, unknown},
		"after a plain one's report":   {`{"usage":{"prompt_tokens":10,"completion_tokens":5},"choices":[{"message":{"content":"hel`, unknown},
		"before a plain one's content": {`{"id":"x`, unknown},
	}, money.Reader{}, true)
}

func TestJobs(t *testing.T) {
	text := `{"delayTime":5,"executionTime":36.5,"id":"sync-1","status":"COMPLETED","workerId":"w","output":[{"cost":0.25,"id":"x","status":"y"},{"cost":0.5,"data":{"cost":9}}],"data":{"cost":9}}`
	want := money.Job{ID: "sync-1", Status: "COMPLETED", Execution: 36.5, Delay: 5, Finished: true, Cost: 0.75}
	for _, size := range []int{0, 1, 5} {
		if diff := cmp.Diff(want, read(new(money.Reader), text, size, false).Job); diff != "" {
			t.Errorf("in parts of %d bytes (-want +got):\n%s", size, diff)
		}
	}
	for name, text := range map[string]string{
		"strings":  `{"id":1,"status":2,"executionTime":"3","output":{"cost":"4"}}`,
		"negative": `{"executionTime":-1,"delayTime":-1,"output":{"cost":-1}}`,
		"deeper":   `{"job":{"id":"a","status":"b","executionTime":1}}`,
	} {
		if got := read(new(money.Reader), text, 0, false).Job; got != (money.Job{}) {
			t.Errorf("%s: %+v, want none", name, got)
		}
	}
	long := read(new(money.Reader), `{"id":"`+strings.Repeat(`\u0061`, 4000)+`"}`, 0, false).Job.ID
	if len(long) < 256 || len(long) > 400 {
		t.Errorf("a long id has %d bytes, want it cut, and more than 256", len(long))
	}
}

func TestComplete(t *testing.T) {
	r := new(money.Reader)
	defer r.End(true)
	for _, step := range []struct {
		text string
		want bool
	}{{sse(hello), false}, {sse(final), false}, {"data: [DO", false}, {"NE]\n\n", true}} {
		_, _ = r.Write([]byte(step.text))
		if got := r.Complete(); got != step.want {
			t.Errorf("after %q: %t, want %t", step.text, got, step.want)
		}
	}
}
