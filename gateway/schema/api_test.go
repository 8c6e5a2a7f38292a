package schema_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	table "github.com/tollgate-dev/tollgate/policies/operation"
)

func TestOperations(t *testing.T) {
	api := load(t)
	ops := api.Operations()
	rows := slices.DeleteFunc(slices.Clone(table.All()), func(r table.Spec) bool { return r.Kind == table.KindJob })
	if len(ops) != len(rows) {
		t.Errorf("there are %d operations, want the %d that have rows", len(ops), len(rows))
	}
	if !slices.IsSortedFunc(ops, func(a, b *schema.Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) }) {
		t.Error("operations are not ordered by path and method")
	}
	inBraces := regexp.MustCompile(`{(\w+)}`)
	for _, op := range ops {
		if api.Operation(op.ID) != op {
			t.Errorf("Operation(%q) is another operation", op.ID)
		}
		if op.Mutates != (op.Method != http.MethodGet) {
			t.Errorf("%s: Mutates = %v for %s", op.ID, op.Mutates, op.Method)
		}
		if takes := op.Method == http.MethodPost || op.Method == http.MethodPut || op.Method == http.MethodPatch; op.HasBody != takes || op.BodyRequired != takes {
			t.Errorf("%s: HasBody, BodyRequired = %v, %v for %s", op.ID, op.HasBody, op.BodyRequired, op.Method)
		}
		if want := strings.HasSuffix(op.Path, "/logs"); op.Streams != want {
			t.Errorf("%s: Streams = %v, want %v", op.ID, op.Streams, want)
		}
		var inPath []string
		for _, m := range inBraces.FindAllStringSubmatch(op.Path, -1) {
			inPath = append(inPath, m[1])
		}
		var names []string
		for _, p := range op.PathParams {
			names = append(names, p.Name)
		}
		if diff := cmp.Diff(inPath, names); diff != "" {
			t.Errorf("%s: path parameters (-path +described):\n%s", op.ID, diff)
		}
	}
	if op := api.Operation("nothing"); op != nil {
		t.Errorf("Operation(nothing) = %v, want nil", op)
	}
	ops[0] = nil
	if api.Operations()[0] == nil {
		t.Error("Operations returns its own slice")
	}
}

func TestSuccessStatus(t *testing.T) {
	want := map[string]int{
		"createPod": 201, "getPod": 200, "deletePod": 204, "podAction": 200, "updateSshKeys": 200,
		"createDelegation": 201, "getOpenAPI": 200, "getPodLogs": 200,
	}
	api := load(t)
	for id, status := range want {
		if got := api.Operation(id).SuccessStatus; got != status {
			t.Errorf("%s: SuccessStatus = %d, want %d", id, got, status)
		}
	}
}

func TestParameters(t *testing.T) {
	api := load(t)
	got := map[string]string{}
	for _, p := range api.Operation("listGpuTypes").Query {
		got[p.Name] = fmt.Sprintf("%s list=%v required=%v", p.Type, p.List, p.Required)
	}
	want := map[string]string{
		"include": "string list=true required=false", "product": "string list=true required=false",
		"count": "integer list=false required=false", "cloud": "string list=false required=false",
		"countryCodes": "string list=true required=false", "cudaVersions": "string list=true required=false",
		"minCudaVersion": "string list=false required=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("query of listGpuTypes (-want +got):\n%s", diff)
	}
	if h := api.Operation("getPodLogs").Headers; len(h) != 1 || h[0].Name != "Last-Event-ID" {
		t.Errorf("headers of getPodLogs = %v, want Last-Event-ID", h)
	}
	if p := api.Operation("listPods").Query; len(p) != 3 || p[0].Type != "boolean" || p[2].Name != "limit" || p[2].Maximum != 1000 {
		t.Errorf("query of listPods = %v, want a boolean, a cursor and a limit of at most 1000", p)
	}
}

// Everything that is described has a description, and nothing names a vendor,
// a host, or markup.
func TestDocument(t *testing.T) {
	var doc any
	if err := json.Unmarshal(load(t).Document(), &doc); err != nil {
		t.Fatal(err)
	}
	if got, want := member(member(doc, "info"), "title"), "Compute Platform API v2"; got != want {
		t.Errorf("title = %v, want %v", got, want)
	}
	described := 0
	needsDescription := regexp.MustCompile(`^/(info|tags/\d+|paths/(/v2[^ ]*)/(get|put|post|patch|delete)(/responses/\w+)?|` +
		`components/(parameters|headers|responses|schemas|securitySchemes)/[^/]+|components/schemas/.*/properties/[^/]+)$`)
	isProperty := regexp.MustCompile(`/properties/[^/]+$`)
	isForbidden := regexp.MustCompile(`(?i)https?://|\bapi\.|<|\.io\b|\.ai\b|\.com\b`)
	var visit func(path string, node any)
	visit = func(path string, node any) {
		switch node := node.(type) {
		case []any:
			for i, v := range node {
				visit(fmt.Sprintf("%s/%d", path, i), v)
			}
		case map[string]any:
			for name, v := range node {
				visit(path+"/"+name, v)
			}
			if needsDescription.MatchString(path) && !strings.Contains(path, "/then/") && !strings.Contains(path, "/if/") {
				text, _ := node["description"].(string)
				_, isReference := node["$ref"]
				if text == "" && (!isReference || isProperty.MatchString(path)) {
					t.Errorf("%s has no description", path)
				}
				described++
			}
		case string:
			if isForbidden.MatchString(node) {
				t.Errorf("%s = %q names a host or contains markup", path, node)
			}
		}
	}
	visit("", doc)
	if described < 600 {
		t.Errorf("only %d places that need a description were found, the test is broken", described)
	}
}

