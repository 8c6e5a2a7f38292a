package authoring_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies/authoring"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const nights = `package policies.nights

import data.tollgate.gpu

deny contains "not at night" if {
	count(gpu.named) > 0
	input.time.ns < 6
}

warn contains message if {
	input.resource.after.gpu.count > data.most
	message := "many GPUs"
}

warn contains "never" if {
	input.request.verb == "stop"
	input.request.operation == "getPod"
}
`

func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, opts authoring.Options, files map[string]string) *authoring.Report {
	t.Helper()
	t.Chdir(directory(t, files))
	r, err := authoring.Run(t.Context(), ".", opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRun: passes, failures with their expression, errors, skipped tests and
// failed cases, and their coverage.
func TestRun(t *testing.T) {
	r := run(t, authoring.Options{}, map[string]string{
		"nights.rego": nights,
		"data.yaml":   "most: 1\n",
		"nights_test.rego": `package policies.nights_test

import data.policies.nights
import data.tollgate.testing

pod := testing.create("pod", {"gpu": {"id": "NVIDIA L4", "count": 2}})

test_day if count(nights.deny) == 0 with input as object.union(pod, {"time": {"ns": 7}})

test_night if nights.deny == {"not at night"} with input as object.union(pod, {"time": {"ns": 5}})

test_warns if nights.warn == {"many GPUs"} with input as pod

test_wrong if {
	true
	print("two are", "many")
	count(nights.warn) == 3 with input as pod
	false
}

test_broken if to_number("x") == 1

todo_test_later if false

test_cases[note] if {
	some note, count in {"one": 1, "two": 2}
	count == 1
}
`,
	})
	const file = "nights_test.rego"
	want := []authoring.Result{
		{Name: "policies.nights_test.test_day", Place: authoring.Place{File: file, Row: 8, Col: 1}, Outcome: authoring.Pass},
		{Name: "policies.nights_test.test_night", Place: authoring.Place{File: file, Row: 10, Col: 1}, Outcome: authoring.Pass},
		{Name: "policies.nights_test.test_warns", Place: authoring.Place{File: file, Row: 12, Col: 1}, Outcome: authoring.Pass},
		{
			Name: "policies.nights_test.test_wrong", Place: authoring.Place{File: file, Row: 14, Col: 1}, Outcome: authoring.Fail,
			Output: "two are many\n",
			FailedAt: &authoring.Failed{
				Place: authoring.Place{File: file, Row: 17, Col: 2}, Text: "count(nights.warn) == 3 with input as pod",
				Values: `count(nights.warn) == 3 with input as pod
|     |                               |
|     |                               {"caller": {"key": "ann", "org": "acme", "roles": ["operator"...
|     {"many GPUs"}
1`,
			},
		},
		{
			Name: "policies.nights_test.test_broken", Place: authoring.Place{File: file, Row: 21, Col: 1}, Outcome: authoring.Error,
			Message: "nights_test.rego:21: eval_builtin_error: to_number: strconv.ParseFloat: parsing \"x\": invalid syntax",
		},
		{Name: "policies.nights_test.todo_test_later", Place: authoring.Place{File: file, Row: 23, Col: 1}, Outcome: authoring.Skip},
		{
			Name: "policies.nights_test.test_cases", Place: authoring.Place{File: file, Row: 25, Col: 1}, Outcome: authoring.Fail,
			Cases: []string{"two"}, FailedAt: &authoring.Failed{Place: authoring.Place{File: file, Row: 27, Col: 2}, Text: "count == 1", Values: "count == 1\n|\n2"},
		},
	}
	if diff := cmp.Diff(want, r.Results, cmpopts.IgnoreFields(authoring.Result{}, "Took")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	wantFiles := []authoring.File{{Name: "nights.rego", Covered: 6, Missed: 3, NotCovered: []authoring.Lines{{First: 15, Last: 17}}}}
	if diff := cmp.Diff(wantFiles, r.Files); diff != "" {
		t.Errorf("coverage (-want +got):\n%s", diff)
	}
	if r.Passed() || r.Coverage() < 66 || r.Coverage() > 67 {
		t.Errorf("got passed %t and %f %%, want a failure and 6 of 9 lines", r.Passed(), r.Coverage())
	}
}

// TestRunSelects runs only the selected tests.
func TestRunSelects(t *testing.T) {
	files := map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if false\n", "a_test.rego": `package policies.a_test

import data.policies.a

test_one if count(a.deny) == 0

test_two if false
`}
	r := run(t, authoring.Options{Run: regexp.MustCompile(`test_one$`)}, files)
	if len(r.Results) != 1 || !r.Passed() {
		t.Errorf("got %+v, want test_one to pass alone", r.Results)
	}
	if r := run(t, authoring.Options{Run: regexp.MustCompile(`nothing`)}, files); r.Passed() {
		t.Error("no test ran, and it passed")
	}
}

// TestRunEnds: a test without end is an error, in time.
func TestRunEnds(t *testing.T) {
	r := run(t, authoring.Options{Timeout: 50 * time.Millisecond}, map[string]string{"x_test.rego": `package policies.x_test

xs := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

test_endless if {
	some a in xs
	some b in xs
	some c in xs
	some d in xs
	some e in xs
	some f in xs
	some g in xs
	some h in xs
	concat("", [a, b, c, d, e, f, g, h]) == "none"
}
`})
	if len(r.Results) != 1 || r.Results[0].Outcome != authoring.Error {
		t.Errorf("got %+v, want an error", r.Results)
	}
}

// TestRunRefuses: a file that the engine would not load is not tested either.
func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct{ name, file, rego, want string }{
		{"syntax", "a.rego", "package policies.a\n\ndeny contains", "a.rego:4:"},
		{"a function policies do not have", "a.rego", "package policies.a\n\ndeny contains \"x\" if http.send({})", "a.rego:3:"},
		{"the same in a test", "a_test.rego", "package policies.a_test\n\ntest_x if time.now_ns() > 0", "a_test.rego:3:"},
		{"types", "a.rego", "package policies.a\n\ndeny contains \"x\" if input.caller.team == 7", "a.rego:3:"},
		{"the library's packages", "a_test.rego", "package tollgate.testing\n\nx := 1", "a_test.rego:1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := authoring.Run(t.Context(), directory(t, map[string]string{tt.file: tt.rego + "\n"}), authoring.Options{})
			if f, ok := errors.AsType[*policyconfig.Error](err); !ok || !strings.Contains(f.Error(), tt.want) {
				t.Errorf("got %v, want a fault at %s", err, tt.want)
			}
		})
	}
}
