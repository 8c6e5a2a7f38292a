package platform

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
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
	j, err := x.askModel(q.model, strings.Join(q.prompts, " "))
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
	if _, err := x.awaitLocked(e, j, j.Expires); err != nil {
		return nil, err
	}
	if j.Status != jobCompleted {
		return nil, refuse(http.StatusInternalServerError, "the completion ended "+j.Status)
	}
	return j, nil
}

// embedded is one vector of an answer.
type embedded struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	// Embedding is a list of numbers, or their bytes in base64.
	Embedding any `json:"embedding"`
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
	data, tokens := []embedded{}, 0
	for i, text := range texts {
		words := len(strings.Fields(text))
		vector := []float32{float32(len(text)), float32(words)}
		data, tokens = append(data, embedded{"embedding", i, vector}), tokens+words
		if q.Format == "base64" {
			var raw []byte
			for _, number := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(number))
			}
			data[i].Embedding = raw
		}
	}
	return ok(encoded(map[string]any{
		"object": "list", "model": q.Model, "data": data, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})), nil
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
	q := completion{n: 1, model: r.Model, maxTokens: cmp.Or(r.MaxTokens, 1<<20)}
	j, err := x.askModel(q.model, prompt)
	if err != nil {
		return reply{}, err
	}
	words, in := q.words(prompt), len(strings.Fields(prompt))
	text := map[string]any{"type": "output_text", "text": strings.Join(words, " "), "annotations": []any{}}
	whole := map[string]any{
		"id": "resp_" + j.ID, "object": "response", "created_at": j.Ends.Unix(), "status": "completed", "model": q.model,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
		"output": []any{map[string]any{"id": "msg_" + j.ID, "type": "message", "status": "completed", "role": "assistant", "content": []any{text}}},
		"usage": map[string]any{
			"input_tokens": in, "output_tokens": len(words), "total_tokens": in + len(words),
			"input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
		},
	}
	if !r.Stream {
		return ok(encoded(whole)), nil
	}
	return streamed(func() error {
		out := http.NewResponseController(x.w)
		for _, word := range words {
			if err := x.event(out, map[string]any{"type": "response.output_text.delta", "delta": word}); err != nil {
				return err
			}
		}
		return x.event(out, map[string]any{"type": "response.completed", "response": whole})
	}), nil
}

// words is the answer of the emulated model to a prompt: the prompt, word by word, or one word that calls a tool or is JSON.
func (q completion) words(prompt string) []string {
	words := strings.Fields("You said: " + prompt)
	words = words[:min(len(words), q.maxTokens)]
	if q.format != nil {
		return []string{string(encoded(instance(q.format, strings.Join(words, " "))))}
	}
	return words
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
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

// toolCall is a call of a function that the caller offered.
type toolCall struct {
	Index    int          `json:"index"`
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (q completion) body(j *job, choices ...completionChoice) completionBody {
	object := "text_completion"
	if q.chat {
		object = "chat.completion.chunk"
	}
	if choices == nil {
		choices = []completionChoice{}
	}
	return completionBody{ID: "cmpl-" + j.ID, Object: object, Created: j.Ends.Unix(), Model: q.model, Choices: choices}
}

// tokens is the account of a completion.
func (q completion) tokens() map[string]int {
	in, out := 0, 0
	for _, prompt := range q.prompts {
		in, out = in+len(strings.Fields(prompt)), out+q.n*len(q.words(prompt))
	}
	return map[string]int{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

// answer has n choices for each prompt.
func (q completion) answer(j *job) json.RawMessage {
	var choices []completionChoice
	for _, prompt := range q.prompts {
		for range q.n {
			text := strings.Join(q.words(prompt), " ")
			choice := q.chunk(text, 0, 1)
			choice.Index, choice.Message, choice.Delta = len(choices), choice.Delta, nil
			choices = append(choices, choice)
		}
	}
	body := q.body(j, choices...)
	body.Object = strings.TrimSuffix(body.Object, ".chunk")
	body.Usage = q.tokens()
	return encoded(body)
}

// streamCompletion sends the words as server-sent events, after the last of them the
// account of tokens if that was asked for, and [DONE].
func (x *exchange) streamCompletion(q completion, j *job) reply {
	return streamed(func() error {
		out := http.NewResponseController(x.w)
		ctx, stop := x.untilClosed()
		defer stop()
		for _, part := range q.parts() {
			if x.s.clock.Speed() > 0 {
				if err := x.s.clock.Wait(ctx, x.s.clock.Now().Add(x.s.timing.Token), nil); err != nil {
					return err
				}
			}
			body := q.body(j, part)
			if q.usage {
				body.Usage = json.RawMessage("null")
			}
			if err := x.event(out, body); err != nil {
				return err
			}
		}
		if q.usage {
			body := q.body(j)
			body.Usage = q.tokens()
			if err := x.event(out, body); err != nil {
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
func (x *exchange) event(out *http.ResponseController, body any) error {
	event := append([]byte("data: "), encoded(body)...)
	if _, err := x.w.Write(append(event, "\n\n"...)); err != nil {
		return err
	}
	return out.Flush()
}

// parts are the choices of a stream, one for each word of each answer.
func (q completion) parts() []completionChoice {
	var parts []completionChoice
	for i, prompt := range q.prompts {
		for k := range q.n {
			words := q.words(prompt)
			if q.tool != "" {
				words = words[:1]
			}
			for at, word := range words {
				part := q.chunk(word, at, len(words))
				part.Index = i*q.n + k
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// chunk is a word of an answer, at a place among all of them.
func (q completion) chunk(word string, i, of int) completionChoice {
	if i > 0 {
		word = " " + word
	}
	var finish *string
	if i == of-1 {
		stop := "stop"
		finish = &stop
	}
	if !q.chat {
		return completionChoice{Text: &word, Finish: finish}
	}
	m := &completionMessage{Content: &word}
	if i == 0 {
		m.Role = "assistant"
	}
	if q.tool != "" {
		called := "tool_calls"
		m.Content, finish = nil, &called
		m.Calls = []toolCall{{ID: "call_" + q.tool, Type: "function", Function: toolFunction{Name: q.tool, Arguments: "{}"}}}
	}
	return completionChoice{Delta: m, Finish: finish}
}
