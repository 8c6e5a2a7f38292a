package graphql_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

// TestExecution checks the language: the meaning of a document, for any field.
func TestExecution(t *testing.T) {
	tests := []struct {
		name, document, variables, operation string
		want                                 string // the body
		status                               int
	}{
		{
			name:     "members come in the order of the document",
			document: `{ pod(input: {podId: "p"}) { name id __typename } }`,
			want:     `{"data":{"pod":{"name":"train","id":"p0d1abcd","__typename":"Pod"}}}`,
		},
		{
			name:     "aliases",
			document: `{ a: pod(input: {podId: "p"}) { x: id y: id } }`,
			want:     `{"data":{"a":{"x":"p0d1abcd","y":"p0d1abcd"}}}`,
		},
		{
			name: "fragments, named and inline, nested, merged",
			document: `query { pod(input: {podId: "p"}) { ...F ... on Pod { name } ... { machine { dataCenterId } } } }
				fragment F on Pod { id ...G machine { gpuTypeId } } fragment G on Pod { id }`,
			want: `{"data":{"pod":{"id":"p0d1abcd","machine":{"gpuTypeId":"NVIDIA GeForce RTX 4090","dataCenterId":"EU-RO-1"},"name":"train"}}}`,
		},
		{
			name:      "skip and include with variables",
			document:  `query($on: Boolean!) { pod(input: {podId: "p"}) { id @skip(if: $on) name @include(if: $on) ... @skip(if: false) { locked } } }`,
			variables: `{"on":true}`,
			want:      `{"data":{"pod":{"name":"train","locked":false}}}`,
		},
		{
			name:      "the operation named",
			document:  `query A { pod(input: {podId: "p"}) { id } } query B { pod(input: {podId: "p"}) { name } }`,
			operation: "B",
			want:      `{"data":{"pod":{"name":"train"}}}`,
		},
		{
			name:     "several operations and no name",
			document: `query A { __typename } query B { __typename }`,
			want:     `{"errors":[{"message":"Must provide operation name if query contains multiple operations.","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name: "an operation that is not there", document: `query A { __typename }`, operation: "podStop",
			want: `{"errors":[{"message":"Unknown operation named \"podStop\".","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name:      "a variable inside a literal",
			document:  `query($id: ID!) { pod(input: {podId: $id}) { id } }`,
			variables: `{"id":"p"}`,
			want:      `{"data":{"pod":{"id":"p0d1abcd"}}}`,
		},
		{
			name:     "a default where no value is given",
			document: `query($id: String = "p") { pod(input: {podId: $id}) { id } }`,
			want:     `{"data":{"pod":{"id":"p0d1abcd"}}}`,
		},
		{
			name:      "null is absent",
			document:  `query($id: String = "p") { pod(input: {podId: $id}) { id } }`,
			variables: `{"id":null}`,
			want:      `{"data":{"pod":null},"errors":[{"message":"podId is required","path":["pod"],"extensions":{"code":"BAD_USER_INPUT"}}]}`,
		},
		{
			name:      "an unknown type of a variable, an unused and an undeclared one",
			document:  `query($id: Whatever!, $unused: Int) { pod(input: {podId: $id}) { id } }`,
			variables: `{"id":"p","stray":{"a":[1]}}`,
			want:      `{"data":{"pod":{"id":"p0d1abcd"}}}`,
		},
		{
			name:     "an escaped string is what it means",
			document: `{ pod(input: {podId: "\u0070"}) { id } }`,
			want:     `{"data":{"pod":{"id":"p0d1abcd"}}}`,
		},
		{
			name:     "one name for two things",
			document: `{ pod(input: {podId: "p"}) { a: id a: name } }`,
			want:     `{"errors":[{"message":"Fields \"a\" conflict: their names or arguments differ. Use different aliases.","locations":[{"line":1,"column":36}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name:     "one name for two arguments",
			document: `{ pod(input: {podId: "p"}) { id } pod(input: {podId: "q"}) { id } }`,
			want:     `{"errors":[{"message":"Fields \"pod\" conflict: their names or arguments differ. Use different aliases.","locations":[{"line":1,"column":35}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name: "an object without selection", document: `mutation { podStop(input: {podId: "p"}) }`,
			want: `{"errors":[{"message":"Field \"podStop\" of type \"Pod\" must have a selection of subfields. Did you mean \"podStop { ... }\"?","locations":[{"line":1,"column":12}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name: "an unknown input field", document: `{ pod(input: {podID: "p"}) { id } }`,
			want: `{"errors":[{"message":"Field \"podID\" is not defined by type \"PodFilter\". Did you mean \"podId\"?","locations":[{"line":1,"column":15}],"extensions":{"code":"BAD_USER_INPUT"}}]}`, status: 400,
		},
		{
			name: "a subscription", document: `subscription { pod { id } }`,
			want: `{"errors":[{"message":"subscriptions are not available","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name: "an unsupported directive", document: `{ pod(input: {podId: "p"}) { ... @defer { id } } }`,
			want: `{"errors":[{"message":"Unknown directive \"@defer\".","locations":[{"line":1,"column":35}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
		{
			name: "a fragment on another type", document: `{ pod(input: {podId: "p"}) { ... on GpuType { id } } }`,
			want: `{"errors":[{"message":"Fragment cannot be spread here as objects of type \"Pod\" can never be of type \"GpuType\".","locations":[{"line":1,"column":34}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, status: 400,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := map[string]any{"query": tt.document}
			if tt.variables != "" {
				body["variables"] = decode(t, tt.variables)
			}
			if tt.operation != "" {
				body["operationName"] = tt.operation
			}
			v2 := newScript(t, "getPod 200 @running")
			out := newRig(t).api.Serve(t.Context(), &translate.Incoming{Account: account, Body: body, HasBody: true}, v2)
			if diff := cmp.Diff(tt.want, string(out.Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			want := tt.status
			if want == 0 {
				want = 200
			}
			if out.Status != want {
				t.Errorf("status %d, want %d", out.Status, want)
			}
			if want == 400 && len(v2.calls) > 0 {
				t.Errorf("a refused request made calls: %v", v2.lines())
			}
		})
	}
}

// TestCoercion checks what fits where, as a literal and as a variable.
func TestCoercion(t *testing.T) {
	tests := []struct {
		name, literal, variable string // variable "" for a literal that has no JSON form
		want                    string // member of the create body, or of the error
	}{
		{"int", `gpuCount: 2`, `{"gpuCount":2}`, `"count":2`},
		{"integral float", `gpuCount: 2.0`, `{"gpuCount":2.0}`, `"count":2`},
		{"exponent", `gpuCount: 2e0`, `{"gpuCount":2e0}`, `"count":2`},
		{"fraction for Int", `gpuCount: 2.5`, `{"gpuCount":2.5}`, `Int cannot represent 2.5`},
		{"beyond 32 bits", `gpuCount: 3000000000`, `{"gpuCount":3000000000}`, `Int cannot represent 3000000000`},
		{"absurd exponent", `gpuCount: 1e999999`, `{"gpuCount":1e999999}`, `Int cannot represent 1e999999`},
		{"string for Int", `gpuCount: "2"`, `{"gpuCount":"2"}`, `expected Int, found a string`},
		{"int for Float", `deployCost: 1`, `{"deployCost":1}`, `"count":1`},
		{"int for String", `name: 1`, `{"name":1}`, `expected String, found a number`},
		{"int for Boolean", `startSsh: 1`, `{"startSsh":1}`, `expected Boolean, found a number`},
		{"enum literal", `cloudType: SECURE`, "", `"cloud":"SECURE"`},
		{"enum as string", `cloudType: "SECURE"`, `{"cloudType":"SECURE"}`, `"cloud":"SECURE"`},
		{"empty enum", `cloudType: ""`, `{"cloudType":""}`, `"cloud":"COMMUNITY"`},
		{"unknown enum", `cloudType: MARS`, `{"cloudType":"MARS"}`, `\"MARS\" is not one of CloudTypeEnum`},
		{"lower-case enum", `cloudType: secure`, `{"cloudType":"secure"}`, `\"secure\" is not one of CloudTypeEnum`},
		{"enum literal for String", `name: train`, "", `expected String, found an enumeration literal`},
		{"one for a list", `allowedCudaVersions: "12.8"`, `{"allowedCudaVersions":"12.8"}`, `"allowedCudaVersions":["12.8"]`},
		{"null in a list", `allowedCudaVersions: [null, "12.8"]`, `{"allowedCudaVersions":[null,"12.8"]}`, `"allowedCudaVersions":["12.8"]`},
		{"list for one", `name: ["a"]`, `{"name":["a"]}`, `expected String, found a list`},
		{"object for one", `name: {a: "b"}`, `{"name":{"a":"b"}}`, `expected String, found an object`},
		{"one object for a list of them", `env: {key: "a", value: "b"}`, `{"env":{"key":"a","value":"b"}}`, `"env":{"a":"b"}`},
		{"unknown member below", `env: [{key: "a", val: "b"}]`, `{"env":[{"key":"a","val":"b"}]}`, `Field \"val\" is not defined by type \"EnvironmentVariableInput\".`},
		{"block string", `dockerArgs: """
			a
			b
			"""`, `{"dockerArgs":"a\nb"}`, `"args":"a\nb"`},
		{"quotes", `dockerArgs: "a \"b\" \\ \u00e9"`, `{"dockerArgs":"a \"b\" \\ é"}`, `"args":"a \"b\" \\ é"`},
	}
	ask := func(t *testing.T, document, variables string) string {
		t.Helper()
		v2 := newScript(t, "listGpuTypes 200 @gpus\ncreatePod 201 @created")
		out := newRig(t).ask(t, v2, document, variables)
		return strings.Join(v2.lines(), "\n") + string(out.Body)
	}
	const fixed = `gpuTypeId: "NVIDIA GeForce RTX 4090", imageName: "i"`
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, `mutation { podFindAndDeployOnDemand(input: {`+fixed+`, `+tt.literal+`}) { id } }`, "")
			if !strings.Contains(got, tt.want) {
				t.Errorf("literal: got %s, want %s in it", got, tt.want)
			}
			if tt.variable == "" {
				return
			}
			variable := `{"v":` + merge(t, `{"gpuTypeId":"NVIDIA GeForce RTX 4090","imageName":"i"}`, tt.variable) + `}`
			got = ask(t, `mutation($v: PodFindAndDeployOnDemandInput!) { podFindAndDeployOnDemand(input: $v) { id } }`, variable)
			if !strings.Contains(got, tt.want) {
				t.Errorf("variable: got %s, want %s in it", got, tt.want)
			}
		})
	}
}

// TestNoValueInErrors keeps secrets out of complaints about their type.
func TestNoValueInErrors(t *testing.T) {
	out := newRig(t).ask(t, newScript(t, ""), `mutation($p: String) { saveRegistryAuth(input: {name: "n", username: "u", password: $p}) { id } }`, `{"p":{"secret":"hunter2"}}`)
	if strings.Contains(string(out.Body), "hunter2") || out.Status != 400 {
		t.Errorf("got %d %s", out.Status, out.Body)
	}
}

// callerFunc is a Caller made of a function.
type callerFunc func(ctx context.Context, r *translate.Request) (*translate.Response, error)

func (f callerFunc) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	return f(ctx, r)
}

// TestQueryRootsRunSideBySide needs four calls under way at once to end, and
// never sees a fifth.
func TestQueryRootsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var now, most atomic.Int32
		v2 := callerFunc(func(ctx context.Context, _ *translate.Request) (*translate.Response, error) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			select { // synthetic time: all that can start have started
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			now.Add(-1)
			return &translate.Response{Status: 200, Body: map[string]any{}}, nil
		})
		var doc strings.Builder
		doc.WriteString("{")
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			doc.WriteString(` ` + id + `: pod(input: {podId: "` + id + `"}) { id }`)
		}
		doc.WriteString("}")
		if out := r.ask(t, v2, doc.String(), ""); out.Status != 200 {
			t.Fatalf("got %d %s", out.Status, out.Body)
		}
		if most.Load() != 4 {
			t.Errorf("%d calls at once, want 4", most.Load())
		}
	})
}

func TestMutationRootsRunInOrder(t *testing.T) {
	r := newRig(t, func(c *graphql.Config) { c.Limits.RootMutations = 3 })
	v2 := newScript(t, "podAction 200 @running\ndeletePod 204")
	r.ask(t, v2, `mutation { a: podStop(input: {podId: "a"}) { id } b: podTerminate(input: {podId: "b"}) c: podStop(input: {podId: "c"}) { id } }`, "")
	want := []string{`podAction a {"action":"stop"}`, `deletePod b`, `podAction c {"action":"stop"}`}
	if diff := cmp.Diff(want, v2.lines()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestEachResourceIsReadOnce asks for the same things by many ways.
func TestEachResourceIsReadOnce(t *testing.T) {
	v2 := newScript(t, "listPods 200 @pods\nlistGpuTypes 200 @gpus\nlistNetworkVolumes 200 @volumes")
	newRig(t).ask(t, v2, `{ a: myself { pods { machine { gpuDisplayName gpuType { id } currentPricePerGpu } networkVolume { name } } currentSpendPerHr networkVolumes { id } }
		b: myself { pods { id } } gpuTypes { id } }`, "")
	for _, operation := range []string{"listPods", "listGpuTypes", "listNetworkVolumes"} {
		if n := v2.count(operation); n != 1 {
			t.Errorf("%s was called %d times, want 1: %v", operation, n, v2.lines())
		}
	}
}

// TestSameDocumentOtherVariables asks one text with several variables, at the
// same time: a document that was seen before must not remember them.
func TestSameDocumentOtherVariables(t *testing.T) {
	r := newRig(t)
	v2 := callerFunc(func(_ context.Context, q *translate.Request) (*translate.Response, error) {
		return &translate.Response{Status: 200, Body: map[string]any{"id": q.Params["id"], "name": "n"}}, nil
	})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			id := strings.Repeat("x", i+1)
			out := r.ask(t, v2, `query($id: String, $all: Boolean!) { pod(input: {podId: $id}) { id name @include(if: $all) } }`,
				`{"id":"`+id+`","all":`+strconv.FormatBool(i%2 == 0)+`}`)
			want := `{"data":{"pod":{"id":"` + id + `"}}}`
			if i%2 == 0 {
				want = `{"data":{"pod":{"id":"` + id + `","name":"n"}}}`
			}
			if string(out.Body) != want {
				t.Errorf("got %s, want %s", out.Body, want)
			}
		})
	}
	wg.Wait()
}

// TestPanicCostsOneField makes a bug in the caller and looks that the rest of
// the answer, and the process, live on.
func TestPanicCostsOneField(t *testing.T) {
	v2 := callerFunc(func(_ context.Context, r *translate.Request) (*translate.Response, error) {
		if r.Operation == "getPod" {
			panic("bug")
		}
		return &translate.Response{Status: 200, Body: fixture(t, "@gpus")}, nil
	})
	out := newRig(t).ask(t, v2, `{ pod(input: {podId: "p"}) { id } gpuTypes(input: {id: "NVIDIA L4"}) { id } }`, "")
	want := `{"data":{"pod":null,"gpuTypes":[{"id":"NVIDIA L4"}]},"errors":[{"message":"Something went wrong. Please try again later or contact support.","path":["pod"],"extensions":{"code":"INTERNAL_SERVER_ERROR","status":500}}]}`
	if diff := cmp.Diff(want, string(out.Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// TestInnerCausesStayInside looks for the text of an error in the answer.
func TestInnerCausesStayInside(t *testing.T) {
	v2 := callerFunc(func(context.Context, *translate.Request) (*translate.Response, error) {
		return nil, errors.New("dial tcp 10.1.2.3:443: secret-host")
	})
	out := newRig(t).ask(t, v2, `{ myself { id } pod(input: {podId: "p"}) { id } gpuTypes { id } }`, "")
	if strings.Contains(string(out.Body), "secret-host") || out.Status != 200 {
		t.Errorf("got %d %s", out.Status, out.Body)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := graphql.DefaultConfig()
		api, err := graphql.New(cfg, translate.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		stuck := callerFunc(func(ctx context.Context, _ *translate.Request) (*translate.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for _, tt := range []struct {
			document string
			want     time.Duration
		}{
			{`{ pod(input: {podId: "p"}) { id } }`, cfg.Timeout},
			{`mutation { deployCpuPod(input: {imageName: "i", instanceId: "cpu3c-2-4"}) { id } }`, cfg.CreateTimeout},
		} {
			began := time.Now()
			out := api.Serve(t.Context(), &translate.Incoming{Account: account, Body: map[string]any{"query": tt.document}}, stuck)
			// A create looks for its result for a moment after the end.
			if took := time.Since(began); took < tt.want || took > tt.want+3*time.Second {
				t.Errorf("%s took %v, want %v", tt.document, took, tt.want)
			}
			if a := read(t, out); len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != "INTERNAL_SERVER_ERROR" {
				t.Errorf("got %s", out.Body)
			}
		}
	})
}
