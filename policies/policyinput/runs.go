package policyinput

import (
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// runs lists the requests of a call's runs to language models, as budgets have it; see
// [catalog.ParseTokenRequest].
func (d *Document) runs() []any {
	body, _ := Decoded(d.in.Request.Body).(map[string]any)
	switch d.in.Request.Operation {
	case "run", "runsync", "chatCompletions", "completions", "modelCall":
		return []any{d.run("", body)}
	case "createBatch", "addBatchRequests":
		list, _ := Decoded(body["requests"]).([]any)
		all := make([]any, len(list))
		for i, item := range list {
			request, _ := Decoded(item).(map[string]any)
			all[i] = d.run("/requests/"+strconv.Itoa(i), request)
		}
		return all
	}
	return []any{}
}

// hidden reports whether something is hidden that runs follow from: the body, or an item
// or a member that says how much they ask for.
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

// runSchema describes one of them.
func runSchema() object {
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"pointer": object{"type": "string", "description": "of the run in the body"},
			"tokens":  object{"type": []any{"integer", "null"}, "description": "the most that it may produce, all choices of all prompts together; null where the body does not say"},
			"choices": object{"type": "integer", "description": "how many there are at most, of all prompts"},
			"at":      object{"type": []any{"string", "null"}, "description": "pointer of what says the tokens of a choice, or of what is wrong; null where models do not look for it"},
			"wrong":   object{"type": "boolean", "description": "the body says tokens or choices by something else than a number above 0"},
		},
	}
}
