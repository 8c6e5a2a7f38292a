package operation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

func TestSecretReferences(t *testing.T) {
	type found = []operation.SecretReference
	env := func(value string) map[string]any { return map[string]any{"env": map[string]any{"A": value}} }
	at := func(names ...string) (out found) {
		for _, name := range names {
			out = append(out, operation.SecretReference{Name: name, Pointer: "/env/A"})
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		state any
		want  found
	}{
		{"documented form", env("{{ ACME_SECRET_hf }}"), at("hf")},
		{"no spaces, other case", env("{{acme_secret_Hf.a-b/c}}"), at("Hf.a-b/c")},
		{"line breaks", env("{{\n\tACME_SECRET_hf\r\n}}"), at("hf")},
		{"inside text, twice", env("a {{ACME_SECRET_a}}{{ ACME_SECRET_b }} c"), at("a", "b")},
		{"a name with the mark", env("{{ ACME_SECRET_a_SECRET_b }}"), at("a_SECRET_b")},
		{"not closed", env("{{ ACME_SECRET_hf"), at("hf")},
		{"closed once", env("{{ ACME_SECRET_hf }"), at("hf")},
		{"three braces", env("{{{ ACME_SECRET_hf }}}"), at("hf")},
		{"parted braces", env("{ { ACME_SECRET_hf }}"), at("hf")},
		{"braces parted by another space", env("{\u00a0{ ACME_SECRET_hf }}"), at("hf")},
		{"nested", env("{{ a {{ ACME_SECRET_hf }} b }}"), at("hf")},
		{"single braces inside", env("{{ a {b} ACME_SECRET_hf }}"), at("")},
		{"another form", env("{{ secrets.hf }}"), at("")},
		{"two prefixes", env("{{ ACME_CLOUD_SECRET_hf }}"), at("")},
		{"a space in the name", env("{{ ACME_SECRET_h f }}"), at("")},
		{"an invisible character", env("{{ ACME_SECRET_h\u200bf }}"), at("")},
		{"a letter that folds to s", env("{{ ACME_\u017fECRET_hf }}"), at("hf")},
		{"no name", env("{{ ACME_SECRET_ }}"), at("")},
		{"other braces", env("{{ messages }} and a secret, ${SECRET} {secret}"), nil},
		{"JSON", env(`{"a":{"client_secret":{"b":"x"}}}`), nil},
		{"everywhere", map[string]any{
			"args": "{{ A_SECRET_a }}", "cmd": []any{"x", "{{ A_SECRET_b }}"}, "env": map[string]any{"{{ A_SECRET_c }}/~": "{{ A_SECRET_d }}"}, "disk": 1, "public": nil,
		}, found{{"a", "/args"}, {"b", "/cmd/1"}, {"c", "/env/{{ A_SECRET_c }}~1~0"}, {"d", "/env/{{ A_SECRET_c }}~1~0"}}},
		{"nothing", nil, nil},
	} {
		if diff := cmp.Diff(tt.want, operation.SecretReferences(tt.state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