// Every operation may be refused for the reasons that hold for all, and every
// operation with a body for those that hold for bodies.
func TestResponses(t *testing.T) {
	api := load(t)
	var doc any
	if err := json.Unmarshal(api.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, op := range api.Operations() {
		node := member(member(member(doc, "paths"), op.Path), strings.ToLower(op.Method))
		want := []string{"405", "413", "429", "default"}
		if op.ID != "getOpenAPI" {
			want = append(want, "401", "403")
		}
		if op.HasBody {
			want = append(want, "400", "422")
		}
		for _, code := range want {
			if member(member(node, "responses"), code) == nil {
				t.Errorf("%s does not describe the answer %s", op.ID, code)
			}
		}
	}
}

// A name in another case is another name, and no operation knows it.
func TestNamesInAnotherCase(t *testing.T) {
	op := operation(t, "createPod")
	names := []string{
		"name", "image", "gpu", "cpu", "cloud", "disk", "env", "ports", "args", "cmd", "entrypoint", "mounts", "registry",
		"templateId", "dataCenterIds", "globalNetworking", "startSsh", "startJupyter",
	}
	for _, name := range names {
		for _, variant := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], strings.ToLower(name), name[:len(name)-1] + strings.ToUpper(name[len(name)-1:])} {
			if variant == name {
				continue
			}
			vs := op.ValidateBody(parse(t, pod(`"`+variant+`":{"id":"NVIDIA H200"}`)))
			want := []string{"$: additional properties '" + variant + "' not allowed, did you mean '" + name + "'?"}
			if diff := cmp.Diff(want, lines(vs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", variant, diff)
			}
		}
	}
}

// The order of violations is fixed although maps have none, and one API serves
// many callers at once.
func TestValidateBodyIsDeterministic(t *testing.T) {
	const body = `{"image":7,"disk":0,"cloud":"X","gpu":{"id":1,"count":"2","a":1,"b":2},"env":{"A":1,"B":2,"C":3},"x":1,"y":2,"z":3}`
	op := operation(t, "createPod")
	want := op.ValidateBody(parse(t, body))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if diff := cmp.Diff(want, op.ValidateBody(parse(t, body))); diff != "" {
					t.Errorf("violations differ from one time to the next:\n%s", diff)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestViolationsAreBounded(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"name":"a","image":"i"`)
	for i := range 200 {
		fmt.Fprintf(&body, `,"unknown%03d":1`, i)
	}
	fmt.Fprintf(&body, `,"%s":1}`, strings.Repeat("é", 5000))
	vs := operation(t, "createPod").ValidateBody(parse(t, body.String()))
	if want := 50; len(vs) != want {
		t.Errorf("%d violations, want %d", len(vs), want)
	}
	ports := `["` + strings.Repeat("x", 10_000) + `"` + strings.Repeat(`,"22/udp"`, 199) + `]`
	vs = operation(t, "createPod").CheckRules(parse(t, pod(`"ports":`+ports)))
	if want := 50; len(vs) != want {
		t.Errorf("%d violations of rules, want %d", len(vs), want)
	}
}

// A refusal costs in proportion to the body, however many faults it has. Memory
// is what can be held against a fixed figure; time follows it.
func TestWorstBody(t *testing.T) {
	op, body := operation(t, "createPod"), parse(t, worstPod())
	if got, want := len(op.ValidateBody(body)), 50; got != want {
		t.Errorf("%d violations, want %d", got, want)
	}
	const limit = 100_000
	if n := testing.AllocsPerRun(3, func() { op.ValidateBody(body) }); n > limit {
		t.Errorf("ValidateBody allocated %.0f times, want at most %d", n, limit)
	}
}

// A violation repeats names, clipped, and no values.
func TestViolationsDoNotEchoValues(t *testing.T) {
	name, secret := strings.Repeat("é", 5000), "s3cret-value"
	bodies := []string{
		`{"name":"a","image":"i","` + name + `":1}`,
		`{"name":"a","image":"i","env":{"` + name + `":1}}`,
		`{"name":"a","image":"i","cloud":"` + secret + `","gpu":{"id":"x","minCudaVersion":"` + secret + `"},"disk":"` + secret + `"}`,
		pod(`"ports":["` + secret + `"],"env":{"` + name + `=":"` + secret + `"},"args":"` + secret + `","cmd":["x"]`),
	}
	op := operation(t, "createPod")
	for _, body := range bodies {
		doc := parse(t, body)
		vs := append(op.ValidateBody(doc), op.CheckRules(doc)...)
		if len(vs) == 0 {
			t.Errorf("%.60s: no violations", body)
		}
		for _, v := range vs {
			all := fmt.Sprintf("%+v", v)
			if strings.Contains(all, secret) || strings.Count(v.String(), "é") > 64 || strings.Count(v.Pointer, "é") > 64 {
				t.Errorf("%.200s repeats what was sent", all)
			}
		}
	}
}
