package authoring_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/authoring"
)

func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const good = "package policies.good\n\ndeny contains \"x\" if input.caller.team == \"y\"\n"

func TestDirectory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string // beginnings of the faults, in order
	}{
		{"nothing wrong", map[string]string{"a.rego": good, "sub/data.json": `{"a": 1}`}, nil},
		{"nothing there", nil, []string{".: contains no policy"}},
		{"a slip in a rule's name", map[string]string{"a.rego": good, "b.rego": "package policies.b\n\ndenied contains \"x\" if false\n"}, []string{
			"b.rego:3:1: policy b: rule denied is never evaluated, did you mean \"deny\"?",
		}},
		{"several files do not parse", map[string]string{
			"a.rego": "package policies.a\n\ndeny contains {\n", "b.rego": "nonsense\n", "c_test.rego": "package c\n\ntest_a if\n",
		}, []string{
			"a.rego:4:1: rego_parse_error", "a.rego:4:1: rego_parse_error", "b.rego:1:1: rego_parse_error", "c_test.rego:4:1: rego_parse_error",
		}},
		{"format", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if   1 == 1\n"}, []string{"a.rego:3:1: rego_format: "}},
		{"format of a test", map[string]string{"a_test.rego": "package a_test\ntest_a if true\n"}, []string{".: contains no policy", "a_test.rego:2:1: rego_format: "}},
		{"strict", map[string]string{"a.rego": "package policies.a\n\nimport data.b\n\ndeny contains \"x\" if {\n\ty := 1\n}\n"}, []string{
			"a.rego:3:1: rego_compile_error: import data.b unused", "a.rego:6:2: rego_compile_error: assigned var y unused",
		}},
		{"capabilities", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if http.send({}).a\n"}, []string{
			"a.rego:3:22: rego_type_error: function http.send is disabled (the network): use data next to the policies (data.json, data.yaml)",
		}},
		{"types of the input", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if input.caller.teem == \"x\"\n"}, []string{
			`a.rego:3:22: rego_type_error: undefined ref: input.caller.teem, did you mean "team"?`,
		}},
		{"a member that nothing is like", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if input.caller.department == \"x\"\n"}, []string{
			"a.rego:3:22: rego_type_error: undefined ref: input.caller.department: input.caller has ",
		}},
		{"a comparison of two types", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if input.request.verb == 3\n"}, []string{
			"a.rego:3:22: rego_type_error: match error: left string, right number",
		}},
		{"arguments of other types", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if concat(\",\", 3) == \"\"\n"}, []string{
			"a.rego:3:22: rego_type_error: concat: invalid argument(s): have (string, number), want (delimiter: string, collection: any<array[string], set[string]>",
		}},
		{"too many arguments", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if lower(\"a\", \"b\", \"c\")\n"}, []string{
			"a.rego:3:22: rego_type_error: lower: arity mismatch: have (string, string, string), want (x: string",
		}},
		{"a resource's member of another type", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if startswith(input.resource.after.gpu.count, \"8\")\n"}, []string{
			"a.rego:3:22: policy a: rego_type_error: startswith: invalid argument(s): have (number, string), want (",
		}},
		{"compared with another type", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if input.resource.current.workers.max == \"3\"\n"}, []string{
			"a.rego:3:22: policy a: rego_type_error: match error: left number, right string",
		}},
		{"a resource's member that nothing has", map[string]string{"a.rego": "package policies.a\n\ndeny contains \"x\" if input.resource.after.gpu.cuont > 8\n"}, []string{
			`a.rego:3:22: policy a: input.resource.after.gpu.cuont: unknown member "cuont", did you mean "count"?`,
		}},
		{"what may be null, of several types, or by any name", map[string]string{"a.rego": `package policies.a

deny contains "x" if input.resource.current == null

deny contains "y" if {
	input.resource.after.gpu == null
	input.resource.after.cpu[_].id == "a"
	input.resource.after.env[name] == name
	input.resource.template.record.ports[0] == "22/tcp"
	object.get(input.resource.after, "newly", "") == ""
	input.resource.after.mounts == {}
	not input.resource.after.mounts.network == []
	count(input.resource.after.gpu.pools) == 0
}
`}, nil},
		{"a policy of the library", map[string]string{"a.rego": "package policies.roles\n\ndeny contains \"x\" if false\n"}, []string{
			"a.rego:1:1: policy roles: has the same name as a library policy",
		}},
		{"packages of the library", map[string]string{"a.rego": "package tollgate.gpu\n\nx := 1\n"}, []string{"a.rego:1:1: package tollgate.gpu is reserved"}},
		{"a name twice in JSON", map[string]string{"data.json": `{"a": 1, "a": 2}`}, []string{`data.json: data is not valid: jsontext: duplicate object member name "a"`}},
		{"a name twice in YAML", map[string]string{"data.yaml": "a: 1\na: 2\n"}, []string{"data.yaml: data is not valid: data.yaml:2:1: a: duplicate key, first at line 1"}},
		{"an alias", map[string]string{"data.yml": "a: &x [1]\nb: *x\n"}, []string{"data.yml: data is not valid: data.yml:1:4: a: anchors are not supported"}},
		{"a date, a large number, surrogates", map[string]string{
			"data.yaml": "day: 2026-11-01\n", "b/data.json": `{"n": 12345678901234567890123, "s": "\ud83d\ude00", "none": null}`,
			"x.rego": "package policies.x\n\ndeny contains \"x\" if {\n\tdata.day == \"2026-11-01\"\n\tdata.b.n == 12345678901234567890123\n\tis_null(data.b.none)\n}\n",
		}, nil},
		{"data twice", map[string]string{"data.json": `{"a": 1}`, "data.yaml": "a: 2\n"}, []string{"data.yaml: data.a is defined twice"}},
		{"data where a rule is", map[string]string{"a.rego": good, "policies/good/data.json": `{"deny": 1}`}, []string{
			"a.rego:3:1: rego_compile_error: conflicting rule",
		}},
		{"METADATA", map[string]string{"a.rego": "# METADATA\n# custom:\n#   required: [x]\npackage policies.a\n\ndeny contains \"x\" if false\n"}, []string{
			"a.rego:4:1: policy a: METADATA: x is not a parameter",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, tt.files)
			_, err := authoring.Check(".")
			var got []string
			for _, f := range authoring.Faults(err) {
				got = append(got, f.Error())
			}
			fits := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				fits = fits && strings.HasPrefix(got[i], tt.want[i])
			}
			if !fits {
				t.Errorf("faults begin otherwise (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

// TestManyFaults: no fault is left out because there are many.
func TestManyFaults(t *testing.T) {
	var b strings.Builder
	b.WriteString("package policies.a\n")
	const n = 40
	for range n {
		b.WriteString("\ndeny contains \"x\" if input.caller.teem == \"x\"\n")
	}
	write(t, map[string]string{"a.rego": b.String()})
	_, err := authoring.Check(".")
	if got := len(authoring.Faults(err)); got != n {
		t.Errorf("got %d faults, want %d", got, n)
	}
}

// TestPolicies: the findings, with the rules of its answer.
func TestPolicies(t *testing.T) {
	write(t, map[string]string{"a.rego": good, "b.rego": "package lib\n\nx := 1\n"})
	r, err := authoring.Check(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Policies) != 1 || !cmp.Equal(r.Policies[0].Rules, []string{"deny"}) {
		t.Errorf("got policies %+v, want good, which denies", r.Policies)
	}
}

func TestFormat(t *testing.T) {
	write(t, map[string]string{
		"a.rego": "package policies.a\ndeny contains \"x\" if   1 == 1\n", "b.rego": good, "c.rego": "not Rego",
	})
	changed, err := authoring.Format(".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.rego"}, changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if got, err := os.ReadFile("a.rego"); err != nil || string(got) != "package policies.a\n\ndeny contains \"x\" if 1 == 1\n" {
		t.Errorf("got %q, %v; want it formatted", got, err)
	}
	if got, err := os.ReadFile("c.rego"); err != nil || string(got) != "not Rego" {
		t.Errorf("got %q, %v; want what does not parse left alone", got, err)
	}
}
