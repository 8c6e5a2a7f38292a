package policies_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// documentOf is an input's document as a log would give it back.
func documentOf(tb testing.TB, in *policies.Input) map[string]any {
	tb.Helper()
	doc, err := in.Decoded()
	if err != nil {
		tb.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	out, _ := decode(tb, string(text)).(map[string]any)
	return out
}

// recordedCalls are calls of several kinds, with every section of the input.
func recordedCalls(tb testing.TB) map[string]*policies.Input {
	tb.Helper()
	pod := call(tb, "createPod", `{"name":"a","image":"ghcr.io/acme/train:1","gpu":{"id":"NVIDIA H100 80GB HBM3","count":3},
		"env":{"HF_TOKEN":"secret","A/B":"x"},"ports":["22/tcp"],"cloud":"COMMUNITY","disk":500,"args":"a b"}`)
	burn := usd(tb, "12.5")
	pod.Spend = policies.Spend{Known: true, Team: policies.Account{Burn: 7, BurnLimit: &burn, GPUs: 99}}
	pod.Request.Params = map[string]string{"id": "p1"}
	pod.Request.Query = map[string]any{"a": "b"}
	pod.Resource.Template = &policies.Template{ID: "t", Public: true, Record: decode(tb, `{"image":"i","env":{"X":"y"}}`)}
	update := call(tb, "updatePod", `{"gpu":{"id":"NVIDIA L4"},"env":{"K":"v"}}`)
	update.Resource.Current = decode(tb, `{"gpu":{"id":"NVIDIA L4","count":8},"created":"2026-01-01T00:00:00Z"}`)
	endpoint := call(tb, "createEndpoint", `{"gpu":{"pools":["ADA_24"]},"workers":{"max":50},"env":{"K":"v"}}`)
	run := call(tb, "run", `{"input":{"max_tokens":5},"webhook":"https://x"}`)
	run.Resource.After, run.Catalog = nil, nil
	run.Request.Params = map[string]string{"id": "e1"}
	return map[string]*policies.Input{"pod": pod, "update": update, "endpoint": endpoint, "run": run}
}

// TestReadInput: an input is read back as it was written.
func TestReadInput(t *testing.T) {
	for name, in := range recordedCalls(t) {
		t.Run(name, func(t *testing.T) {
			want := documentOf(t, in)
			r, err := policyinput.ParseRecorded(want, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := documentOf(t, r.Input)
			var hidden []string
			if in.Catalog != nil {
				hidden = []string{"/catalog/cpus", "/catalog/gpus", "/catalog/pools"}
				got["catalog"], want["catalog"] = nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(hidden, r.Hidden); diff != "" {
				t.Errorf("hidden (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadInputRefuses(t *testing.T) {
	for _, tt := range []struct{ name, at, value, want string }{
		{"another version", "version", `2`, "number 1, got 2"},
		{"version as text", "version", `"1"`, "version"},
		{"a section of another type", "caller", `[]`, "/caller"},
		{"a member of another type", "caller", `{"org":7}`, "/caller/org"},
		{"roles of another type", "caller", `{"roles":[7]}`, "/caller/roles/0"},
		{"money below zero", "cost", `{"usd_per_hour":-1}`, "/cost/usd_per_hour"},
		{"half a GPU", "cost", `{"gpus":0.5}`, "/cost/gpus"},
		{"no time", "cost", `{"as_of":"yesterday"}`, "/cost/as_of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := documentOf(t, call(t, "createPod", `{}`))
			doc[tt.at] = decode(t, tt.value)
			_, err := policyinput.ParseRecorded(doc, nil)
			if !errors.Is(err, policies.ErrInput) || !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("got %v, want ErrInput about %s", err, tt.want)
			}
		})
	}
	doc := documentOf(t, call(t, "createPod", `{}`))
	delete(doc, "version")
	if _, err := policyinput.ParseRecorded(doc, nil); !errors.Is(err, policies.ErrInput) || !strings.Contains(err.Error(), `version is missing: add "version": 1`) {
		t.Errorf("without a version: %v, want what to add", err)
	}
	doc = documentOf(t, call(t, "createPod", `{}`))
	doc["cost"], doc["caller"] = "***", map[string]any{"org": true}
	r, err := policyinput.ParseRecorded(doc, []string{"/cost", "/caller/org"})
	if err != nil || !slices.Contains(r.Hidden, "/cost") {
		t.Errorf("got %+v, %v; want masked values of any type", r, err)
	}
}

// everyConstruct looks at the environment in each way Rego has.
const everyConstruct = `package policies.constructs

deny contains "body" if input.resource.after.env.K == "v"

deny contains sprintf("head %v", [input.request.body.env])

deny contains "else" if chosen == "v"

default chosen := "none"

chosen := "x" if {
	input.request.verb == "cancel"
} else := input.resource.after.env.K

deny contains "comprehension" if count({v | some v in input.resource.after.env; v == "v"}) > 0

deny contains "every" if {
	every v in input.resource.after.env {
		v == "v"
	}
}

deny contains "function" if same(input.resource.after.env, "v")

same(env, "v") if env.K == "v"

deny contains "variable" if {
	all := input
	all.resource.after.env.K == "v"
}

deny contains "dynamic" if {
	some part in ["after"]
	input.resource[part].env.K == "v"
}

deny contains "indexed" if indexed == 1

indexed := 1 if input.resource.after.env.K == "v"

indexed := 2 if input.resource.after.env.K == "w"

deny contains "with" if inner with input.resource.after.env.K as "v"

inner if input.resource.after.env.K == "v"

deny contains "negated" if not input.resource.after.env.K

deny contains "object" if {
	input.resource.kind == "pod"
	object.get(input.resource.after, ["env", "K"], "") == "v"
}

deny contains "walked" if parts.env.K == "v"

parts[name] := input.resource.after[name] if some name in ["env"]
`

// TestOpenIsSound hides every place of several calls in turn, and puts other
// values there: a policy that is not open says the same of all of them.
func TestOpenIsSound(t *testing.T) {
	if raceDetector {
		t.Skip("decides two thousand times, one after the other: make test runs it without the race detector")
	}
	lib := compiler.Library()
	dir := t.TempDir()
	constructs := strings.Split(everyConstruct, "\n\n")
	for i := range constructs[1:] { // each rule a policy of its own, beside those it needs
		name := fmt.Sprintf("c%02d", i)
		if !strings.HasPrefix(constructs[i+1], "deny") {
			continue
		}
		helpers := slices.DeleteFunc(slices.Clone(constructs[1:]), func(r string) bool { return strings.HasPrefix(r, "deny") })
		write(t, dir, name+".rego", "package policies."+name+"\n\n"+constructs[i+1]+"\n\n"+strings.Join(helpers, "\n\n"))
	}
	cfg := policies.Config{Directory: files.UnrestrictedPath(dir)}
	for _, p := range lib {
		cfg.Policies = append(cfg.Policies, policies.Entry{Policy: p.Name, Params: p.Example})
	}
	e := newEngine(t, cfg)
	places, opened := 0, map[string]bool{}
	for name, in := range recordedCalls(t) {
		doc := documentOf(t, in)
		for _, at := range pointersOf("", doc) {
			if strings.HasPrefix(at, "/version") || strings.HasPrefix(at, "/time") || strings.HasPrefix(at, "/request/operation") ||
				strings.HasPrefix(at, "/catalog") || strings.HasPrefix(at, "/resource/kind") || at == "/request" ||
				at == "/resource/after" || at == "/resource" || at == "/request/settles" || at == "/request/verb" {
				continue // without these nothing is judged at all, or they follow from others
			}
			places++
			r, err := policyinput.ParseRecorded(replaced(doc, at, "***"), []string{at})
			if err != nil {
				t.Fatalf("%s%s: %v", name, at, err)
			}
			certain, open, err := e.DecideRecorded(t.Context(), "acme", r)
			if err != nil {
				t.Fatalf("%s%s: %v", name, at, err)
			}
			isOpen := map[string]bool{}
			for _, o := range open {
				isOpen[o.Policy], opened[o.Policy] = true, true
			}
			for _, value := range []any{"v", "w", json.Number("7"), nil, []any{"v"}, map[string]any{"K": "v"}} {
				other, err := policyinput.ParseRecorded(replaced(doc, at, value), nil)
				if err != nil {
					continue // the gateway makes no such input
				}
				real, _, err := e.DecideRecorded(t.Context(), "acme", other)
				if err != nil {
					continue // refused because of another policy, which was open
				}
				settled := func(v policies.Violation) bool { return isOpen[v.Policy] }
				want := slices.DeleteFunc(slices.Clone(real.Deny), settled)
				got := slices.DeleteFunc(slices.Clone(certain.Deny), settled)
				// The stand-in for the price list leaves those open that look at it.
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: with %s hidden, and really %v (-real +certain):\n%s", name, at, value, diff)
				}
			}
		}
	}
	for i, rule := range constructs[1:] {
		if strings.HasPrefix(rule, "deny") && !opened[fmt.Sprintf("c%02d", i)] {
			t.Errorf("never open: %s", rule)
		}
	}
	t.Logf("%d places hidden, %d policies open at some time: %v", places, len(opened), slices.Sorted(maps.Keys(opened)))
}

// pointersOf lists every place of a document.
func pointersOf(at string, v any) []string {
	var out []string
	switch x := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			p := at + "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
			out = append(append(out, p), pointersOf(p, x[name])...)
		}
	case []any:
		for i := range x {
			p := fmt.Sprintf("%s/%d", at, i)
			out = append(append(out, p), pointersOf(p, x[i])...)
		}
	}
	return out
}

// replaced is a document with another value at a place.
func replaced(v any, at string, with any) map[string]any {
	out, _ := replacedAt(v, strings.Split(at, "/")[1:], with).(map[string]any)
	return out
}

func replacedAt(v any, path []string, with any) any {
	if len(path) == 0 {
		return with
	}
	switch x := v.(type) {
	case map[string]any:
		out := maps.Clone(x)
		name := strings.ReplaceAll(strings.ReplaceAll(path[0], "~1", "/"), "~0", "~")
		out[name] = replacedAt(x[name], path[1:], with)
		return out
	case []any:
		out := slices.Clone(x)
		for i := range out {
			if fmt.Sprint(i) == path[0] {
				out[i] = replacedAt(out[i], path[1:], with)
			}
		}
		return out
	default:
		return v
	}
}

// TestDecideRecorded: a hidden place leaves open only policies that look at it.
func TestDecideRecorded(t *testing.T) {
	entries := []policies.Entry{
		{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 2}},
		{Policy: "gpu_allow_list", Params: map[string]any{"gpus": []any{"NVIDIA L4"}}},
		{Policy: "env_rules", Mode: policies.ModeWarn, Params: map[string]any{"forbidden": []any{"AWS_*"}, "secrets": []any{"hf"}}},
	}
	e := newEngine(t, policies.Config{Policies: entries, Exceptions: []policies.Exception{{
		ID: "x", Policy: "gpu_count", Teams: []string{"research"}, Until: noon().AddDate(1, 0, 0), Reason: "r", GrantedBy: "g",
		Where: map[string][]any{"/image": {"ghcr.io/acme/train:1"}},
	}}})
	tests := []struct {
		name   string
		call   string
		hidden []string
		denied []string
		open   []policies.Undetermined
	}{
		{"nothing hidden", "pod", nil, []string{"gpu_allow_list"}, nil},
		{"a value of env", "pod", []string{"/resource/after/env/HF_TOKEN", "/request/body/env/HF_TOKEN"}, []string{"gpu_allow_list"}, []policies.Undetermined{
			{Policy: "env_rules", Mode: policies.ModeWarn, Hidden: []string{"/resource/after/env/HF_TOKEN", "/resource/secrets"}},
		}},
		{"the GPU, whose count is taken from the whole object", "pod", []string{"/resource/after/gpu/id"}, nil, []policies.Undetermined{
			{Policy: "env_rules", Mode: policies.ModeWarn, Hidden: []string{"/resource/after/gpu/id", "/resource/secrets"}},
			{Policy: "gpu_allow_list", Mode: policies.ModeEnforce, Hidden: []string{"/resource/after/gpu/id"}},
			{Policy: "gpu_count", Mode: policies.ModeEnforce, Hidden: []string{"/resource/after/gpu/id"}},
		}},
		{"what an exception asks for", "pod", []string{"/resource/after/image"}, []string{"gpu_allow_list"}, []policies.Undetermined{
			{Policy: "env_rules", Mode: policies.ModeWarn, Hidden: []string{"/resource/after/image", "/resource/secrets"}},
			{Policy: "gpu_count", Mode: policies.ModeEnforce, Hidden: []string{"/resource/after/image"}},
		}},
		{"members of a pool", "endpoint", nil, nil, []policies.Undetermined{
			{Policy: "gpu_allow_list", Mode: policies.ModeEnforce, Hidden: []string{"/catalog/pools"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := policyinput.ParseRecorded(documentOf(t, recordedCalls(t)[tt.call]), tt.hidden)
			if err != nil {
				t.Fatal(err)
			}
			d, open, err := e.DecideRecorded(t.Context(), "acme", r)
			if err != nil {
				t.Fatal(err)
			}
			var denied []string
			for _, v := range d.Deny {
				denied = append(denied, v.Policy)
			}
			if diff := cmp.Diff(tt.denied, denied); diff != "" {
				t.Errorf("denied (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]policies.Undetermined{}, tt.open...), open); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}
