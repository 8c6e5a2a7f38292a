package policies_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// ownEngine loads one Rego policy of an organisation's own.
func ownEngine(tb testing.TB, limits policies.Limits, rego string) (*policies.Engine, error) {
	tb.Helper()
	dir := tb.TempDir()
	write(tb, dir, "mine.rego", rego)
	return policies.NewEngine(limits, map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}}, policies.Deps{})
}

// TestHostileRegoAtLoad: Rego that must not even compile.
func TestHostileRegoAtLoad(t *testing.T) {
	tests := []struct{ name, rego, want string }{
		{"network", `deny contains "x" if http.send({"method": "get", "url": "http://169.254.169.254"}).status_code == 200`, "http.send"},
		{"name look-up", `deny contains "x" if net.lookup_ip_addr("x")`, "net.lookup_ip_addr"},
		{"environment", `deny contains "x" if opa.runtime().env.HOME`, "opa.runtime"},
		{"clock", `deny contains "x" if time.now_ns() > 0`, "time.now_ns"},
		{"randomness", `deny contains "x" if rand.intn("a", 2) == 1`, "rand.intn"},
		{"modules", `deny contains "x" if rego.parse_module("x", "package x")`, "rego.parse_module"},
		{"large ranges", `deny contains "x" if count(numbers.range(1, 1000000000)) > 1`, "numbers.range"},
		{"large shifts", `deny contains "x" if bits.lsh(1, 1000000000) > 1`, "bits.lsh"},
		{"a format from the input", `deny contains sprintf(input.request.path, [1])`, "sprintf: the format must be a constant"},
		{"a format put together", `deny contains "x" if count(sprintf(concat("", ["%", "9d"]), [1])) > 1`, "sprintf: the format must be a constant"},
		{"a wide format", `deny contains sprintf("%01000000d", [1])`, "sprintf: the format must not"},
		{"a precise format", `deny contains sprintf("%.1000000f", [1])`, "sprintf: the format must not"},
		{"a width from the arguments", `deny contains sprintf("%*d", [1000000, 1])`, "sprintf: the format must not"},
		{"an argument again and again", `deny contains sprintf("%[1]s%[1]s", [input.request.path])`, "sprintf: the format must not"},
		{"a format in a comprehension", `deny contains "x" if count([sprintf(f, []) | some f in ["a"]]) > 1`, "sprintf: the format must be a constant"},
		{"sprintf in another's place", `deny contains "x" if count(concat("%1000000d", [])) > 1 with concat as sprintf`, "sprintf: cannot replace another"},
		{"json.marshal in another's place", `deny contains "x" if count(upper("a")) > 1 with upper as json.marshal`, "json.marshal: cannot replace another"},
		{"patches", `deny contains "x" if json.patch({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}]).b == 1`, "json.patch"},
		{"recursion", "deny contains x if some x in deny", "recursive"},
		{"unsafe variable", `deny contains x if true`, "unsafe"},
		{"unknown input", `deny contains "x" if input.request.boddy`, "undefined ref: input.request.boddy"},
		{"input of another type", `deny contains "x" if input.caller.team == 7`, "match error"},
		{"type error", `deny contains "x" if 1 + "a" == 2`, "rego_type_error"},
		{"shadowed input", "deny contains \"x\" if {\n\tinput := 1\n\tinput == 1\n}", "input"},
		{"old syntax", "deny[msg] { msg := \"x\" }", "rego_parse_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ownEngine(t, policyconfig.DefaultLimits(), "package policies.mine\n\n"+tt.rego+"\n")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "mine.rego:") {
				t.Errorf("got %v, want a located error about %s", err, tt.want)
			}
		})
	}
}

