package policies_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// seedBodies are states after a call, with the members that policies read.
var seedBodies = []string{
	`{"name":"a-1","image":"ghcr.io/acme/train:1","gpu":{"id":"NVIDIA L4","count":1},"cloud":"SECURE","disk":20,"ports":["8888/http"],
	"env":{"A":"1","TOKEN":"{{ TOLLGATE_SECRET_hf }}"},"mounts":{"persistent":{"size":10},"network":[{"volumeId":"v1"}]},"startSsh":true,"templateId":"t"}`,
	`{"name":"B","gpu":{"pools":["ADA_24","X"],"excludedTypes":[" NVIDIA L4"],"count":2},"workers":{"min":0,"max":9},"networkVolumes":["v1","v2"],
	"idleTimeout":600,"scaling":{"type":"QUEUE_DELAY","value":4},"flashboot":true,"dataCenterIds":["EU-RO-1"],"executionTimeout":10}`,
	`{"compute":{"gpuTypeId":"NVIDIA H100 80GB HBM3","gpuCountPerPod":8,"podCount":4},"image":"train@sha256:00","dataCenterId":"US-KS-2","name":7}`,
	`{"cpu":{"id":"cpu5c","vcpuCount":4},"disk":5,"dataCenterIds":["EU-RO-1","X"],"startJupyter":false,"globalNetworking":true}`,
	`{"name":"v","size":500,"type":"HIGH_PERFORMANCE","dataCenterId":"EU-RO-1"}`,
	`{"name":"r","username":"u","password":"sk-abcdefghijklmnopqrstuvwx","env":{"A/B~":"postgres://u:p@h/d"}}`,
	`{"input":{"prompt":"x","max_tokens":9,"enable_safety_checker":false},"webhook":"https://hooks.example.com/a","policy":{"ttl":1000},"model":"m"}`,
	`{"requests":[{"input":{"max_tokens":5}},{"input":null},{"input":{"n":3}}],"webhook":7}`,
	`{}`,
}

// seedValues take the place of others.
var seedValues = []string{
	`null`, `0`, `1`, `-1`, `2.0`, `1e3`, `9007199254740993`, `true`, `false`, `""`, `"x"`, `"*"`, `"NVIDIA L4"`, `"COMMUNITY"`, `"latest"`,
	`"localhost:5000/a/b:latest"`, `"docker.io/library/x"`, `"index.docker.io/a/b@sha256:0"`, `"022/tcp"`, `"22/udp"`, `[]`, `{}`, `[null]`, `["22/tcp",7]`,
	`{"count":"1"}`, `"{{secret x}}"`, `"{{ RUNPOD_SECRET_hf }} {{"`, `"AKIAABCDEFGHIJKLMNOP"`, `{"AWS_KEY":"v"}`, `[{"a":["b",{"c":"d"}]}]`, `"http://10.0.0.1"`,
	`"2026-03-02T12:00:00Z"`,
}

// chooser draws from the bytes of a fuzzer; when they end, the first of all.
type chooser struct{ left []byte }

func (c *chooser) below(n int) int {
	if len(c.left) == 0 || n <= 1 {
		return 0
	}
	b := c.left[0]
	c.left = c.left[1:]
	return int(b) % n
}

func choose[T any](c *chooser, of []T) T { return of[c.below(len(of))] }

// change puts another value at a place in v.
func (c *chooser) change(tb testing.TB, v any) any {
	tb.Helper()
	if c.below(3) == 0 {
		return decode(tb, choose(c, seedValues))
	}
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			return map[string]any{"env": decode(tb, choose(c, seedValues))}
		}
		name := choose(c, slices.Sorted(maps.Keys(x)))
		if c.below(4) == 0 {
			delete(x, name)
		} else {
			x[name] = c.change(tb, x[name])
		}
		return x
	case []any:
		if len(x) == 0 || c.below(3) == 0 {
			return append(x, decode(tb, choose(c, seedValues)))
		}
		i := c.below(len(x))
		x[i] = c.change(tb, x[i])
		return x
	}
	return decode(tb, choose(c, seedValues))
}

