package parity

import (
	"fmt"
	"strings"
	"testing"
)

// A network volume whose type is left out is priced by the tier of its data center,
// in every dialect.
func TestUntypedVolumesArePriced(t *testing.T) {
	creates := map[string]func(size, center string) string{
		"v2": func(size, center string) string {
			return request("POST", "/v2/network-volumes", "key_platform", `{"name":"v","size":`+size+`,"dataCenter":"`+center+`"}`)
		},
		"v1": func(size, center string) string {
			return request("POST", "/v1/networkvolumes", "key_platform", `{"name":"v","size":`+size+`,"dataCenterId":"`+center+`"}`)
		},
		"graphql": func(size, center string) string {
			return request("POST", "/graphql", "key_platform", fmt.Sprintf(`{"query":%q}`, `mutation { createNetworkVolume(input: {name: "v", size: `+size+`, dataCenterId: "`+center+`"}) { id } }`))
		},
	}
	for dialect, create := range creates {
		t.Run(dialect, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				// 1000 GB cost 0.096 USD per hour in the standard tier, 0.192 in the other.
				if a := d.ask(t, create("1000", "EU-RO-1")); a.Status > 201 || strings.Contains(a.Body, "errors") {
					t.Errorf("1000 GB, standard: %d %s", a.Status, a.Body)
				}
				if a := d.ask(t, create("2000", "EU-RO-1")); !strings.Contains(a.Body, "price_ceiling") {
					t.Errorf("2000 GB, standard: %d %s, want it refused by price_ceiling", a.Status, a.Body)
				}
				if a := d.ask(t, create("1000", "US-KS-2")); a.Status > 201 || strings.Contains(a.Body, "errors") {
					t.Errorf("1000 GB, standard of two: %d %s", a.Status, a.Body)
				}
			}, func(d *door) {
				d.text = strings.Replace(d.text, "max_usd_per_hour: 40", "max_usd_per_hour: 0.15", 1)
			})
		})
	}
}
