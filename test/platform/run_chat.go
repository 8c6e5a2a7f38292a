package platform

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// model is the name a language-model endpoint serves under.
func (e *endpoint) model() string {
	return cmp.Or(e.Container.Env["OPENAI_SERVED_MODEL_NAME_OVERRIDE"], cmp.Or(e.Container.Env["MODEL_NAME"], e.Name))
}

func (x *exchange) modelsLocked(e *endpoint) (reply, error) {
	return ok(object{"object", "list", "data", []object{e.modelRecord()}}), nil
}

func (e *endpoint) modelRecord() object {
	return object{"id", e.model(), "object", "model", "owned_by", "platform"}
}

// modelLocked answers the one model there is, whose name may have its owner's before it.
func (x *exchange) modelLocked(e *endpoint) (reply, error) {
	if name := strings.Join(x.params[1:], "/"); name != e.model() {
		return reply{}, refuse(http.StatusNotFound, "the model '"+name+"' does not exist")
	}
	return ok(e.modelRecord()), nil
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
	j, err := x.askModel(q.Model, strings.Join(q.prompts, " "))
	switch {
	case err != nil:
		return reply{}, err
	case q.Stream:
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
	if _, err := x.awaitLocked(e, j, j.Expires); err != nil {
		return nil, err
	}
	if j.Status != jobCompleted {
		return nil, refuse(http.StatusInternalServerError, "the completion ended "+j.Status)
	}
	return j, nil
}

// embeddings answers each text with a vector of how long it is.
func (x *exchange) embeddings() (reply, error) {
	f, err := x.openBody()
	if err != nil {
		return reply{}, err
	}
	var q struct {
		Model  string `body:"model" need:"yes" min:"1"`
		Input  any    `body:"input" need:"yes"`
		Format string `body:"encoding_format" enum:"float base64"`
	}
	f.fill(&q)
	texts := f.texts("input")
	if len(f.c.errs) > 0 {
		return reply{}, badRequest("the request is not one for embeddings", f.c.errs...)
	}
	if _, err := x.askModel(q.Model, texts); err != nil {
		return reply{}, err
	}
	data, tokens := []object{}, 0
	for i, text := range texts {
		words := len(strings.Fields(text))
		vector := []float32{float32(len(text)), float32(words)}
		embedding := encoded(vector)
		if q.Format == "base64" {
			var raw []byte
			for _, number := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(number))
			}
			embedding = encoded(raw)
		}
		data, tokens = append(data, object{"object", "embedding", "index", i, "embedding", embedding}), tokens+words
	}
	return ok(object{
		"data", data, "model", encoded(q.Model), "object", "list", "usage", object{"prompt_tokens", tokens, "total_tokens", tokens},
	}), nil
}

// responses answers a text as completions do, in the words of the interface that takes
// their place, or in events of which the last is the whole answer.
func (x *exchange) responses() (reply, error) {
	f, err := x.openBody()
	if err != nil {
		return reply{}, err
	}
	var r struct {
		Model     string `body:"model" need:"yes" min:"1"`
		Input     any    `body:"input" need:"yes"`
		MaxTokens int    `body:"max_output_tokens" min:"1"`
		Stream    bool   `body:"stream"`
	}
	f.fill(&r)
	var prompt string
	if list, isList := r.Input.([]any); isList {
		prompt = fields{c: f.c, at: "$", m: map[string]any{"messages": list}}.lastMessage()
	} else {
		prompt, _ = typed[string](f, "input", "string")
	}
	if len(f.c.errs) > 0 {
		return reply{}, badRequest("the request is not one for a response", f.c.errs...)
	}
	q := completion{completionRequest: completionRequest{MaxTokens: cmp.Or(r.MaxTokens, 1<<20)}}
	j, err := x.askModel(r.Model, prompt)
	if err != nil {
		return reply{}, err
	}
	words, in := q.words(prompt), len(strings.Fields(prompt))
	text := object{"annotations", []object{}, "text", encoded(strings.Join(words, " ")), "type", "output_text"}
	message := object{"content", []object{text}, "id", "msg_" + j.ID, "role", "assistant", "status", "completed", "type", "message"}
	whole := object{
		"created_at", j.Ends.Unix(), "error", nil, "id", "resp_" + j.ID, "incomplete_details", nil, "instructions", nil, "metadata",
		object{},
		"model", encoded(r.Model), "object", "response", "output",
		[]object{message},
		"parallel_tool_calls", true, "status", "completed",
		"tool_choice", "auto", "tools",
		[]object{},
		"usage",
		object{
			"input_tokens", in, "input_tokens_details",
			object{"cached_tokens", 0},
			"output_tokens", len(words),
			"output_tokens_details",
			object{"reasoning_tokens", 0},
			"total_tokens", in + len(words),
		},
	}
	if !r.Stream {
		return ok(whole), nil
	}
	return streamed(func() error {
		out := http.NewResponseController(x.w)
		for _, word := range words {
			if err := x.event(out, object{"delta", encoded(word), "type", "response.output_text.delta"}); err != nil {
				return err
			}
		}
		return x.event(out, object{"response", whole, "type", "response.completed"})
	}), nil
}

