package parity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNamesThatTheCatalogLacks: once the catalog was read, the status names parameters that name a
// value outside it, and no others, and so does the log, then and at a load.
func TestNamesThatTheCatalogLacks(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", func(d *door) {
		d.text = strings.Replace(d.text, "    policies:\n", `    policies:
      - {policy: gpu_allow_list, mode: shadow, params: {gpus: ["NVIDIA L4", "RTX 4090"], by_offer: {SECURE: ["NVIDIA L5"]}}}
      - {policy: data_centers, mode: shadow, params: {allow: [EU-R0-1, EU-RO-1, CA-MTL-2, "EU-*", "EUW-*"]}}
      - {policy: pools, mode: shadow, params: {pools: [ADA_24, ADA_42]}}
      - {policy: cpu_flavors, mode: shadow, params: {flavors: [cpu5c, cpu3c-4-8, cpu7c]}}
`, 1)
	})
	unlisted := func() []string {
		var s struct {
			Policies []struct {
				Org      string
				Unlisted []string
			}
		}
		d.asOperator(t, "GET", "/admin/status", "", &s)
		for _, p := range s.Policies {
			if p.Org == "acme" {
				return p.Unlisted
			}
		}
		t.Fatal("the status has no organisation acme")
		return nil
	}
	if got := unlisted(); got != nil {
		t.Errorf("before the catalog was read: %q", got)
	}
	if a := d.ask(t, request("POST", "/v2/pods", "key_exempt", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)); a.Status != 201 {
		t.Fatalf("create: %d %s", a.Status, a.Body)
	}
	want := []string{
		`policies[0].params.by_offer.SECURE[0]: "NVIDIA L5" is not in the platform's catalog`,
		`policies[0].params.gpus[1]: "RTX 4090" is not in the platform's catalog, did you mean "NVIDIA GeForce RTX 4090"?`,
		`policies[1].params.allow[0]: "EU-R0-1" is not in the platform's catalog`,
		`policies[1].params.allow[4]: "EUW-*" is not in the platform's catalog`,
		`policies[2].params.pools[1]: "ADA_42" is not in the platform's catalog`,
		`policies[3].params.flavors[2]: "cpu7c" is not in the platform's catalog`,
	}
	if diff := cmp.Diff(want, unlisted()); diff != "" {
		t.Errorf("unlisted (-want +got):\n%s", diff)
	}
	const told = "policy parameter contains a name that is not in the platform's catalog"
	if n := strings.Count(d.logs.String(), told); n != len(want) {
		t.Errorf("told of %d, want %d", n, len(want))
	}
	if err := d.gateway.Swap(load(t, d.text, d.upstream)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(d.logs.String(), told); n != 2*len(want) {
		t.Errorf("told of %d after the configuration was loaded again, want %d", n, 2*len(want))
	}
}
