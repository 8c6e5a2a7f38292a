package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// TestWorkspaceModules: the library is there, and never the workspace's own.
func TestWorkspaceModules(t *testing.T) {
	w, err := compiler.ReadWorkspace(ownDirectory(t))
	if err == nil || !strings.Contains(err.Error(), "rules_test.rego:1:1") {
		t.Errorf("got %v, want the fault of the test that is no Rego", err)
	}
	modules := w.Modules()
	own := 0
	for file, m := range modules {
		if w.IsOwn(file) {
			own++
		} else if !strings.HasPrefix(m.Package.Path.String(), "data.tollgate.") {
			t.Errorf("%s is neither the workspace's nor the library's", file)
		}
	}
	if own != 2 || own != len(w.Sources()) || modules["rego/support/testing_test.rego"] == nil {
		t.Errorf("got %d own files of %d, %d sources; want 2 beside the library and its inputs for tests", own, len(modules), len(w.Sources()))
	}
}

// inputFor evaluates an expression of data.tollgate.testing, as decoded JSON.
func inputFor(t *testing.T, expression string) map[string]any {
	t.Helper()
	sources := compiler.Sources()
	const file = "rego/support/testing_test.rego"
	result, err := rego.New(rego.Query("data.tollgate.testing."+expression), rego.Module(file, sources[file])).Eval(t.Context())
	if err != nil || len(result) != 1 {
		t.Fatalf("%s: %d results (%v)", expression, len(result), err)
	}
	out, _ := result[0].Expressions[0].Value.(map[string]any)
	return out
}

// The inputs for tests name the operations that gateways send, one for each verb of each kind.
func TestInputsForTestsNameOperations(t *testing.T) {
	t.Parallel()
	named := inputFor(t, "operations")
	want := make(map[string][]string)
	for _, row := range slices.Concat(operation.All(), operation.Undescribed()[:1]) {
		verbs := []string{string(row.Verb)}
		if row.Verb == operation.VerbAction {
			verbs = []string{"start", "stop", "restart"}
		}
		kind := string(row.Kind)
		want[kind] = append(want[kind], verbs...)
		for _, verb := range verbs {
			of, _ := named[kind].(map[string]any)
			id, _ := of[verb].(string)
			if got, ok := operation.Lookup(id); id != "unknownRead" && (!ok || got.Kind != row.Kind || got.Verb != row.Verb) {
				t.Errorf("%s %s: operation %q, want one of that kind and verb", verb, kind, id)
			}
		}
	}
	for kind, of := range named {
		verbs, _ := of.(map[string]any)
		slices.Sort(want[kind])
		if diff := cmp.Diff(slices.Compact(want[kind]), slices.Sorted(maps.Keys(verbs))); diff != "" {
			t.Errorf("verbs of %s (-want +got):\n%s", kind, diff)
		}
	}
}

// The inputs for tests have the members of the call that a gateway sends.
func TestInputsForTestsHaveTheMembersOfCalls(t *testing.T) {
	t.Parallel()
	pod := map[string]any{"name": "a"}
	for expression, request := range map[string]policies.Request{
		`create("pod", {"name": "a"})`:      {Operation: "createPod", Body: pod},
		`update("endpoint", {"name": "a"})`: {Operation: "updateEndpoint", Body: pod},
		`start({"name": "a"})`:              {Operation: "podAction", Body: map[string]any{"action": "start"}},
		`plain("pod", "delete")`:            {Operation: "deletePod"},
		`plain("pod", "stop")`:              {Operation: "podAction", Body: map[string]any{"action": "stop"}},
		`job("run", "e1", {"input": {}})`:   {Operation: "run", Body: map[string]any{"input": map[string]any{}}},
	} {
		got := inputFor(t, expression)
		real := policies.Input{Request: request, Time: time.Unix(1e9, 0)}
		if row, _ := operation.Lookup(request.Operation); row.EffectiveVerb(request.Body).HasResultState() {
			real.Resource.After = pod
		}
		want, err := real.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got["version"]) != fmt.Sprint(want["version"]) {
			t.Errorf("%s: version %v, want %v", expression, got["version"], want["version"])
		}
		for _, section := range []string{"request", "caller", "resource", "time"} {
			given, _ := got[section].(map[string]any)
			sent, _ := want[section].(map[string]any)
			for name, value := range sent {
				have, there := given[name]
				if !there || section == "request" && slices.Contains([]string{"operation", "verb", "settles"}, name) && have != value {
					t.Errorf("%s: %s.%s is %v (%t), a gateway sends %v", expression, section, name, have, there, value)
				}
			}
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		doc := make(map[string]any)
		if err := decoder.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		if _, err := policyinput.ParseRecorded(doc, nil); err != nil {
			t.Errorf("%s cannot be read: %v", expression, err)
		}
	}
}
