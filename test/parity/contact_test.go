package parity

import (
	"encoding/json"
	"strings"
	"testing"
)

// within returns a member of the first error of GraphQL, or of the body itself.
func within(t *testing.T, body, path string) any {
	t.Helper()
	name, nested := strings.CutPrefix(path, "errors.0.extensions.")
	if !nested {
		return field(t, body, name)
	}
	var doc struct {
		Errors []struct {
			Extensions map[string]any `json:"extensions"`
		} `json:"errors"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || len(doc.Errors) == 0 {
		t.Fatalf("body %s: %v", body, err)
	}
	return doc.Errors[0].Extensions[name]
}

// contacts sets a contact line for the gateway and another for one of the organisations.
func contacts(d *door) {
	d.text = "contact: '#gpu-platform'\npublic_url: https://gw.example\n" + strings.Replace(d.text, "- id: globex\n", "- id: globex\n    contact: help@globex.example\n", 1)
}

// Every refusal shows the contact line of the organisation, or the gateway's, and the address of the decision's page, in the shape
// of its dialect: whether the gateway's chain refuses, a translator, or a policy within a translated call.
func TestRefusalsShowTheContact(t *testing.T) {
	t.Parallel()
	const page = "https://gw.example/tollgate/ui/requests/"
	eachDoor(t, func(t *testing.T, d *door) {
		for name, tt := range map[string]struct {
			request string
			// member says where the contact is, in the answer.
			member, text string
		}{
			"v2, no key":       {request("GET", "/v2/pods", "unknown", ""), "contact", "; for help, contact #gpu-platform and mention " + page},
			"v2, no operation": {request("GET", "/v2/nothing", "key_research", ""), "contact", "; for help, contact #gpu-platform and mention " + page},
			"v2, schema":       {request("POST", "/v2/pods", "key_research", `{"name":1}`), "contact", "; for help, contact #gpu-platform and mention " + page},
			"v2, budget":       {request("POST", "/v2/pods", "key_research", podL4), "contact", "; for help, contact #gpu-platform and mention " + page},
			"v2, own contact":  {request("GET", "/v2/nothing", "key_globex", ""), "contact", "; for help, contact help@globex.example and mention " + page},
			"v1, no key":       {request("GET", "/v1/pods", "unknown", ""), "contact", ""},
			"v1, a wrong body": {request("POST", "/v1/pods", "key_research", `{"gpuCount":"x"}`), "contact", ""},
			"v1, budget":       {request("POST", "/v1/pods", "key_research", v1Create), "contact", "; for help, contact #gpu-platform and mention " + page},
			"GraphQL, no key":  {request("POST", "/graphql", "unknown", deploy), "errors.0.extensions.contact", ""},
			"GraphQL, syntax":  {request("POST", "/graphql", "key_research", `{"query":"{"}`), "errors.0.extensions.contact", ""},
			"GraphQL, budget":  {request("POST", "/graphql", "key_research", deploy), "errors.0.extensions.contact", "; for help, contact #gpu-platform and mention " + page},
		} {
			a := d.ask(t, tt.request)
			want := "#gpu-platform"
			if strings.Contains(name, "own") {
				want = "help@globex.example"
			}
			if got := within(t, a.Body, tt.member); got != want || !strings.Contains(a.Body, tt.text) {
				t.Errorf("%s: %d %s: contact %v, want %s and %q", name, a.Status, a.Body, got, want, tt.text)
			}
			if got, _ := within(t, a.Body, strings.Replace(tt.member, "contact", "decision_url", 1)).(string); !strings.HasPrefix(got, page) {
				t.Errorf("%s: the page is %q, want one below %s", name, got, page)
			}
		}
	}, budgeted("{per_hour: 0.1}"), contacts)
}
