package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// podL4 costs 0.43 USD per hour, and its disk of 20 GB about a quarter of a cent.
const podL4 = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`

// budgeted gives team research a budget, and its key every role.
func budgeted(budget string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "{id: research}", "{id: research, budget: "+budget+"}", 1)
		d.text = strings.Replace(d.text, "SHA256(key_research), roles: [operator]", "SHA256(key_research), roles: [admin]", 1)
	}
}

// asOperator asks the admin listener and reads its answer.
func asOperator[T any](t *testing.T, d *door, method, target string) T {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	r.Host = "127.0.0.1"
	d.gateway.AdminHandler().ServeHTTP(w, r)
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s (%v)", method, target, w.Code, w.Body, err)
	}
	return out
}

func (d *door) ledger(t *testing.T) money.Ledger {
	t.Helper()
	return asOperator[money.Ledger](t, d, "GET", "/admin/spend?org=acme")
}

func (d *door) reconcile(t *testing.T) money.Reconciled {
	t.Helper()
	return asOperator[money.Reconciled](t, d, "POST", "/admin/spend/reconcile?org=acme")
}

// holds fails unless team research has committed and reserved so many GPUs.
func (d *door) holds(t *testing.T, committed, reserved int64) {
	t.Helper()
	for _, s := range d.ledger(t).Scopes {
		if s.Scope == "team research" && (s.Committed.GPUs != committed || s.Reserved.GPUs != reserved) {
			t.Errorf("%d GPUs are committed and %d reserved, want %d and %d", s.Committed.GPUs, s.Reserved.GPUs, committed, reserved)
		}
	}
}

// rented creates a pod and returns its id.
func (d *door) rented(t *testing.T, body string) string {
	t.Helper()
	a := d.ask(t, request("POST", "/v2/pods", "key_research", body))
	if a.Status != 201 {
		t.Fatalf("create: %d %s, want 201", a.Status, a.Body)
	}
	return fmt.Sprint(field(t, a.Body, "id"))
}

// Running pods never cost more than the budget, in each dialect, and stopped ones make room.
func TestABudgetPerHour(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		first := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		if got, want := first.Header.Get("X-Tollgate-Cost"), "0.43274"; first.Status != 201 || got != want {
			t.Fatalf("first: %d %s, cost %q, want %q", first.Status, first.Body, got, want)
		}
		if got, want := first.Header.Get("X-Tollgate-Budget"), `"team research per_hour";limit=1.5;left=1.067`; got != want {
			t.Errorf("budget header = %s, want %s", got, want)
		}
		d.rented(t, podL4)
		d.rented(t, podL4)
		calls := len(d.platform.CallsTo("createPod"))
		over := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		if over.Status != 402 || over.Header.Get("Content-Type") != "application/problem+json" {
			t.Fatalf("fourth: %d %s, want 402", over.Status, over.Body)
		}
		for name, want := range map[string]any{"budget": "team research per_hour", "limit": 1.5, "used": 1.29822, "reserved": 0.0, "needs": 0.43274, "room_at": nil} {
			if got := field(t, over.Body, name); got != want {
				t.Errorf("%s = %v, want %v", name, got, want)
			}
		}
		if v1 := d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`)); v1.Status != 402 ||
			!strings.Contains(v1.Body, "budget team research per_hour exceeded") {
			t.Errorf("v1: %d %s, want 402 that names the budget", v1.Status, v1.Body)
		}
		const deploy = `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`
		if gql := d.ask(t, graphql(deploy)); !strings.Contains(gql.Body, "INSUFFICIENT_FUNDS") || !strings.Contains(gql.Body, "budget team research per_hour exceeded") {
			t.Errorf("GraphQL: %d %s, want an error that names the budget", gql.Status, gql.Body)
		}
		if got := len(d.platform.CallsTo("createPod")); got != calls {
			t.Errorf("the platform was asked %d times for what no budget has room for", got-calls)
		}
		if other := d.ask(t, request("POST", "/v2/pods", "key_platform", podL4)); other.Status != 201 {
			t.Errorf("another team: %d %s, want 201", other.Status, other.Body)
		}
		id := fmt.Sprint(field(t, first.Body, "id"))
		if stop := d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_platform", `{"action":"stop"}`)); stop.Status != 200 {
			t.Fatalf("stop: %d %s", stop.Status, stop.Body)
		}
		d.holds(t, 2, 0)
		start := request("POST", "/v2/pods/"+id+"/action", "key_platform", `{"action":"start"}`)
		d.rented(t, podL4)
		if a := d.ask(t, start); a.Status != 402 || field(t, a.Body, "budget") != "team research per_hour" {
			t.Errorf("start by another team: %d %s, want 402 of the owner's budget", a.Status, a.Body)
		}
		if a := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_research", "")); a.Status != 204 {
			t.Errorf("delete: %d %s", a.Status, a.Body)
		}
		d.holds(t, 3, 0)
	}, budgeted("{per_hour: 1.50}"))
}

