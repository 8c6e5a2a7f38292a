package platform

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// model is the name a language-model endpoint serves under.
func (e *endpoint) model() string {
	return orText(e.Container.Env["OPENAI_SERVED_MODEL_NAME_OVERRIDE"], orText(e.Container.Env["MODEL_NAME"], e.Name))
}

func (x *exchange) modelsLocked(e *endpoint) (reply, error) {
	b := appendText([]byte(`{"object":"list","data":[{"id":`), e.model())
	return ok(append(b, `,"object":"model","owned_by":"platform"}]}`...)), nil
}

// modelLocked answers the one model there is, whose name may have its owner's before it.
func (x *exchange) modelLocked(e *endpoint) (reply, error) {
	if name := strings.Join(x.params[1:], "/"); name != e.model() {
		return reply{}, refuse(http.StatusNotFound, "the model '"+name+"' does not exist")
	}
	b := appendText([]byte(`{"id":`), e.model())
	return ok(append(b, `,"object":"model","owned_by":"platform"}`...)), nil
}

// completion is what a caller asked a language model.
type completion struct {
	chat      bool
	model     string
	prompt    string
	maxTokens int
	stream    bool
	usage     bool
}

func (x *exchange) parseCompletion(chat bool) (completion, error) {
	q := completion{chat: chat, maxTokens: 16}
	body, err := x.decode()
	if err != nil {
		return q, err
	}
	m, isObject := body.(map[string]any)
	if !isObject {
		return q, badRequest("the request must be a JSON object")
	}
	var c checker
	f := fields{c: &c, at: "$", m: m}
	if chat {
		f.require("model", "messages")
		q.prompt = f.lastMessage()
	} else {
		f.require("model", "prompt")
		q.prompt, _ = f.text("prompt", 0)
	}
	q.model, _ = f.text("model", 1)
	if n, ok := f.integer("max_tokens", 1, 1<<20); ok {
		q.maxTokens = int(n)
	}
	q.stream = isSet(f.flag("stream"))
	if options, ok := f.child("stream_options", "include_usage", "continuous_usage_stats"); ok {
		q.usage = isSet(options.flag("include_usage"))
	}
	if len(c.errs) > 0 {
		return q, badRequest("the request is not a completion", c.errs...)
	}
	return q, nil
}

// lastMessage checks the messages and returns the text of the newest.
func (f fields) lastMessage() string {
	list, ok := typed[[]any](f, "messages", "array")
	if ok && len(list) == 0 {
		f.c.add(f.place("messages"), "must have 1 item or more, but got 0")
	}
	text := ""
	for _, v := range list {
		m, isObject := v.(map[string]any)
		if !isObject {
			f.c.add(f.place("messages"), "expected objects, but got %s", kind(v))
			continue
		}
		one := fields{c: f.c, at: f.place("messages"), m: m}
		one.require("role", "content")
		one.text("role", 1)
		text, _ = one.text("content", 0)
	}
	return text
}

func (x *exchange) chatCompletions() (reply, error) { return x.complete(true) }

func (x *exchange) textCompletions() (reply, error) { return x.complete(false) }

// complete runs a completion as a job of the queue: a cold endpoint lets its
// first caller wait.
func (x *exchange) complete(chat bool) (reply, error) {
	q, err := x.parseCompletion(chat)
	if err != nil {
		return reply{}, err
	}
	j, err := x.askModel(q.model, q.prompt)
	switch {
	case err != nil:
		return reply{}, err
	case q.stream:
		return x.streamCompletion(q, j), nil
	}
	return ok(q.answer(j)), nil
}

// askModel runs a prompt as a job of the queue, to its end.
func (x *exchange) askModel(model string, prompt any) (*job, error) {
	x.lock()
	defer x.unlock()
	e, err := x.queueLocked()
	if err != nil {
		return nil, err
	}
	if model != e.model() {
		return nil, refuse(http.StatusNotFound, "the model '"+model+"' does not exist")
	}
	leave, err := x.enterLocked(e)
	if err != nil {
		return nil, err
	}
	defer leave()
	j := &job{
		Sync: true, Keep: keepSync, Input: map[string]any{"prompt": prompt},
		Expires: time.Time{}.Add(24 * time.Hour),
	}
	x.submitLocked(e, j)
	if _, err := x.awaitLocked(j, j.Expires, x.nextOf(e)); err != nil {
		return nil, err
	}
	if j.Status != jobCompleted {
		return nil, refuse(http.StatusInternalServerError, "the completion ended "+j.Status)
	}
	return j, nil
}

// embedded is one vector of an answer.
type embedded struct {
	Object    string    `json:"object"`
	Index     int       `json:"index"`
	Embedding []float64 `json:"embedding"`
}

// embeddings answers each text with a vector of how long it is.
func (x *exchange) embeddings() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	m, _ := body.(map[string]any)
	var c checker
	f := fields{c: &c, at: "$", m: m}
	f.require("model", "input")
	model, _ := f.text("model", 1)
	texts, isList := m["input"].([]any)
	if !isList {
		texts = []any{m["input"]}
	}
	if len(c.errs) > 0 {
		return reply{}, badRequest("the request is not one for embeddings", c.errs...)
	}
	if _, err := x.askModel(model, texts); err != nil {
		return reply{}, err
	}
	data, tokens := []embedded{}, 0
	for i, v := range texts {
		text, _ := v.(string)
		words := len(strings.Fields(text))
		data, tokens = append(data, embedded{"embedding", i, []float64{float64(len(text)), float64(words)}}), tokens+words
	}
	return ok(encoded(map[string]any{
		"object": "list", "model": model, "data": data, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})), nil
}

