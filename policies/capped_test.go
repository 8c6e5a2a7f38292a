package policies_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies"
)

// cappedEnv tells the test binary that it runs as the capped process.
const cappedEnv = "TOLLGATE_TEST_CAPPED"

// greedy are policies that ask for far more memory than a machine has, each in a
// few steps.
func greedy() map[string]string {
	const long = `xs := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
long := concat("", ["aaaaaaaaaa" | some a in xs; some b in xs; some c in xs; some d in xs])
many := [long | some a in xs; some b in xs; some c in xs; some d in xs; some e in xs]
`
	const shared = `xs := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
a := [1 | some x in xs]
b := [a | some x in xs]
c := [b | some x in xs]
d := [c | some x in xs]
e := [d | some x in xs]
f := [e | some x in xs]
g := [f | some x in xs]
h := [g | some x in xs]
i := [h | some x in xs]
j := [i | some x in xs]
k := [j | some x in xs]
`
	return map[string]string{
		"a long text between many":     long + `deny contains "x" if count(concat(long, split(long, ""))) < 0`,
		"many long texts":              long + `deny contains "x" if count(concat("", many)) < 0`,
		"many long texts as JSON":      long + `deny contains "x" if count(json.marshal(many)) < 0`,
		"many long texts in one":       long + `deny contains sprintf("%v", [many])`,
		"many long texts in templates": long + `deny contains $"{many}"`,
		"many long texts in a message": long + `deny contains {"message": concat("", many)}`,
		"a long text in a long text":   long + `deny contains "x" if count(replace(long, "a", long)) < 0`,
		"long texts for long texts":    long + `deny contains "x" if count(strings.replace_n({"a": long}, long)) < 0`,
		"lists of lists as JSON":       shared + `deny contains "x" if count(json.marshal(k)) < 0`,
		"lists of lists in a message":  shared + `deny contains sprintf("%v", [k])`,
		"lists put together": `a := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
b := array.flatten([a, a, a, a, a, a, a, a, a, a])
c := array.flatten([b, b, b, b, b, b, b, b, b, b])
d := array.flatten([c, c, c, c, c, c, c, c, c, c])
e := array.flatten([d, d, d, d, d, d, d, d, d, d])
f := array.flatten([e, e, e, e, e, e, e, e, e, e])
g := array.flatten([f, f, f, f, f, f, f, f, f, f])
h := array.flatten([g, g, g, g, g, g, g, g, g, g])
deny contains "x" if count(array.flatten([h, h, h, h, h, h, h, h, h, h])) < 0`,
		"lists doubled":   doubled("[1]", "array.concat(a%d, a%d)"),
		"numbers squared": doubled("10", "a%d * a%d"),
	}
}

// doubled joins a value with itself, and the outcome with itself, thirty times.
func doubled(first, join string) string {
	var b strings.Builder
	b.WriteString("a0 := " + first + "\n")
	for i := range 30 {
		fmt.Fprintf(&b, "a%d := "+join+"\n", i+1, i, i)
	}
	return b.String() + `deny contains "x" if type_name(a30) == "x"`
}

// TestGreedyRego runs policies that want all memory in a process that has
// little: it neither dies nor keeps the caller past the deadline.
func TestGreedyRego(t *testing.T) {
	switch {
	case raceDetector:
		t.Skip("the race detector needs more address space than the process is given")
	case testing.Short():
		t.Skip("takes a process of its own")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to cap the process with")
	}
	// In KiB: the runtime reserves about 1 GB that it does not use.
	cmd := exec.CommandContext(t.Context(), shell, "-c", `ulimit -v 3000000 && exec "$0" "$@"`, self, "-test.run=^TestCapped$", "-test.v")
	cmd.Env = append(os.Environ(), cappedEnv+"=1", "GOMEMLIMIT=512MiB")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if err != nil || strings.Count(out.String(), "--- PASS: TestCapped/") != len(greedy()) {
		t.Errorf("the capped process: %v\n%s", err, tail(out.String()))
	}
}

// tail is the end of a long output, and where it died.
func tail(s string) string {
	const most = 4000
	if i := strings.Index(s, "fatal error"); i >= 0 {
		s = s[max(0, i-most/2):min(len(s), i+most/2)]
	}
	return s[max(0, len(s)-most):]
}

// TestCapped is what TestGreedyRego runs.
func TestCapped(t *testing.T) {
	if os.Getenv(cappedEnv) == "" {
		t.Skip("run by TestGreedyRego")
	}
	limits := policies.DefaultLimits()
	limits.Deadline, limits.Concurrency = 200*time.Millisecond, 1
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
	for name, rego := range greedy() {
		t.Run(name, func(t *testing.T) {
			e, err := ownEngine(t, limits, "package policies.mine\n\n"+rego+"\n")
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // the first must not leave its place taken
				began := time.Now()
				d, err := e.Decide(t.Context(), "acme", in)
				took := time.Since(began)
				if !errors.Is(err, policies.ErrDeadline) && !errors.Is(err, policies.ErrEvaluation) {
					t.Errorf("got %d denials, %v; want no verdict", len(d.Deny), err)
				}
				// The slack is the machine's: the engine itself answers at once.
				if took > limits.Deadline+2*time.Second {
					t.Errorf("took %s with a deadline of %s", took, limits.Deadline)
				}
			}
		})
	}
}

// TestBoundedFunctions: functions that look at sizes are the functions they
// stand for, in every place a function can be named.
func TestBoundedFunctions(t *testing.T) {
	const rego = `package policies.mine

deny contains concat("-", ["a", "b"])

deny contains sprintf("%d %s", [7, json.marshal({"a": [1, "x"]})])

deny contains $"at {input.request.operation}"

deny contains message if {
	message := concat("", ["mocked"]) with concat as other
}

deny contains message if {
	some message in array.concat(["first"], array.flatten([["second"], "third"]))
}

other(_, _) := "other"

deny contains message if {
	some message in [concat("", [x]) | some x in ["nested"]]
}
`
	limits := policies.DefaultLimits()
	limits.Deadline = 10 * time.Second
	e, err := ownEngine(t, limits, rego)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), "acme", call(t, "createPod", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range d.Deny {
		got = append(got, v.Message)
	}
	const want = `7 {"a":[1,"x"]}, a-b, at createPod, first, nested, other, second, third`
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}

// TestBoundedLists: lists put together end at the bound, not at the memory's end.
func TestBoundedLists(t *testing.T) {
	limits := policies.DefaultLimits()
	limits.Deadline = time.Minute
	e, err := ownEngine(t, limits, "package policies.mine\n\n"+doubled("[1]", "array.concat(a%d, a%d)")+"\n")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Decide(t.Context(), "acme", call(t, "createPod", `{}`))
	if !errors.Is(err, policies.ErrEvaluation) || !strings.Contains(err.Error(), "array.concat: the operands are larger") {
		t.Errorf("got %v, want the bound of array.concat", err)
	}
}
