package catalog_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// TestParseTokenRequest: the most that it may produce counts, wherever its body says so and
// however the choices multiply.
func TestParseTokenRequest(t *testing.T) {
	for body, want := range map[string]catalog.TokenRequest{
		`{"max_tokens":100}`:                                                    {Tokens: 100, Choices: 1, Pointer: "/max_tokens"},
		`{"max_tokens":100,"n":50}`:                                             {Tokens: 100, Choices: 50, Pointer: "/max_tokens"},
		`{"max_tokens":100,"n":2,"best_of":5}`:                                  {Tokens: 100, Choices: 5, Pointer: "/max_tokens"},
		`{"max_tokens":1,"max_completion_tokens":20}`:                           {Tokens: 20, Choices: 1, Pointer: "/max_completion_tokens"},
		`{"max_tokens":10,"prompt":["a","b","c"],"n":2}`:                        {Tokens: 10, Choices: 6, Pointer: "/max_tokens"},
		`{"max_tokens":10,"prompt":[1,2,3]}`:                                    {Tokens: 10, Choices: 1, Pointer: "/max_tokens"},
		`{"max_tokens":10,"prompt":[[1,2],[3]]}`:                                {Tokens: 10, Choices: 2, Pointer: "/max_tokens"},
		`{"input":{"max_new_tokens":30}}`:                                       {Tokens: 30, Choices: 1, Pointer: "/input/max_new_tokens"},
		`{"input":{"sampling_params":{"max_tokens":30,"n":2,"best_of":3}}}`:     {Tokens: 30, Choices: 3, Pointer: "/input/sampling_params/max_tokens"},
		`{"input":{"openai_input":{"max_tokens":40,"n":4,"prompt":["a","b"]}}}`: {Tokens: 40, Choices: 8, Pointer: "/input/openai_input/max_tokens"},
		`{"input":{"openai_input":{"sampling_params":{"max_tokens":7}}}}`:       {Tokens: 7, Choices: 1, Pointer: "/input/openai_input/sampling_params/max_tokens"},
		`{"input":{"max_tokens":10,"batch":["a","b"],"prompt":["a","b","c"]}}`:  {Tokens: 10, Choices: 6, Batch: true, Pointer: "/input/max_tokens"},
		`{"input":{"max_tokens":10,"batch":8}}`:                                 {Tokens: 10, Choices: 8, Batch: true, Pointer: "/input/max_tokens"},
		`{"input":{"max_tokens":10,"batch":[{"max_tokens":900,"n":2},{}]}}`:     {Tokens: 900, Choices: 4, Batch: true, Pointer: "/input/batch/0/max_tokens"},

		`{"input":{"max_tokens":10,"prompts":["a","b","c"]}}`:                                        {Tokens: 10, Choices: 3, Pointer: "/input/max_tokens"},
		`{"input":{"max_tokens":10,"prompt":["a","b"],"prompts":["a","b","c"]}}`:                     {Tokens: 10, Choices: 3, Pointer: "/input/max_tokens"},
		`{"input":{"max_new_tokens":10,"num_return_sequences":4}}`:                                   {Tokens: 10, Choices: 4, Pointer: "/input/max_new_tokens"},
		`{"input":{"max_new_tokens":10,"num_return_sequences":2,"num_beams":5,"prompts":["a","b"]}}`: {Tokens: 10, Choices: 10, Pointer: "/input/max_new_tokens"},
		`{"input":{"sampling_params":{"max_tokens":10,"num_beams":3}}}`:                              {Tokens: 10, Choices: 3, Pointer: "/input/sampling_params/max_tokens"},
		`{"input":{"max_tokens":10,"batch":[{"num_return_sequences":3},{"prompts":["a","b"]}]}}`:     {Tokens: 10, Choices: 12, Batch: true, Pointer: "/input/max_tokens"},
		`{"input":{"prompts":["a","b"]}}`:                                                            {Choices: 2, Pointer: "/input/sampling_params/max_tokens"},
		`{"input":{"num_beams":"many"}}`:                                                             {Choices: 1, Pointer: "/input/num_beams", Invalid: true},

		`{"input":{"batch":{"max_tokens":30,"n":2}}}`:           {Tokens: 30, Choices: 2, Pointer: "/input/batch/max_tokens"},
		`{"input":{"batch":"nightly","max_tokens":3}}`:          {Tokens: 3, Choices: 1, Pointer: "/input/max_tokens"},
		`{"input":{"sampling_params":null}}`:                    {Choices: 1},
		`{"input":{"sampling_params":"{\"max_tokens\":4096}"}}`: {Choices: 1, Pointer: "/input/sampling_params", Invalid: true},
		`{"input":{"openai_input":"{\"max_tokens\":4096}"}}`:    {Choices: 1, Pointer: "/input/openai_input", Invalid: true},
		`{"input":{"batch":[{},{"sampling_params":[1]}]}}`:      {Choices: 2, Batch: true, Pointer: "/input/batch/1/sampling_params", Invalid: true},
		`{"sampling_params":7}`:                                 {Choices: 1, Pointer: "/sampling_params", Invalid: true},

		`{"max_tokens":"1"}`:                    {Choices: 1, Pointer: "/max_tokens", Invalid: true},
		`{"max_tokens":5,"n":1.5}`:              {Tokens: 5, Choices: 1, Pointer: "/n", Invalid: true},
		`{"input":{"best_of":0}}`:               {Choices: 1, Pointer: "/input/best_of", Invalid: true},
		`{"n":2000000000,"prompt":["a","b"]}`:   {Choices: 1, Invalid: true},
		`{"max_tokens":null,"n":null}`:          {Choices: 1, Pointer: "/max_tokens"},
		`{"n":3}`:                               {Choices: 3, Pointer: "/max_tokens"},
		`{"input":{"openai_input":{}}}`:         {Choices: 1, Pointer: "/input/openai_input/max_tokens"},
		`{"input":{"sampling_params":{"n":2}}}`: {Choices: 2, Pointer: "/input/sampling_params/max_tokens"},
		`{"input":{"messages":[]}}`:             {Choices: 1, Pointer: "/input/sampling_params/max_tokens"},
		`{"input":{"prompt":"p"}}`:              {Choices: 1, Pointer: "/input/sampling_params/max_tokens"},
		`{"input":{"image":"i"}}`:               {Choices: 1},
	} {
		m, _ := decode(t, body).(map[string]any)
		for _, input := range []any{m["input"], deferred{m["input"]}} {
			if _, isJob := m["input"]; isJob {
				m["input"] = input
			}
			if got := catalog.ParseTokenRequest("e1", m); got != want {
				t.Errorf("%s: %+v, want %+v", body, got, want)
			}
		}
	}
	prompt := map[string]any{"input": map[string]any{"prompt": "p"}}
	for id, want := range map[string]string{"gpt-oss-120b": "/input/max_tokens", "black-forest-labs-flux-1-dev": ""} {
		if got := catalog.ParseTokenRequest(id, prompt).Pointer; got != want {
			t.Errorf("a prompt of %s: tokens belong at %q, want %q", id, got, want)
		}
	}
}

// long is a list that is too long to be decoded.
type long struct{}

func (long) Decoded() any { return errors.New("too long") }

// A list that cannot be counted hides no prompts and no items.
func TestLongLists(t *testing.T) {
	for _, body := range []map[string]any{
		{"max_tokens": json.Number("5"), "prompt": long{}},
		{"max_tokens": json.Number("5"), "input": map[string]any{"prompt": long{}}},
		{"max_tokens": json.Number("5"), "input": map[string]any{"prompts": long{}}},
		{"max_tokens": json.Number("5"), "input": map[string]any{"batch": long{}}},
	} {
		if a := catalog.ParseTokenRequest("runJob", body); !a.Invalid {
			t.Errorf("%v asks for %+v, want it to be wrong", body, a)
		}
	}
}
