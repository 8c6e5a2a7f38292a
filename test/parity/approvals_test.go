package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// approvableCeiling refuses podL4, which costs 0.43274 USD per hour.
const approvableCeiling = `
- policy: price_ceiling
  approvable: true
  params: {max_usd_per_hour: 0.4}
- policy: gpu_count
  params: {max_per_pod: 1}
`

// asked lists the requests for approval of an organisation.
func (d *door) asked(t *testing.T, org string) []approval.Record {
	t.Helper()
	return asOperator[struct{ Approvals []approval.Record }](t, d, "GET", "/admin/approvals?org="+org).Approvals
}

// grants answers a request for approval and returns the status.
func (d *door) grants(t *testing.T, verb, org, id string, more ...string) int {
	t.Helper()
	q := url.Values{"org": {org}, "id": {id}, "by": {"ada"}, "reason": {"a demo"}}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		q.Set(name, value)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/approvals/"+verb+"?"+q.Encode(), http.NoBody)
	r.Host = "127.0.0.1"
	d.gateway.AdminHandler().ServeHTTP(w, r)
	return w.Code
}

var approvalID = regexp.MustCompile(`ap-[0-9A-Z]{26}`)

// refusedWith fails unless an answer is a refusal that can be approved, and returns the id.
func refusedWith(t *testing.T, a answer, status int) string {
	t.Helper()
	id := approvalID.FindString(a.Body)
	if a.Status != status || id == "" || !strings.Contains(a.Body, "tollgate approvals grant acme "+id) {
		t.Fatalf("%d %s, want %d that says how to have it approved", a.Status, a.Body, status)
	}
	return id
}

// In each dialect a refusal carries the id of a request for approval, and once that is
// granted the very same call passes, once, and is logged with the person who granted it.
func TestApprovals(t *testing.T) {
	const deploy = `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`
	for _, tt := range []struct {
		name, call string
		refused    int
		passed     func(a answer) bool
	}{
		{"v2", request("POST", "/v2/pods", "key_research", podL4), 403, func(a answer) bool { return a.Status == 201 }},
		{"v1", request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`), 403, func(a answer) bool { return a.Status == 201 }},
		{"GraphQL", graphql(deploy), 200, func(a answer) bool { return a.Status == 200 && !strings.Contains(a.Body, `"errors"`) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				refusal := d.ask(t, tt.call)
				id := refusedWith(t, refusal, tt.refused)
				if again := refusedWith(t, d.ask(t, tt.call), tt.refused); again != id {
					t.Errorf("the repeat has become %s, want %s", again, id)
				}
				switch tt.name {
				case "v2":
					if got := field(t, refusal.Body, "approval").(map[string]any); got["id"] != id || got["state"] != "pending" {
						t.Errorf("approval = %v, want %s pending", got, id)
					}
				case "GraphQL":
					if !strings.Contains(refusal.Body, `"approval":"`+id+`"`) {
						t.Errorf("%s lacks the extension", refusal.Body)
					}
				}
				if list := d.asked(t, "acme"); len(list) != 1 || list[0].ID != id || list[0].State != approval.Pending || !strings.HasPrefix(list[0].USD, "0.43") || list[0].Per != approval.PerHour || list[0].Operation != "createPod" || list[0].Summary != "1 x NVIDIA L4" {
					t.Fatalf("requests = %+v, want %s", list, id)
				}
				if code := d.grants(t, "grant", "acme", id); code != 200 {
					t.Fatalf("grant: %d", code)
				}
				pass := d.ask(t, tt.call)
				if !tt.passed(pass) {
					t.Fatalf("the repeat: %d %s, want it to pass", pass.Status, pass.Body)
				}
				if next := refusedWith(t, d.ask(t, tt.call), tt.refused); next == id {
					t.Errorf("the grant of %s was not used up", id)
				}
				if logs := d.logs.String(); !strings.Contains(logs, `"excepted":["`+id+`"]`) {
					t.Error("the exchange is logged without the approval")
				}
				for _, r := range d.asked(t, "acme") {
					if r.ID == id && (r.State != approval.Used || r.UsedBy == "" || r.Answer.By != "ada") {
						t.Errorf("%+v, want it used by a decision and granted by ada", r)
					}
				}
			}, under(approvableCeiling))
		})
	}
}

// A grant is for one caller, one call and one price; it lifts the policies that it names, and
// neither other policies nor the schema.
func TestAGrantIsForOneCall(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		create := func(key, body string) answer { return d.ask(t, request("POST", "/v2/pods", key, body)) }
		id := refusedWith(t, create("key_research", podL4), 403)
		if code := d.grants(t, "grant", "globex", id); code != 400 {
			t.Errorf("granted for another organisation: %d, want 400", code)
		}
		if code := d.grants(t, "grant", "acme", id, "by="); code != 400 {
			t.Errorf("granted without a name: %d, want 400", code)
		}
		if code := d.grants(t, "grant", "acme", id); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		refusedWith(t, create("key_platform", podL4), 403) // another key, even another team's
		for _, body := range []string{
			`{"name":"b","image":"img:1","gpu":{"id":"NVIDIA L4"}}`,
			`{"name":"a","image":"img:2","gpu":{"id":"NVIDIA L4"}}`,
			`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"env":{"TOKEN":"hush-hush"}}`,
			`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}`,
		} {
			if other := refusedWith(t, create("key_research", body), 403); other == id {
				t.Errorf("%s is what was granted", body)
			}
		}
		for body, want := range map[string]int{
			`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":2}}`:           403, // gpu_count is not approvable
			`{"name":"a","name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`:          400,
			`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","id":"NVIDIA L4"}}`:    400,
			`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"unheardOf":"value"}`: 422,
		} {
			if a := create("key_research", body); a.Status != want || strings.Contains(a.Body, "ap-") {
				t.Errorf("%s: %d %s, want %d that cannot be approved", body, a.Status, a.Body, want)
			}
		}
		for _, r := range d.asked(t, "acme") {
			if strings.Contains(string(r.Body), "hush") {
				t.Errorf("operators are shown a secret: %s", r.Body)
			}
		}
		if list := d.asked(t, "globex"); len(list) != 0 {
			t.Errorf("another organisation sees %+v", list)
		}
		// The order of members and white space are not the call.
		if a := create("key_research", `{"gpu": {"id": "NVIDIA L4"}, "image": "img:1", "name": "a"}`); a.Status != 201 {
			t.Errorf("what was granted: %d %s, want 201", a.Status, a.Body)
		}
	}, under(approvableCeiling))
}

