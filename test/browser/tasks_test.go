package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// town is a house whose time passes by hand.
type town struct {
	*house

	gateway  *gateway.Gateway
	platform *platform.Instance
	clock    *platform.Clock
	store    *miniredis.Miniredis
}

// townOrg is the configuration of the organisation.
const townOrg = `
orgs:
  - id: acme
    credential: {env: KEY}
    idle: {for: 10m, action: stop, notice: 5m}
    teams: [{id: research, budget: {per_month: 40}, grants: {per_hour: 4}}, {id: ml}]
    policies:
      - {policy: gpu_allow_list, mode: shadow, params: {gpus: [NVIDIA H100 80GB HBM3]}}
      - {policy: gpu_count, approvable: true, params: {max_per_pod: 2}}
    keys:
      - {id: ann, team: research, owner: ann@acme.example, sha256: SHA256(key_of_ann), limits: {minute: 600}}
      - {id: lena, team: research, owner: lena@acme.example, roles: [operator, lead], sha256: SHA256(key_of_lena), limits: {minute: 600}}
      - {id: mel, team: ml, sha256: SHA256(key_of_mel), limits: {minute: 600}}
`

// serveTown runs a gateway with two teams, a policy that is tried out, and a sweep of idle pods.
func serveTown(t *testing.T) *town {
	t.Helper()
	c := &town{clock: platform.ManualClock(time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)), store: miniredis.RunT(t)}
	c.store.SetTime(c.clock.Now())
	c.platform = platform.RunT(t, platform.WithClock(c.clock))
	g := world.Gateway(t, c.configuration(t, townOrg), gateway.Deps{Redis: world.Redis(t, c.store.Addr()), Now: c.clock.Now, Data: world.Listen(t), Admin: world.Listen(t)})
	c.gateway = g
	world.Run(t, g) // which writes down who calls the retired interfaces
	c.house = &house{httptest.NewServer(g.Handler()), httptest.NewServer(g.AdminHandler())}
	t.Cleanup(c.data.Close)
	t.Cleanup(c.admin.Close)
	return c
}

// configuration has an organisation and what every one needs.
func (c *town) configuration(t *testing.T, orgs string) settings.Config {
	t.Helper()
	return world.Configuration(t, `
platform: {base_url: "`+c.platform.URL+`"}
redis: {embedded: true}
admin: {admins: [{name: root, sha256: SHA256(token_of_root), roles: [admin]}]}
`+orgs, map[string]string{"KEY": platform.DefaultKey})
}

// pass lets time pass, and looks at the platform then.
func (c *town) pass(t *testing.T, by time.Duration) {
	t.Helper()
	c.clock.Advance(by)
	c.store.SetTime(c.clock.Now())
	c.operator(t, http.MethodPost, "/admin/spend/reconcile?org=acme", nil)
}

// operator asks a row as root, and reads the answer.
func (c *town) operator(t *testing.T, method, target string, answer any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.admin.URL+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer token_of_root")
	res, err := c.admin.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d", method, target, res.StatusCode)
	}
	if answer != nil {
		if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
}

// status returns the state of a pod, as a caller sees it.
func (c *town) status(t *testing.T, id string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.data.URL+"/v2/pods/"+id, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer key_of_mel")
	res, err := c.data.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var pod struct{ Status string }
	if err := json.NewDecoder(res.Body).Decode(&pod); err != nil {
		t.Fatal(err)
	}
	return pod.Status
}

// pods returns the ids of what counts against budgets, by name.
func (c *town) pods(t *testing.T) map[string]string {
	t.Helper()
	var ledger struct {
		Resources []struct{ ID, Name string }
	}
	c.operator(t, http.MethodGet, "/admin/spend?org=acme", &ledger)
	out := make(map[string]string)
	for _, r := range ledger.Resources {
		out[r.Name] = r.ID
	}
	return out
}

// The tasks of people who look at money over time, and at programs, with scripts and without.
func TestTasksOverTime(t *testing.T) {
	for name, actions := range map[string][]chromedp.Action[chromedp.Void]{"with scripts": nil, "without scripts": {withoutScripts()}} {
		t.Run(name, func(t *testing.T) {
			c := serveTown(t)
			for key, pod := range map[string]string{"key_of_ann": "train", "key_of_mel": "sleeper"} {
				gpus := map[string]string{"train": "2", "sleeper": "1"}[pod]
				if got := c.pod(t, key, pod, gpus); got != http.StatusCreated {
					t.Fatalf("%s: %d, want 201", pod, got)
				}
			}
			b := c.login(t, actions...)
			c.stillSpeaksV1(t, b)
			c.shadowed(t, b)
			c.pass(t, 24*time.Hour)
			c.whoSpendsMost(t, b)
			c.lastDay(t, b)
			c.stopTheSweep(t, b)
			c.quiet(t, b)
		})
	}
}