// input draws a call.
func (c *chooser) input(tb testing.TB) *policies.Input {
	tb.Helper()
	row := choose(c, operation.All())
	after := decode(tb, choose(c, seedBodies))
	for range c.below(5) {
		after = c.change(tb, after)
	}
	body, ok := after.(map[string]any)
	if !ok {
		body = map[string]any{"image": after}
	}
	if strings.Contains(row.ID, "Action") || c.below(8) == 1 {
		body["action"] = choose(c, []string{"start", "stop", "resume", "terminate"})
	}
	in := call(tb, "createPod", `{}`)
	in.Request.Operation, in.Request.Body, in.Resource.After = row.ID, body, body
	in.Cost = in.Catalog.Price(row.ID, row.EffectiveVerb(body), body)
	in.Request.Params = map[string]string{"id": choose(c, []string{"p1", "wan-2-5", "e1"})}
	in.Caller.Team = choose(c, []string{"research", "platform", ""})
	in.Caller.Roles = choose(c, [][]string{{"operator"}, {"viewer"}, {"admin"}, {}, {"x", "operator"}})
	in.Spend.Known = c.below(2) == 0
	in.Spend.Team.GPUs = int64(c.below(40))
	in.Request.Dialect = choose(c, []string{"v2", "v1", "graphql", "run"})
	if c.below(4) == 1 {
		in.Resource.Current = decode(tb, choose(c, seedBodies))
	}
	if c.below(4) == 1 {
		in.Resource.Template = &policies.Template{ID: "t", Own: c.below(2) == 0, Public: c.below(2) == 0, Record: decode(tb, choose(c, seedBodies))}
	}
	if c.below(4) == 1 {
		in.Catalog = nil
	}
	if c.below(4) == 1 {
		in.Request.Query = map[string]any{"a": decode(tb, choose(c, seedValues))}
		in.Request.Unknown = map[string]any{"b": decode(tb, choose(c, seedValues))}
	}
	return in
}

// silentEntries are all policies of the library, with parameters of several kinds and for
// some callers only.
func silentEntries(tb testing.TB) []policyconfig.Entry {
	tb.Helper()
	lib := compiler.Library()
	var out []policyconfig.Entry
	for _, p := range lib {
		out = append(out, policyconfig.Entry{Policy: p.Name, Params: p.Example}, policyconfig.Entry{Policy: p.Name, Params: p.Example, Teams: []string{"research"}, ExceptRoles: []string{"admin"}})
	}
	return append(append(out, benchPolicies()...),
		policyconfig.Entry{Policy: "env_rules", Params: map[string]any{"required": []any{"A"}, "max": 1, "credential_patterns": []any{"^p"}}},
		policyconfig.Entry{Policy: "gpu_allow_list", Params: map[string]any{"by_offer": map[string]any{"SERVERLESS": []any{"NVIDIA L4"}}}},
		policyconfig.Entry{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1, "max_per_resource": 4}, Roles: []string{"operator", "x"}},
		policyconfig.Entry{Policy: "images", Params: map[string]any{"allow": []any{"docker.io/library", "localhost:5000"}, "deny_latest": true, "require_digest": true}},
		policyconfig.Entry{Policy: "ports", Params: map[string]any{"deny": []any{"22/tcp"}, "max": 1}, ExceptTeams: []string{"platform"}},
		policyconfig.Entry{Policy: "storage", Params: map[string]any{"allow_persistent": true, "max_persistent_gb": 5, "volumes": []any{"v1"}, "volume_types": []any{"STANDARD"}}},
	)
}

// silence holds runs against evaluations.
type silence struct {
	compiled  *compiler.Compiled
	converter policyinput.Converter
}

