package parity

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/reference"
)

// The permissions of a key come with its budgets, how full they are, and which GPUs no pod of it
// can have, by its policies and by their prices.
func TestAccessShowsBudgetsAndRefusedGPUs(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.reconcile(t)
		d.rented(t, podNamed("a"))
		access := func(key string) (a reference.Access) {
			t.Helper()
			answer := d.ask(t, request("GET", "/docs/access", key, ""))
			if err := json.Unmarshal([]byte(answer.Body), &a); err != nil || answer.Status != 200 {
				t.Fatalf("%d %s (%v)", answer.Status, answer.Body, err)
			}
			return a
		}
		a := access("key_research")
		want := []reference.Budget{
			{Scope: "team research", Name: "per_hour", Limit: "3", Used: "0.43274", Reserved: "0", Left: "2.56726"},
			{Scope: "team research", Name: "pods", Limit: "5", Used: "1", Reserved: "0", Left: "4"},
		}
		if len(a.Budgets) != 2 || a.Budgets[0] != want[0] || a.Budgets[1] != want[1] {
			t.Errorf("budgets %+v, want %+v", a.Budgets, want)
		}
		of := func(a reference.Access, id string) reference.Price {
			for _, p := range a.Prices {
				if p.ID == id {
					return p
				}
			}
			t.Fatalf("%s has no price", id)
			return reference.Price{}
		}
		if p := of(a, "NVIDIA L4"); p.Secure == "" || len(p.SecureRefused) != 0 {
			t.Errorf("an L4: %+v, want a price that is not refused", p)
		}
		if p := of(a, "NVIDIA GeForce RTX 4090"); len(p.SecureRefused) != 1 || !strings.HasPrefix(p.SecureRefused[0], "price_ceiling: ") {
			t.Errorf("a 4090: %+v, want it refused by its price", p)
		}
		if p := of(a, "NVIDIA A40"); !strings.Contains(strings.Join(p.SecureRefused, "; "), "gpu_allow_list: ") {
			t.Errorf("an A40: %+v, want it refused by the allow-list", p)
		}
		if other := access("key_platform"); len(other.Budgets) != 0 || len(of(other, "NVIDIA A40").SecureRefused) != 0 {
			t.Errorf("another team: %+v and %+v, want no budget and no refusal", other.Budgets, of(other, "NVIDIA A40"))
		}
	}, func(d *door) {
		d.text = strings.NewReplacer("max_usd_per_hour: 40", "max_usd_per_hour: 0.435", "{id: research}", "{id: research, budget: {per_hour: 3, pods: 5}}",
			"- policy: gpu_count", "- {policy: images, params: {allow: [docker.io/library]}}\n      - policy: gpu_count").Replace(d.text)
	})
}