// Grants are bounded by price and in time, and can be denied.
func TestWhatEndsAGrant(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		call := request("POST", "/v2/pods", "key_research", podL4)
		id := refusedWith(t, d.ask(t, call), 403)
		if code := d.grants(t, "grant", "acme", id, "max_usd=0.43"); code != 400 {
			t.Errorf("grant of less than the price: %d, want 400", code)
		}
		if code := d.grants(t, "grant", "acme", id, "for=10h"); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		if err := d.platform.SetPrice("NVIDIA L4", platform.Price{Secure: 1.43, Community: 1.43, Serverless: 1.43}); err != nil {
			t.Fatal(err)
		}
		d.advance(2 * time.Hour) // past any price list's age
		next := refusedWith(t, d.ask(t, call), 403)
		if next == id {
			t.Fatal("a call that costs more than was granted is not asked anew")
		}
		if code := d.grants(t, "grant", "acme", id); code != 400 {
			t.Errorf("grant of what was replaced: %d, want 400", code)
		}
		if code := d.grants(t, "grant", "acme", next, "for=10m"); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		d.redis.FastForward(11 * time.Minute)
		d.advance(11 * time.Minute)
		last := refusedWith(t, d.ask(t, call), 403)
		if code := d.grants(t, "deny", "acme", last); code != 200 {
			t.Fatalf("deny: %d", code)
		}
		if a := d.ask(t, call); a.Status != 403 || !strings.Contains(a.Body, last+" was denied by ada: a demo") {
			t.Errorf("%d %s, want the denial", a.Status, a.Body)
		}
		if code := d.grants(t, "grant", "acme", last, "for=200h"); code != 400 {
			t.Errorf("a grant for 200 hours: %d, want 400", code)
		}
	}, under(approvableCeiling))
}

// A grant that two calls race for lets one pass, and one that a call did not need is
// there for the next.
func TestAGrantIsSpentOnce(t *testing.T) {
	eachDoor(t, func(t *testing.T, d *door) {
		call := request("POST", "/v2/pods", "key_research", podL4)
		if code := d.grants(t, "grant", "acme", refusedWith(t, d.ask(t, call), 403)); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		stock := func(total int) {
			if err := d.platform.SetStock("NVIDIA L4", "", "", total); err != nil {
				t.Fatal(err)
			}
		}
		stock(0)
		if a := d.ask(t, call); a.Status == 201 || a.Status == 403 {
			t.Fatalf("without stock: %d %s, want the platform's refusal", a.Status, a.Body)
		}
		stock(10)
		var passed atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if a := d.ask(t, call); a.Status == 201 {
					passed.Add(1)
				} else if a.Status != 403 {
					t.Errorf("%d %s, want 201 or 403", a.Status, a.Body)
				}
			})
		}
		group.Wait()
		if got := passed.Load(); got != 1 {
			t.Errorf("%d calls passed, want 1", got)
		}
	}, under(approvableCeiling))
}

