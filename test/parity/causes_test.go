package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

// mutation writes a GraphQL request of an admin, with its input as a variable.
func mutation(t *testing.T, field, kind, selection string, input map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"query":     fmt.Sprintf("mutation($in: %s) { %s(input: $in) %s }", kind, field, selection),
		"variables": map[string]any{"in": input},
	})
	if err != nil {
		t.Fatal(err)
	}
	return request("POST", "/graphql", "key_platform", string(text))
}

// A create in an old dialect is one call of the platform, beside those for prices that the catalog
// does not remember; the machine is waited for only by those who ask which it is.
func TestACreateIsOneCall(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := func(r string) []string {
			t.Helper()
			d.platform.ResetCalls()
			if a := d.ask(t, r); a.Status > 201 || strings.Contains(a.Body, "errors") {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			var calls []string
			for _, c := range d.platform.Calls() {
				if !strings.HasPrefix(c.Path, "/v2/catalog/") {
					calls = append(calls, c.Method+" "+c.Path)
				}
			}
			return calls
		}
		input := map[string]any{"gpuTypeId": "NVIDIA L4", "imageName": "i", "cloudType": "SECURE"}
		deploy := func(selection string) string {
			return mutation(t, "podFindAndDeployOnDemand", "PodFindAndDeployOnDemandInput", selection, input)
		}
		want := []string{"POST /v2/pods"}
		for _, selection := range []string{
			"{ id }", "{ id desiredStatus imageName env costPerHr }", "{ id machine { gpuDisplayName gpuTypeId secureCloud } }",
		} {
			if diff := cmp.Diff(want, made(deploy(selection))); diff != "" {
				t.Errorf("GraphQL %s (-want +got):\n%s", selection, diff)
			}
		}
		if diff := cmp.Diff(want, made(request("POST", "/v1/pods", "key_platform", `{"imageName":"i","gpuTypeIds":["NVIDIA L4"]}`))); diff != "" {
			t.Errorf("v1 (-want +got):\n%s", diff)
		}
		if calls := made(deploy("{ id machine { podHostId } }")); calls[0] != want[0] || len(calls) > 4 {
			t.Errorf("GraphQL with the machine: %v, want the create and three looks at most", calls)
		}
	})
}

// A body that an old dialect makes of settings it copies is not sent when it is
// longer than the platform takes.
func TestEndpointBodiesThatBecomeTooLarge(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		large := strings.Repeat("x", 51_400)
		source := d.asPlatform(t, "POST", "/v2/serverless", `{"name":"e","image":"i","args":"`+large+`","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`)
		before := len(d.platform.CallsTo("createEndpoint"))
		a := d.ask(t, mutation(t, "saveEndpoint", "EndpointInput", "{ id }", map[string]any{
			"name": "f", "gpuIds": "ADA_24", "templateId": "ept_" + fmt.Sprint(source["id"]), "env": []any{map[string]any{"key": "E", "value": large}},
		}))
		faults := translate.Items(decoded(t, a), "errors")
		if len(faults) != 1 || fmt.Sprint(translate.At(faults[0], "extensions", "status")) != "413" {
			t.Errorf("%d %s, want an error with status 413", a.Status, a.Body)
		}
		if n := len(d.platform.CallsTo("createEndpoint")) - before; n > 0 {
			t.Errorf("%d endpoints asked for, want none", n)
		}
	})
}

// What locations names stays within it: Iceland and Norway are not in the Union,
// whatever their data centers' ids begin with.
func TestLocationsOfEndpoints(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for locations, prefixes := range map[string][]string{
			"EU": {"EU-"}, "EUR": {"EUR-"}, "EU-RO": {"EU-RO-"}, "EU,US-TX": {"EU-", "US-TX-"}, "EUR-NO-1": {"EUR-NO-1"}, "NO": {"EUR-NO-"},
		} {
			a := d.ask(t, mutation(t, "saveEndpoint", "EndpointInput", "{ id }", map[string]any{
				"name": "e", "gpuIds": "ADA_24,AMPERE_24,AMPERE_16", "locations": locations, "template": map[string]any{"imageName": "i"},
			}))
			id := translate.Text(decoded(t, a), "data", "saveEndpoint", "id")
			if id == "" {
				t.Errorf("%s: %d %s", locations, a.Status, a.Body)
				continue
			}
			centers := translate.Texts(any(d.asPlatform(t, "GET", "/v2/serverless/"+id, "")), "dataCenterIds")
			inside := func(id string) bool {
				return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(id, p) })
			}
			if len(centers) == 0 || slices.ContainsFunc(centers, func(id string) bool { return !inside(id) }) {
				t.Errorf("%s: placed in %v, want all of %v", locations, centers, prefixes)
			}
			d.asPlatform(t, "DELETE", "/v2/serverless/"+id, "")
			d.advance(time.Minute)
		}
	})
}