func newSilence(tb testing.TB) *silence {
	tb.Helper()
	c, err := compiler.Compile(tb.Context(), &compiler.Options{Org: "acme", Entries: silentEntries(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	return &silence{compiled: c}
}

// check compares policies found silent about a call with its evaluation; it returns how
// many of the policies are silent, and how many say something.
func (s *silence) check(tb testing.TB, in *policies.Input) (silent, loud int) {
	tb.Helper()
	doc, err := in.Document()
	if err != nil {
		return 0, 0
	}
	input, err := s.converter.Term(doc, s.compiled.Reads)
	if err != nil {
		return 0, 0
	}
	found := make([]bool, len(s.compiled.Calls))
	s.compiled.EachSilent(input, func(int) bool { return true }, func(i int) { found[i] = true })
	for i, c := range s.compiled.Calls {
		answer, err := s.evaluate(tb, input, in.Time, i)
		empty := false
		if answer != nil && err == nil {
			set, ok := answer.Value.(ast.Set)
			empty = ok && set.Len() == 0
		}
		if found[i] != empty {
			tb.Errorf("%s.%s %v: silent is %t; evaluated: %v, %v\n%v", c.Entry.Policy, c.Rule, c.Entry.Params, found[i], answer, err, input)
		}
		if empty {
			silent++
		} else {
			loud++
		}
	}
	return silent, loud
}

// evaluate evaluates one call by itself: an evaluation does not report a failure
// twice.
func (s *silence) evaluate(tb testing.TB, input *ast.Term, now time.Time, call int) (answer *ast.Term, err error) {
	tb.Helper()
	e, err := s.compiled.Begin(tb.Context(), input, now)
	if err != nil {
		tb.Fatal(err)
	}
	defer e.End(tb.Context())
	err = e.Query(call, topdown.NewCancel()).Iter(tb.Context(), func(r topdown.QueryResult) error {
		answer = r[compiler.Answer]
		return nil
	})
	return answer, err
}

// TestSilent compares policies found silent with evaluations, on
// the calls of other tests.
func TestSilent(t *testing.T) {
	s := newSilence(t)
	silent, loud := 0, 0
	for _, in := range recordedCalls(t) {
		n, m := s.check(t, in)
		silent, loud = silent+n, loud+m
	}
	if silent < 100 || loud < 20 {
		t.Errorf("%d verdicts say nothing and %d something, too few", silent, loud)
	}
}

// FuzzSilent: a call that is found to say nothing says nothing when it is evaluated,
// and the other way round.
func FuzzSilent(f *testing.F) {
	for i := range 200 {
		f.Add([]byte{byte(i), byte(i * 7), byte(i % 5), byte(i * 3), byte(i * 5), byte(i * 11), byte(i * 13), byte(i), byte(i * 17), byte(i * 19), byte(i * 2), byte(i / 3)})
	}
	s := newSilence(f)
	f.Fuzz(func(t *testing.T, drawn []byte) {
		s.check(t, (&chooser{drawn}).input(t))
	})
}

// TestNoCredentialIsMissed: a value that a run leaves to the evaluation, by its letters, its size or
// its number, is refused like anything else.
func TestNoCredentialIsMissed(t *testing.T) {
	const key = "AKIAABCDEFGHIJKLMNOP"
	limits := policyconfig.DefaultLimits()
	limits.Deadline = time.Minute
	e, err := policies.NewEngine(limits, map[string]policies.Config{"acme": {Policies: []policies.Entry{{Policy: "env_rules"}}}}, policies.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]any{}
	for i := range 3000 {
		many[fmt.Sprintf("V%d", i)] = fmt.Sprint(i)
	}
	many["V2999"] = key
	for name, env := range map[string]map[string]any{
		"plain":           {"A": key},
		"not ASCII":       {"A": "é " + key},
		"behind a line":   {"A": "a\n" + key},
		"a large text":    {"A": strings.Repeat("x ", 300<<10) + key},
		"many variables":  many,
		"a name":          {key: "x"},
		"what is no text": {"A": map[string]any{"B": []any{key}}},
	} {
		in := call(t, "createPod", `{"name":"a","image":"x","gpu":{"id":"NVIDIA L4"}}`)
		in.Resource.After.(map[string]any)["env"] = env
		if d, err := e.Decide(t.Context(), "acme", in); err != nil || d.Allowed() {
			t.Errorf("%s: allowed %t, %v; want it denied", name, d.Allowed(), err)
		}
		for k, v := range env { // without it, nothing is wrong
			if k == key {
				delete(env, k)
			} else if s, ok := v.(string); ok {
				env[k] = strings.ReplaceAll(s, key, "")
			} else {
				env[k] = nil
			}
		}
		if d, err := e.Decide(t.Context(), "acme", in); err != nil || !d.Allowed() {
			t.Errorf("%s, without the key: %v, %v; want it allowed", name, d.Deny, err)
		}
	}
}
