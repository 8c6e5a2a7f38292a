package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// legacyDoor asks one gateway in the words of the retired interfaces.
type legacyDoor struct {
	*testing.T
	*door
}

// v1 asks and returns the decoded answer, which must have the status.
func (d legacyDoor) v1(method, path, body string, status int) map[string]any {
	d.Helper()
	a := d.ask(d.T, request(method, "/v1"+path, "key_platform", body))
	if a.Status != status {
		d.Fatalf("%s %s: %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	if lost := a.Header.Values("X-Legacy-Warning"); len(lost) > 0 {
		d.Errorf("%s %s warns: %v", method, path, lost)
	}
	var m map[string]any
	if a.Body != "" {
		if err := json.Unmarshal([]byte(a.Body), &m); err != nil {
			d.Fatalf("%s %s: %v in %s", method, path, err, a.Body)
		}
	}
	return m
}

// graphql asks and returns the first member of data; errors fail the test.
func (d legacyDoor) graphql(document string) map[string]any {
	d.Helper()
	a := d.ask(d.T, request(http.MethodPost, "/graphql", "key_platform", fmt.Sprintf(`{"query":%q}`, document)))
	var out struct {
		Data   map[string]map[string]any
		Errors []any
	}
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil || len(out.Errors) > 0 {
		d.Fatalf("%s: %s (%v)", document, a.Body, err)
	}
	if lost := a.Header.Values("X-Legacy-Warning"); len(lost) > 0 {
		d.Errorf("%s warns: %v", document, lost)
	}
	for _, value := range out.Data {
		return value
	}
	return nil
}

func eachLegacyDoor(t *testing.T, body func(d legacyDoor)) {
	t.Helper()
	eachDoor(t, func(t *testing.T, d *door) { body(legacyDoor{t, d}) })
}

// A type that is excluded from a pool that was not asked for means nothing: the
// platform would refuse it, the text is kept for reads.
func TestExclusionsOfAnotherPool(t *testing.T) {
	t.Parallel()
	eachLegacyDoor(t, func(d legacyDoor) {
		const sent = "ADA_24,-NVIDIA L4,-NVIDIA H100 80GB HBM3"
		made := d.graphql(`mutation { saveEndpoint(input: {name: "e", gpuIds: "` + sent + `", template: {imageName: "img:1"}}) { id gpuIds } }`)
		if made["gpuIds"] != sent {
			d.Errorf("made with gpuIds %v, want %q", made["gpuIds"], sent)
		}
		id := fmt.Sprint(made["id"])
		read := d.graphql(`{ myself { endpoint(id: "` + id + `") { gpuIds } } }`)
		if got := read["endpoint"]; !cmp.Equal(got, any(map[string]any{"gpuIds": sent})) {
			d.Errorf("read back %v, want gpuIds %q", got, sent)
		}
		if got := fmt.Sprint(d.asPlatform(d.T, "GET", "/v2/serverless/"+id, "")["gpu"]); strings.Contains(got, "H100") {
			d.Errorf("the platform has %s, want nothing about another pool", got)
		}
		again := d.graphql(`mutation { saveEndpoint(input: {id: "` + id + `", gpuIds: "` + sent + `"}) { gpuIds } }`)
		if again["gpuIds"] != sent {
			d.Errorf("changed to gpuIds %v, want %q", again["gpuIds"], sent)
		}
	})
}

// An endpoint that vanished past the old interfaces holds no template: its binding
// goes with the first 404.
func TestEndpointsThatVanished(t *testing.T) {
	for name, see := range map[string]func(d legacyDoor, template, endpoint string){
		"v1 delete": func(d legacyDoor, template, _ string) {
			d.v1("DELETE", "/templates/"+template, "", http.StatusNoContent)
		},
		"v1 change": func(d legacyDoor, template, _ string) {
			d.v1("PATCH", "/templates/"+template, `{"imageName":"img:2"}`, http.StatusOK)
			d.v1("PATCH", "/templates/"+template, `{"imageName":"img:3"}`, http.StatusOK)
		},
		"v1 read": func(d legacyDoor, template, endpoint string) {
			d.v1("GET", "/endpoints/"+endpoint, "", http.StatusNotFound)
			d.v1("DELETE", "/templates/"+template, "", http.StatusNoContent)
		},
		"GraphQL delete": func(d legacyDoor, _, _ string) {
			d.graphql(`mutation { deleteTemplate(templateName: "worker") }`)
		},
		"GraphQL change": func(d legacyDoor, template, _ string) {
			d.graphql(`mutation { saveTemplate(input: {id: "` + template + `", imageName: "img:2"}) { id } }`)
			read := d.graphql(`{ podTemplate(id: "` + template + `") { boundEndpointId } }`)
			if read["boundEndpointId"] != nil {
				d.Errorf("boundEndpointId = %v, want none", read["boundEndpointId"])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachLegacyDoor(t, func(d legacyDoor) {
				template := fmt.Sprint(d.v1("POST", "/templates", `{"name":"worker","imageName":"img:1","isServerless":true}`, http.StatusOK)["id"])
				made := d.v1("POST", "/endpoints", `{"templateId":"`+template+`","name":"e","gpuTypeIds":["NVIDIA L4"]}`, http.StatusOK)
				endpoint := fmt.Sprint(made["id"])
				bound := d.ask(d.T, request("DELETE", "/v1/templates/"+template, "key_platform", ""))
				if want := "template is bound to endpoint " + endpoint; bound.Status != 400 || !strings.Contains(bound.Body, want) {
					d.Errorf("delete while it is bound: %d %s, want 400 %s", bound.Status, bound.Body, want)
				}
				if a := d.ask(d.T, request("DELETE", "/v2/serverless/"+endpoint, "key_platform", "")); a.Status != 204 {
					d.Fatalf("delete by v2: %d %s", a.Status, a.Body)
				}
				see(d, template, endpoint)
			})
		})
	}
}

// A variable that the platform injected and the caller then set is the caller's:
// shown, replaced and removed like any other.
func TestVariablesTheCallerTookOver(t *testing.T) {
	t.Parallel()
	env := func(d legacyDoor, id string) map[string]any {
		vars, _ := d.asPlatform(d.T, "GET", "/v2/pods/"+id, "")["env"].(map[string]any)
		return vars
	}
	eachLegacyDoor(t, func(d legacyDoor) {
		d.asPlatform(d.T, "PUT", "/v2/account/ssh-keys", `{"keys":["ssh-ed25519 AAAA me"]}`)
		for name, edit := range map[string]func(id string, vars map[string]string) any{
			"v1": func(id string, vars map[string]string) any {
				body, err := json.Marshal(map[string]any{"env": vars})
				if err != nil {
					d.Fatal(err)
				}
				d.v1("PATCH", "/pods/"+id, string(body), http.StatusOK)
				return d.v1("GET", "/pods/"+id, "", http.StatusOK)["env"]
			},
			"GraphQL": func(id string, vars map[string]string) any {
				var pairs []string
				for key, value := range vars {
					pairs = append(pairs, fmt.Sprintf("{key: %q, value: %q}", key, value))
				}
				slices.Sort(pairs)
				d.graphql(`mutation { podEditJob(input: {podId: "` + id + `", env: [` + strings.Join(pairs, ", ") + `]}) { id } }`)
				return d.v1("GET", "/pods/"+id, "", http.StatusOK)["env"]
			},
		} {
			made := d.v1("POST", "/pods", `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"env":{"A":"1"},"ports":["22/tcp"]}`, http.StatusCreated)
			id := fmt.Sprint(made["id"])
			if got := env(d, id)["PUBLIC_KEY"]; got == nil {
				d.Fatalf("%s: the platform injected nothing: %v", name, env(d, id))
			}
			for _, vars := range []map[string]string{{"A": "1", "PUBLIC_KEY": "mine"}, {"PUBLIC_KEY": "mine too"}, {"A": "2"}} {
				want := map[string]any{}
				for key, value := range vars {
					want[key] = value
				}
				if diff := cmp.Diff(any(want), edit(id, vars)); diff != "" {
					d.Errorf("%s: shown after the edit (-want +got):\n%s", name, diff)
				}
				if diff := cmp.Diff(want, env(d, id)); diff != "" {
					d.Errorf("%s: on the platform after the edit (-want +got):\n%s", name, diff)
				}
			}
		}
	})
}
