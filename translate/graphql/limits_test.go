package graphql_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

// TestLimits meets each bound and stays one below it.
func TestLimits(t *testing.T) {
	pods := func(n int) string { // n aliased roots
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ` p%d: pod(input: {podId: "%d"}) { id }`, i, i)
		}
		return "{" + b.String() + " }"
	}
	tests := []struct {
		name, limit string
		edit        func(l *graphql.Limits)
		over, below string // documents
		status      int
	}{
		{
			name: "document", limit: "document", status: 413, edit: func(l *graphql.Limits) { l.Document = 40 },
			over: `{ pod(input: {podId: "p"}) { id name  } }`, below: `{ pod(input: {podId: "p"}) { id name } }`,
		},
		{
			name: "tokens", limit: "tokens", edit: func(l *graphql.Limits) { l.Tokens = 15 },
			over: `{ pod(input: {podId: "p"}) { id name } }`, below: `{ pod(input: {podId: "p"}) { id } }`,
		},
		{
			name: "comments are tokens", limit: "tokens", edit: func(l *graphql.Limits) { l.Tokens = 15 },
			over: "#a\n#b\n{ pod(input: {podId: \"p\"}) { id } }", below: `{ pod(input: {podId: "p"}) { id } }`,
		},
		{
			name: "depth", limit: "depth", edit: func(l *graphql.Limits) { l.Depth = 3 },
			over: `{ myself { pods { machine { podHostId } } } }`, below: `{ myself { pods { id } } }`,
		},
		{
			name: "depth through fragments", limit: "depth", edit: func(l *graphql.Limits) { l.Depth = 3 },
			over:  `{ myself { ...A } } fragment A on User { pods { ...B } } fragment B on Pod { machine { podHostId } }`,
			below: `{ myself { ...A } } fragment A on User { pods { ...B } } fragment B on Pod { id }`,
		},
		{
			name: "fields", limit: "fields", edit: func(l *graphql.Limits) { l.Fields = 3 },
			over: `{ pod(input: {podId: "p"}) { id name locked } }`, below: `{ pod(input: {podId: "p"}) { id name } }`,
		},
		{
			name: "fields after expansion", limit: "fields", edit: func(l *graphql.Limits) { l.Fields = 6 },
			over:  `{ a: pod(input: {podId: "p"}) { ...F } b: pod(input: {podId: "q"}) { ...F } } fragment F on Pod { id name locked }`,
			below: `{ a: pod(input: {podId: "p"}) { ...F } b: pod(input: {podId: "q"}) { ...F } } fragment F on Pod { id name }`,
		},
		{name: "aliases", limit: "aliases", over: pods(11), below: pods(10)},
		{
			name: "aliases in a fragment count as often as it is spread", limit: "aliases",
			edit:  func(l *graphql.Limits) { l.Aliases = 3 },
			over:  `{ myself { pods { ...F } } pod(input: {podId: "p"}) { ...F } } fragment F on Pod { a: id b: id }`,
			below: `{ myself { id } pod(input: {podId: "p"}) { ...F } } fragment F on Pod { a: id b: id }`,
		},
		{
			name: "directives", limit: "directives", edit: func(l *graphql.Limits) { l.Directives = 2 },
			over:  `{ pod(input: {podId: "p"}) { id @skip(if: false) name @skip(if: false) locked @skip(if: false) } }`,
			below: `{ pod(input: {podId: "p"}) { id @skip(if: false) name @skip(if: false) } }`,
		},
		{
			name: "values", limit: "values", edit: func(l *graphql.Limits) { l.Values = 7 },
			over:  `{ a: pod(input: {podId: "p"}) { id } b: pod(input: {podId: "q"}) { id } c: pod(input: {podId: "r"}) { id } d: pod(input: {podId: "s"}) { id } }`,
			below: `{ a: pod(input: {podId: "p"}) { id } b: pod(input: {podId: "q"}) { id } c: pod(input: {podId: "r"}) { id } }`,
		},
		{
			name: "values compared", limit: "values", edit: func(l *graphql.Limits) { l.Values = 9 },
			over:  `{ pod(input: {podId: "p"}) { id } pod(input: {podId: "p"}) { id } pod(input: {podId: "p"}) { id } }`,
			below: `{ pod(input: {podId: "p"}) { id } pod(input: {podId: "p"}) { id } }`,
		},
		{
			name: "root mutations", limit: "root_mutations",
			over:  `mutation { a: podTerminate(input: {podId: "a"}) b: podTerminate(input: {podId: "b"}) }`,
			below: `mutation { __typename a: podTerminate(input: {podId: "a"}) }`,
		},
		{
			name: "paying mutations, whatever the setting", limit: "paid_mutations",
			edit:  func(l *graphql.Limits) { l.RootMutations = 9 },
			over:  `mutation { a: podResume(input: {podId: "a"}) { id } b: deployCpuPod(input: {imageName: "i"}) { id } }`,
			below: `mutation { a: podResume(input: {podId: "a"}) { id } b: podTerminate(input: {podId: "b"}) }`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *graphql.Config) {
				if tt.edit != nil {
					tt.edit(&c.Limits)
				}
			})
			const v2s = "getPod 200 @running\nlistPods 200 @pods\npodAction 200 @running\ndeletePod 204\ngetSshKeys 200 {\"keys\":[]}"
			v2 := newScript(t, v2s)
			out := r.ask(t, v2, tt.over, "")
			a := read(t, out)
			if len(a.Errors) != 1 || a.Errors[0].Extensions["limit"] != tt.limit {
				t.Errorf("over: got %s, want the limit %s", out.Body, tt.limit)
			}
			want := tt.status
			if want == 0 {
				want = 400
			}
			if out.Status != want || len(v2.calls) > 0 {
				t.Errorf("over: status %d and calls %v, want %d and none", out.Status, v2.lines(), want)
			}
			if out := r.ask(t, newScript(t, v2s), tt.below, ""); out.Status != 200 || strings.Contains(string(out.Body), `"errors"`) {
				t.Errorf("below: got %d %s", out.Status, out.Body)
			}
		})
	}
}

