package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// documentURL identifies the description in the schema compiler. It is never fetched.
const documentURL = "mem:///openapi.json"

// newCompiler returns a compiler for schemas in the description text. It resolves only references within the description.
func newCompiler(text []byte) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("schema refers to %s, which is outside the API description", url)
	}
	c.RegisterExtension("number-spelling", nil, spellingCompiler{})
	if err := c.AddResource(documentURL, bytes.NewReader(text)); err != nil {
		panic(err) // the text was parsed by Load
	}
	return c
}

// source is an API description as a tree, in which the locations of validation errors can be resolved.
type source struct{ root any }

func newSource(text []byte) (*source, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	s := &source{}
	return s, d.Decode(&s.root)
}

// at returns the node at a JSON Pointer (RFC 6901), or nil if it does not exist.
func (s *source) at(pointer string) any {
	return resolve(s.root, slices.Collect(jsontext.Pointer(pointer).Tokens()))
}

// schemaAt returns the schema object at pointer, or nil if it does not exist.
func (s *source) schemaAt(pointer string) map[string]any {
	m, _ := s.at(pointer).(map[string]any)
	return m
}

// follow returns the object at a node. If the node is a reference, follow resolves it.
func (s *source) follow(node any) map[string]any {
	m, _ := node.(map[string]any)
	if ref := text(m, "$ref"); ref != "" {
		return s.schemaAt(strings.TrimPrefix(ref, "#"))
	}
	return m
}

// inPlace calls f for the schema at pointer, and for every schema that this schema applies to the same value, by reference or as a branch.
func (s *source) inPlace(pointer string, f func(pointer string, schema map[string]any)) {
	node := s.schemaAt(pointer)
	if node == nil {
		return
	}
	f(pointer, node)
	if ref, ok := node["$ref"].(string); ok {
		s.inPlace(strings.TrimPrefix(ref, "#"), f)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := node[keyword].([]any)
		for i := range branches {
			s.inPlace(fmt.Sprintf("%s/%s/%d", pointer, keyword, i), f)
		}
	}
	for _, keyword := range []string{"if", "then", "else"} {
		s.inPlace(pointer+"/"+keyword, f)
	}
}

// isObject reports whether the schema at pointer permits only objects.
func (s *source) isObject(pointer string) bool {
	node := s.schemaAt(pointer)
	if ref, ok := node["$ref"].(string); ok && s.isObject(strings.TrimPrefix(ref, "#")) {
		return true
	}
	parts, _ := node["allOf"].([]any)
	for i := range parts {
		if s.isObject(fmt.Sprintf("%s/allOf/%d", pointer, i)) {
			return true
		}
	}
	return node["type"] == "object"
}

// escapeToken escapes a name as a token of a pointer.
func escapeToken(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// splitEscaped returns the tokens of a pointer of the validator, in which tokens are also percent-encoded.
func splitEscaped(pointer string) []string {
	tokens := slices.Collect(jsontext.Pointer(pointer).Tokens())
	for i, t := range tokens {
		if plain, err := url.PathUnescape(t); err == nil {
			tokens[i] = plain
		}
	}
	return tokens
}

// resolve follows tokens from v. It returns nil if a token does not exist.
func resolve(v any, tokens []string) any {
	for _, t := range tokens {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[t]
			if !ok {
				return nil
			}
			v = next
		case []any:
			i, ok := index(t)
			if !ok || i >= len(node) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

// index parses an array index in the form of RFC 6901.
func index(token string) (int, bool) {
	n, err := strconv.Atoi(token)
	return n, err == nil && isPlainInteger(token) && token[0] != '-'
}

// The spelling of numbers is validated in addition to their value, so that every JSON parser sees the same number. An integer must consist
// of plain digits and be in the range that a float64 represents exactly. Any other number must have at most six decimals and no exponent.
// The validator by itself would accept 1.0, 1e0 and 80e-1 as integers.
const (
	maxInteger  = 1<<53 - 1
	maxDecimals = 6
)

type spellingCompiler struct{}

func (spellingCompiler) Compile(_ jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	switch types := typesOf(m); {
	case types["integer"]:
		return spelling(integerFault), nil
	case types["number"]:
		return spelling(numberFault), nil
	}
	return nil, nil //nolint:nilnil // nil means that the extension does not apply
}

// spelling describes the error in the spelling of a number. It returns "" if the spelling is valid.
type spelling func(json.Number) string

func (s spelling) Validate(ctx jsonschema.ValidationContext, v any) error {
	if n, ok := v.(json.Number); ok && s(n) != "" {
		return ctx.Error("type", "%s", s(n))
	}
	return nil
}

// Accepts implements fastcheck.Accepter. It reports whether Validate would return nil.
func (s spelling) Accepts(v any) bool {
	n, ok := v.(json.Number)
	return !ok || s(n) == ""
}

func typesOf(schema map[string]any) map[string]bool {
	types := make(map[string]bool)
	switch t := schema["type"].(type) {
	case string:
		types[t] = true
	case []any:
		for _, name := range t {
			if s, ok := name.(string); ok {
				types[s] = true
			}
		}
	}
	return types
}

var numberSpelling = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// isPlainInteger reports whether s is -?(0|[1-9][0-9]*).
func isPlainInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return digits == "0" || digits != "" && digits[0] != '0'
}

// integerFault describes why n is not a valid integer. It returns "" if n is valid.
func integerFault(n json.Number) string {
	s := string(n)
	if !isPlainInteger(s) || s == "-0" {
		return "must be an integer in plain digits"
	}
	if v, err := strconv.ParseInt(s, 10, 64); err != nil || v > maxInteger || v < -maxInteger {
		return fmt.Sprintf("must be an integer between -%d and %d", maxInteger, maxInteger)
	}
	return ""
}

// numberFault describes why n is not a valid number. It returns "" if n is valid.
func numberFault(n json.Number) string {
	s := string(n)
	whole, decimals, _ := strings.Cut(s, ".")
	if !numberSpelling.MatchString(s) || len(decimals) > maxDecimals || strings.TrimRight(s, "0.") == "-" {
		return fmt.Sprintf("must be a number with at most %d decimals and no exponent", maxDecimals)
	}
	if integerFault(json.Number(strings.TrimPrefix(whole, "-"))) != "" {
		return fmt.Sprintf("must be a number between -%d and %d", maxInteger, maxInteger)
	}
	return ""
}
