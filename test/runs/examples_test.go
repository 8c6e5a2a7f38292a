package runs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// example is an operation whose body a description has an example of.
type example struct{ id, method, path, body string }

// examples lists those of a description, those that make something first.
func (r *rig) examples(t *testing.T, target string) []example {
	t.Helper()
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]map[string]json.RawMessage
	}
	a := r.ask(t, "GET", target, "", "")
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil || a.Status != 200 {
		t.Fatalf("%s: %d %v", target, a.Status, err)
	}
	var all []example
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var op struct {
				OperationID string
				RequestBody *struct {
					Content map[string]struct{ Example json.RawMessage }
				}
			}
			if err := json.Unmarshal(raw, &op); err != nil || op.RequestBody == nil {
				continue // what all its methods share is a list
			}
			e := example{op.OperationID, strings.ToUpper(method), strings.TrimSuffix(doc.Servers[0].URL, "/") + path, string(op.RequestBody.Content["application/json"].Example)}
			if e.body == "" {
				t.Errorf("%s: %s has no example", target, e.id)
			}
			all = append(all, e)
		}
	}
	rank := func(e example) int { return strings.Count(e.path, "{") }
	slices.SortFunc(all, func(a, b example) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(b.id, a.id) // templates before endpoints
	})
	return all
}

// The examples of the reference pass as they are: each operation with a body has an example, which
// the platform carries out.
func TestExamplesOfTheReferencePass(t *testing.T) {
	r := newRig(t, top("run: {batches: true}\ncatalog: {sandbox_rate: 0.10}"), func(r *rig) {
		r.text = strings.Replace(strings.Replace(r.text, "POLICIES", "model_paths: [responses]", 1), "roles: [operator], limits: {minute: 600}", "roles: [admin], limits: {minute: 600}", 1)
	})
	ids := make(map[string]string) // by the path of the collection
	for _, target := range []string{"/v2/openapi.json", "/v1/openapi.json"} {
		for _, e := range r.examples(t, target) {
			path := e.path
			if i := strings.Index(path, "/{"); i >= 0 {
				collection := path[:i]
				path = collection + "/" + ids[collection] + path[strings.Index(path, "}")+1:]
			}
			a := r.ask(t, e.method, path, "key_research", strings.Replace(e.body, "TEMPLATE_ID", ids["/v1/templates"], 1))
			if a.Status < 200 || a.Status > 299 {
				t.Errorf("%s: %s %s %s: %d %s", target, e.method, path, e.body, a.Status, a.Body)
				continue
			}
			if e.method == "POST" && e.path == path {
				ids[path] = fmt.Sprint(decoded(t, a.Body)["id"])
			}
			if e.id == "createSandbox" { // commands need one that runs
				if err := r.platform.SetSandboxState(ids[path], "RUNNING"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	endpoint, job, batch := r.endpoint(t), "", ""
	for _, e := range r.examples(t, "/docs/run.json") {
		path := strings.NewReplacer("{id}", endpoint, "{jobId}", job, "{batchId}", batch, "{path}", "responses").Replace(e.path)
		a := r.ask(t, e.method, path, "key_research", strings.Replace(e.body, "the-model", "llm", 1))
		// retry is for jobs that have failed, cancel for those that have not ended
		if passed := a.Status >= 200 && a.Status < 300 || strings.Contains(a.Body, "is not possible"); !passed {
			t.Errorf("%s %s %s: %d %s", e.method, path, e.body, a.Status, a.Body)
			continue
		}
		switch e.id {
		case "run":
			job = fmt.Sprint(decoded(t, a.Body)["id"])
		case "createBatch":
			batch = fmt.Sprint(decoded(t, a.Body)["id"])
		}
	}
}