// words is the answer of the emulated model to a prompt: the prompt, word by word, or one word that calls a tool or is JSON.
func (q completion) words(prompt string) []string {
	words := strings.Fields("You said: " + prompt)
	words = words[:min(len(words), q.MaxTokens)]
	if q.format != nil {
		return []string{string(encoded(instance(q.format, strings.Join(words, " "))))}
	}
	return words
}

// body is an answer, or a part of one, with more members.
func (q completion) body(j *job, kind string, choices []object, more ...any) object {
	return append(object{
		"id", "cmpl-" + j.ID, "object", kind, "created", j.Ends.Unix(), "model", encoded(q.Model), "choices", choices,
	}, more...)
}

// tokens is the account of a completion.
func (q completion) tokens() object {
	in, out := 0, 0
	for _, prompt := range q.prompts {
		in, out = in+len(strings.Fields(prompt)), out+q.N*len(q.words(prompt))
	}
	return object{"completion_tokens", out, "prompt_tokens", in, "total_tokens", in + out}
}

// answer has n choices for each prompt.
func (q completion) answer(j *job) object {
	var choices []object
	for _, prompt := range q.prompts {
		for range q.N {
			choices = append(choices, q.choice(len(choices), "message", strings.Join(q.words(prompt), " "), 0, 1))
		}
	}
	kind := "text_completion"
	if q.chat {
		kind = "chat.completion"
	}
	return q.body(j, kind, choices, "usage", q.tokens())
}

// streamCompletion sends the words as server-sent events, after the last of them the
// account of tokens if that was asked for, and [DONE].
func (x *exchange) streamCompletion(q completion, j *job) reply {
	return streamed(func() error {
		out := http.NewResponseController(x.w)
		ctx, stop := x.untilClosed()
		defer stop()
		kind, usage := "text_completion", []any{}
		if q.chat {
			kind = "chat.completion.chunk"
		}
		if q.StreamOptions.Usage {
			usage = []any{"usage", nil}
		}
		for _, part := range q.parts() {
			if x.s.clock.Speed() > 0 {
				if err := x.s.clock.Wait(ctx, x.s.clock.Now().Add(x.s.timing.Token), nil); err != nil {
					return err
				}
			}
			if err := x.event(out, q.body(j, kind, []object{part}, usage...)); err != nil {
				return err
			}
		}
		if q.StreamOptions.Usage {
			if err := x.event(out, q.body(j, kind, nil, "usage", q.tokens())); err != nil {
				return err
			}
		}
		_, err := x.w.Write([]byte("data: [DONE]\n\n"))
		return err
	})
}

// streamed is an answer of server-sent events.
func streamed(stream func() error) reply {
	header := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	return reply{status: http.StatusOK, header: header, stream: stream}
}

// event sends one part of a completion.
func (x *exchange) event(out *http.ResponseController, body object) error {
	if _, err := fmt.Fprintf(x.w, "data: %s\n\n", body.append(nil)); err != nil {
		return err
	}
	return out.Flush()
}

// parts are the choices of a stream, one for each word of each answer.
func (q completion) parts() []object {
	var parts []object
	for i, prompt := range q.prompts {
		for k := range q.N {
			words := q.words(prompt)
			if q.tool != "" {
				words = words[:1]
			}
			for at, word := range words {
				if at > 0 {
					word = " " + word
				}
				parts = append(parts, q.choice(i*q.N+k, "delta", word, at, len(words)))
			}
		}
	}
	return parts
}

// choice is a choice with the part of its text that is at a place among all parts.
func (q completion) choice(index int, member, text string, at, of int) object {
	finish := any(nil)
	if at == of-1 {
		finish = "stop"
	}
	if !q.chat {
		return object{"index", index, "text", encoded(text), "finish_reason", finish}
	}
	var m object
	if at == 0 {
		m = object{"role", "assistant"}
	}
	if q.tool == "" {
		m = append(m, "content", encoded(text))
	} else {
		finish = "tool_calls"
		call := object{"name", encoded(q.tool), "arguments", "{}"}
		m = append(m, "content", nil, "tool_calls", []object{{"index", 0, "id", encoded("call_" + q.tool), "type", "function", "function", call}})
	}
	return object{"index", index, member, m, "finish_reason", finish}
}