// responses answers a text as completions do, in the words of the interface that takes
// their place, or in events of which the last is the whole answer.
func (x *exchange) responses() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	m, _ := body.(map[string]any)
	var c checker
	f := fields{c: &c, at: "$", m: m}
	f.require("model", "input")
	q := completion{maxTokens: 1 << 20}
	q.model, _ = f.text("model", 1)
	q.prompt, _ = f.text("input", 0)
	if n, ok := f.integer("max_output_tokens", 1, 1<<20); ok {
		q.maxTokens = int(n)
	}
	stream := isSet(f.flag("stream"))
	if len(c.errs) > 0 {
		return reply{}, badRequest("the request is not one for a response", c.errs...)
	}
	j, err := x.askModel(q.model, q.prompt)
	if err != nil {
		return reply{}, err
	}
	words := q.words()
	whole := map[string]any{
		"id": "resp_" + j.ID, "object": "response", "status": "completed", "model": q.model,
		"output": []any{map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": strings.Join(words, " ")}}}},
		"usage":  map[string]int{"input_tokens": len(strings.Fields(q.prompt)), "output_tokens": len(words), "total_tokens": len(strings.Fields(q.prompt)) + len(words)},
	}
	if !stream {
		return ok(encoded(whole)), nil
	}
	header := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	return reply{status: http.StatusOK, header: header, stream: func() error {
		out := http.NewResponseController(x.w)
		for _, word := range words {
			if err := x.event(out, map[string]any{"type": "response.output_text.delta", "delta": word}); err != nil {
				return err
			}
		}
		return x.event(out, map[string]any{"type": "response.completed", "response": whole})
	}}, nil
}

// words is the answer of the emulated model: the prompt, word by word.
func (q completion) words() []string {
	words := strings.Fields("You said: " + q.prompt)
	return words[:min(len(words), q.maxTokens)]
}

type completionBody struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   any                `json:"usage,omitempty"`
}

type completionChoice struct {
	Index   int                `json:"index"`
	Message *completionMessage `json:"message,omitempty"`
	Delta   *completionMessage `json:"delta,omitempty"`
	Text    *string            `json:"text,omitempty"`
	Finish  *string            `json:"finish_reason"`
}

type completionMessage struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

func (q completion) body(j *job, object string, choices ...completionChoice) completionBody {
	if choices == nil {
		choices = []completionChoice{}
	}
	return completionBody{ID: "cmpl-" + j.ID, Object: object, Created: j.Ends.Unix(), Model: q.model, Choices: choices}
}

// tokens is the account of a completion.
func (q completion) tokens() map[string]int {
	in, out := len(strings.Fields(q.prompt)), len(q.words())
	return map[string]int{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

func (q completion) answer(j *job) []byte {
	text, stop := strings.Join(q.words(), " "), "stop"
	choice, object := completionChoice{Text: &text, Finish: &stop}, "text_completion"
	if q.chat {
		choice = completionChoice{Message: &completionMessage{Role: "assistant", Content: text}, Finish: &stop}
		object = "chat.completion"
	}
	body := q.body(j, object, choice)
	body.Usage = q.tokens()
	return encoded(body)
}

// streamCompletion sends the words as server-sent events, after the last of them the
// account of tokens if that was asked for, and [DONE].
func (x *exchange) streamCompletion(q completion, j *job) reply {
	header := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	return reply{status: http.StatusOK, header: header, stream: func() error {
		out := http.NewResponseController(x.w)
		words := q.words()
		ctx, stop := x.untilClosed()
		defer stop()
		for i, word := range words {
			if x.s.clock.Speed() > 0 {
				if err := x.s.clock.Wait(ctx, x.s.clock.Now().Add(x.s.timing.Token), nil); err != nil {
					return err
				}
			}
			choice, object := q.chunk(word, i, len(words))
			body := q.body(j, object, choice)
			if q.usage {
				body.Usage = json.RawMessage("null")
			}
			if err := x.event(out, body); err != nil {
				return err
			}
		}
		if q.usage {
			_, object := q.chunk("", 0, 1)
			body := q.body(j, object)
			body.Usage = q.tokens()
			if err := x.event(out, body); err != nil {
				return err
			}
		}
		_, err := x.w.Write([]byte("data: [DONE]\n\n"))
		return err
	}}
}

// event sends one part of a completion.
func (x *exchange) event(out *http.ResponseController, body any) error {
	event := append([]byte("data: "), encoded(body)...)
	if _, err := x.w.Write(append(event, "\n\n"...)); err != nil {
		return err
	}
	return out.Flush()
}

func (q completion) chunk(word string, i, of int) (completionChoice, string) {
	if i > 0 {
		word = " " + word
	}
	var finish *string
	if i == of-1 {
		stop := "stop"
		finish = &stop
	}
	if !q.chat {
		return completionChoice{Text: &word, Finish: finish}, "text_completion"
	}
	m := &completionMessage{Content: word}
	if i == 0 {
		m.Role = "assistant"
	}
	return completionChoice{Delta: m, Finish: finish}, "chat.completion.chunk"
}
