package runs

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/world"
)

const hello = `{"model":"llm","max_tokens":16,"messages":[{"role":"user","content":"good morning"}]}`

// TestChat: the routes of language models answer, as a whole and in events.
func TestChat(t *testing.T) {
	r := newRig(t)
	base := "/v2/" + r.endpoint(t) + "/openai/v1"
	whole := r.want(t, 200, "POST", base+"/chat/completions", hello)
	if got := fmt.Sprint(whole["choices"]); !strings.Contains(got, "You said: good morning") {
		t.Errorf("chat: %v", got)
	}
	text := r.want(t, 200, "POST", base+"/completions", `{"model":"llm","prompt":"good night"}`)
	if got := fmt.Sprint(text["choices"]); !strings.Contains(got, "You said: good night") {
		t.Errorf("completion: %v", got)
	}
	if got := fmt.Sprint(r.want(t, 200, "GET", base+"/models", "")["data"]); !strings.Contains(got, "llm") {
		t.Errorf("models: %v", got)
	}
	a := r.ask(t, "POST", base+"/chat/completions", "key_research", strings.Replace(hello, "{", `{"stream":true,`, 1))
	if a.Header.Get("Content-Type") != "text/event-stream" || strings.Count(a.Body, "data: ") != 5 || !strings.HasSuffix(a.Body, "data: [DONE]\n\n") {
		t.Errorf("a stream: %v\n%s", a.Header, a.Body)
	}
}

