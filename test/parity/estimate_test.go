package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// estimated asks what would become of a request, and holds the answer against its
// schema.
func (d *door) estimated(t *testing.T, raw string) explain.Estimate {
	t.Helper()
	a := d.ask(t, strings.Replace(raw, "\r\n", "\r\nTollgate-Dry-Run: true\r\n", 1))
	var doc any
	var e explain.Estimate
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil || a.Status != 200 {
		t.Fatalf("dry run: %d %s, want 200", a.Status, a.Body)
	}
	if err := jsonschema.MustCompile("../../docs/estimate.schema.json").Validate(doc); err != nil {
		t.Errorf("%s is not of the schema: %v", a.Body, err)
	}
	if err := json.Unmarshal([]byte(a.Body), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// A dry run tells the cost of a call and the room in its budgets, in each dialect. Nothing is
// sent, reserved or counted but the request itself.
func TestDryRun(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.reconcile(t)
		create := request("POST", "/v2/pods", "key_research", podL4, "Idempotency-Key: once")
		quota := d.ask(t, request("GET", "/v2/catalog/gpus", "key_research", "")).Header.Get("RateLimit")
		got := d.estimated(t, create)
		want := explain.Estimate{Outcome: explain.Outcome{Verdict: explain.Allowed}, Calls: []explain.EstimatedCall{{
			Operation: "createPod", Method: "POST", Path: "/v2/pods", Outcome: explain.Outcome{Verdict: explain.Allowed},
			Cost:    &explain.EstimatedCost{USDPerHour: "0.43274", USDPerMonth: "315.9002", Basis: got.Calls[0].Cost.Basis},
			Budgets: []explain.EstimatedBudget{{Budget: "team research per_hour", Limit: "1.5", Before: "0", After: "0.43274"}},
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("estimate (-want +got):\n%s", diff)
		}
		after := d.ask(t, request("GET", "/v2/catalog/gpus", "key_research", "")).Header.Get("RateLimit")
		left := func(header string) (n int) {
			_, _ = fmt.Sscanf(header, `"minute";r=%d`, &n)
			return n
		}
		if left(quota)-left(after) != 2 {
			t.Errorf("RateLimit = %s before and %s after, want the dry run counted once", quota, after)
		}
		if calls := d.platform.CallsTo("createPod"); len(calls) != 0 {
			t.Errorf("the platform was asked %d times", len(calls))
		}
		if l := d.ledger(t); len(l.Holds)+len(l.Resources) != 0 {
			t.Errorf("the ledger has %v and %v, want nothing", l.Holds, l.Resources)
		}
		pod := d.rented(t, podL4)
		d.rented(t, podL4)
		d.rented(t, podL4)
		const deploy = `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`
		for name, raw := range map[string]string{
			"v2": create, "v1": request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`), "GraphQL": graphql(deploy),
		} {
			e := d.estimated(t, raw)
			at := slices.IndexFunc(e.Calls, func(c explain.EstimatedCall) bool { return c.Operation == "createPod" })
			if e.Verdict != explain.Refused || at < 0 || e.Calls[at].Status != 402 || !strings.Contains(e.Calls[at].Detail, "budget team research per_hour exceeded") ||
				len(e.Calls[at].Budgets) != 1 || e.Calls[at].Budgets[0].Before != "1.29822" {
				t.Errorf("%s: %+v, want a refusal with the budget", name, e)
			}
		}
		if got := d.estimated(t, request("DELETE", "/v2/pods/"+pod, "key_platform", "")); got.Verdict != explain.Allowed || len(got.Calls) != 1 || len(got.Calls[0].Budgets) != 0 {
			t.Errorf("another team's pod: %+v, want no word of that team's budgets", got)
		}
		denied := d.estimated(t, request("POST", "/v2/pods", "key_research", strings.Replace(podL4, "NVIDIA L4", "NVIDIA H200", 1)))
		if denied.Verdict != explain.Refused || denied.Status != 403 || len(denied.Calls[0].Policies) != 1 || denied.Calls[0].Policies[0].Policy != "gpu_allow_list" {
			t.Errorf("what a policy denies: %+v, want its denial alone", denied)
		}
		if invalid := d.estimated(t, request("POST", "/v2/pods", "key_research", `{"name":"a"}`)); invalid.Status != 400 && invalid.Status != 422 {
			t.Errorf("what is not valid: %+v, want its refusal", invalid)
		}
		d.holds(t, 3, 0)
		for _, value := range []string{"yes", "TRUE", "true\r\nTollgate-Dry-Run: true"} {
			if a := d.ask(t, strings.Replace(create, "\r\n", "\r\nTollgate-Dry-Run: "+value+"\r\n", 1)); a.Status != 400 {
				t.Errorf("%s: %d %s, want 400", value, a.Status, a.Body)
			}
		}
	}, budgeted("{per_hour: 1.50}"))
}

// A dry run of a v1 call reads what the gateway has stored, and leaves it unchanged.
func TestDryRunReadsNotes(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	template, queue := queueFromTemplate(t, d)
	if e := d.estimated(t, request("DELETE", "/v1/templates/"+template, "key_research", "")); e.Verdict != explain.Refused || e.Status != 400 {
		t.Errorf("%+v, want status 400, because the endpoint is bound", e)
	}
	if e := d.estimated(t, request("DELETE", "/v1/endpoints/"+queue, "key_research", "")); e.Verdict != explain.Allowed {
		t.Errorf("%+v, want it allowed", e)
	}
	if e := d.estimated(t, request("PATCH", "/v1/templates/"+template, "key_research", `{"readme":"x"}`)); e.Verdict != explain.Allowed {
		t.Errorf("%+v, want it allowed", e)
	}
	a := d.ask(t, request("GET", "/v1/templates/"+template, "key_research", ""))
	if got := field(t, a.Body, "readme"); got != "" {
		t.Errorf("readme %v, want none", got)
	}
	a = d.ask(t, request("GET", "/v1/endpoints/"+queue, "key_research", ""))
	if got := field(t, a.Body, "templateId"); got != template {
		t.Errorf("template %v, want %s", got, template)
	}
}
