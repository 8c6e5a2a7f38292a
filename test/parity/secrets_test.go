package parity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// secret creates a secret and returns its id.
func (d *door) secret(t *testing.T, key, name string) string {
	t.Helper()
	a := d.ask(t, request("POST", "/v2/account/secrets", key, `{"name":"`+name+`","value":"a value"}`))
	if a.Status != 201 {
		t.Fatalf("secret %s: %d %s, want 201", name, a.Status, a.Body)
	}
	return fmt.Sprint(field(t, a.Body, "id"))
}

// A secret belongs to the key that created it: other teams neither see nor change it, and learn of it only that its name is taken.
func TestSecretsHaveOwners(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		theirs, mine := d.secret(t, "key_research", "theirs"), d.secret(t, "key_other", "mine")
		for query, want := range map[string]string{"": mine, "?name=MINE": mine, "?name=theirs": "", "?name=THEIRS": "", "?name=absent": ""} {
			a := d.ask(t, request("GET", "/v2/account/secrets"+query, "key_other", ""))
			if a.Status != 200 || strings.Contains(a.Body, theirs) || strings.Count(a.Body, `"id"`) != min(1, len(want)) || !strings.Contains(a.Body, want) {
				t.Errorf("list %s: %d %s, want only the secret %q", query, a.Status, a.Body, want)
			}
		}
		taken := d.ask(t, request("POST", "/v2/account/secrets", "key_other", `{"name":"theirs","value":"v"}`))
		own := d.ask(t, request("POST", "/v2/account/secrets", "key_other", `{"name":"mine","value":"v"}`))
		if taken.Status != 409 || comparable(taken).Body != comparable(own).Body || !strings.Contains(taken.Body, "the name is already used") {
			t.Errorf("a name that another team has: %d %s, one of its own: %d %s; want the same 409", taken.Status, taken.Body, own.Status, own.Body)
		}
		asked := len(d.platform.CallsTo("createSecret")) // a platform may tell letter case apart
		folded := d.ask(t, request("POST", "/v2/account/secrets", "key_other", `{"name":"Theirs","value":"v"}`))
		if folded.Status != 409 || comparable(folded).Body != comparable(taken).Body || len(d.platform.CallsTo("createSecret")) != asked {
			t.Errorf("the name in another letter case: %d %s, want the same 409 without the platform", folded.Status, folded.Body)
		}
		for _, call := range []struct{ method, body string }{{"GET", ""}, {"PATCH", `{"value":"v"}`}, {"DELETE", ""}} {
			if a := d.ask(t, request(call.method, "/v2/account/secrets/"+theirs, "key_other", call.body)); a.Status != 404 {
				t.Errorf("%s of a foreign secret: %d %s, want 404", call.method, a.Status, a.Body)
			}
			if a := d.ask(t, request(call.method, "/v2/account/secrets/"+mine, "key_other", call.body)); a.Status/100 != 2 {
				t.Errorf("%s of an own secret: %d %s, want success", call.method, a.Status, a.Body)
			}
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// users are the calls that make use of a secret: a resource in each dialect whose variable has the text PLACEHOLDER.
var users = map[string]struct{ method, path, body string }{
	"v2 pod":           {"POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"},"env":{"A":"x PLACEHOLDER"}}`},
	"v2 cluster":       {"POST", "/v2/clusters", `{"name":"c","image":"i:1","type":"TRAINING","compute":{"gpuTypeId":"NVIDIA A100-SXM4-80GB","gpuCountPerPod":1,"podCount":2},"env":{"A":"PLACEHOLDER"}}`},
	"v2 endpoint":      {"POST", "/v2/serverless", `{"name":"e","image":"i:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"env":{"A":"PLACEHOLDER"}}`},
	"v2 template":      {"POST", "/v2/templates", `{"name":"t2","image":"i:1","env":{"A":"PLACEHOLDER"}}`},
	"v2 args":          {"POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"},"args":"run PLACEHOLDER"}`},
	"v2 name":          {"POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"},"env":{"PLACEHOLDER":"x"}}`},
	"sandbox":          {"POST", "/v2/sandboxes", `{"imageName":"i:1","env":{"A":"PLACEHOLDER"}}`},
	"secret":           {"POST", "/v2/account/secrets", `{"name":"copy","value":"x PLACEHOLDER"}`},
	"v1 pod":           {"POST", "/v1/pods", `{"name":"a","imageName":"i:1","gpuTypeIds":["NVIDIA L4","NVIDIA GeForce RTX 4090"],"env":{"A":"PLACEHOLDER"}}`},
	"v1 template":      {"POST", "/v1/templates", `{"name":"t1","imageName":"i:1","env":{"A":"PLACEHOLDER"}}`},
	"graphql pod":      {"", "", `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "i:1", cloudType: SECURE, env: [{key: "A", value: "PLACEHOLDER"}]}) { id } }`},
	"graphql template": {"", "", `mutation { saveTemplate(input: {name: "tg", imageName: "i:1", dockerArgs: "", containerDiskInGb: 10, volumeInGb: 0, env: [{key: "A", value: "PLACEHOLDER"}]}) { id } }`},
}