// pricesOf asks for the lowest price again and again: nine roots spread a
// fragment of 49 such fields, which take their input from the names in turn.
func pricesOf(last string, names ...string) string {
	var b strings.Builder
	b.WriteString("query($v: X, $w: X) {")
	for i := range 9 {
		fmt.Fprintf(&b, " g%d: gpuTypes { ...F }", i)
	}
	b.WriteString(" } fragment F on GpuType { ")
	for i := range 49 {
		fmt.Fprintf(&b, "lowestPrice(input: $%s) { stockStatus } ", names[i%len(names)])
	}
	return b.String() + last + " }"
}

func longList(n int) string {
	return `{"compliance":[` + strings.Repeat(`"GDPR",`, n-1) + `"GDPR"]}`
}

// misfit is a field whose fault is found last, when all before it is planned.
const misfit = `lowestPrice(input: {gpuCount: "x"}) { stockStatus }`

// TestVariableCountsOnce: a variable is coerced once, and what its uses share
// is not compared member by member. Otherwise a small document with a long
// variable would be hundreds of thousands of values.
func TestVariableCountsOnce(t *testing.T) {
	const items = 2000
	for _, tt := range []struct {
		name, document, variables string
		limit                     any // what the answer names; nil when it is the last field
	}{
		{"one variable", pricesOf(misfit, "v"), `{"v":` + longList(items) + `}`, nil},
		{"a default", strings.Replace(pricesOf(misfit, "v"), "$v: X,", `$v: X = {allowedCudaVersions: [`+strings.Repeat(`"12.4" `, 300)+`]},`, 1), "", nil},
		{"two that are equal", pricesOf(misfit, "v", "w"), `{"v":` + longList(items) + `,"w":` + longList(items) + `}`, "values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *graphql.Config) { c.Limits.Values = 2*items + 9*49*3 })
			out := r.ask(t, newScript(t, ""), tt.document, tt.variables)
			a := read(t, out)
			if out.Status != 400 || len(a.Errors) != 1 || a.Errors[0].Extensions["limit"] != tt.limit {
				t.Errorf("got %d %s, want 400 and the limit %v", out.Status, out.Body, tt.limit)
			}
		})
	}
}

