package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// event is a decision in a log, on a call with three GPUs that passed.
func event(id string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"custom":{"org":"acme"},"result":{},"input":{"version":1,"time":{"ns":1},"caller":{"org":"acme","team":"research","key":"ann"},`+
		`"request":{"operation":"createPod","method":"POST","path":"/v2/pods","body":{"gpu":{"count":3}}},"resource":{"after":{"gpu":{"count":3}}}}}`, id, time.Now().UTC().Format(time.RFC3339)) + "\n"
}

// An admin tries a draft on a recorded call and rehearses it on the last week; others do not see the page.
func TestPlayground(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "decisions.log")
	id := "01M84TG8488HTPRJ2EYM7Q01FJ"
	if err := os.WriteFile(log, []byte(event(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, text+"decisions: {file: {path: "+log+"}}\n", miniredis.RunT(t))
	root := c.as(t, "root")
	if _, _, page := root.get(c.URL + "/ui/playground?org=acme&decision=" + id); !strings.Contains(page, `value="`+id+`"`) || !strings.Contains(page, "package policies.draft") {
		t.Errorf("the blank page: %s", page)
	}
	rego := "package policies.mine\r\n\r\ndeny contains msg if {\r\n\tprint(\"<b>\", input.resource.after.gpu.count)\r\n\tmsg := \"<i>no</i>\"\r\n}\r\n\r\nwarn contains \"x\" if {\r\n\tinput.request.path == \"/\"\r\n\tinput.request.path == \"/v2\"\r\n}\r\n"
	form := url.Values{"org": {"acme"}, "rego": {rego}, "decision": {id}, "do": {"try"}}
	status, page := root.draft(t, c, form)
	for _, want := range []string{"Denied</span>", "&lt;i&gt;no&lt;/i&gt;", "draft.rego:4: &lt;b&gt; 3", `class="good">5<span>&#43;</span>`, `class="warn">10<span>−</span>`, "and 2 lines not", "&#34;operation&#34;: &#34;createPod&#34;"} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("a draft that is tried: %d without %q: %s", status, want, page)
		}
	}
	form.Set("do", "replay")
	form.Set("since", "7d")
	status, page = root.draft(t, c, form)
	for _, want := range []string{"1 recorded request</strong> evaluated again", `Newly denied</th>`, `class="n">1</td>`, `<div>mine: 1</div>`, "/ui/requests/" + id, "With the draft: mine: &lt;i&gt;no&lt;/i&gt;"} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("a draft that is rehearsed: %d without %q: %s", status, want, page)
		}
	}
	form.Set("rego", "package policies.mine\n\ndeny contains x if true\n")
	if status, page = root.draft(t, c, form); status != http.StatusBadRequest || !strings.Contains(page, "<strong>Line 3</strong>") || !strings.Contains(page, `class="bad">3<span>!</span>`) || !strings.Contains(page, "deny contains x if true") {
		t.Errorf("a draft with a fault: %d %s", status, page)
	}
	for _, name := range []string{"vera", "olga"} {
		if status, _, _ := c.as(t, name).post(c.URL+"/ui/playground", form); status != http.StatusForbidden {
			t.Errorf("as %s: %d, want 403", name, status)
		}
	}
}

// draft sends the form of the playground, and returns the page at the address that holds the draft.
func (p *person) draft(t *testing.T, c *console, form url.Values) (status int, page string) {
	t.Helper()
	status, header, page := p.post(c.URL+"/ui/playground", form)
	if status != http.StatusSeeOther {
		t.Fatalf("the form of the playground: %d %s", status, page)
	}
	status, _, page = p.get(c.URL + header.Get("Location"))
	return status, page
}
