package catalog

import (
	"encoding/json"
	"slices"
	"strconv"
)

// TokenRequest is the request of a run to a language model: the one account of it, which budgets
// and policies go by.
type TokenRequest struct {
	// Tokens is the most that each choice may have, 0 if the body does not say. Choices is
	// how many there are at most, of all prompts.
	Tokens, Choices int64
	// Batch reports that input.batch has several items.
	Batch bool
	// Pointer is the JSON Pointer (RFC 6901) of the member that says Tokens, or that is Wrong. Of
	// a body that does not say it is where it would, "" where models do not look for it.
	Pointer string
	// Invalid says that the body says one of them by something else than a number above 0.
	Invalid bool
}

// The names by which models are told.
func tokenNames() [4]string {
	return [...]string{"max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"}
}

func choiceNames() [4]string {
	return [...]string{"n", "best_of", "num_return_sequences", "num_beams"}
}
func promptNames() [2]string { return [...]string{"prompt", "prompts"} }

// ReadsMember reports whether AskedOf looks at members of a name, or below them.
func ReadsMember(name string) bool {
	tokens, choices := tokenNames(), choiceNames()
	prompts, places := promptNames(), []string{"input", "openai_input", "sampling_params", "batch", "requests"}
	return slices.Contains(slices.Concat(tokens[:], choices[:], prompts[:], places), name)
}

// ParseTokenRequest reads the body of a completion or a job of a model or endpoint. A body may say
// the same in any of several places, of which each model reads some: the most counts.
func ParseTokenRequest(id string, body map[string]any) TokenRequest {
	a, prompts, batch := TokenRequest{Choices: 1}, int64(1), int64(1)
	see := func(at string, item int, in map[string]any) {
		a.readPlace(place{at, item, "", in})
		a.readPlace(place{at, item, "/sampling_params", object(in, "sampling_params")})
		for _, name := range promptNames() {
			prompt := member(in, name)
			_, long := prompt.(error) // too long to be counted
			prompts, a.Invalid = max(prompts, promptsIn(prompt)), a.Invalid || long
		}
	}
	input := object(body, "input")
	see("", none, body)
	see("/input", none, input)
	see("/input/openai_input", none, object(input, "openai_input"))
	switch given := member(input, "batch").(type) {
	case []any:
		batch = max(1, int64(len(given)))
		for i, item := range given {
			in, _ := decoded(item).(map[string]any)
			see("/input/batch/", i, in)
		}
	case error: // too long to be counted
		a.Invalid = true
	case json.Number:
		if n, ok := countOr(given, 0); ok {
			batch = n
		}
	}
	for _, n := range [...]int64{prompts, batch} {
		if a.Choices > maxCount/n {
			return TokenRequest{Choices: 1, Batch: batch > 1, Pointer: a.Pointer, Invalid: true}
		}
		a.Choices *= n
	}
	a.Batch = batch > 1
	if a.Tokens == 0 && !a.Invalid {
		a.Pointer = tokensAt(id, body)
	}
	return a
}

// place is an object of a body, and where it is: an item of a list unless that is none.
type place struct {
	at    string
	item  int
	below string
	in    map[string]any
}

const none = -1

func (p *place) pointer(name string) string {
	at := p.at
	if p.item != none {
		at += strconv.Itoa(p.item)
	}
	return at + p.below + "/" + name
}

// readPlace takes note of the value at a place.
func (a *TokenRequest) readPlace(p place) {
	if len(p.in) == 0 {
		return
	}
	for _, name := range tokenNames() {
		if a.count(&p, name, &a.Tokens) {
			a.Pointer = p.pointer(name)
		}
	}
	for _, name := range choiceNames() {
		a.count(&p, name, &a.Choices)
	}
}

// count raises most to the value of a member, and reports whether it did.
func (a *TokenRequest) count(p *place, name string, most *int64) (raised bool) {
	given := member(p.in, name)
	if given == nil || a.Invalid {
		return false
	}
	n, ok := countOr(given, 0)
	if !ok || n > maxCount {
		a.Invalid, a.Pointer = true, p.pointer(name)
		return false
	}
	raised = n > *most
	*most = max(*most, n)
	return raised
}

// tokensAt is where a body that does not say how many tokens it wants would: of a job,
// where models read it whose input looks like its.
func tokensAt(id string, body map[string]any) string {
	if _, isJob := body["input"]; !isJob {
		return "/max_tokens"
	}
	input := object(body, "input")
	_, chat := member(input, "openai_input").(map[string]any)
	_, params := member(input, "sampling_params").(map[string]any)
	prompt := member(input, "prompt") != nil || member(input, "prompts") != nil
	switch {
	case chat:
		return "/input/openai_input/max_tokens"
	case params, member(input, "messages") != nil:
		return "/input/sampling_params/max_tokens"
	case prompt && models[id].PerTokens > 0:
		return "/input/max_tokens"
	case prompt && !IsPublicModel(id):
		return "/input/sampling_params/max_tokens"
	}
	return ""
}

// promptsIn is how many prompts there are to complete: a list of numbers is one.
func promptsIn(given any) int64 {
	list, _ := given.([]any)
	for _, item := range list {
		if _, isNumber := decoded(item).(json.Number); !isNumber {
			return int64(len(list))
		}
	}
	return 1
}