func TestCallsLimit(t *testing.T) {
	r := newRig(t, func(c *graphql.Config) { c.Limits.Calls = 3 })
	v2 := newScript(t, "getPod 200 @running")
	out := r.ask(t, v2, `{ a: pod(input: {podId: "a"}) { id } b: pod(input: {podId: "b"}) { id } c: pod(input: {podId: "c"}) { id } d: pod(input: {podId: "d"}) { id } }`, "")
	a := read(t, out)
	if len(v2.calls) != 3 || len(a.Errors) != 1 || a.Errors[0].Extensions["limit"] != "calls" {
		t.Errorf("%d calls, answer %s; want 3 and one field over the limit", len(v2.calls), out.Body)
	}
}

func TestResponseLimit(t *testing.T) {
	r := newRig(t, func(c *graphql.Config) { c.Limits.Response = 2000 })
	out := r.ask(t, newScript(t, ""), `{ __schema { types { name fields { name } } } }`, "")
	a := read(t, out)
	if len(out.Body) > 2000 || len(a.Errors) != 1 || a.Errors[0].Extensions["limit"] != "response" {
		t.Errorf("got %d bytes: %.300s", len(out.Body), out.Body)
	}
}

func TestIntrospectionOff(t *testing.T) {
	r := newRig(t, func(c *graphql.Config) { c.Introspection = false })
	for _, document := range []string{
		`{ __schema { types { name } } }`, `{ __type(name: "Pod") { name } }`, `{ ...F } fragment F on Query { __schema { types { name } } }`,
	} {
		out := r.ask(t, newScript(t, ""), document, "")
		if a := read(t, out); out.Status != 400 || len(a.Errors) != 1 || a.Errors[0].Message != "GraphQL introspection is not allowed" {
			t.Errorf("%s: got %d %s", document, out.Status, out.Body)
		}
	}
	if out := r.ask(t, newScript(t, ""), `{ __typename }`, ""); string(out.Body) != `{"data":{"__typename":"Query"}}` {
		t.Errorf("__typename: got %s", out.Body)
	}
}

// TestIntrospectionTools sends the first queries of the usual tools.
func TestIntrospectionTools(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "introspection.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	for brand, member := range map[string]string{"Acme": `"isAcme"`, "": `"isPlatform"`} {
		out := newRig(t, func(c *graphql.Config) { c.Legacy.Brand = brand }).ask(t, newScript(t, ""), string(raw), "")
		if out.Status != 200 || strings.Contains(string(out.Body), `"errors"`) {
			t.Fatalf("brand %q: got %d %.400s", brand, out.Status, out.Body)
		}
		for _, want := range []string{`"podFindAndDeployOnDemand"`, member, `"EndpointInput"`} {
			if !strings.Contains(string(out.Body), want) {
				t.Errorf("brand %q: %s is not described", brand, want)
			}
		}
	}
}

// introspect spreads a chain of n fragments, NEXT in the body standing for the
// following one.
func introspect(n int, body string) string {
	var b strings.Builder
	b.WriteString("{ __schema { types { ...F0 } } }\n")
	for i := range n {
		fmt.Fprintf(&b, "fragment F%d on __Type { %s }\n", i, strings.ReplaceAll(body, "NEXT", fmt.Sprintf("F%d", i+1)))
	}
	fmt.Fprintf(&b, "fragment F%d on __Type { name }", n)
	return b.String()
}

