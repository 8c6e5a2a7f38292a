package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
)

// An answer of the platform that is none, with a status of success, is a 502 in the
// old dialects. It does not mean that there is nothing.
func TestAnswersThatAreNone(t *testing.T) {
	reads := []struct {
		operation, v1, graphql string
		bodies                 []string // besides those that no operation answers
	}{
		{"listPods", "/pods", "myself { pods { id } }", []string{`{"pods":null}`, `{"pods":{}}`}},
		{"getPod", "/pods/x", `pod(input: {podId: "x"}) { id }`, nil},
		{"listEndpoints", "/endpoints", "myself { endpoints { id } }", []string{`{"endpoints":"none"}`}},
		{"getEndpoint", "/endpoints/x", `myself { endpoint(id: "x") { id } }`, nil},
		{"listTemplates", "/templates", "myself { podTemplates { id } }", []string{`{"items":[]}`}},
		{"getTemplate", "/templates/x", `podTemplate(id: "x") { id }`, nil},
		{"listNetworkVolumes", "/networkvolumes", "myself { networkVolumes { id } }", nil},
		{"getNetworkVolume", "/networkvolumes/x", "", nil},
		{"listRegistries", "/containerregistryauth", "myself { containerRegistryCreds { id } }", nil},
		{"getRegistry", "/containerregistryauth/x", "", nil},
		{"listPodBilling", "/billing/pods", "", []string{`{"records":null}`}},
		{"listServerlessBilling", "/billing/endpoints", "", nil},
		{"listNetworkVolumeBilling", "/billing/networkvolumes", "", nil},
		{"getSshKeys", "", "myself { pubKey }", []string{`{"keys":null}`}},
		{"listGpuTypes", "", "gpuTypes { id }", []string{`{"gpus":null}`}},
		{"listCpuTypes", "", "cpuFlavors { id }", nil},
		{"listDataCenters", "", "dataCenters { id }", nil},
		{"listPublicTemplates", "/templates?includePublicTemplates=true", "podTemplates { id }", nil},
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, r := range reads {
			for _, body := range append([]string{"not JSON", " ", "null", "[]", "{}", `"pods"`}, r.bodies...) {
				d.platform.ClearFaults()
				d.platform.AddFault(platform.Fault{Operation: r.operation, Kind: platform.FaultMalformed, Body: body})
				d.advance(catalogKept) // what the catalog failed to tell is asked again
				if r.v1 != "" {
					if a := d.ask(t, request("GET", "/v1"+r.v1, "key_exempt", "")); a.Status != 502 {
						t.Errorf("v1 %s, %s answers %q: %d %.200s, want 502", r.v1, r.operation, body, a.Status, a.Body)
					}
				}
				if r.graphql == "" {
					continue
				}
				d.advance(catalogKept)
				a := d.ask(t, request("POST", "/graphql", "key_exempt", fmt.Sprintf(`{"query":%q}`, "{ "+r.graphql+" }")))
				faults := translate.Items(decoded(t, a), "errors")
				if len(faults) == 0 || fmt.Sprint(translate.At(faults[0], "extensions", "status")) != "502" || strings.Contains(a.Body, "[]") {
					t.Errorf("GraphQL %s, %s answers %q: %d %.300s, want an error with status 502", r.graphql, r.operation, body, a.Status, a.Body)
				}
			}
		}
	})
}
