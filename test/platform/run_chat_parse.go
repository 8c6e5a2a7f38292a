package platform

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// completion is what a caller asked a language model.
type completion struct {
	completionRequest

	chat bool
	// prompts are the texts to complete, each of which gets N choices.
	prompts []string
	// tool is the function that the answer must call, "" for none.
	tool string
	// format is the schema of a JSON answer, nil for text.
	format map[string]any
}

// completionRequest is what completions of text and of chats have in common.
type completionRequest struct {
	Model               string `body:"model" min:"1"`
	MaxTokens           int    `body:"max_tokens" min:"1"`
	MaxCompletionTokens int    `body:"max_completion_tokens" min:"1"`
	N                   int    `body:"n" min:"1" max:"128"`
	Stream              bool   `body:"stream"`
	StreamOptions       struct {
		Usage      bool `body:"include_usage"`
		Continuous any  `body:"continuous_usage_stats"`
	} `body:"stream_options"`
}

func (x *exchange) parseCompletion(chat bool) (completion, error) {
	q := completion{chat: chat}
	f, err := x.openBody()
	if err != nil {
		return q, err
	}
	if f.m == nil {
		return q, badRequest("the request must be a JSON object")
	}
	if chat {
		f.require("model", "messages")
		q.prompts = []string{f.lastMessage()}
	} else {
		f.require("model", "prompt")
		q.prompts = f.texts("prompt")
	}
	f.fill(&q.completionRequest)
	q.N, q.MaxTokens = cmp.Or(q.N, 1), cmp.Or(q.MaxCompletionTokens, q.MaxTokens, 16)
	q.tool, q.format = f.tool(), f.format()
	if len(f.c.errs) > 0 {
		return q, badRequest("the request is not a completion", f.c.errs...)
	}
	return q, nil
}

// lastMessage checks the messages and returns the text of the newest. A message of an assistant that calls tools needs no content.
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
		one.fill(&struct {
			Role string `body:"role" need:"yes" min:"1"`
		}{})
		if m["content"] != nil || m["tool_calls"] == nil && m["function_call"] == nil {
			text = one.content()
		}
	}
	return text
}

// content returns the text of a message: its content, or the texts among its parts.
func (f fields) content() string {
	parts, isList := f.m["content"].([]any)
	if !isList {
		f.require("content")
		text, _ := typed[string](f, "content", "string")
		return text
	}
	var texts []string
	for _, v := range parts {
		part, _ := v.(map[string]any)
		kind, _ := part["type"].(string)
		text, isText := part["text"].(string)
		switch {
		case kind == "":
			f.c.add(f.place("content"), "expected parts with a type")
		case slices.Contains([]string{"text", "input_text", "output_text"}, kind) && !isText:
			f.c.add(f.place("content"), "a part of type %s must have a text", kind)
		case isText:
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// texts returns the texts of a member that is one text, tokens, or a list of either. The emulated model reads tokens as their numbers.
func (f fields) texts(name string) []string {
	switch value := f.m[name].(type) {
	case string:
		return []string{value}
	case []any:
		if len(value) == 0 {
			f.c.add(f.place(name), "must have 1 item or more, but got 0")
			return nil
		}
		if _, isToken := value[0].(json.Number); isToken {
			return []string{f.tokens(name, value)}
		}
		out := make([]string, 0, len(value))
		for _, item := range value {
			switch item := item.(type) {
			case string:
				out = append(out, item)
			case []any:
				out = append(out, f.tokens(name, item))
			default:
				f.c.add(f.place(name), "expected texts or tokens, but got %s", kind(item))
			}
		}
		return out
	default:
		f.c.add(f.place(name), "expected a text or a list, but got %s", kind(value))
	}
	return nil
}

func (f fields) tokens(name string, list []any) string {
	words := make([]string, 0, len(list))
	for _, item := range list {
		n, isNumber := item.(json.Number)
		if !isNumber {
			f.c.add(f.place(name), "expected tokens, but got %s", kind(item))
		}
		words = append(words, n.String())
	}
	return strings.Join(words, " ")
}

// tool returns the name of the function that the caller has the model call, "" where it may answer in words.
func (f fields) tool() string {
	list, _ := typed[[]any](f, "tools", "array")
	var names []string
	for _, v := range list {
		one, _ := v.(map[string]any)
		function, _ := one["function"].(map[string]any)
		name, _ := function["name"].(string)
		if one["type"] != "function" || name == "" {
			f.c.add(f.place("tools"), "expected functions with a name")
			continue
		}
		names = append(names, name)
	}
	asked := ""
	switch choice := f.m["tool_choice"].(type) {
	case string:
		if choice == "required" && len(names) > 0 {
			asked = names[0]
		}
	case map[string]any:
		function, _ := choice["function"].(map[string]any)
		asked, _ = function["name"].(string)
	default:
		return ""
	}
	if asked != "" && !slices.Contains(names, asked) {
		f.c.add(f.place("tool_choice"), "must name one of the tools")
	}
	return asked
}

// format returns the schema that the answer must fit, an empty one for any object, and nil for text.
func (f fields) format() map[string]any {
	format, _ := f.m["response_format"].(map[string]any)
	switch format["type"] {
	case "json_object":
		return map[string]any{}
	case "json_schema":
		named, _ := format["json_schema"].(map[string]any)
		schema, isObject := named["schema"].(map[string]any)
		if !isObject {
			f.c.add(f.place("response_format"), "must have json_schema.schema")
		}
		return schema
	}
	return nil
}

// instance returns a value that fits a simple schema, with text in its strings.
func instance(schema map[string]any, text string) any {
	if list, _ := schema["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	switch schema["type"] {
	case "string":
		return text
	case "integer", "number":
		return 0
	case "boolean":
		return false
	case "null":
		return nil
	case "array":
		return []any{}
	}
	properties, _ := schema["properties"].(map[string]any)
	out := make(map[string]any, len(properties))
	for name, v := range properties {
		property, _ := v.(map[string]any)
		out[name] = instance(property, text)
	}
	if len(properties) == 0 {
		out["text"] = text
	}
	return out
}