// hostile lists documents made to cost more than they look.
func hostile() map[string]string {
	return map[string]string{
		"fragment cycle":                `{ myself { ...A } } fragment A on User { ...B } fragment B on User { ...A }`,
		"fragment that spreads itself":  `{ myself { ...A } } fragment A on User { id ...A }`,
		"cycle that nothing reaches":    `{ myself { id } } fragment A on User { ...A }`,
		"exponential through aliases":   introspect(12, "a: ofType { ...NEXT } b: ofType { ...NEXT }"),
		"exponential lists":             introspect(8, "fields { type { ...NEXT } } inputFields { type { ...NEXT } }"),
		"alias flood":                   "{" + strings.Repeat(" a: __typename", 5000) + "}",
		"distinct alias flood":          aliasFlood(900),
		"directive flood":               "{ __typename" + strings.Repeat(" @a", 30000) + "}",
		"directive flood in a variable": "query($a: Int " + strings.Repeat("@a ", 300) + ") { __typename }",
		"deep selections":               strings.Repeat("{ a ", 20000),
		"deep lists":                    "{ pod(input: " + strings.Repeat("[", 30000) + ") { id } }",
		"deep objects":                  "{ pod(input: " + strings.Repeat("{a:", 20000) + ") { id } }",
		"deep variable type":            "query($a: " + strings.Repeat("[", 30000) + "Int) { __typename }",
		"long name":                     "{ " + strings.Repeat("x", 90000) + " }",
		"unterminated string":           `{ pod(input: {podId: "x`,
		"unterminated block string":     `{ pod(input: {podId: """x`,
		"many comments":                 strings.Repeat("#\n", 40000) + "{ __typename }",
		"many operations":               strings.Repeat("query { __typename } ", 180),
		"duplicate operation names":     "query A { __typename } mutation A { podTerminate(input: {podId: \"x\"}) }",
		"duplicate arguments":           `{ pod(input: {podId: "a"}, input: {podId: "b"}) { id } }`,
		"duplicate input fields":        `{ pod(input: {podId: "a", podId: "b"}) { id } }`,
		"duplicate variables":           `query($a: String, $a: Int) { pod(input: {podId: $a}) { id } }`,
		"undefined variable":            `{ pod(input: {podId: $nope}) { id } }`,
		"variable in a default":         `query($a: String = $a) { pod(input: {podId: $a}) { id } }`,
		"two paying mutations":          `mutation { a: podResume(input: {podId: "a"}) { id } b: podResume(input: {podId: "b"}) { id } }`,
		"paying mutations by fragment":  `mutation { ...A ...B } fragment A on Mutation { a: podResume(input: {podId: "a"}) { id } } fragment B on Mutation { b: podResume(input: {podId: "b"}) { id } }`,
		"mutation field in a query":     `{ podTerminate(input: {podId: "x"}) }`,
		"subscription":                  `subscription { myself { id } }`,
		"schema definition":             `type Query { x: Int }`,
		"invalid UTF-8":                 "{ pod(input: {podId: \"\xff\xfe\"}) { id\x80 } }",
		"control characters":            "{ \x00 __typename }",
		"byte order mark only":          "\ufeff",
		"empty":                         " ",
		"on as a fragment":              `{ ...on }`,
		"huge number":                   "{ gpuTypes { lowestPrice(input: {gpuCount: " + strings.Repeat("9", 50000) + "}) { stockStatus } } }",
		"unused fragments":              "{ __typename } " + strings.Repeat("fragment A on Pod { id } ", 100),
		"many errors":                   "{" + strings.Repeat(" nope", 900) + "}",
	}
}

func aliasFlood(n int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, " a%d: __typename", i)
	}
	return b.String() + "}"
}

// TestHostileDocuments refuses each in bounded time with a bounded answer and
// no call. The time is generous: an exponential one would take years.
func TestHostileDocuments(t *testing.T) {
	for name, document := range hostile() {
		t.Run(name, func(t *testing.T) {
			v2 := newScript(t, "getPod 200 @running")
			began := time.Now()
			out := newRig(t).ask(t, v2, document, "")
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if out.Status != 400 || len(v2.calls) > 0 {
				t.Errorf("got %d %.300s and %d calls, want a refusal and none", out.Status, out.Body, len(v2.calls))
			}
			if len(out.Body) > 8000 {
				t.Errorf("%d bytes of answer", len(out.Body))
			}
			read(t, out)
		})
	}
}

// TestHeavyButHarmless answers what only looks dangerous, as cheaply.
func TestHeavyButHarmless(t *testing.T) {
	for name, document := range map[string]string{
		"one fragment spread again and again": introspect(30, "...NEXT ...NEXT"),
		"an id no resource has":               `{ pod(input: {podId: "` + strings.Repeat("x", 90000) + `"}) { id } }`,
		"a long comment":                      "#" + strings.Repeat("x", 90000) + "\n{ __typename }",
	} {
		t.Run(name, func(t *testing.T) {
			v2 := newScript(t, "getPod 200 @running")
			began := time.Now()
			out := newRig(t).ask(t, v2, document, "")
			if took := time.Since(began); out.Status != 200 || took > 2*time.Second || len(out.Body) > 8000 {
				t.Errorf("got %d, %d bytes in %v", out.Status, len(out.Body), took)
			}
			if len(v2.calls) > 0 {
				t.Errorf("%d calls, want none", len(v2.calls))
			}
		})
	}
}