// Resources may refer to the secrets that their caller may read. A reference to another secret has the refusal of one to no secret.
func TestReferencesToSecrets(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.secret(t, "key_research", "theirs")
		mine := d.secret(t, "key_other", "mine")
		d.secret(t, "key_platform", "ours") // of the same team
		ask := func(key, what, placeholder string) answer {
			u := users[what]
			body := strings.ReplaceAll(u.body, "PLACEHOLDER", placeholder)
			if u.path == "" {
				return d.ask(t, graphqlBy(key, body))
			}
			return d.ask(t, request(u.method, u.path, key, body))
		}
		refused := func(what, placeholder string) string {
			before := len(d.platform.Calls())
			a := ask("key_other", what, placeholder)
			ok := a.Status == 403 || strings.HasPrefix(what, "graphql") && a.Status == 200 && strings.Contains(a.Body, `"errors"`)
			if !ok || !strings.Contains(a.Body, "refers to") {
				t.Errorf("%s with %s: %d %s, want a refusal that says why", what, placeholder, a.Status, a.Body)
			}
			for _, c := range d.platform.Calls()[before:] {
				if c.Method != "GET" {
					t.Errorf("%s with %s: the platform was sent %s %s", what, placeholder, c.Method, c.Path)
				}
			}
			return comparable(a).Body
		}
		for what := range users {
			foreign, absent := refused(what, "{{ ACME_SECRET_theirs }}"), refused(what, "{{ ACME_SECRET_absent }}")
			if strings.ReplaceAll(foreign, "theirs", "NAME") != strings.ReplaceAll(absent, "absent", "NAME") {
				t.Errorf("%s: of a foreign secret: %s\nof no secret: %s\nwant the same", what, foreign, absent)
			}
			for _, placeholder := range []string{"{{ACME_SECRET_mine}}", "{{ acme_secret_OURS }} {{ ACME_SECRET_mine }}", "{{ messages }}"} {
				if a := ask("key_other", what, placeholder); a.Status/100 != 2 || strings.Contains(a.Body, `"errors"`) {
					if !strings.Contains(a.Body, "environment") && !strings.Contains(a.Body, "already") {
						t.Errorf("%s with %s: %d %s, want success", what, placeholder, a.Status, a.Body)
					}
				}
			}
		}
		for _, placeholder := range []string{"{{ ACME_SECRET_mine }}{{acme_Secret_Theirs}}", "{{ secrets.mine }}", "{{{ ACME_SECRET_theirs", "{{\tACME_SECRET_ mine }}"} {
			refused("v2 pod", strings.ReplaceAll(placeholder, "\t", `\t`))
		}
		pod := fmt.Sprint(field(t, ask("key_other", "v2 pod", "nothing").Body, "id"))
		adopted := func(secret string) string {
			id := fmt.Sprint(d.asPlatform(t, "POST", "/v2/templates", `{"name":"of `+secret+`","image":"i:1","env":{"A":"{{ ACME_SECRET_`+secret+` }}"}}`)["id"])
			if code := d.asOperator(t, "POST", "/admin/spend/adopt?org=acme&id="+id+"&team=platform", "", nil); code != 200 {
				t.Fatalf("adopt the template: %d", code)
			}
			return id
		}
		template, allowed := adopted("theirs"), adopted("mine")
		for _, tt := range []struct {
			method, path, body string
			status             int
		}{
			{"PATCH", "/v2/pods/" + pod, `{"env":{"A":"{{ ACME_SECRET_theirs }}"}}`, 403},
			{"PATCH", "/v2/pods/" + pod, `{"env":{"A":"{{ ACME_SECRET_mine }}"}}`, 200},
			{"PATCH", "/v2/account/secrets/" + mine, `{"value":"{{ ACME_SECRET_theirs }}"}`, 403},
			{"PATCH", "/v2/account/secrets/" + mine, `{"value":"{{ ACME_SECRET_ours }}"}`, 200},
			{"PATCH", "/v2/templates/" + template, `{"name":"b"}`, 403},
			{"POST", "/v2/pods", `{"name":"a","gpu":{"id":"NVIDIA L4"},"templateId":"` + template + `"}`, 403},
			{"POST", "/v2/pods", `{"name":"a","gpu":{"id":"NVIDIA L4"},"templateId":"` + template + `","env":{"A":"x"}}`, 201},
			{"POST", "/v2/pods", `{"name":"a","gpu":{"id":"NVIDIA L4"},"templateId":"` + allowed + `"}`, 201},
			{"POST", "/v2/sandboxes", `{"templateId":"` + template + `"}`, 403},
			{"POST", "/v2/sandboxes", `{"templateId":"` + template + `","env":{"B":"x"}}`, 403},
			{"POST", "/v2/sandboxes", `{"templateId":"` + template + `","env":{"A":"x"}}`, 201},
			{"POST", "/v2/sandboxes", `{"templateId":"` + allowed + `"}`, 201},
			{"POST", "/v2/sandboxes", `{"templateId":"` + allowed + `","env":{"B":"{{ ACME_SECRET_theirs }}"}}`, 403},
			{"POST", "/v2/clusters", fmt.Sprintf(byTemplate, template), 403},
			{"POST", "/v2/clusters", fmt.Sprintf(byTemplate, allowed), 201},
		} {
			if a := d.ask(t, request(tt.method, tt.path, "key_other", tt.body)); a.Status != tt.status {
				t.Errorf("%s %s %s: %d %s, want %d", tt.method, tt.path, tt.body, a.Status, a.Body, tt.status)
			}
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// A refused placeholder in a command is located in the member that the caller sent, by its name in the caller's API, and only there.
func TestPlaceOfSecretsInCommands(t *testing.T) {
	t.Parallel()
	const (
		v2  = `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"},`
		one = `{"name":"t1","imageName":"i:1",`
		pod = `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "i:1", cloudType: SECURE, dockerArgs: "run {{ ACME_SECRET_x }}"}) { id } }`
	)
	eachDoor(t, func(t *testing.T, d *door) {
		template := fmt.Sprint(field(t, d.ask(t, request("POST", "/v2/templates", "key_other", `{"name":"t","image":"i:1","args":"echo"}`)).Body, "id"))
		for _, tt := range []struct {
			path, body string
			places     []string
		}{
			{"/v2/pods", v2 + `"args":"run {{ ACME_SECRET_x }}"}`, []string{"$.args"}},
			{"/v2/pods", v2 + `"args":"run {\\{ACME_SECRET_x}}"}`, []string{"$.args"}}, // a placeholder only after the shell's quotes
			{"/v2/pods", v2 + `"cmd":["run","{{ ACME_SECRET_x }}"]}`, []string{"$.cmd.1"}},
			{"/v2/pods", v2 + `"entrypoint":["{{ ACME_SECRET_x }}"]}`, []string{"$.entrypoint.0"}},
			{"/v2/pods", v2 + `"entrypoint":["{{","ACME_SECRET_x","}}"]}`, []string{"$.entrypoint"}}, // a placeholder only in the joined command
			{"/v2/pods", v2 + `"entrypoint":["{{ ACME_SECRET_x }}"],"cmd":["{{ ACME_SECRET_y }}"]}`, []string{"$.cmd.0", "$.entrypoint.0"}},
			{"/v2/pods", `{"name":"a","gpu":{"id":"NVIDIA L4"},"templateId":"` + template + `","cmd":["{{ ACME_SECRET_x }}"]}`, []string{"$.cmd.0"}},
			{"/v1/pods", one + `"gpuTypeIds":["NVIDIA L4"],"dockerStartCmd":["run","{{ ACME_SECRET_x }}"]}`, []string{"dockerStartCmd"}},
			{"/v1/pods", one + `"gpuTypeIds":["NVIDIA L4"],"dockerEntrypoint":["{{ ACME_SECRET_x }}"]}`, []string{"dockerEntrypoint"}},
			{"/v1/pods", one + `"gpuTypeIds":["NVIDIA L4"],"dockerArgs":"run {{ ACME_SECRET_x }}"}`, []string{"dockerArgs"}},
			{"/v1/templates", one + `"dockerStartCmd":["{{ ACME_SECRET_x }}"]}`, []string{"dockerStartCmd"}},
			{"/v1/templates", one + `"dockerEntrypoint":["{{ ACME_SECRET_x }}"]}`, []string{"dockerEntrypoint"}},
			{"", pod, []string{"dockerArgs"}},
		} {
			in := graphqlBy("key_other", pod)
			if tt.path != "" {
				in = request("POST", tt.path, "key_other", tt.body)
			}
			a := d.ask(t, in)
			found := regexp.MustCompile(`[\w.$]+: refers to`).FindAllString(a.Body, -1)
			var want []string
			for _, place := range tt.places {
				want = append(want, place+": refers to")
			}
			slices.Sort(found)
			if found = slices.Compact(found); !slices.Equal(found, want) {
				t.Errorf("%s %s: %d %s, want refusals of %v", tt.path, tt.body, a.Status, a.Body, tt.places)
			}
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// A change of a secret that fails says that the value may have been replaced, if it came with a description.
func TestHalfAChangeOfASecret(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.secret(t, "key_research", "s")
		for body, want := range map[string]string{
			`{"value":"v","description":"d"}`: "the value may have changed",
			`{"description":"d"}`:             "withheld",
		} {
			d.platform.AddFault(platform.Fault{Kind: platform.FaultHalf, Operation: "updateSecret", Status: 500, Times: 1})
			if a := d.ask(t, request("PATCH", "/v2/account/secrets/"+id, "key_research", body)); a.Status != 500 || !strings.Contains(a.Body, want) {
				t.Errorf("%s: %d %s, want 500 with %q", body, a.Status, a.Body, want)
			}
		}
	})
}

// The platform reserves names that begin with its own, in any letter case.
func TestReservedNamesOfSecrets(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for name, status := range map[string]int{"acmeX": 400, "ACME": 400, "Acme_token": 400, "token_acme": 201, "acm": 201} {
			a := d.ask(t, request("POST", "/v2/account/secrets", "key_research", `{"name":"`+name+`","value":"v"}`))
			if a.Status != status || status == 400 && !strings.Contains(a.Body, "$.name: must not begin with Acme") {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, status)
			}
		}
		for _, c := range d.platform.Calls() {
			if strings.Contains(strings.ToLower(string(c.Body)), `"acme`) {
				t.Errorf("the platform was sent %s", c.Body)
			}
		}
	}, func(d *door) { d.text += "legacy: {brand: Acme}\n" })
}