// stillSpeaksV1 finds a script that calls a retired interface, and the operation to call instead.
func (c *town) stillSpeaksV1(t *testing.T, b *tab) {
	t.Helper()
	c.legacyScript(t)
	visit(t, b, "Legacy", `location.pathname === "/ui/legacy"`)
	world.Until(t, "the script is on the page", func() bool {
		b.do(t, chromedp.Navigate(c.admin.URL+"/ui/legacy"))
		return eval[bool](t, b, `document.querySelector("main").textContent.includes("nightly-script")`)
	})
	row := eval[string](t, b, `[...document.querySelectorAll("tbody tr")].find(e => e.textContent.includes("nightly-script")).textContent`)
	if !strings.Contains(row, "mel") || !strings.Contains(row, "listPods") {
		t.Errorf("the row of the script: %q", row)
	}
}

// legacyScript calls v1 as a script does that has not moved to v2.
func (c *town) legacyScript(t *testing.T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.data.URL+"/v1/pods", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer key_of_mel")
	r.Header.Set("User-Agent", "nightly-script/1.0")
	res, err := c.data.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}

// shadowed finds the calls that a policy in dry run would refuse.
func (c *town) shadowed(t *testing.T, b *tab) {
	t.Helper()
	world.Until(t, "the effect of the policy is on the page", func() bool {
		b.do(t, chromedp.Navigate(c.admin.URL+"/ui/policies/gpu_allow_list"))
		return eval[bool](t, b, `[...document.querySelectorAll("tbody tr")].some(e => e.querySelector("th")?.textContent === "ml" && e.querySelector('td[data-label="Would deny"]')?.textContent > 0)`)
	})
}

// whoSpendsMost finds the most expensive resource of the month, its team and its machine.
func (c *town) whoSpendsMost(t *testing.T, b *tab) {
	t.Helper()
	visit(t, b, "Cost explorer", `location.pathname === "/ui/cost"`)
	shows(t, b, "Data centre")
	click(t, b, `section[aria-label="Groups"] a[href*="by=resource"]`)
	b.until(t, `location.search.includes("by=resource")`)
	shows(t, b, "train")
	first := eval[string](t, b, `document.querySelector('section[aria-label="Groups"] tbody tr').textContent`)
	for _, want := range []string{"train", "20."} { // two L4 for a day
		if !strings.Contains(first, want) {
			t.Errorf("the most expensive is %q, want %q in it", first, want)
		}
	}
	visit(t, b, "Resources", `location.pathname === "/ui/resources"`)
	visit(t, b, "train", `location.pathname.startsWith("/ui/resources/")`)
	shows(t, b, "research")
	shows(t, b, "NVIDIA L4")
}

// lastDay finds the day on which a budget will be used up.
func (c *town) lastDay(t *testing.T, b *tab) {
	t.Helper()
	var ledger struct {
		Scopes []struct {
			Scope   string
			Budgets []struct{ Name, UsedUp string }
		}
	}
	c.operator(t, http.MethodGet, "/admin/spend?org=acme", &ledger)
	day := ""
	for _, s := range ledger.Scopes {
		for _, budget := range s.Budgets {
			if s.Scope == "team research" && budget.Name == "per_month" {
				day = budget.UsedUp
			}
		}
	}
	if day < "2026-11-11" || day > "2026-11-13" { // 20 USD a day, of 40
		t.Errorf("the budget is used up on %q, want the 11th to the 13th", day)
	}
	visit(t, b, "Budgets", `location.pathname === "/ui/budgets"`)
	shows(t, b, "Runs out ")
}

