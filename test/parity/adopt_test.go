package parity

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// A resource that was made without the gateway is the admins' alone, but public templates are
// everybody's.
func TestUnowned(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", apart("{read: key}"), func(d *door) {
		d.text = strings.Replace(d.text, "SHA256(key_other), roles: [admin]", "SHA256(key_other), roles: [operator]", 1)
	})
	d.reconcile(t)
	outside(t, d, "POST", "/v2/pods", strings.Replace(podL4, `"a"`, `"unowned"`, 1))
	outside(t, d, "POST", "/v2/templates", `{"name":"t","image":"img:1"}`)
	id := func(path, list string) string {
		items, _ := field(t, d.ask(t, request("GET", path, "key_platform", "")).Body, list).([]any)
		if len(items) == 0 {
			t.Fatalf("an admin reads nothing at %s", path)
		}
		return fmt.Sprint(items[0].(map[string]any)["id"])
	}
	pod, template, public := id("/v2/pods", "pods"), id("/v2/templates", "templates"), id("/v2/catalog/templates", "templates")
	sameAnswer(t, d, "reading an unowned pod", pod, func(id string) answer { return d.ask(t, request("GET", "/v2/pods/"+id, "key_other", "")) })
	if a := d.ask(t, request("GET", "/v2/pods", "key_other", "")); len(field(t, a.Body, "pods").([]any)) != 0 {
		t.Errorf("list: %s, want none", a.Body)
	}
	create := func(id string) answer {
		return d.ask(t, request("POST", "/v2/pods", "key_other", naming(t, podL4, "templateId", id)))
	}
	sameAnswer(t, d, "a pod of an unowned template", template, create)
	if a := create(public); a.Status != 201 {
		t.Errorf("a pod of a public template: %d %s, want 201", a.Status, a.Body)
	}
}

// A resource that was made without the gateway is everybody's where that is configured.
func TestUnownedOfTheOrganisation(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", apart("{read: key, unowned: org, exempt: [viewer]}"))
	outside(t, d, "POST", "/v2/pods", podL4)
	list := d.ask(t, request("GET", "/v2/pods", "key_other", ""))
	pods, _ := field(t, list.Body, "pods").([]any)
	if len(pods) != 1 {
		t.Fatalf("list: %d %s, want the pod", list.Status, list.Body)
	}
	id := fmt.Sprint(pods[0].(map[string]any)["id"])
	if a := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_other", "")); a.Status != 204 {
		t.Errorf("delete: %d %s, want 204", a.Status, a.Body)
	}
}

// Isolation costs a read one question to the store, a pipeline of three commands, and organisations without it none.
func TestIsolationAsksOnce(t *testing.T) {
	t.Parallel()
	commands := func(isolation, path string) int {
		d := openDoor(t, "http", apart(isolation))
		pod := d.rented(t, podL4)
		ask := func() {
			if a := d.ask(t, request("GET", strings.Replace(path, "<id>", pod, 1), "key_research", "")); a.Status != 200 {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		ask()
		// Calls that the gateway makes by itself meanwhile only add: the least of some calls is
		// the price of one.
		least := math.MaxInt
		for range 5 {
			before := d.redis.CommandCount()
			ask()
			least = min(least, d.redis.CommandCount()-before)
		}
		return least
	}
	for _, path := range []string{"/v2/pods", "/v2/pods/<id>", "/v2/billing/pods?podId=<id>"} {
		if plain, apart := commands("{}", path), commands("{read: team, exempt: [viewer]}", path); apart != plain+7 {
			t.Errorf("%s: %d commands with isolation and %d without, want seven more", path, apart, plain)
		}
	}
}

// While the ledger cannot be asked, resources that may belong to others are neither shown nor changed. A delete passes if the gateway
// remembers the resource as the caller's.
func TestIsolationWithoutTheLedger(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", apart("{read: team, exempt: [viewer]}"), func(d *door) {
		d.text = strings.Replace(d.text, "limits: {timeout: 10s}", "limits: {timeout: 200ms, failure: {read: open, write: open}}", 1)
	})
	pod := d.rented(t, podL4)
	d.redis.Close()
	for _, tt := range []struct {
		key, method, path, body string
		want                    int
	}{
		{"key_research", "GET", "/v2/pods/" + pod, "", 503},
		{"key_research", "GET", "/v2/pods", "", 503},
		{"key_research", "POST", "/v2/templates", `{"name":"t","image":"i:1"}`, 503},
		{"key_research", "GET", "/v2/catalog/gpus", "", 200},
		{"key_research", "POST", "/v2/pods/" + pod + "/action", `{"action":"stop"}`, 200},
		{"key_research", "DELETE", "/v2/pods/p0fnobody1", "", 503},
		{"key_other", "DELETE", "/v2/pods/" + pod, "", 503},
		{"key_research", "DELETE", "/v2/pods/" + pod, "", 204},
	} {
		if a := d.ask(t, request(tt.method, tt.path, tt.key, tt.body)); a.Status != tt.want {
			t.Errorf("%s %s of %s: %d %s, want %d", tt.method, tt.path, tt.key, a.Status, a.Body, tt.want)
		}
	}
}

