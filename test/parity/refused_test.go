package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// pods are creates of the same pod in each dialect.
var pods = map[string]string{
	"v2":      request("POST", "/v2/pods", "key_research", podL4),
	"v1":      request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`),
	"graphql": graphql(`mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`),
}

// failure is the one error of a GraphQL answer.
type failure struct {
	Message    string
	Extensions map[string]any
}

func failureOf(t *testing.T, a answer) failure {
	t.Helper()
	var body struct{ Errors []failure }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil || len(body.Errors) != 1 {
		t.Fatalf("%d %s: want one error (%v)", a.Status, a.Body, err)
	}
	return body.Errors[0]
}

// A refusal of the gateway has the same parts in each dialect as in v2: why, which kind of refusal
// it is, the missing room of a budget, when to come again. A call that took nothing has no cost.
func TestRefusalsSayTheSameInEachDialect(t *testing.T) {
	away := func(t *testing.T, d *door) { t.Helper(); d.redis.Close() }
	for kind, c := range map[string]struct {
		with   option
		before func(t *testing.T, d *door)
		status int
	}{
		"budget_exceeded":    {budgeted("{gpus: 1}"), func(t *testing.T, d *door) { t.Helper(); d.rented(t, podL4) }, 402},
		"forbidden":          {under("- policy: kill_switch\n"), func(*testing.T, *door) {}, 403},
		"limits_unavailable": {func(*door) {}, away, 503},
		"ledger_unavailable": {func(d *door) {
			budgeted("{gpus: 1}")(d)
			d.text = strings.Replace(d.text, "    teams: [{id", "    failure: {write: open}\n    teams: [{id", 1)
		}, away, 503},
		"price_unavailable": {under("- policy: price_ceiling\n  params: {max_usd_per_hour: 40}\n"), func(_ *testing.T, d *door) {
			d.platform.AddFault(platform.Fault{Kind: platform.FaultStatus, Status: 500, Operation: "listGpuTypes"})
		}, 503},
	} {
		t.Run(kind, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				d.ask(t, request("GET", "/v2/pods", "key_research", ""))
				c.before(t, d)
				v2, v1, gql := d.ask(t, pods["v2"]), d.ask(t, pods["v1"]), d.ask(t, pods["graphql"])
				detail := fmt.Sprint(field(t, v2.Body, "detail"))
				if v2.Status != c.status {
					t.Fatalf("v2: %d %s, want %d", v2.Status, v2.Body, c.status)
				}
				if message := fmt.Sprint(field(t, v1.Body, "message")); v1.Status != c.status || !strings.Contains(message, detail) {
					t.Errorf("v1: %d %s, want %d and %q", v1.Status, v1.Body, c.status, detail)
				}
				f := failureOf(t, gql)
				if !strings.Contains(f.Message, detail) || f.Extensions["kind"] != kind || f.Extensions["status"] != float64(c.status) || f.Extensions["decision"] == nil {
					t.Errorf("GraphQL: %s, want %q, %s and a decision", gql.Body, detail, kind)
				}
				var want map[string]any
				if kind == "budget_exceeded" {
					want = map[string]any{"budget": "team research gpus", "limit": 1.0, "used": 1.0, "reserved": 0.0, "needs": 1.0, "room_at": nil}
				}
				got, _ := f.Extensions["shortfall"].(map[string]any)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("GraphQL's shortfall (-want +got):\n%s", diff)
				}
				for dialect, a := range map[string]answer{"v2": v2, "v1": v1, "graphql": gql} {
					if got, want := a.Header.Get("Retry-After"), v2.Header.Get("Retry-After"); got != want || (c.status == 503) != (got != "") {
						t.Errorf("%s: Retry-After %q, in v2 %q", dialect, got, want)
					}
					for _, name := range []string{"X-Tollgate-Cost", "X-Tollgate-Budget"} {
						if v := a.Header.Get(name); v != "" {
							t.Errorf("%s: %s: %s on what took nothing", dialect, name, v)
						}
					}
				}
			}, c.with)
		})
	}
}

// A call that the platform refuses takes nothing either: its answer has no cost, and says of no
// budget that it has less left.
func TestWhatThePlatformRefusesHasNoCost(t *testing.T) {
	for _, status := range []int{400, 402, 403, 409, 422} {
		for dialect, raw := range pods {
			t.Run(fmt.Sprint(dialect, status), func(t *testing.T) {
				eachDoor(t, func(t *testing.T, d *door) {
					d.platform.AddFault(platform.Fault{Kind: platform.FaultStatus, Status: status, Operation: "createPod"})
					a := d.ask(t, raw)
					if cost, budget := a.Header.Get("X-Tollgate-Cost"), a.Header.Get("X-Tollgate-Budget"); cost+budget != "" || answeredID(a) != "" {
						t.Errorf("%d %s: cost %q and budget %q, want neither", a.Status, a.Body, cost, budget)
					}
					d.holds(t, 0, 0)
				}, budgeted("{gpus: 1}"))
			})
		}
	}
}
