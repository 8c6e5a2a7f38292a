package parity

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// hush is in every value of a secret in TestSecretValuesStayInside.
const hush = "HUSHcanary42"

// assigned lets the callers of acme create secrets by assigned names alone, and others with an approval.
const assigned = `
    policies:
      - policy: env_rules
        approvable: true
        params: {secrets: [hushed, half, lost]}`

// The value of a secret reaches the platform and nothing else: not Redis, in any command since the start, nor logs, traces, metrics,
// decisions, explanations, the audit log, pages or answers, whether the call succeeds, is refused or fails.
func TestSecretValuesStayInside(t *testing.T) {
	t.Parallel()
	url, traces := receiver(t)
	eachDoor(t, func(t *testing.T, d *door) {
		dir := t.TempDir()
		server := redistest.Run(t, "--appendonly", "yes", "--appendfsync", "always")
		d.store = server.Addr()
		d.text = strings.Replace(d.text, "\n    policies:", assigned, 1)
		d.text = fmt.Sprintf("telemetry: {sample_ratio: 1, otlp: {endpoint: %q, logs: true, metrics: 1m}}\naudit: {file: {path: %s/audit.log}}\ndecisions: {inputs: true, file: {path: %s/decisions.log}}\n", url, dir, dir) + d.text
		d.open(t)

		places := d.keepSecrets(t)
		if err := d.providers.Shutdown(t.Context()); err != nil {
			t.Errorf("flush: %v", err)
		}
		data := redistest.Client(t, d.store).ConfigGet(t.Context(), "dir").Val()["dir"]
		world.Until(t, "the decisions are written", func() bool { return strings.Contains(textBelow(t, dir), `"hushed"`) })
		places["files"], places["Redis"] = textBelow(t, dir), textBelow(t, data)
		places["logs"], places["traces"], places["metrics"] = d.logs.String(), traces.String(), d.page(t, "/metrics")
		console := httptest.NewServer(d.gateway.AdminHandler())
		defer console.Close()
		for _, target := range []string{
			"/admin/decisions?org=acme", "/admin/approvals?org=acme", "/admin/spend/resources?org=acme", "/admin/audit/log?org=acme",
			"/ui/", "/ui/requests?org=acme", "/ui/approvals?org=acme", "/ui/resources?org=acme", "/ui/audit?org=acme",
		} {
			places[target] = world.Ask(t, console.Listener.Addr().String(), "GET "+target+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").Body
		}
		for _, name := range []string{"files", "Redis", "/admin/approvals?org=acme", "/ui/resources?org=acme", "/admin/spend/resources?org=acme"} {
			if !strings.Contains(places[name], "hush") {
				t.Errorf("%s does not have the name of a secret: the search proves nothing", name)
			}
		}
		plain := filter.Digest("/v2/account/secrets", "", `{"name":"hushed","value":"`+hush+`"}`, "")
		for place, text := range places {
			for what, secret := range map[string]string{"value": hush, "digest": plain} {
				if i := strings.Index(text, secret); i >= 0 {
					t.Errorf("the %s of a secret is in %s: ...%s...", what, place, text[max(0, i-200):min(len(text), i+40)])
				}
			}
			if text == "" {
				t.Errorf("nothing in %s: the search proves nothing", place)
			}
		}
		sent := 0
		for _, c := range d.platform.Calls() {
			if strings.Contains(string(c.Body), hush) {
				sent++
			}
		}
		if sent < 6 {
			t.Errorf("the platform was sent the value %d times, want each change", sent)
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// keepSecrets makes calls about secrets, and returns the answers and explanations.
func (d *door) keepSecrets(t *testing.T) map[string]string {
	t.Helper()
	places := make(map[string]string)
	ask := func(status int, method, path, body string, header ...string) answer {
		a := d.ask(t, request(method, path, "key_research", body, header...))
		if a.Status != status {
			t.Errorf("%s %s %s: %d %s, want %d", method, path, body, a.Status, a.Body, status)
		}
		what := fmt.Sprintf("the answer to %d %s %s", len(places), method, strings.ReplaceAll(body, hush, "-"))
		places[what] = flat(a)
		if id := a.Header.Get("X-Tollgate-Decision"); id != "" {
			places["explanation of "+what] = d.page(t, "/admin/decisions/"+id)
		}
		return a
	}
	const path, key = "/v2/account/secrets", "Idempotency-Key: one"
	create := `{"name":"hushed","value":"` + hush + `"}`
	made := ask(201, "POST", path, create, key)
	ask(201, "POST", path, create, key)
	ask(422, "POST", path, strings.Replace(create, hush, hush+"2", 1), key)
	ask(409, "POST", path, create)
	one := path + "/" + fmt.Sprint(field(t, made.Body, "id"))
	ask(200, "PATCH", one, `{"value":"`+hush+`3"}`)
	ask(200, "PATCH", one, `{"value":"`+hush+`4","description":"d"}`)
	ask(403, "POST", path, `{"name":"hush_other","value":"`+hush+`"}`) // and asks for approval
	ask(403, "PATCH", one, `{"value":"{{ ACME_SECRET_`+hush+` }}"}`)
	for _, body := range []string{
		`{"value":"` + hush + `"}`, `{"name":"1","value":"` + hush + `"}`, `{"name":"hushed","value":["` + hush + `"]}`, `{"name":"hushed","value":"v","more":"` + hush + `"}`,
		`{"name":"hushed","value":{"value":"` + hush + `"}}`, `"` + hush + `"`, `{"name":"hushed","value":"` + hush + `","description":1}`,
	} {
		ask(422, "POST", path, body)
	}
	ask(422, "PATCH", one, `{"name":"x","value":"`+hush+`"}`)
	ask(400, "POST", path, `{"name":"hushed","value":"`+hush)
	ask(400, "POST", path, `{"name":"hushed","value":"`+hush+`","value":"`+hush+`"}`)
	ask(413, "POST", path, `{"name":"hushed","value":"`+strings.Repeat(hush, 10_000)+`"}`)
	for _, status := range []int{400, 422, 500, 502, 503} {
		fault := platform.Fault{Kind: platform.FaultStatus, Operation: "updateSecret", Status: status, Detail: "cannot store " + hush, Times: 1}
		d.platform.AddFault(fault)
		ask(status, "PATCH", one, `{"value":"`+hush+`","description":"d"}`)
		if fault.Operation = "createSecret"; status < 500 {
			d.platform.AddFault(fault)
			ask(status, "POST", path, `{"name":"half","value":"`+hush+`"}`)
		}
	}
	d.platform.AddFault(platform.Fault{Kind: platform.FaultDrop, Operation: "createSecret", After: true, Times: 1})
	ask(201, "POST", path, `{"name":"lost","value":"`+hush+`"}`)
	for what, body := range map[string]string{"create": create, "refused create": `{"name":"hush_other","value":"` + hush + `"}`} {
		x, err := json.Marshal(d.explain(t, &operator.ExplainBody{Method: "POST", Path: path, Key: "key_research", Body: body}))
		if err != nil {
			t.Fatal(err)
		}
		places["dry run of a "+what] = string(x)
	}
	places["own resources"] = flat(d.ask(t, request("GET", "/tollgate/resources", "key_research", "")))
	places["own decisions"] = flat(d.ask(t, request("GET", "/tollgate/decisions", "key_research", "")))
	places["own approvals"] = flat(d.ask(t, request("GET", "/tollgate/approvals", "key_research", "")))
	return places
}

// textBelow returns the text of all files below a directory.
func textBelow(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
