package browser

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// house is a gateway with its two listeners.
type house struct{ data, admin *httptest.Server }

// serveConsole runs a gateway whose console requires a token.
func serveConsole(t *testing.T) *house {
	t.Helper()
	p := platform.RunT(t)
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`"}
redis: {embedded: true}
admin: {admins: [{name: root, sha256: SHA256(token_of_root), roles: [admin]}]}
orgs:
  - id: acme
    credential: {env: KEY}
    budget: {per_hour: 5}
    teams: [{id: research, budget: {per_hour: 3}}]
    policies: [{policy: gpu_count, approvable: true, params: {max_per_pod: 2}}]
    keys: [{id: ann, team: research, sha256: SHA256(key_of_ann), limits: {minute: 600}}]
`, map[string]string{"KEY": platform.DefaultKey})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	h := &house{httptest.NewServer(g.Handler()), httptest.NewServer(g.AdminHandler())}
	t.Cleanup(h.data.Close)
	t.Cleanup(h.admin.Close)
	return h
}

// pod asks for a pod with some GPUs, and returns the status.
func (h *house) pod(t *testing.T, key, name, gpus string) int {
	t.Helper()
	body := `{"name":"` + name + `","image":"img:1","gpu":{"id":"NVIDIA L4","count":` + gpus + `}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.data.URL+"/v2/pods", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := h.data.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// login opens the console and logs in as root.
func (h *house) login(t *testing.T, actions ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	b := openTab(t)
	b.do(t, actions...)
	b.do(t, chromedp.Navigate(h.admin.URL+"/ui/"))
	b.until(t, `location.pathname === "/ui/login"`)
	b.do(t, chromedp.SendKeys(chromedp.CSS("#token"), "token_of_root\r"))
	b.until(t, `location.pathname === "/ui/" && document.querySelector("nav") !== null`)
	return b
}

// quiet fails if a page complained, or asked another server.
func (h *house) quiet(t *testing.T, b *tab) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	own := strings.TrimPrefix(h.admin.URL, "http://")
	for _, host := range b.hosts {
		if host != own {
			t.Errorf("the console asked %s, want %s only", host, own)
		}
	}
	if len(b.complaints) > 0 {
		t.Errorf("the console complained: %q", b.complaints)
	}
}

// visit follows the link with a text, once the page has it.
func visit(t *testing.T, b *tab, text, arrived string) {
	t.Helper()
	link := `[...document.querySelectorAll("a")].find(e => e.textContent.trim().startsWith("` + text + `"))`
	b.until(t, link+" !== undefined")
	eval[any](t, b, link+".click()")
	b.until(t, arrived)
}

// consolePages are the pages, with the heading of each.
var consolePages = [][2]string{
	{"/ui/", "Overview"},
	{"/ui/cost", "Cost explorer"},
	{"/ui/budgets", "Budgets"},
	{"/ui/resources", "Resources"},
	{"/ui/reservations", "Reservations"},
	{"/ui/idle", "Idle"},
	{"/ui/search?q=an", "Results for “an”"},
	{"/ui/requests", "Requests"},
	{"/ui/dry-run", "Dry run"},
	{"/ui/approvals", "Approvals"},
	{"/ui/keys", "Keys"},
	{"/ui/keys/ann", "ann"},
	{"/ui/create-key", "Create key"},
	{"/ui/limits", "Rate limits"},
	{"/ui/policies?held=1", "Policies"},
	{"/ui/policies/gpu_count", "gpu_count"},
	{"/ui/playground", "Playground"},
	{"/ui/exceptions", "Exceptions"},
	{"/ui/legacy", "Legacy APIs"},
	{"/ui/alerts", "Alerts"},
	{"/ui/audit", "Audit log"},
	{"/ui/configuration", "Configuration"},
	{"/ui/gateways", "Gateways and Envoys"},
	{"/ui/requests/none", "Not found"},
}

// Nobody is kept from the console by how it is written: the checker finds nothing above minor on any page, in light and in dark, and no page
// is wider than a small screen.
func TestTheConsoleIsAccessible(t *testing.T) {
	script := axe(t)
	h := serveConsole(t)
	h.pod(t, "key_of_ann", "fine", "1")
	h.pod(t, "key_of_ann", "<b>big</b>", "3")
	b := h.login(t)
	var refused string
	for _, scheme := range []string{"light", "dark"} {
		b.do(t, emulationOf(scheme), chromedp.EmulateViewport(1300, 1000))
		for _, page := range consolePages {
			b.do(t, chromedp.Navigate(h.admin.URL+page[0]))
			if got := eval[string](t, b, `document.querySelector("h1")?.textContent ?? ""`); got != page[1] {
				t.Errorf("%s is headed %q, want %q", page[0], got, page[1])
			}
			check(t, b, script, page[0]+" "+scheme)
			if page[0] == "/ui/requests" {
				refused = eval[string](t, b, `[...document.querySelectorAll("tr.linked")].find(e => e.textContent.includes("Denied")).querySelector("a").href`)
			}
		}
		b.do(t, chromedp.Navigate(refused))
		check(t, b, script, "one request "+scheme)
	}
	b.do(t, chromedp.EmulateViewport(320, 800))
	for _, page := range consolePages {
		b.do(t, chromedp.Navigate(h.admin.URL+page[0]))
		if width := eval[int](t, b, `document.documentElement.scrollWidth`); width > 320 {
			t.Errorf("%s is %d pixels wide on a screen of 320", page[0], width)
		}
	}
	h.quiet(t, b)
}

// check runs the checker on a page.
func check(t *testing.T, b *tab, script, page string) {
	t.Helper()
	eval[any](t, b, script)
	eval[any](t, b, `window.found = null; axe.run().then((r) => { window.found = r.violations.map((v) => ({id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 5).map((n) => n.html)})) })`)
	b.until(t, `window.found !== null`)
	for _, f := range eval[[]finding](t, b, `window.found`) {
		if f.Impact != "minor" {
			t.Errorf("%s: %s (%s): %q", page, f.ID, f.Impact, f.Nodes)
		}
	}
}

// emulationOf makes pages light or dark.
func emulationOf(scheme string) chromedp.Action[chromedp.Void] {
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
		return err
	})
}

// withoutScripts switches scripts of pages off. Those of the test run all the same.
func withoutScripts() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

// The tasks that people come for can be done with links and forms alone: with scripts and without.
func TestTasksInTheConsole(t *testing.T) {
	for name, actions := range map[string][]chromedp.Action[chromedp.Void]{"with scripts": nil, "without scripts": {withoutScripts()}} {
		t.Run(name, func(t *testing.T) {
			h := serveConsole(t)
			b := h.login(t, actions...)
			h.whyWasAnnRefused(t, b)
			h.grantAndPass(t, b)
			h.keyOfItsOwn(t, b)
			h.exported(t, b)
			click(t, b, `form[action="/ui/logout"] button`)
			b.until(t, `location.pathname === "/ui/login"`)
			b.do(t, chromedp.Navigate(h.admin.URL+"/ui/keys"))
			b.until(t, `location.pathname === "/ui/login"`)
			h.quiet(t, b)
		})
	}
}

// A refused call is on the open page of decisions within a second, if the filter of the page
// selects it, and names that callers chose are text there.
func TestLiveDecisionsInTheConsole(t *testing.T) {
	script := axe(t)
	h := serveConsole(t)
	b := h.login(t)
	b.do(t, chromedp.Navigate(h.admin.URL+"/ui/requests?refused=true&policy=gpu_count"))
	b.until(t, `document.querySelector("#live [role=status]").textContent === "Live, 0 new"`)
	// The page notes when a row appears, by its own clock.
	eval[any](t, b, `window.shown = 0; new MutationObserver(() => { window.shown ||= performance.now() }).observe(document.querySelector("[data-live] tbody"), {childList: true})`)
	h.pod(t, "key_of_ann", "fine", "1")
	began := eval[float64](t, b, `performance.now()`)
	if got := h.pod(t, "key_of_ann", "<b>big</b>", "3"); got != http.StatusForbidden {
		t.Fatalf("three GPUs: %d, want 403", got)
	}
	b.until(t, `window.shown > 0`)
	if took := eval[float64](t, b, `window.shown`) - began; took > 1000 {
		t.Errorf("a refused call was shown after %.0f ms, want 1 s at most", took)
	}
	if rows := eval[[]string](t, b, `[...document.querySelectorAll("[data-live] tbody tr")].map(e => e.textContent)`); len(rows) != 1 || !strings.Contains(rows[0], "gpu_count: ") || !strings.Contains(rows[0], "Denied") {
		t.Errorf("rows %q, want the refused call alone, with its policy", rows)
	}
	check(t, b, script, "live requests")
	click(t, b, "#live button")
	b.until(t, `document.querySelector("#live [role=status]").textContent === "Paused"`)
	click(t, b, `tr.linked a.row[href^="/ui/requests/"]`)
	shows(t, b, "What to change")
	h.quiet(t, b)
}

// click presses an element, once the page has it.
func click(t *testing.T, b *tab, selector string) {
	t.Helper()
	element := "document.querySelector(`" + selector + "`)"
	b.until(t, element+" !== null")
	eval[any](t, b, element+".click()")
}

// shows waits until the page has a text.
func shows(t *testing.T, b *tab, text string) {
	t.Helper()
	b.until(t, "document.querySelector('main')?.textContent.includes(`"+text+"`)")
}

// whyWasAnnRefused finds a refused call, and what would have to change.
func (h *house) whyWasAnnRefused(t *testing.T, b *tab) {
	t.Helper()
	if got := h.pod(t, "key_of_ann", "big", "3"); got != http.StatusForbidden {
		t.Fatalf("three GPUs: %d, want 403", got)
	}
	visit(t, b, "Requests", `location.pathname === "/ui/requests"`)
	b.do(t, chromedp.SendKeys(chromedp.CSS("#key"), "ann"))
	eval[any](t, b, `document.querySelector('select[name="outcome"]').value = "denied"`)
	click(t, b, `.filters button`)
	b.until(t, `location.search.includes("key=ann") && location.search.includes("outcome=denied")`)
	click(t, b, `tr.linked a.row[href^="/ui/requests/"]`)
	shows(t, b, "What to change")
	shows(t, b, "3 GPUs per pod exceed the limit of 2")
}

// grantAndPass answers the request for approval of the decision on the page.
func (h *house) grantAndPass(t *testing.T, b *tab) {
	t.Helper()
	visit(t, b, "Approval request", `location.pathname === "/ui/approvals"`)
	shows(t, b, "Pending")
	click(t, b, `form[action="/ui/approvals/grant"] summary`)
	b.do(t, chromedp.SendKeys(chromedp.CSS(`form[action="/ui/approvals/grant"] input[name="reason"]`), "the demo on Monday"))
	click(t, b, `form[action="/ui/approvals/grant"] button`)
	shows(t, b, "can send the request once")
	visit(t, b, "Decided", `location.search.includes("view=decided")`)
	shows(t, b, "Decided by")
	shows(t, b, "the demo on Monday")
	if got := h.pod(t, "key_of_ann", "big", "3"); got != http.StatusCreated {
		t.Errorf("the granted call: %d, want 201", got)
	}
	if got := h.pod(t, "key_of_ann", "big", "3"); got != http.StatusForbidden {
		t.Errorf("the call once more: %d, want 403", got)
	}
	visit(t, b, "Resources", `location.pathname === "/ui/resources"`)
	shows(t, b, "big")
}

// keyOfItsOwn makes a key, gives it another secret, and revokes it.
func (h *house) keyOfItsOwn(t *testing.T, b *tab) {
	t.Helper()
	visit(t, b, "Keys", `location.pathname === "/ui/keys"`)
	visit(t, b, "Create key", `location.pathname === "/ui/create-key"`)
	b.do(t, chromedp.SendKeys(chromedp.CSS(`form[action="/ui/keys/create"] input[name="id"]`), "batch"))
	click(t, b, `form[action="/ui/keys/create"] button`)
	b.until(t, `document.querySelector("#secret") !== null`)
	made := eval[string](t, b, `document.querySelector("#secret").value`)
	if got := h.pod(t, made, "small", "1"); got != http.StatusCreated {
		t.Errorf("a call with the new key: %d, want 201", got)
	}
	visit(t, b, "Done", `location.pathname === "/ui/keys"`)
	visit(t, b, "batch", `location.pathname === "/ui/keys/batch"`)
	click(t, b, `form[action="/ui/keys/rotate"] button`)
	shows(t, b, "The old secret expires in 1 d.")
	click(t, b, `button.danger`)
	b.until(t, `document.querySelector("#secret") !== null`)
	next := eval[string](t, b, `document.querySelector("#secret").value`)
	if next == made {
		t.Error("the secret is the same")
	}
	visit(t, b, "Done", `location.pathname === "/ui/keys"`)
	visit(t, b, "batch", `location.pathname === "/ui/keys/batch"`)
	click(t, b, `form[action="/ui/keys/revoke"] button`)
	shows(t, b, "This cannot be undone.")
	click(t, b, `button.danger`)
	shows(t, b, "Key batch is revoked.")
	for _, secret := range []string{made, next} {
		if got := h.pod(t, secret, "small", "1"); got != http.StatusUnauthorized {
			t.Errorf("a call with a secret of the revoked key: %d, want 401", got)
		}
	}
}

// exported downloads the table of the cost explorer.
func (h *house) exported(t *testing.T, b *tab) {
	t.Helper()
	visit(t, b, "Cost explorer", `location.pathname === "/ui/cost"`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, eval[string](t, b, `document.querySelector('a[href^="/ui/cost.csv"]').href`), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	cookies, err := chromedp.Run(b.ctx, func(ctx context.Context, target *chromedp.Target) ([]*network.Cookie, error) {
		all, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{})
		return all.Cookies, err
	})
	if err != nil || len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].Path != "/ui" {
		t.Fatalf("cookies %+v, %v", cookies, err)
	}
	r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value})
	res, err := h.admin.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasPrefix(string(body), "start,end,team,usd\n") || !strings.Contains(string(body), ",research,") {
		t.Errorf("the file: %d %q, %v", res.StatusCode, body, err)
	}
}
