package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe is the script of the accessibility checker, as make test installs it.
func axe(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("../../.tools/axe-*/axe.min.js")
	if len(found) == 0 {
		if os.Getenv("TOLLGATE_REQUIRE_CHROMIUM") != "" {
			t.Fatal("no axe.min.js in .tools; make test installs one")
		}
		t.Skip("no axe.min.js in .tools; make test installs one")
	}
	script, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// finding is one complaint of the checker.
type finding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	// Nodes are the elements it concerns.
	Nodes []string `json:"nodes"`
}

// Nobody is kept from the reference by how it is written: the checker finds nothing above
// minor in any of its tabs.
func TestTheReferenceIsAccessible(t *testing.T) {
	script := axe(t)
	s := serve(t)
	b := openTab(t)
	b.do(t, chromedp.Navigate(s.URL+"/docs"))
	b.useKey(t, "key_of_nobody")
	b.until(t, `!document.querySelector("#access").hidden`)
	eval[any](t, b, `document.querySelector("#access").open = true`)
	eval[any](t, b, script)
	for _, tab := range []struct{ name, ready string }{
		{"v2", `document.querySelectorAll("#v2 .opblock").length >= 50`},
		{"run", `document.querySelectorAll("#run .opblock").length >= 10`},
		{"v1", `document.querySelectorAll("#v1 .opblock").length >= 30`},
		{"graphql", `document.querySelector(".graphiql-execute-button") !== null`},
	} {
		eval[any](t, b, `document.querySelector("#tab-`+tab.name+`").click()`)
		b.until(t, tab.ready)
		eval[any](t, b, `window.found = null; axe.run().then((r) => { window.found = r.violations.map((v) => ({id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 5).map((n) => n.html)})) })`)
		b.until(t, `window.found !== null`)
		for _, f := range eval[[]finding](t, b, `window.found`) {
			if f.Impact != "minor" {
				t.Errorf("%s: %s (%s): %q", tab.name, f.ID, f.Impact, f.Nodes)
			}
		}
	}
}