// An operator gives a resource an owner, whose budgets it counts against from then on.
func TestAdopt(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{gpus: 2}"))
	d.reconcile(t)
	outside(t, d, "POST", "/v2/pods", podL4)
	d.reconcile(t)
	pod := d.ledger(t).Resources[0]
	if pod.Team != "" {
		t.Fatalf("the pod belongs to %q before it is adopted", pod.Team)
	}
	adopt := func(query string) money.Adopted {
		return asOperator[money.Adopted](t, d, "POST", "/admin/spend/adopt?org=acme&"+query)
	}
	if got, want := adopt("team=research&id="+pod.ID), (money.Adopted{Resource: pod.ID, Was: "organisation", Owner: "team research"}); got != want {
		t.Errorf("adopt = %+v, want %+v", got, want)
	}
	d.holds(t, 1, 0)
	d.rented(t, podL4)
	if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 {
		t.Errorf("beside what was adopted: %d %s, want 402", a.Status, a.Body)
	}
	if got, want := adopt("key=key_platform&id="+pod.ID), "team platform"; got.Owner != want || got.Was != "team research" {
		t.Errorf("adopt = %+v, want %s", got, want)
	}
	if made := d.ledger(t).Resources; !slices.ContainsFunc(made, func(r money.Resource) bool { return r.ID == pod.ID && r.Team == "platform" && r.Key == "key_platform" }) {
		t.Errorf("resources = %+v, want the pod with the key and its team", made)
	}
	d.rented(t, podL4)
	for query, want := range map[string]int{
		"team=research&id=nothing": 400, "team=none&id=" + pod.ID: 404, "key=none&id=" + pod.ID: 400, "id=" + pod.ID: 400, "key=key_platform&team=research&id=" + pod.ID: 400,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/spend/adopt?org=acme&"+query, http.NoBody)
		r.Host = "127.0.0.1"
		d.gateway.AdminHandler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("adopt %s: %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
	for _, text := range []string{"owner of a resource changed", "/admin/spend/adopt"} {
		if logs := d.logs.String(); !strings.Contains(logs, text) {
			t.Errorf("the log has no %q", text)
		}
	}
}

// Policies read the owner of the object, and the spending of the caller's scopes; where no policy
// does, nothing is asked.
func TestPoliciesSeeOwnersAndSpending(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const own = `package policies.seen

deny contains sprintf("it is %v's, and the team has %v of %v USD per hour and %v GPUs", [owner, input.spend.team.burn, input.spend.team.burn_limit, input.spend.team.gpus]) if {
	input.request.verb in {"delete", "create"}
	input.spend.known
	owner := input.resource.owner.key
	owner != input.caller.key
}
`
	if err := os.WriteFile(filepath.Join(dir, "seen.rego"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	eachDoor(t, func(t *testing.T, d *door) {
		pod := d.rented(t, podL4)
		if a := d.ask(t, request("DELETE", "/v2/pods/"+pod, "key_platform", "")); a.Status != 403 || !strings.Contains(a.Body, "it is key_research's, and the team has 0 of null USD per hour and 0 GPUs") {
			t.Errorf("another's: %d %s, want 403 with its owner", a.Status, a.Body)
		}
		if a := d.ask(t, request("DELETE", "/v2/pods/"+pod, "key_research", "")); a.Status != 204 {
			t.Errorf("one's own: %d %s, want 204", a.Status, a.Body)
		}
	}, under("- policy: seen"), budgeted("{per_hour: 1.50}"), func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    rego: "+dir, 1)
	})
}

// GPUs in flight are a ceiling of the ledger: callers that race do not pass it.
func TestGPUsInFlightHoldWhenCallsRace(t *testing.T) {
	d := openDoor(t, "http", under("- policy: gpu_in_flight\n  teams: [research]\n  params: {max_per_team: 2}"))
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			switch a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status {
			case 201:
				made.Add(1)
			case 402, 403:
			default:
				t.Errorf("create: %d %s, want 201, 402 or 403", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if got := made.Load(); got != 2 {
		t.Errorf("%d pods were made, want 2", got)
	}
	if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 403 || !strings.Contains(a.Body, "2 GPUs in flight and 1 more exceed the limit of 2 for the team") {
		t.Errorf("afterwards: %d %s, want 403 of the policy, which sees the ledger's count", a.Status, a.Body)
	}
}