// TestChatRefusals: every refusal, the gateway's own and the platform's, has the
// shape that clients of language models read.
func TestChatRefusals(t *testing.T) {
	r := newRig(t, policies(`policies:
      - {policy: run_limits, params: {max_tokens: 100}}
      - {policy: run_endpoints, params: {models: [llm, other]}}`))
	base := "/v2/" + r.endpoint(t) + "/openai/v1"
	for name, tc := range map[string]struct {
		method, target, key, body string
		status                    int
		kind, code, says          string
	}{
		"no key":          {"POST", "/chat/completions", "", hello, 401, "authentication_error", "unauthorized", "key"},
		"denied":          {"POST", "/chat/completions", "key_research", strings.Replace(hello, "16", "101", 1), 403, "permission_error", "forbidden", "run_limits: 101 exceeds the limit of 100"},
		"another model":   {"POST", "/chat/completions", "key_research", strings.Replace(hello, "llm", "gpt", 1), 403, "permission_error", "forbidden", "run_endpoints"},
		"no such model":   {"POST", "/chat/completions", "key_research", strings.Replace(hello, "llm", "other", 1), 404, "not_found_error", "", "does not exist"},
		"no route":        {"POST", "/chat", "key_research", hello, 404, "not_found_error", "not_found", "no operation"},
		"no model":        {"POST", "/chat/completions", "key_research", `{"messages":[{"role":"user"}]}`, 422, "invalid_request_error", "invalid", "validation"},
		"stream twice":    {"POST", "/chat/completions", "key_research", strings.Replace(hello, "{", `{"stream":false,"stream":true,`, 1), 400, "invalid_request_error", "bad_syntax", "JSON"},
		"stream as text":  {"POST", "/chat/completions", "key_research", strings.Replace(hello, "{", `{"stream":"true",`, 1), 422, "invalid_request_error", "invalid", "validation"},
		"tokens as text":  {"POST", "/chat/completions", "key_research", strings.Replace(hello, "16", `"16"`, 1), 422, "invalid_request_error", "invalid", "validation"},
		"beyond a window": {"GET", "/models", "key_tiny", "", 429, "rate_limit_error", "rate_limited", "rate limit"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.key == "key_tiny" {
				r.ask(t, tc.method, base+tc.target, tc.key, tc.body)
				r.ask(t, tc.method, base+tc.target, tc.key, tc.body)
			}
			a := r.ask(t, tc.method, base+tc.target, tc.key, tc.body)
			e, _ := decoded(t, a.Body)["error"].(map[string]any)
			code, _ := e["code"].(string)
			if a.Status != tc.status || e["type"] != tc.kind || code != tc.code || !strings.Contains(fmt.Sprint(e["message"]), tc.says) {
				t.Errorf("%d %s; want %d %s %s %q", a.Status, a.Body, tc.status, tc.kind, tc.code, tc.says)
			}
			if tc.status == 429 && a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

// TestServersOfModels: an error of a model server keeps its words.
func TestServersOfModels(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
	}{
		"nested":     {400, `{"error":{"message":"too long","type":"BadRequestError","param":"messages","code":400,"host":"10.0.0.1"}}`, `{"error":{"code":400,"message":"too long","param":"messages","type":"BadRequestError"}}`},
		"flat":       {404, `{"object":"error","message":"no model","type":"NotFoundError","code":404}`, `{"error":{"code":404,"message":"no model","param":null,"type":"NotFoundError"}}`},
		"a job's":    {500, `{"error":"worker lost"}`, `{"error":{"code":null,"message":"worker lost","param":null,"type":"server_error"}}`},
		"a page":     {503, `<html>pk-acme-` + canary + `</html>`, `{"error":{"code":null,"message":"the platform gave no reason","param":null,"type":"server_error"}}`},
		"with a key": {400, `{"error":"key pk-acme-` + canary + ` is wrong"}`, `{"error":{"code":null,"message":"key [redacted]******** is wrong","param":null,"type":"invalid_request_error"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			a := r.ask(t, "POST", "/v2/llm/openai/v1/chat/completions", "key_research", hello)
			if diff := cmp.Diff(tc.want, a.Body); a.Status != tc.status || diff != "" {
				t.Errorf("status %d, want %d; body (-want +got):\n%s", a.Status, tc.status, diff)
			}
		})
	}
}

// events is an upstream that streams the given events, one by one.
func events(given <-chan string, ended chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		for {
			select {
			case e, more := <-given:
				if !more {
					return
				}
				if _, err := io.WriteString(w, e); err != nil {
					ended <- err
					return
				}
				_ = rc.Flush()
			case <-r.Context().Done():
				ended <- r.Context().Err()
				return
			}
		}
	}
}

const asksToStream = `{"model":"llm","stream":true,"messages":[{"role":"user"}]}`

// open begins a stream and returns a reader of its body.
func open(t *testing.T, r *rig) (io.ReadCloser, *bufio.Reader) {
	t.Helper()
	return openWith(t, r, asksToStream)
}

// openWith is open with a body.
func openWith(t *testing.T, r *rig, body string) (io.ReadCloser, *bufio.Reader) {
	t.Helper()
	conn := world.Dial(t, r.addr)
	if _, err := io.WriteString(conn, world.Request("POST", "/v2/llm/openai/v1/chat/completions", "key_research", body)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("stream: %v, %v", res, err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return conn, bufio.NewReader(res.Body)
}

// TestEventsArriveAtOnce: each event reaches the caller before the next is made.
func TestEventsArriveAtOnce(t *testing.T) {
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, upstream(t, events(given, ended)))
	_, body := open(t, r)
	for i := range 100 {
		want := fmt.Sprintf("data: %d\n", i)
		given <- want + "\n"
		got, err := body.ReadString('\n')
		if err != nil || got != want {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		if _, err := body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(given)
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("after the last event: %q, %v", rest, err)
	}
}

// price gives the organisation a budget, and an endpoint the prices of a language model.
func (r *rig) price(t *testing.T, id string) {
	t.Helper()
	r.text = strings.Replace(configuration, "POLICIES", "endpoints: min\n    "+strings.Replace(priced, "llm:", id+":", 1), 1)
	if err := r.gateway.Swap(r.configuration(t)); err != nil {
		t.Fatal(err)
	}
}

// TestStreamsUnderABudgetAreCounted: the gateway asks a stream for its tokens, which make its cost
// then; its caller sees the part of it that it has asked for.
func TestStreamsUnderABudgetAreCounted(t *testing.T) {
	const unasked, asked = `{"stream":true,`, `{"stream":true,"stream_options":{"include_usage":true},`
	for name, tc := range map[string]struct {
		route, body, begin string
		sent, spent        string
		seen               bool
	}{
		"chat":                 {"chat/completions", hello, unasked, `{"include_usage":true}`, "0.00042", false},
		"chat that asks":       {"chat/completions", hello, asked, `{"include_usage":true}`, "0.00042", true},
		"chat with an option":  {"chat/completions", hello, `{"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":false},`, `{"continuous_usage_stats":false,"include_usage":true}`, "0.00042", false},
		"completion":           {"completions", `{"model":"llm","prompt":"good night"}`, unasked, `{"include_usage":true}`, "0.00042", false},
		"completion that asks": {"completions", `{"model":"llm","prompt":"good night"}`, asked, `{"include_usage":true}`, "0.00042", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id := r.endpoint(t)
			r.price(t, id)
			target := "/v2/" + id + "/openai/v1/" + tc.route
			a := r.ask(t, "POST", target, "key_research", strings.Replace(tc.body, "{", tc.begin, 1))
			if a.Status != 200 || !strings.HasSuffix(a.Body, "data: [DONE]\n\n") || strings.Contains(a.Body, `"usage":{`) != tc.seen {
				t.Errorf("%d %s; is the account of tokens there? want %t", a.Status, a.Body, tc.seen)
			}
			r.spent(t, tc.spent, "0")
			calls := r.platform.Calls()
			if sent := string(calls[len(calls)-1].Body); !strings.Contains(sent, `"stream_options":`+tc.sent) {
				t.Errorf("sent: %s, want the options %s", sent, tc.sent)
			}
		})
	}
	for name, body := range map[string]string{"no stream": hello, "no budget": strings.Replace(hello, "{", unasked, 1)} {
		r := newRig(t)
		base := "/v2/" + r.endpoint(t)
		if name == "no stream" {
			r.price(t, base[len("/v2/"):])
		}
		r.ask(t, "POST", base+"/openai/v1/chat/completions", "key_research", body)
		if sent := string(r.platform.CallsTo("chatCompletions")[0].Body); strings.Contains(sent, "stream_options") {
			t.Errorf("%s: sent %s", name, sent)
		}
	}
}

// TestEventsUnderABudgetArriveAtOnce: while an account of tokens is looked for, each event
// reaches the caller before the next is made, however it is cut and however long it is.
func TestEventsUnderABudgetArriveAtOnce(t *testing.T) {
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, policies(priced), upstream(t, events(given, ended)))
	_, body := open(t, r)
	for i, e := range []string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n", ": ping\r\n\r\n", "data: " + strings.Repeat("x", 40<<10) + "\n\n",
		"data: {\"choices\":[],\"usage\":null}\n\n", "data: {\"choices\":[{}],\"usage\":{}}\n\n", "event: a\ndata: {\"usage\":{}}\n\n", "data: \"usage\"\n\n",
	} {
		half := len(e) / 2
		given <- e[:half]
		given <- e[half:]
		got := make([]byte, len(e))
		if _, err := io.ReadFull(body, got); err != nil || string(got) != e {
			t.Fatalf("event %d: %.200q, %v; want %.200q", i, got, err, e)
		}
	}
	given <- "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,"
	given <- "\"completion_tokens\":200}}\n\ndata: [DONE]\n\n"
	close(given)
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "data: [DONE]\n\n" {
		t.Errorf("after the last event: %q, %v", rest, err)
	}
	r.spent(t, "0.021", "0")
}

// TestLeavingEndsTheStream: the platform is told when the caller has left.
func TestLeavingEndsTheStream(t *testing.T) {
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, upstream(t, events(given, ended)))
	conn, body := open(t, r)
	given <- "data: 1\n\n"
	if _, err := body.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := <-ended; err == nil {
		t.Error("the platform could go on writing")
	}
	r.wantOutcome(t, "canceled")
}

// TestSlowReadersAreBounded: a caller that stops reading is let go.
func TestSlowReadersAreBounded(t *testing.T) {
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, top("timeouts: {write: 200ms}"), upstream(t, events(given, ended)))
	open(t, r)
	long := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	for {
		select {
		case given <- long:
			continue
		case err := <-ended:
			if err == nil {
				t.Error("the platform could go on writing")
			}
		}
		break
	}
	r.wantOutcome(t, "canceled")
}

// TestStreamsThatBreakOff never look whole, and end.
func TestStreamsThatBreakOff(t *testing.T) {
	for name, tc := range map[string]http.HandlerFunc{
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"silent": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, top("timeouts: {run: 300ms}"), upstream(t, tc))
			_, body := open(t, r)
			got, err := io.ReadAll(body)
			if string(got) != "data: 1\n\n" || err == nil {
				t.Errorf("read %q, %v; want the event and an error", got, err)
			}
			r.wantOutcome(t, "upstream")
		})
	}
}

// TestNoAnswer: a platform that does not answer, or answers with something else,
// is told of in the shape of the interface.
func TestNoAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		h      http.HandlerFunc
		status int
	}{
		"never":    {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, 504},
		"drops":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 502},
		"redirect": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/"); w.WriteHeader(302) }, 502},
		"garbage":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, 502},
		"nothing":  {func(http.ResponseWriter, *http.Request) {}, 502},
		"401":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 502},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, top("timeouts: {run: 300ms}"), upstream(t, tc.h))
			a := r.ask(t, "POST", "/v2/llm/openai/v1/chat/completions", "key_research", hello)
			if e, _ := decoded(t, a.Body)["error"].(map[string]any); a.Status != tc.status || e["type"] != "server_error" {
				t.Errorf("chat: %d %s, want %d", a.Status, a.Body, tc.status)
			}
			a = r.ask(t, "POST", "/v2/e1/runsync", "key_research", `{"input":{}}`)
			if text, _ := decoded(t, a.Body)["error"].(string); a.Status != tc.status || text == "" {
				t.Errorf("runsync: %d %s, want %d", a.Status, a.Body, tc.status)
			}
		})
	}
}

// wantOutcome waits for the exchange to end and looks at its event.
func (r *rig) wantOutcome(t *testing.T, want string) {
	t.Helper()
	r.close()
	events := r.logs.Exchanges(t)
	if len(events) != 1 || events[0]["outcome"] != want {
		t.Errorf("events %v, want one with outcome %s", events, want)
	}
}

// TestModelPaths: further paths of model servers are served where the organisation names them, at
// its own endpoints alone, and its policies judge the calls there.
func TestModelPaths(t *testing.T) {
	const ask = `{"model":"llm","input":"good morning","max_output_tokens":100}`
	named := newRig(t, policies("model_paths: [responses]\n    policies:\n      - {policy: run_limits, params: {max_tokens: 100}}\n      - {policy: run_endpoints, params: {models: [llm]}}"))
	base := "/v2/" + named.endpoint(t) + "/openai/v1"
	if got := fmt.Sprint(named.want(t, 200, "POST", base+"/responses", ask)["output"]); !strings.Contains(got, "You said: good morning") {
		t.Errorf("a response: %v", got)
	}
	a := named.ask(t, "POST", base+"/responses", "key_research", strings.Replace(ask, "{", `{"stream":true,`, 1))
	if a.Header.Get("Content-Type") != "text/event-stream" || !strings.Contains(a.Body, "response.output_text.delta") || !strings.Contains(a.Body, "response.completed") {
		t.Errorf("a stream: %d %v\n%s", a.Status, a.Header, a.Body)
	}
	other := newRig(t)
	for name, tc := range map[string]struct {
		r                    *rig
		method, target, body string
		status               int
		says                 string
	}{
		"not named":         {other, "POST", "/v2/" + other.endpoint(t) + "/openai/v1/responses", ask, 404, "no operation"},
		"another path":      {named, "POST", base + "/rerank", ask, 404, "no operation"},
		"below it":          {named, "POST", base + "/responses/a/cancel", ask, 404, "no operation"},
		"another spelling":  {named, "POST", base + "/Responses", ask, 404, "no operation"},
		"escaped":           {named, "POST", base + "/respons%65s%2Fx", ask, 404, "no operation"},
		"a public model":    {named, "POST", "/v2/qwen3-32b-awq/openai/v1/responses", ask, 404, "no operation"},
		"read":              {named, "GET", base + "/responses", "", 405, "method"},
		"too many tokens":   {named, "POST", base + "/responses", strings.Replace(ask, "100", "101", 1), 403, "run_limits: 101 exceeds the limit of 100"},
		"another model":     {named, "POST", base + "/responses", strings.Replace(ask, "llm", "gpt", 1), 403, "run_endpoints"},
		"tokens as text":    {named, "POST", base + "/responses", strings.Replace(ask, "100", `"100"`, 1), 422, "validation"},
		"tokens said twice": {named, "POST", base + "/responses", strings.Replace(ask, "{", `{"max_output_tokens":1,`, 1), 400, "JSON"},
		"what is a list":    {named, "POST", base + "/responses", "[" + ask + "]", 422, "validation"},
	} {
		if a := tc.r.ask(t, tc.method, tc.target, "key_research", tc.body); a.Status != tc.status || !strings.Contains(a.Body, tc.says) {
			t.Errorf("%s: %d %s, want %d and %s", name, a.Status, a.Body, tc.status, tc.says)
		}
	}
}