// The refusal by a budget is approved likewise: the ceilings it names are passed once.
func TestABudgetIsPassedByApproval(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		call := request("POST", "/v2/pods", "key_research", podL4)
		id := refusedWith(t, d.ask(t, call), 402)
		list := d.asked(t, "acme")
		if len(list) != 1 || len(list[0].Refusals) != 2 || list[0].Refusals[0].By != "budget team research per_hour" || list[0].Refusals[1].By != "budget team research per_day" {
			t.Fatalf("requests = %+v, want one about both ceilings", list)
		}
		if code := d.grants(t, "grant", "acme", id); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		if a := d.ask(t, call); a.Status != 201 {
			t.Fatalf("the repeat: %d %s, want 201", a.Status, a.Body)
		}
		d.holds(t, 1, 0)
		if next := refusedWith(t, d.ask(t, call), 402); next == id {
			t.Errorf("the grant of %s was not used up", id)
		}
		if logs := d.logs.String(); !strings.Contains(logs, `"excepted":["`+id+`"]`) {
			t.Error("the exchange is logged without the approval")
		}
		// A ceiling of the organisation is not approvable: nothing can be asked.
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":2}}`)); a.Status != 402 || strings.Contains(a.Body, "ap-") {
			t.Errorf("over the organisation's budget: %d %s, want 402 that cannot be approved", a.Status, a.Body)
		}
	}, under("[]"), budgeted("{per_hour: 0.4, per_day: 0.4, approvable: true}"), func(d *door) {
		d.text = strings.Replace(d.text, "    credential: {env: ACME}\n", "    credential: {env: ACME}\n    budget: {gpus: 2}\n", 1)
	})
}

// A policy and a budget are approved together, by one request.
func TestAPolicyAndABudgetAreApprovedTogether(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		call := request("POST", "/v2/pods", "key_research", podL4)
		first := refusedWith(t, d.ask(t, call), 403)
		if code := d.grants(t, "grant", "acme", first); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		both := refusedWith(t, d.ask(t, call), 402)
		var names []string
		for _, r := range d.asked(t, "acme") {
			for _, refusal := range r.Refusals {
				names = append(names, refusal.By)
			}
		}
		if got, want := strings.Join(names, ", "), "budget team research per_hour, price_ceiling"; got != want {
			t.Errorf("asked about %s, want %s", got, want)
		}
		if code := d.grants(t, "grant", "acme", both); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		if a := d.ask(t, call); a.Status != 201 {
			t.Errorf("the repeat: %d %s, want 201", a.Status, a.Body)
		}
	}, under(approvableCeiling), budgeted("{per_hour: 0.4, approvable: true}"))
}

// Without the store, refusals are refusals.
func TestApprovalsWithoutAStore(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		call := request("POST", "/v2/pods", "key_exempt", podL4)
		if code := d.grants(t, "grant", "acme", refusedWith(t, d.ask(t, call), 403)); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		d.redis.SetError("ERR away")
		if a := d.ask(t, call); a.Status < 400 || strings.Contains(a.Body, "ap-") {
			t.Errorf("%d %s, want a refusal", a.Status, a.Body)
		}
		d.redis.SetError("")
	}, under(approvableCeiling))
}

// A dry run asks for nothing and uses nothing up.
func TestApprovalsAreExplained(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		dry := request("POST", "/v2/pods", "key_research", podL4, "Tollgate-Dry-Run: true")
		if a := d.ask(t, dry); a.Status != 200 || !strings.Contains(a.Body, "an operator can approve this call") {
			t.Fatalf("dry run: %d %s, want a hint that an operator can approve the call", a.Status, a.Body)
		}
		if list := d.asked(t, "acme"); len(list) != 0 {
			t.Fatalf("a dry run has asked: %+v", list)
		}
		call := request("POST", "/v2/pods", "key_research", podL4)
		refusal := d.ask(t, call)
		id := refusedWith(t, refusal, 403)
		decision := fmt.Sprint(field(t, refusal.Body, "decision"))
		x := asOperator[map[string]any](t, d, "GET", "/admin/decisions/"+decision)
		text, err := json.Marshal(x)
		if err != nil || x["approval"] != id || !strings.Contains(string(text), "or have it approved: tollgate approvals grant acme "+id) {
			t.Errorf("explained as %s (%v), want the approval", text, err)
		}
		if code := d.grants(t, "grant", "acme", id); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		for range 2 {
			if a := d.ask(t, dry); a.Status != 200 || strings.Contains(a.Body, "price_ceiling: ") && !strings.Contains(a.Body, "allowed") {
				t.Errorf("dry run of what was granted: %d %s", a.Status, a.Body)
			}
		}
		if a := d.ask(t, call); a.Status != 201 {
			t.Errorf("after dry runs: %d %s, want 201", a.Status, a.Body)
		}
	}, under(approvableCeiling))
}
