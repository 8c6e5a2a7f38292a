package parity

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Keys of other origins, without a checksum. Nobody calls with unusedKey; usedKey makes the calls.
const (
	usedKey   = "rpa_Zx9kQ2vLm4TgH8sWb1YcE6dN3pRuJ5aF"
	unusedKey = "sk-Ab_cD9xYz77qLmN.4e2f+11/q="
)

// withImportedKeys adds the keys.
func withImportedKeys(d *door) {
	d.text = strings.Replace(d.text, "    keys:\n", `    unknown: {members: forward, reads: forward}
    labels: [{name: job}]
    keys:
      - {id: imported, team: platform, sha256: `+identity.DigestOf(usedKey).String()+`, roles: [admin], limits: {minute: 60000, hour: 300000, day: 500000}}
      - {id: idle, team: platform, sha256: `+identity.DigestOf(unusedKey).String()+`}
`, 1)
}

// A key without a checksum does not reach the platform in a longer text either, wherever that is in a request: of the sender's key at any place of
// the text, of any other key between characters that are not letters or digits.
func TestKeysInLongerTextsStayInside(t *testing.T) {
	t.Parallel()
	const pod = `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}%s}`
	forms := map[string][]string{
		"%s":     {"%s", "Bearer %s", "--key=%s", `{\"token\":\"%s\"}`, "https://h.example/%s/x?k=1", "https://h.example/?k=%s&l=2", "registry.example/team/%s:v1", "user:%s@host", "KEY=%s\\nB=2", "a,%s,b"},
		"glued":  {"%s", "prefix9%s9suffix"},
		"header": {"%s", "Bearer %s", "k=%s"},
	}
	calls := []struct{ name, method, target, body, header, forms string }{
		{"name", "POST", "/v2/pods", `{"name":"%s","image":"i:1","gpu":{"id":"NVIDIA L4"}}`, "", "%s"},
		{"image", "POST", "/v2/pods", `{"name":"a","image":"%s","gpu":{"id":"NVIDIA L4"}}`, "", "%s"},
		{"args", "POST", "/v2/pods", fmt.Sprintf(pod, `,"args":"%s"`), "", "%s"},
		{"cmd", "POST", "/v2/pods", fmt.Sprintf(pod, `,"cmd":["sh","-c","%s"]`), "", "%s"},
		{"env", "POST", "/v2/pods", fmt.Sprintf(pod, `,"env":{"A":"b","K":"%s"}`), "", "%s"},
		{"env name", "POST", "/v2/pods", fmt.Sprintf(pod, `,"env":{"%s":"b"}`), "", "%s"},
		{"member name", "POST", "/v2/pods", fmt.Sprintf(pod, `,"%s":"b"`), "", "%s"},
		{"unknown member", "POST", "/v2/pods", fmt.Sprintf(pod, `,"brandNewOption":{"deep":["%s"]}`), "", "%s"},
		{"mount path", "POST", "/v2/pods", fmt.Sprintf(pod, `,"mounts":{"persistent":{"size":20,"path":"/%s"}}`), "", "%s"},
		{"update", "PATCH", "/v2/pods/p1", `{"name":"%s"}`, "", "%s"},
		{"registry", "POST", "/v2/registries", `{"name":"r","username":"u","password":"%s"}`, "", "%s"},
		{"readme", "POST", "/v2/templates", `{"name":"t","image":"i:1","readme":"# %s"}`, "", "%s"},
		{"endpoint", "POST", "/v2/serverless", `{"name":"e","image":"i:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"env":{"K":"%s"}}`, "", "%s"},
		{"v1 env", "POST", "/v1/pods", `{"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA L4"],"env":{"K":"%s"}}`, "", "%s"},
		{"v1 image", "POST", "/v1/pods", `{"name":"b","imageName":"%s","gpuTypeIds":["NVIDIA L4"]}`, "", "%s"},
		{"v1 command", "POST", "/v1/pods", `{"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA L4"],"dockerStartCmd":["%s"]}`, "", "%s"},
		{"v1 path", "GET", "/v1/pods/%s", "", "", "%s"},
		{"path", "GET", "/v2/pods/%s", "", "", "%s"},
		{"unknown path", "GET", "/v2/notebooks/%s", "", "", "%s"},
		{"query", "GET", "/v2/catalog/gpus?ids=%s", "", "", "%s"},
		{"query name", "GET", "/v2/pods?%s=1", "", "", "%s"},
		{"labels", "POST", "/v2/pods", fmt.Sprintf(pod, ""), "X-Tollgate-Labels: job=%s", "header"},
		{"last event", "GET", "/v2/pods/p1/logs", "", "Last-Event-ID: %s", "header"},
		{"request id", "GET", "/v2/pods", "", "X-Request-Id: %s", "header"},
		{"request id in longer text", "GET", "/v2/pods", "", "X-Request-Id: job-%s.2", "%s"},
		{"program", "GET", "/v2/pods", "", "User-Agent: job/1 (%s)", "header"},
		{"GraphQL env", "POST", "/graphql", `{"query":"mutation($k: String) { saveTemplate(input: {name: \"t\", imageName: \"i\", dockerArgs: \"\", containerDiskInGb: 5, volumeInGb: 0, env: [{key: \"K\", value: $k}]}) { id } }","variables":{"k":"%s"}}`, "", "%s"},
		{"GraphQL id", "POST", "/graphql", `{"query":"query($k: String) { pod(input: {podId: $k}) { id } }","variables":{"k":"%s"}}`, "", "%s"},
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, c := range calls {
			for _, key := range []string{usedKey, unusedKey} {
				all := forms[c.forms]
				if key == usedKey {
					all = slices.Concat(all, forms["glued"])
				}
				for _, form := range all {
					text := fmt.Sprintf(form, key)
					target, body, header := c.target, strings.ReplaceAll(c.body, "%s", text), []string(nil)
					if strings.Contains(target, "%s") {
						if strings.ContainsAny(text, `\ ?/{`) || key == unusedKey {
							text = strings.NewReplacer("/", "%2F", "?", "%3F", " ", "%20", `\"`, "%22", "{", "%7B", "}", "%7D", `\n`, "%0A", "+", "%2B", "=", "%3D", "&", "%26").Replace(text)
						}
						target = strings.Replace(target, "%s", text, 1)
					}
					if c.header != "" {
						header = []string{strings.Replace(c.header, "%s", text, 1)}
					}
					a := d.ask(t, request(c.method, target, usedKey, body, header...))
					a.Header.Del("Link") // of a v1 call, the same path in v2
					if told := fmt.Sprint(a.Header, a.Body); strings.Contains(told, usedKey) || strings.Contains(told, unusedKey) {
						t.Errorf("%s, %s: the answer has the key: %d %s", c.name, form, a.Status, told)
					}
					for _, call := range d.platform.Calls() {
						if sent := fmt.Sprintf("%s %s %s %v %s", call.Method, unescape(call.Path), unescape(call.RawQuery), call.Header, call.Body); strings.Contains(sent, usedKey) || strings.Contains(sent, unusedKey) {
							t.Fatalf("%s, %s: the platform was sent a key: %s", c.name, form, sent)
						}
					}
					if c.name == "env" && (a.Status != http.StatusCreated || !strings.Contains(a.Header.Get("X-Tollgate-Warning"), "removed from env because of a gateway key or token: K")) {
						t.Errorf("%s, %s: %d %s, want 201 and a warning", c.name, form, a.Status, a.Body)
					}
					if (c.name == "args" || c.name == "image" || c.name == "unknown member" || c.name == "labels") && (a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, "contains a gateway key")) {
						t.Errorf("%s, %s: %d %s, want 422", c.name, form, a.Status, a.Body)
					}
				}
			}
		}
		if logs := d.logs.String(); strings.Contains(logs, usedKey) || strings.Contains(logs, unusedKey) {
			t.Error("the log has a key")
		}
		if kept := d.redis.Dump(); strings.Contains(kept, usedKey) || strings.Contains(kept, unusedKey) {
			t.Error("the store has a key")
		}
	}, withImportedKeys)
}

// unescape decodes a part of a request target.
func unescape(text string) string {
	return strings.NewReplacer("%2F", "/", "%3F", "?", "%20", " ", "%22", `"`, "%7B", "{", "%7D", "}", "%0A", "\n", "%2B", "+", "%3D", "=", "%26", "&").Replace(text)
}