// A v1 create and a GraphQL create count, and their answers have the cost.
func TestLegacyCreatesCount(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"containerDiskInGb":20,"volumeInGb":0}`))
		if a.Status != 201 || a.Header.Get("X-Tollgate-Cost") != "0.43274" {
			t.Errorf("v1: %d %s, cost %q", a.Status, a.Body, a.Header.Get("X-Tollgate-Cost"))
		}
		d.holds(t, 1, 0)
		a = d.ask(t, graphql(`mutation { podFindAndDeployOnDemand(input: {name: "b", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`))
		if !strings.Contains(a.Header.Get("X-Tollgate-Budget"), "team research per_hour") {
			t.Errorf("GraphQL: %s, budget %q", a.Body, a.Header.Get("X-Tollgate-Budget"))
		}
		d.holds(t, 2, 0)
	}, budgeted("{per_hour: 1.50}"))
}

// Endpoints count with all their workers, volumes and clusters with all they hold;
// what grows needs room, and what shrinks never does.
func TestWhatElseCounts(t *testing.T) {
	t.Parallel()
	const endpoint = `{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"min":0,"max":%d}}`
	eachDoor(t, func(t *testing.T, d *door) {
		create := d.ask(t, request("POST", "/v2/serverless", "key_research", fmt.Sprintf(endpoint, 2)))
		if create.Status != 201 {
			t.Fatalf("endpoint: %d %s", create.Status, create.Body)
		}
		at := "/v2/serverless/" + fmt.Sprint(field(t, create.Body, "id"))
		for _, step := range []struct {
			method, target, body string
			status               int
			budget               any
		}{
			{"PATCH", at, `{"workers":{"max":3}}`, 200, nil},
			{"PATCH", at, `{"workers":{"max":4}}`, 402, "team research workers"},
			{"POST", "/v2/serverless", fmt.Sprintf(endpoint, 1), 402, "team research workers"},
			{"PATCH", at, `{"workers":{"max":1}}`, 200, nil},
			{"PATCH", at, `{"workers":{"max":3}}`, 200, nil},
			{"DELETE", at, "", 204, nil},
			{"POST", "/v2/network-volumes", `{"name":"v","size":60,"dataCenter":"EU-RO-1","type":"STANDARD"}`, 201, nil},
			{"POST", "/v2/network-volumes", `{"name":"v","size":60,"dataCenter":"EU-RO-1","type":"STANDARD"}`, 402, "team research volume_gb"},
		} {
			a := d.ask(t, request(step.method, step.target, "key_research", step.body))
			if a.Status != step.status {
				t.Errorf("%s %s %s: %d %s, want %d", step.method, step.target, step.body, a.Status, a.Body, step.status)
			}
			if step.budget != nil && a.Status == step.status && field(t, a.Body, "budget") != step.budget {
				t.Errorf("%s %s %s: %s, want budget %s", step.method, step.target, step.body, a.Body, step.budget)
			}
		}
	}, budgeted("{workers: 3, volume_gb: 100}"))
}

// A create without a price is refused where a budget in money applies, and passes where none does.
func TestAnUnknownPrice(t *testing.T) {
	t.Parallel()
	const volume = `{"name":"v","size":60,"dataCenter":"EU-RO-1","type":"HIGH_PERFORMANCE"}`
	eachDoor(t, func(t *testing.T, d *door) {
		if a := d.ask(t, request("POST", "/v2/network-volumes", "key_research", volume)); a.Status != 403 || !strings.Contains(a.Body, "price of this call is unknown") {
			t.Errorf("with a budget in money: %d %s, want 403", a.Status, a.Body)
		}
	}, budgeted("{per_hour: 5}"), unpriced)
	eachDoor(t, func(t *testing.T, d *door) {
		if a := d.ask(t, request("POST", "/v2/network-volumes", "key_research", volume)); strings.Contains(a.Body, "price of this call is unknown") {
			t.Errorf("with a budget of volumes: %d %s", a.Status, a.Body)
		}
	}, budgeted("{volume_gb: 100}"), unpriced)
}

// unpriced has no rate for volumes of high performance, and drops the policy that
// refuses unknown prices by itself.
func unpriced(d *door) {
	d.text = strings.Replace(d.text, "catalog: {", "catalog: {storage: {high_performance: \"\"}, ", 1)
	d.text = strings.Replace(d.text, "      - policy: price_ceiling\n        params: {max_usd_per_hour: 40}\n", "", 1)
}

// An organisation without budgets pays nothing for the ledger: no key is written.
func TestWithoutBudgetsNothingIsCounted(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.rented(t, podL4)
		for _, key := range d.redis.Keys() {
			if strings.Contains(key, "spend") {
				t.Errorf("key %s was written", key)
			}
		}
	})
}

// An explanation shows the stage, and reserves nothing.
func TestAnExplanationShowsTheBudget(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{gpus: 1}"))
	d.reconcile(t)
	text := func() string {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/explain", strings.NewReader(
			`{"method":"POST","path":"/v2/pods","org":"acme","key":"key_research","body":`+fmt.Sprintf("%q", podL4)+`}`))
		r.Host = "127.0.0.1"
		d.gateway.AdminHandler().ServeHTTP(w, r)
		return w.Body.String()
	}
	for range 2 {
		if got := text(); !strings.Contains(got, "tightest budget: team research gpus, 0 of 1 left") {
			t.Errorf("explanation = %s, want the budget", got)
		}
	}
	d.rented(t, podL4)
	if got := text(); !strings.Contains(got, "budget team research gpus exceeded") {
		t.Errorf("explanation = %s, want a refusal", got)
	}
	d.holds(t, 1, 0)
}

// isolated lets only the team of a resource's maker change it.
func isolated(d *door) {
	d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    isolation: {change: team}", 1)
}

// A resource of another team is not there for those who would change it, in each dialect: their
// answer is that for a resource that does not exist.
func TestOthersCannotChangeIt(t *testing.T) {
	t.Parallel()
	const absent = "aaaaaaaaaaaaaa"
	eachDoor(t, func(t *testing.T, d *door) {
		d.reconcile(t)
		outside(t, d, "POST", "/v2/pods", strings.Replace(podL4, `"a"`, `"unowned"`, 1))
		d.reconcile(t)
		id := d.rented(t, podL4)
		for _, tt := range []struct{ method, path, body string }{
			{"DELETE", "/v2/pods/%s", ""},
			{"POST", "/v2/pods/%s/action", `{"action":"stop"}`},
			{"POST", "/v2/pods/%s/action", `{"action":"terminate"}`},
			{"PATCH", "/v2/pods/%s", `{"name":"mine"}`},
			{"DELETE", "/v1/pods/%s", ""},
			{"POST", "/v1/pods/%s/stop", ""},
			{"PATCH", "/v1/pods/%s", `{"name":"mine"}`},
		} {
			foreign := d.ask(t, request(tt.method, fmt.Sprintf(tt.path, id), "key_other", tt.body))
			missing := d.ask(t, request(tt.method, fmt.Sprintf(tt.path, absent), "key_other", tt.body))
			if foreign.Status != 404 || undecided(foreign.Body) != undecided(missing.Body) {
				t.Errorf("%s %s %s: %d %s, and of what does not exist: %d %s; want the same 404",
					tt.method, tt.path, tt.body, foreign.Status, foreign.Body, missing.Status, missing.Body)
			}
		}
		mutation := func(id string) answer {
			raw := graphql(fmt.Sprintf(`mutation { podStop(input: {podId: "%s"}) { id } }`, id))
			return d.ask(t, strings.Replace(raw, "key_research", "key_other", 1))
		}
		if foreign, missing := mutation(id), mutation(absent); undecided(foreign.Body) != undecided(missing.Body) || !strings.Contains(foreign.Body, "errors") {
			t.Errorf("GraphQL: %s, and of what does not exist: %s; want the same", foreign.Body, missing.Body)
		}
		for _, c := range d.platform.Calls() {
			if c.Method != "GET" && strings.Contains(c.Path, id) {
				t.Errorf("the platform was asked for %s %s", c.Method, c.Path)
			}
		}
		if a := d.ask(t, request("GET", "/v2/pods/"+id, "key_other", "")); a.Status != 200 {
			t.Errorf("reading it: %d %s, want 200", a.Status, a.Body)
		}
		for _, r := range d.ledger(t).Resources {
			if r.Name == "unowned" {
				if a := d.ask(t, request("POST", "/v2/pods/"+r.ID+"/action", "key_other", `{"action":"stop"}`)); a.Status != 404 {
					t.Errorf("stopping what no caller made: %d %s, want 404", a.Status, a.Body)
				}
			}
		}
		if a := d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_research", `{"action":"stop"}`)); a.Status != 200 {
			t.Errorf("stopping one's own: %d %s, want 200", a.Status, a.Body)
		}
		if a := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_platform", "")); a.Status != 204 {
			t.Errorf("an admin's delete: %d %s, want 204", a.Status, a.Body)
		}
	}, isolated, func(d *door) {
		d.text = strings.Replace(d.text, "      - {id: key_platform,", "      - {id: key_other, team: platform, sha256: SHA256(key_other), roles: [operator]}\n      - {id: key_platform,", 1)
	})
}

// undecided is a body without the id of its decision.
func undecided(body string) string {
	before, after, found := strings.Cut(body, `"decision":"`)
	if !found {
		return body
	}
	_, after, _ = strings.Cut(after, `"`)
	return before + after
}

// Whose workers' cost counts is the organisation's choice. The numbers of workers and GPUs count the maximum.
func TestWhichWorkersCount(t *testing.T) {
	const one, three = "1.10274", "3.308219" // USD per hour, with container disks
	for endpoints, want := range map[string]struct{ made, idle, busy string }{
		"max": {three, three, three}, "min": {one, one, one}, "active": {one, one, three},
	} {
		t.Run(endpoints, func(t *testing.T) {
			d := openDoor(t, "http", budgeted("{workers: 5, per_hour: 100}"), func(d *door) {
				d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    endpoints: "+endpoints, 1)
			})
			d.reconcile(t)
			a := d.ask(t, request("POST", "/v2/serverless", "key_research",
				`{"name":"e","image":"i:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"workers":{"min":1,"max":3},"scaling":{"type":"REQUEST_COUNT","requestCount":1}}`))
			if a.Status != 201 {
				t.Fatalf("create: %d %s", a.Status, a.Body)
			}
			counted := func(when, want string) {
				t.Helper()
				for _, r := range d.ledger(t).Resources {
					if r.Takes.PerHour != want || r.Takes.Workers != 3 || r.Takes.GPUs != 3 {
						t.Errorf("%s: %s USD per hour, %d workers and %d GPUs are counted, want %s, 3 and 3", when, r.Takes.PerHour, r.Takes.Workers, r.Takes.GPUs, want)
					}
				}
			}
			counted("made", want.made)
			d.advance(time.Minute)
			d.reconcile(t)
			counted("idle", want.idle)
			for range 6 {
				outsideAt(t, d.platform.RunURL, "POST", "/v2/"+fmt.Sprint(field(t, a.Body, "id"))+"/run", `{"input":{}}`)
			}
			d.advance(2 * time.Second)
			d.reconcile(t)
			counted("busy", want.busy)
		})
	}
}

// A v1 create takes the type that fits the budget when the one it would rather have
// does not.
func TestCheaperCandidatesAreTried(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		create := request("POST", "/v1/pods", "key_research",
			`{"name":"a","imageName":"img:1","gpuTypePriority":"custom","gpuTypeIds":["NVIDIA GeForce RTX 4090","NVIDIA L4"]}`)
		a := d.ask(t, create)
		if a.Status != 201 || !strings.Contains(a.Body, "NVIDIA L4") {
			t.Errorf("%d %s, want 201 with the cheaper type", a.Status, a.Body)
		}
		if a := d.ask(t, create); a.Status != 402 || !strings.Contains(a.Body, "budget team research per_hour exceeded") {
			t.Errorf("again: %d %s, want 402 that names the budget", a.Status, a.Body)
		}
	}, budgeted("{per_hour: 0.445}"))
}
