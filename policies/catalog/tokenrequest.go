package catalog

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// TokenRequest describes the output that a run requests from a language model. Budgets and policies use the same description.
type TokenRequest struct {
	// Tokens is the largest number of tokens that each choice may have, or 0 if the body does not limit it. Choices is the largest number
	// of choices for all prompts together.
	Tokens, Choices int64
	// Batch reports whether input.batch has more than one item.
	Batch bool
	// Pointer is the JSON Pointer (RFC 6901) of the member that sets Tokens, or of the invalid member. If the body does not set the number,
	// Pointer is the place where it could be set, or empty if models do not read the number anywhere in this body.
	Pointer string
	// Invalid is set if a member that limits tokens or choices is not a whole number above 0, or if openai_input or sampling_params is not an
	// object.
	Invalid bool
}

// Member names that models read.
var (
	tokenNames  = []string{"max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"}
	choiceNames = []string{"n", "best_of", "num_return_sequences", "num_beams"}
	promptNames = []string{"prompt", "prompts"}
	placeNames  = []string{"input", "openai_input", "sampling_params", "batch", "requests"}
)

// ReadsMember reports whether ParseTokenRequest reads members with the given name, or members inside them.
func ReadsMember(name string) bool {
	return slices.Contains(slices.Concat(tokenNames, choiceNames, promptNames, placeNames), name)
}

// ParseTokenRequest reads the body of a completion, or of a job for a model or endpoint. A body may state the same number in several
// places, and models differ in which place they read, so the largest value is used.
func ParseTokenRequest(id string, body map[string]any) TokenRequest {
	a, prompts, batch := TokenRequest{Choices: 1}, int64(1), int64(1)
	see := func(at string, item int, in map[string]any) {
		p := place{at, item, "", in}
		a.readPlace(p)
		a.readPlace(place{at, item, "/sampling_params", a.object(&p, "sampling_params")})
		for _, name := range promptNames {
			prompt := member(in, name)
			_, long := prompt.(error) // too long to count
			prompts, a.Invalid = max(prompts, promptsIn(prompt)), a.Invalid || long
		}
	}
	input := object(body, "input")
	see("", none, body)
	see("/input", none, input)
	see("/input/openai_input", none, a.object(&place{"/input", none, "", input}, "openai_input"))
	switch given := member(input, "batch").(type) {
	case []any:
		batch = max(1, int64(len(given)))
		for i, item := range given {
			in, _ := operation.Decoded(item).(map[string]any)
			see("/input/batch/", i, in)
		}
	case map[string]any:
		see("/input/batch", none, given)
	case error: // too long to count
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

// place is an object in a body with its location. If the location is a list, the object is an item of the list.
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

// readPlace updates a with the members of the object at p.
func (a *TokenRequest) readPlace(p place) {
	if len(p.in) == 0 {
		return
	}
	for _, name := range tokenNames {
		if a.count(&p, name, &a.Tokens) {
			a.Pointer = p.pointer(name)
		}
	}
	for _, name := range choiceNames {
		a.count(&p, name, &a.Choices)
	}
}

// count raises most to the value of a member and reports whether it did.
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

// object returns a member that must be an object, and nil if it is not.
func (a *TokenRequest) object(p *place, name string) map[string]any {
	given := member(p.in, name)
	in, isObject := given.(map[string]any)
	if given != nil && !isObject && !a.Invalid {
		a.Invalid, a.Pointer = true, p.pointer(name)
	}
	return in
}

// tokensAt returns the pointer at which a body without a token limit could set one. For a job it depends on the form of the input, because
// models read different members.
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

// promptsIn returns the number of prompts to complete. A list of numbers is one prompt.
func promptsIn(given any) int64 {
	list, _ := given.([]any)
	for _, item := range list {
		if _, isNumber := operation.Decoded(item).(json.Number); !isNumber {
			return int64(len(list))
		}
	}
	return 1
}
