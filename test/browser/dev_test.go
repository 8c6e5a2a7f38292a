package browser

import (
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/dev"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// serveDev serves the example project of tollgate dev, whose functions run at an emulator
// behind a gateway.
func serveDev(t *testing.T) *httptest.Server {
	t.Helper()
	python := dev.FindPython(t.Context())
	if python.Path() == "" {
		if os.Getenv("TOLLGATE_REQUIRE_PYTHON") != "" {
			t.Fatal("no python3 in PATH")
		}
		t.Skip("no python3 in PATH")
	}
	p := platform.RunT(t, platform.WithOptions(platform.Options{
		Worker: platform.Worker{Python: python.Path()}, Timing: platform.Timing{ColdStart: 50 * time.Millisecond, Job: time.Millisecond},
	}))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.RunURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	gateway := serveWith(t, p, `, run_url: "`+p.RunURL+`", lb_url: "http://{id}.localhost:`+port+`"`)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../docs/examples/dev")); err != nil {
		t.Fatal(err)
	}
	project, err := python.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := dev.OpenState(dir, "me@here")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	session := dev.NewSession(&dev.Gateway{URL: gateway.URL, Key: "key_of_nobody", HTTP: gateway.Client()}, state, python,
		dev.Settings{Cold: time.Minute, Now: time.Now, Out: io.Discard})
	s := httptest.NewUnstartedServer(nil)
	hosts, err := dev.Hosts("localhost", s.Listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if s.Config.Handler, err = dev.NewServer(session, project, hosts); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// The examples in the explorer of tollgate dev are sent as they are: a function runs at the
// platform, a refusal of the gateway names its policy, and the page asks its own server only.
func TestTheExplorerOfDev(t *testing.T) {
	s := serveDev(t)
	b := openTab(t)
	b.do(t, chromedp.Navigate(s.URL+"/docs"))
	b.until(t, `document.querySelectorAll(".opblock").length === 5`)
	for _, c := range []struct{ path, says string }{
		{"/words/runsync", `gpu_allow_list`},
		{"/shop/orders", `"ordered"`},
	} {
		block := `[...document.querySelectorAll(".opblock")].find(e => e.querySelector("[data-path]").dataset.path === "` + c.path + `")`
		eval[any](t, b, block+`.querySelector(".opblock-summary-control").click()`)
		// The body's example is there some time after the button, which does nothing before.
		b.until(t, block+`.querySelector(".execute") !== null && !!`+block+`.querySelector("textarea")?.value`)
		eval[any](t, b, block+`.querySelector(".execute").click()`)
		b.until(t, `(`+block+`.querySelector(".live-responses-table tbody")?.textContent ?? "").includes(`+"`"+c.says+"`"+`)`)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	own := strings.TrimPrefix(s.URL, "http://")
	for _, h := range b.hosts {
		if h != own {
			t.Errorf("the page asked %s, want %s only", h, own)
		}
	}
	if len(b.complaints) > 0 {
		t.Errorf("the page complained: %q", b.complaints)
	}
}
