package policyinput

import (
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// runs returns the requests to language models in a call, as budgets count them; see [catalog.ParseTokenRequest].
func (d *Document) runs() []any {
	body, _ := operation.Decoded(d.in.Request.Body).(map[string]any)
	switch d.in.Request.Operation {
	case "run", "runsync", "chatCompletions", "completions", "modelCall":
		return []any{d.run("", body)}
	case "createBatch", "addBatchRequests":
		list, _ := operation.Decoded(body["requests"]).([]any)
		all := make([]any, len(list))
		for i, item := range list {
			request, _ := operation.Decoded(item).(map[string]any)
			all[i] = d.run("/requests/"+strconv.Itoa(i), request)
		}
		return all
	}
	return []any{}
}

// hidden reports whether a value that runs depends on is hidden: the body, or an item or member that states the requested output.
func (d *Document) hidden(paths hiddenPaths) bool {
	return len(d.runs()) > 0 && slices.ContainsFunc(paths, func(path []string) bool {
		if len(path) < 2 || path[0] != "request" || path[1] != "body" {
			return false
		}
		last := path[len(path)-1]
		_, err := strconv.Atoi(last)
		return len(path) == 2 || err == nil || catalog.ReadsMember(last)
	})
}

func (d *Document) run(at string, body map[string]any) any {
	asked := catalog.ParseTokenRequest(d.in.Request.Params["id"], body)
	out := object{"pointer": at, "tokens": nil, "choices": asked.Choices, "at": nil, "wrong": asked.Invalid}
	if asked.Tokens > 0 && !asked.Invalid {
		out["tokens"] = asked.Tokens * asked.Choices
	}
	if asked.Pointer != "" {
		out["at"] = at + asked.Pointer
	}
	return out
}

// runSchema returns the schema of one run.
func runSchema() object {
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"pointer": object{"type": "string", "description": "pointer of the run in the body"},
			"tokens": object{
				"type":        []any{"integer", "null"},
				"description": "highest number of tokens it may produce, for all choices of all prompts; null if the body does not limit it",
			},
			"choices": object{"type": "integer", "description": "highest number of choices, for all prompts"},
			"at": object{
				"type":        []any{"string", "null"},
				"description": "pointer of the member that limits the tokens of a choice, or of the invalid member; null if models do not read such a member",
			},
			"wrong": object{"type": "boolean", "description": "a member that limits tokens or choices is not a whole number above 0, or openai_input or sampling_params is not an object"},
		},
	}
}
