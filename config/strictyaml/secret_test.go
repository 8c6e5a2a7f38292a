package strictyaml_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

const hush = "hush-4711"

// environment has one good variable and one blank one; files likewise.
func environment(name string) (string, bool) {
	v, ok := map[string]string{"GOOD": hush, "BLANK": " \n"}[name]
	return v, ok
}

func files(name string) ([]byte, error) {
	text, ok := map[string]string{"/good": hush + "\n", "/windows": hush + "\r\n", "/two": "a\nb\n\n", "/blank": "\n"}[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func load(t *testing.T, reference string) strictyaml.Secret {
	t.Helper()
	var cfg sample
	if err := strictyaml.Decode("t", []byte("key: "+reference), &cfg); err != nil {
		t.Fatal(err)
	}
	return cfg.Key
}

func TestSecretResolve(t *testing.T) {
	t.Parallel()
	cases := []struct{ reference, value, fault string }{
		{reference: "{env: GOOD}", value: hush},
		{reference: "{env: MISSING}", fault: "environment variable MISSING is not set"},
		{reference: "{env: BLANK}", fault: "environment variable BLANK is empty"},
		{reference: "{file: /good}", value: hush},
		{reference: "{file: /windows}", value: hush},
		{reference: "{file: /two}", value: "a\nb\n"},
		{reference: "{file: /missing}", fault: "file /missing: file does not exist"},
		{reference: "{file: /blank}", fault: "file /blank is empty"},
	}
	for _, c := range cases {
		t.Run(c.reference, func(t *testing.T) {
			t.Parallel()
			s := load(t, c.reference)
			fault := ""
			if err := s.Resolve(environment, files); err != nil {
				fault = err.Error()
			}
			if fault != c.fault || s.Reveal() != c.value || s.Resolved() != (c.value != "") {
				t.Errorf("resolved to %q (%t), fault %q; want %q, fault %q", s.Reveal(), s.Resolved(), fault, c.value, c.fault)
			}
		})
	}
}

func TestResolveSecretsReachesAllAndNamesEachThatFails(t *testing.T) {
	t.Parallel()
	type account struct {
		Key strictyaml.Secret `yaml:"key"`
	}
	type config struct {
		One  strictyaml.Secret             `yaml:"one"`
		Ptr  *strictyaml.Secret            `yaml:"ptr"`
		List []account                     `yaml:"list"`
		Map  map[string]account            `yaml:"map"`
		Refs map[string]*strictyaml.Secret `yaml:"refs"`
		None strictyaml.Secret             `yaml:"none"`
		Gone *account                      `yaml:"gone"`
	}
	const file = `
one: {env: GOOD}
ptr: {env: MISSING}
list: [{key: {env: GOOD}}, {key: {env: BLANK}}]
map:
  b: {key: {file: /missing}}
  a: {key: {file: /good}}
refs: {x: {env: GOOD}}
`
	var cfg config
	pos, err := strictyaml.Load("t", []byte(file), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	const want = `t:3:1: ptr: environment variable MISSING is not set
t:4:29: list[1].key: environment variable BLANK is empty
t:6:7: map.b.key: file /missing: file does not exist`
	err = strictyaml.Locate(pos, strictyaml.Each(&cfg, func(s *strictyaml.Secret) error { return s.Resolve(environment, files) }))
	if err == nil {
		t.Fatal("no error for missing secrets")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap the cause", err)
	}
	for name, s := range map[string]strictyaml.Secret{
		"one": cfg.One, "list[0].key": cfg.List[0].Key, "map.a.key": cfg.Map["a"].Key, "refs.x": *cfg.Refs["x"],
	} {
		if s.Reveal() != hush {
			t.Errorf("%s is %q, want the value", name, s.Reveal())
		}
	}
}

// However a secret is printed, alone or within something, its value does not show.
func TestSecretNeverShows(t *testing.T) {
	t.Parallel()
	fromEnv := load(t, "{env: GOOD}")
	if err := fromEnv.Resolve(environment, files); err != nil {
		t.Fatal(err)
	}
	type inner struct {
		Exported strictyaml.Secret
		hidden   strictyaml.Secret
		pointer  *strictyaml.Secret
		keyed    map[string]strictyaml.Secret
	}
	for name, s := range map[string]strictyaml.Secret{"from the environment": fromEnv, "made in code": strictyaml.NewSecret(hush)} {
		within := inner{s, s, &s, map[string]strictyaml.Secret{"k": s}}
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t", "%T"} {
			fmt.Fprintf(&out, verb+verb+verb+verb+"\n", s, &s, within, []any{within})
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "s", s, "w", within)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "s", s, "w", within)
		for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
			data, err := marshal(map[string]any{"s": s, "p": &s, "e": struct{ Exported strictyaml.Secret }{s}})
			if err != nil {
				t.Fatal(err)
			}
			out.Write(data)
		}
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
		fmt.Fprint(&out, s.String(), s.GoString(), errors.New(fmt.Sprint(s)), s.LogValue())
		for _, form := range []string{hush, fmt.Sprintf("%x", hush), fmt.Sprintf("%X", hush), fmt.Sprintf("%d", []byte(hush))} {
			if strings.Contains(out.String(), form) {
				t.Errorf("%s: %q shows in\n%s", name, form, out.String())
			}
		}
	}
}

func TestSecretPrintsItsReference(t *testing.T) {
	t.Parallel()
	cases := []struct {
		secret         strictyaml.Secret
		text, asJSON   string
		source, asYAML string
	}{
		{load(t, "{env: GOOD}"), "{env: GOOD}", `{"env":"GOOD"}`, "environment variable GOOD", "env: GOOD\n"},
		{load(t, "{file: ./a}"), "{file: ./a}", `{"file":"./a"}`, "file ./a", "file: ./a\n"},
		{strictyaml.NewSecret(hush), "[redacted]", `"[redacted]"`, "", "'[redacted]'\n"},
		{strictyaml.Secret{}, "{}", "{}", "", "{}\n"},
	}
	for _, c := range cases {
		asJSON, err := json.Marshal(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{c.secret.String(), string(asJSON), c.secret.Source(), string(asYAML)}
		if diff := cmp.Diff([]string{c.text, c.asJSON, c.source, c.asYAML}, got); diff != "" {
			t.Errorf("%s printed (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestSecretEqual(t *testing.T) {
	t.Parallel()
	resolved := load(t, "{env: GOOD}")
	if err := resolved.Resolve(environment, files); err != nil {
		t.Fatal(err)
	}
	again := load(t, "{env: GOOD}")
	if again.Equal(resolved) {
		t.Error("an unresolved secret equals a resolved one")
	}
	if err := again.Resolve(environment, files); err != nil {
		t.Fatal(err)
	}
	if !again.Equal(resolved) {
		t.Error("two resolutions of one reference differ")
	}
	if again.Equal(strictyaml.NewSecret(hush)) || strictyaml.NewSecret("a").Equal(strictyaml.NewSecret("b")) {
		t.Error("different secrets are equal")
	}
	if !(strictyaml.Secret{}).IsZero() || again.IsZero() || strictyaml.NewSecret("").IsZero() {
		t.Error("IsZero is not the zero value alone")
	}
}