// stopTheSweep snoozes an idle pod: the sweep leaves it alone, and takes the other.
func (c *town) stopTheSweep(t *testing.T, b *tab) {
	t.Helper()
	if got := c.pod(t, "key_of_mel", "forgotten", "1"); got != http.StatusCreated {
		t.Fatalf("another pod: %d, want 201", got)
	}
	ids, none, few := c.pods(t), 0, 3
	busy := 90
	for name, use := range map[string]*int{"sleeper": &none, "forgotten": &none, "train": &busy} {
		if err := c.platform.ChangePod(ids[name], platform.PodChange{GPUUtil: use, CPUUtil: &few}); err != nil {
			t.Fatal(err)
		}
	}
	for range 12 {
		c.pass(t, time.Minute)
	}
	visit(t, b, "Idle", `location.pathname === "/ui/idle"`)
	const row = `[...document.querySelectorAll("tbody tr")].find(e => e.textContent.includes("sleeper"))`
	b.until(t, row+`?.textContent.includes(", stops ")`)
	eval[any](t, b, row+`.querySelector('form[action="/ui/spend/snooze"] button').click()`)
	shows(t, b, "is snoozed until")
	b.until(t, row+`?.textContent.includes("Snoozed")`)
	for range 8 {
		c.pass(t, time.Minute)
	}
	for name, want := range map[string]string{"sleeper": "RUNNING", "train": "RUNNING", "forgotten": "EXITED"} {
		if got := c.status(t, ids[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	b.do(t, chromedp.Navigate(c.admin.URL+"/ui/requests?org=acme&own=true"))
	shows(t, b, "stopped")
}

// Callers and leads do theirs at their own pages, with scripts and without.
func TestTasksOfCallers(t *testing.T) {
	script := axe(t)
	for name, actions := range map[string][]chromedp.Action[chromedp.Void]{"with scripts": nil, "without scripts": {withoutScripts()}} {
		t.Run(name, func(t *testing.T) {
			c := serveTown(t)
			if got := c.pod(t, "key_of_ann", "fine", "1"); got != http.StatusCreated {
				t.Fatalf("one GPU: %d, want 201", got)
			}
			if got := c.pod(t, "key_of_ann", "<b>big</b>", "3"); got != http.StatusForbidden {
				t.Fatalf("three GPUs: %d, want 403", got)
			}
			c.pass(t, 3*time.Hour)
			own := &house{data: c.data, admin: c.data} // quiet holds it to its own listener
			b := openTab(t)
			b.do(t, actions...)
			b.do(t, chromedp.Navigate(c.data.URL+"/tollgate/ui/"))
			b.until(t, `location.pathname === "/tollgate/ui/login"`)
			b.do(t, chromedp.SendKeys(chromedp.CSS("#token"), "key_of_lena\r"))
			b.until(t, `location.pathname === "/tollgate/ui/" && document.querySelector("nav") !== null`)
			b.until(t, `document.querySelector("h1").textContent === "Team research"`)
			visit(t, b, "Cost", `location.pathname === "/tollgate/ui/cost"`)
			shows(t, b, "NVIDIA L4")
			visit(t, b, "My team", `location.pathname === "/tollgate/ui/"`)
			shows(t, b, "All denied requests")
			visit(t, b, "All denied requests", `location.pathname === "/tollgate/ui/requests" && location.search.includes("refused=true")`)
			click(t, b, `tbody a[href^="/tollgate/ui/requests/"]`)
			shows(t, b, "What to change")
			shows(t, b, "Request for approval")
			click(t, b, `main a[href^="/tollgate/ui/approvals"]`)
			b.until(t, `location.pathname === "/tollgate/ui/approvals"`)
			click(t, b, `form[action="/tollgate/ui/approvals/grant"] button`)
			shows(t, b, "Answered by lena")
			if got := c.pod(t, "key_of_ann", "<b>big</b>", "3"); got != http.StatusCreated {
				t.Errorf("the granted call: %d, want 201", got)
			}
			visit(t, b, "Resources", `location.pathname === "/tollgate/ui/resources"`)
			shows(t, b, "<b>big</b>")
			visit(t, b, "Keys", `location.pathname === "/tollgate/ui/keys"`)
			visit(t, b, "Create key", `location.pathname === "/tollgate/ui/create-key"`)
			b.do(t, chromedp.SendKeys(chromedp.CSS(`form[action="/tollgate/ui/keys/create"] input[name="id"]`), "batch"))
			click(t, b, `form[action="/tollgate/ui/keys/create"] button`)
			b.until(t, `document.querySelector("#secret") !== null`)
			if got := c.pod(t, eval[string](t, b, `document.querySelector("#secret").value`), "small", "1"); got != http.StatusCreated {
				t.Errorf("a call with the new key: %d, want 201", got)
			}
			for _, page := range []string{"", "cost", "resources", "requests", "approvals", "keys", "create-key"} {
				b.do(t, chromedp.EmulateViewport(1300, 1000), chromedp.Navigate(c.data.URL+"/tollgate/ui/"+page))
				if actions == nil { // the checker is a script
					check(t, b, script, "/tollgate/ui/"+page)
				}
				b.do(t, chromedp.EmulateViewport(320, 800))
				if width := eval[int](t, b, `document.documentElement.scrollWidth`); width > 320 {
					t.Errorf("/tollgate/ui/%s is %d pixels wide on a screen of 320", page, width)
				}
			}
			click(t, b, `form[action="/tollgate/ui/logout"] button`)
			b.until(t, `location.pathname === "/tollgate/ui/login"`)
			own.quiet(t, b)
		})
	}
}
