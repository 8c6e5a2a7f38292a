package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// A price that rose since the price list was read is known from the platform's response to the first create: the next create
// reserves it, in every dialect, so that the budget holds, and its refusal quotes it.
func TestAHigherPriceIsQuotedAtOnce(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		if a := d.ask(t, request("GET", "/v2/catalog/gpus", "key_research", "")); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		dry := request("POST", "/v2/pods", "key_research", podL4, "Tollgate-Dry-Run: true")
		if a := d.ask(t, dry); a.Status != 200 || !strings.Contains(a.Body, "0.43274") {
			t.Fatalf("the price before: %d %s", a.Status, a.Body)
		}
		if err := d.platform.SetPrice("NVIDIA L4", platform.Price{Secure: 1.43, Community: 1.43, Serverless: 1.43}); err != nil {
			t.Fatal(err)
		}
		d.rented(t, podL4)
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 || field(t, a.Body, "needs") != 1.43274 {
			t.Errorf("%d %s, want 402 for a call that needs 1.43274", a.Status, a.Body)
		}
		if a := d.ask(t, dry); !strings.Contains(a.Body, `"usd_per_hour":1.43274`) {
			t.Errorf("a dry run: %d %s, want the price of the response", a.Status, a.Body)
		}
		a := d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"b","imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"gpuCount":1}`))
		if a.Status != 402 || !strings.Contains(a.Body, "1.43274") {
			t.Errorf("v1: %d %s, want 402 with the price of the response", a.Status, a.Body)
		}
		for _, s := range d.ledger(t).Scopes {
			if s.Scope == "team research" && fmt.Sprint(s.Committed.PerHour) != "1.43274" {
				t.Errorf("the team takes %s USD per hour, want 1.43274", s.Committed.PerHour)
			}
		}
	}, budgeted("{per_hour: 2}"))
}