// TestHostileBodies are no GraphQL requests at all.
func TestHostileBodies(t *testing.T) {
	bodies := map[string]any{
		"nothing": nil, "a number": decode(t, "1"), "a string": "{ __typename }", "true": true,
		"an empty array": []any{}, "a batch of one": []any{map[string]any{"query": "{ __typename }"}},
		"no query": map[string]any{}, "a query that is no string": map[string]any{"query": decode(t, "1")},
		"an empty query":                  map[string]any{"query": ""},
		"QUERY":                           map[string]any{"QUERY": "{ __typename }"},
		"variables that are a list":       map[string]any{"query": "{ __typename }", "variables": []any{}},
		"variables that are a string":     map[string]any{"query": "{ __typename }", "variables": "{}"},
		"an operation name of a number":   map[string]any{"query": "{ __typename }", "operationName": decode(t, "1")},
		"an operation name of an object":  map[string]any{"query": "{ __typename }", "operationName": map[string]any{}},
		"a persisted query without query": map[string]any{"extensions": map[string]any{"persistedQuery": map[string]any{}}},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			out := newRig(t).api.Serve(t.Context(), &translate.Incoming{Account: account, Body: body, HasBody: true}, newScript(t, ""))
			if a := read(t, out); out.Status != 400 || len(a.Errors) != 1 {
				t.Errorf("got %d %s, want 400 and one error", out.Status, out.Body)
			}
		})
	}
}

// FuzzServe looks for documents and variables that break the executor: it must
// answer any request, with JSON, and call v2 at most as often as its limit.
func FuzzServe(f *testing.F) {
	for _, document := range hostile() {
		f.Add(document, "{}", "")
	}
	for _, p := range probes() {
		f.Add(p.document, `{"v":`+p.base+`}`, "A")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		parts := sections(f, file)
		if document, ok := parts["request.graphql"]; ok {
			f.Add(document, parts["variables.json"], "")
		}
	}
	var shared *rig
	script := probes()[0].v2 + probes()[len(probes())-1].v2
	f.Fuzz(func(t *testing.T, document, variables, operation string) {
		if shared == nil {
			shared = newRig(t)
		}
		body := map[string]any{"query": document, "operationName": operation}
		if v, ok := lenient(variables).(map[string]any); ok {
			body["variables"] = v
		}
		v2 := newScript(t, script)
		out := shared.api.Serve(t.Context(), &translate.Incoming{Account: account, Body: body, HasBody: true}, v2)
		if out == nil || out.Status < 200 || out.Status > 599 {
			t.Fatalf("got %+v", out)
		}
		read(t, out)
		if len(v2.calls) > graphql.DefaultConfig().Limits.Calls {
			t.Errorf("%d calls", len(v2.calls))
		}
		if out.Status == 400 && len(v2.calls) > 0 {
			t.Errorf("a refused request made calls: %v", v2.lines())
		}
	})
}

// TestLongLists: the data for a price is read once per field of the document,
// and lists that no price needs do not become queries.
func TestLongLists(t *testing.T) {
	ask := func(t *testing.T, variables string) (answer, *script) {
		t.Helper()
		v2 := newScript(t, "listGpuTypes 200 @gpus\nlistDataCenters 200 {\"dataCenters\":[]}")
		return read(t, newRig(t).ask(t, v2, `query($v: X) { gpuTypes { lowestPrice(input: $v) { stockStatus } } }`, variables)), v2
	}
	t.Run("repeated words", func(t *testing.T) {
		a, v2 := ask(t, `{"v":`+longList(2000)+`}`)
		if want := "listDataCenters ?compliance=GDPR"; len(a.Errors) > 0 || !slices.Contains(v2.lines(), want) {
			t.Errorf("errors %v, calls %v; want none and %s", a.Errors, v2.lines(), want)
		}
	})
	t.Run("CUDA versions", func(t *testing.T) {
		a, v2 := ask(t, `{"v":{"allowedCudaVersions":[`+strings.Repeat(`"12.4",`, 100)+`"12.4"]}}`)
		if len(a.Errors) == 0 || a.Errors[0].Message != "allowedCudaVersions: must have at most 100 versions" || len(v2.calls) != 1 {
			t.Errorf("errors %v, calls %v", a.Errors, v2.lines())
		}
	})
}