// A data center that is not known is refused in v1's own words.
func TestUnknownDataCenters(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, request("POST", "/v1/networkvolumes", "key_platform", `{"name":"v","size":10,"dataCenterId":"EU-XX-1"}`))
		if got, want := translate.Text(decoded(t, a), "message"), `create network volume: Data center "EU-XX-1" not found`; a.Status != 400 || got != want {
			t.Errorf("volume: %d %q, want 400 %q", a.Status, got, want)
		}
		a = d.ask(t, request("POST", "/v1/networkvolumes", "key_platform", `{"name":"v","size":10,"dataCenterId":"US-DE-1"}`))
		if got := translate.Text(decoded(t, a), "message"); a.Status != 400 || strings.Contains(got, "not found") {
			t.Errorf("volume where there are none: %d %q, want 400 in the platform's words", a.Status, got)
		}
		template := answeredID(d.ask(t, request("POST", "/v1/templates", "key_platform", `{"name":"w","imageName":"i","isServerless":true}`)))
		endpoint := answeredID(d.ask(t, request("POST", "/v1/endpoints", "key_platform", `{"name":"e","templateId":"`+template+`","gpuTypeIds":["NVIDIA L4"]}`)))
		for _, c := range []struct{ method, path, body, verb string }{
			{"POST", "/v1/pods", `{"name":"a","imageName":"i","gpuTypeIds":["NVIDIA L4"],"dataCenterIds":%s}`, "create pod"},
			{"POST", "/v1/pods", `{"name":"a","imageName":"i","computeType":"CPU","cpuFlavorIds":["cpu3c"],"dataCenterIds":%s}`, "create pod"},
			{"POST", "/v1/endpoints", `{"name":"f","templateId":"` + template + `","gpuTypeIds":["NVIDIA L4"],"dataCenterIds":%s}`, "create endpoint"},
			{"PATCH", "/v1/endpoints/" + endpoint, `{"dataCenterIds":%s}`, "update endpoint"},
		} {
			for _, centers := range []string{`["EU-XX-1"]`, `["EU-RO-1","EU-XX-1"]`} {
				a := d.ask(t, request(c.method, c.path, "key_platform", fmt.Sprintf(c.body, centers)))
				if got, want := translate.Text(decoded(t, a), "message"), c.verb+`: Data center "EU-XX-1" not found`; a.Status != 400 || got != want {
					t.Errorf("%s %s in %s: %d %q, want 400 %q", c.method, c.path, centers, a.Status, got, want)
				}
			}
		}
	})
}

// Billing by GPU type knows the types of endpoints that are gone, also of those that
// were made and deleted past the old interfaces, once they have been seen.
func TestBillingKnowsDeletedEndpoints(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		types := func() []string {
			t.Helper()
			a := d.ask(t, request("GET", "/v1/billing/endpoints?bucketSize=day&grouping=gpuTypeId", "key_platform", ""))
			var ids []string
			for _, r := range decoded(t, a).([]any) {
				ids = append(ids, translate.Text(r, "gpuTypeId"))
			}
			slices.Sort(ids)
			return slices.Compact(ids)
		}
		byV1 := translate.Text(decoded(t, d.ask(t, request("POST", "/v1/templates", "key_platform", `{"name":"w","imageName":"i","isServerless":true}`))), "id")
		made := d.ask(t, request("POST", "/v1/endpoints", "key_platform", `{"name":"a","templateId":"`+byV1+`","gpuTypeIds":["NVIDIA L4"],"workersMin":1}`))
		first := translate.Text(decoded(t, made), "id")
		second := d.asPlatform(t, "POST", "/v2/serverless", `{"name":"b","image":"i","cpu":[{"id":"cpu3c","vcpuCount":2}],"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"workers":{"min":1,"max":1}}`)
		d.advance(time.Hour)
		if got := types(); len(got) != 2 || slices.Contains(got, "unknown") {
			t.Fatalf("while they are there: %v, want two types", got)
		}
		want := types()
		if a := d.ask(t, request("DELETE", "/v1/endpoints/"+first, "key_platform", "")); a.Status != 204 {
			t.Fatalf("delete: %d %s", a.Status, a.Body)
		}
		d.asPlatform(t, "DELETE", "/v2/serverless/"+fmt.Sprint(second["id"]), "")
		d.advance(time.Hour)
		if diff := cmp.Diff(want, types()); diff != "" {
			t.Errorf("when they are gone (-want +got):\n%s", diff)
		}
	})
}