// TestHostileRegoAtRun: with any Rego of an organisation, the call does
// not pass, and the answer comes in time.
func TestHostileRegoAtRun(t *testing.T) {
	const block = `xs := ["0","1","2","3","4","5","6","7","8","9"]
`
	tests := []struct {
		name, rego string
		want       error
	}{
		{"endless product", block + `deny contains "x" if {
	some a in xs; some b in xs; some c in xs; some d in xs; some e in xs
	some f in xs; some g in xs; some h in xs; some i in xs; some j in xs
	concat("", [a, b, c, d, e, f, g, h, i, j]) == "none"
}`, policies.ErrDeadline},
		{"large set", block + `deny contains concat("", [a, b, c, d, e, f, g, h]) if {
	some a in xs; some b in xs; some c in xs; some d in xs; some e in xs; some f in xs; some g in xs; some h in xs
}`, policies.ErrDeadline},
		{"nested comprehension", block + `deny contains "x" if count({[a, b, c, d, e, f, g, h] |
	some a in xs; some b in xs; some c in xs; some d in xs; some e in xs; some f in xs; some g in xs; some h in xs
}) < 0`, policies.ErrDeadline},
		{"one long built-in after another", block + `x0 := concat("", [a | some a in xs; some b in xs; some c in xs; some d in xs; some e in xs])
deny contains "x" if {
	some a in xs; some b in xs; some c in xs; some d in xs
	count(split(replace(x0, concat("", [a, b]), concat("", [c, d])), "0")) < 0
}`, policies.ErrDeadline},
		{"built-in error", `deny contains "x" if to_number("1e9x") > 1`, policies.ErrEvaluation},
		{"built-in error in a function", "f(x) := to_number(x)\ndeny contains \"x\" if not f(\"a\")", policies.ErrEvaluation},
		{"division by zero", `deny contains "x" if 1 / count([]) == 1`, policies.ErrEvaluation},
		{"conflict", "v := 1 if true\nv := 2 if true\ndeny contains \"x\" if v == 1", policies.ErrEvaluation},
		{"object conflict", `deny contains "x" if {x: y | some x in ["a"]; some y in [1, 2]}`, policies.ErrEvaluation},
		{"deny is a boolean", `deny := json.unmarshal("false")`, policies.ErrEvaluation},
		{"deny is undefined", `deny := json.unmarshal("[]") if input.request.operation == "listPods"`, policies.ErrEvaluation},
		{"deny is a string", `deny := json.unmarshal("\"no\"")`, policies.ErrEvaluation},
		{"deny is an object", `deny := json.unmarshal("{\"a\": \"b\"}")`, policies.ErrEvaluation},
		{"deny holds a number", `deny contains json.unmarshal("1")`, policies.ErrEvaluation},
		{"deny holds an empty message", `deny contains ""`, policies.ErrEvaluation},
		{"deny holds no message", `deny contains json.unmarshal("{\"pointer\": \"/a\"}")`, policies.ErrEvaluation},
		{"deny holds a bad pointer", `deny contains {"msg": "x", "pointer": "a"}`, policies.ErrEvaluation},
		{"deny holds a mistyped message", `deny contains {"msg": ["x"]}`, policies.ErrEvaluation},
		{"violations is undefined", `violations(p) := set() if p.x`, policies.ErrEvaluation},
		{"a mutation without value", `mutate contains json.unmarshal("{\"op\": \"force\", \"pointer\": \"/a\"}")`, policies.ErrEvaluation},
		{"a mutation of another kind", `mutate contains {"op": json.unmarshal("\"delete\""), "pointer": "/a", "value": 1}`, policies.ErrEvaluation},
		{"a mutation of nothing", `mutate contains {"op": "force", "pointer": "", "value": 1}`, policies.ErrEvaluation},
		{"mutations that disagree", "mutate contains {\"op\": \"force\", \"pointer\": \"/a\", \"value\": 1}\n" +
			"mutate contains {\"op\": \"force\", \"pointer\": \"/a\", \"value\": 2}", policies.ErrMutation},
		{"mutations inside each other", "mutate contains {\"op\": \"force\", \"pointer\": \"/a\", \"value\": {}}\n" +
			"mutate contains {\"op\": \"force\", \"pointer\": \"/a/b\", \"value\": 2}", policies.ErrMutation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			limits := policyconfig.DefaultLimits()
			limits.Deadline = 10 * time.Second
			if errors.Is(tt.want, policies.ErrDeadline) {
				limits.Deadline = 200 * time.Millisecond
			}
			e, err := ownEngine(t, limits, "package policies.mine\n\n"+tt.rego+"\n")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			d, err := e.Decide(t.Context(), "acme", call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`))
			took := time.Since(began)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v; want %v", d, err, tt.want)
			}
			// The slack is the machine's: the engine itself answers at once.
			if took > limits.Deadline+30*time.Second {
				t.Errorf("took %s with a deadline of %s", took, limits.Deadline)
			}
		})
	}
}

// TestComparingLargeValues: values that share their parts can be compared for
// longer than any deadline, and deeper than any stack is. That ends the evaluation
// and not the process.
func TestComparingLargeValues(t *testing.T) {
	e, err := ownEngine(t, policies.Limits{Deadline: time.Minute, Concurrency: 1}, `package policies.mine

ks := ["a", "b", "c", "d", "e", "f", "g", "h"]

a := {k: 1 | some k in ks}
b := {k: a | some k in ks}
c := {k: b | some k in ks}
d := {k: c | some k in ks}
e := {k: d | some k in ks}
f := {k: e | some k in ks}
g := {k: f | some k in ks}
h := {k: g | some k in ks}
i := {k: h | some k in ks}

deny contains "x" if {
	one := {k: i | some k in ks}
	two := {k: i | some k in ks}
	one == two
}
`)
	if err != nil {
		t.Fatal(err)
	}
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
	for range 2 { // the second waits for the place of the first
		_, err := e.Decide(t.Context(), "acme", in)
		if !errors.Is(err, policies.ErrEvaluation) || !strings.HasSuffix(err.Error(), ": the policy compares values that are too large") {
			t.Errorf("got %v, want ErrEvaluation because of the values", err)
		}
	}
}

// TestDepthIsTheEvaluationsOwn: an evaluation is ended for its own depth only,
// however large the stacks of others are.
func TestDepthIsTheEvaluationsOwn(t *testing.T) {
	var deep func(n int, bottom func()) byte
	deep = func(n int, bottom func()) byte {
		var frame [64 << 10]byte
		if n == 0 {
			bottom()
			return 0
		}
		frame[n%len(frame)] = deep(n-1, bottom)
		return frame[0]
	}
	there, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		deep(3000, func() { close(there); <-leave })
	}()
	defer func() { close(leave); <-left }()
	<-there

	limits := policyconfig.DefaultLimits()
	limits.Deadline = time.Minute
	e, err := ownEngine(t, limits, `package policies.mine

xs := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

many := [[a, b, c, d] | some a in xs; some b in xs; some c in xs; some d in xs]

deny contains "equal" if {
	one := [x | some x in many]
	one == many
}
`)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), "acme", call(t, "createPod", `{}`))
	if err != nil || denied(d) != "mine  equal" {
		t.Errorf("got %s, %v", denied(d), err)
	}
}

// TestHostileOrgDoesNotStarveOthers: evaluations left behind are stopped, so
// their places come free again.
func TestHostileOrgDoesNotStarveOthers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "mine.rego", `package policies.mine

xs := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

deny contains "x" if {
	some a in xs; some b in xs; some c in xs; some d in xs; some e in xs; some f in xs; some g in xs; some h in xs
	concat("", [a, b, c, d, e, f, g, h]) == "none"
}
`)
	limits := policyconfig.DefaultLimits()
	limits.Deadline, limits.Concurrency = 2*time.Second, 1
	e, err := policies.NewEngine(limits, map[string]policies.Config{
		"hostile": {Directory: files.UnrestrictedPath(dir)}, "acme": demo(),
	}, policies.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
	for range 3 {
		if _, err := e.Decide(t.Context(), "hostile", in); !errors.Is(err, policies.ErrDeadline) {
			t.Fatalf("hostile organisation: got %v, want ErrDeadline", err)
		}
		if _, err := e.Decide(t.Context(), "acme", in); err != nil {
			t.Errorf("the other organisation: got %v", err)
		}
	}
}

// TestPlacesAreShared: one organisation cannot hold all places, however long its
// evaluations take, unless there is no other.
func TestPlacesAreShared(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "mine.rego", `package policies.mine

xs := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

deny contains "x" if {
	some a in xs; some b in xs; some c in xs; some d in xs; some e in xs; some f in xs; some g in xs; some h in xs
	some i in xs; some j in xs; some k in xs; some l in xs
	concat("", [a, b, c, d, e, f, g, h, i, j, k, l]) == "none"
}
`)
	hostile := policies.Config{Directory: files.UnrestrictedPath(dir)}
	limits := policyconfig.DefaultLimits()
	limits.Deadline, limits.Concurrency = time.Hour, 3 // nothing ends by itself
	for _, tt := range []struct {
		name string
		orgs map[string]policies.Config
		most int
	}{
		{"several organisations", map[string]policies.Config{"hostile": hostile, "acme": demo()}, 2},
		{"one organisation", map[string]policies.Config{"hostile": hostile}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := policies.NewEngine(limits, tt.orgs, policies.Deps{})
			if err != nil {
				t.Fatal(err)
			}
			in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
			ctx, cancel := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					if _, err := e.Decide(ctx, "hostile", in); !errors.Is(err, context.Canceled) {
						t.Errorf("hostile organisation: got %v, want context.Canceled", err)
					}
				})
			}
			eventually(t, "its evaluations hold what they may", func() bool { return e.Held() == tt.most })
			if len(tt.orgs) > 1 {
				for range 3 {
					if _, err := e.Decide(t.Context(), "acme", in); err != nil {
						t.Errorf("the other organisation: got %v", err)
					}
				}
			}
			if got := e.Held(); got > tt.most {
				t.Errorf("%d places are held, want at most %d", got, tt.most)
			}
			cancel()
			callers.Wait()
			eventually(t, "the places are free again", func() bool { return e.Held() == 0 })
		})
	}
}
