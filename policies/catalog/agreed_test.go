package catalog

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Agreed prices take the place of the list's, for types that are unknown there, too, and
// of the platform's cost of a pod.
func TestAgreedPrices(t *testing.T) {
	price := func(m Money) Price { return Price{Known: true, PerHour: m} }
	lists := func() Lists {
		return Lists{
			GPUs: []GPU{
				{ID: "L4", Secure: Offer{Offered: true, Price: price(430_001)}, Serverless: price(690_000)},
				{ID: "A40", Secure: Offer{Offered: true, Price: price(400_000)}},
				{ID: "H100", Secure: Offer{Offered: true, Price: price(2_990_000)}},
			},
			CPUs: []CPU{{ID: "cpu3c", Secure: price(30_000)}, {ID: "cpu5c-2-4", Secure: price(40_000)}},
		}
	}
	agreed := Prices{Discount: 15, GPUs: map[string]Money{"H100": 1_990_000, "B300": 5_000_000, "A40": 0}, CPUs: map[string]Money{"cpu5c": 10_000}}
	s := NewSnapshot(agreed.Apply(lists()), Rates{}, time.Time{})
	pod := func(id string, more map[string]any) map[string]any {
		after := map[string]any{"gpu": map[string]any{"id": id}}
		maps.Copy(after, more)
		return after
	}
	for _, tt := range []struct {
		name  string
		after map[string]any
		want  Money
	}{
		{"discount, rounded up", pod("L4", nil), 365_501},
		{"agreed", pod("H100", nil), 1_990_000},
		{"free", pod("A40", nil), 0},
		{"unknown to the list", pod("B300", map[string]any{"cloud": "COMMUNITY"}), 5_000_000},
		{"a CPU", map[string]any{"cpu": map[string]any{"id": "cpu3c", "vcpuCount": 2.0}}, 51_000},
		{"a flavour", map[string]any{"cpu": map[string]any{"id": "cpu5c-2-4", "vcpuCount": 2.0}}, 20_000},
	} {
		if got := s.Price("createPod", operation.VerbCreate, tt.after); !got.Known || got.Hourly != tt.want {
			t.Errorf("%s: %+v, want %v", tt.name, got, tt.want)
		}
	}
	running := pod("H100", map[string]any{"status": "RUNNING", "cost": 2.99})
	if got := s.ResourceCost(operation.KindPod, running); got.Hourly != 1_990_000 {
		t.Errorf("a pod that runs: %+v, want what was agreed", got)
	}
	if got := s.ListPrices().ResourceCost(operation.KindPod, running); got.Hourly != 2_990_000 {
		t.Errorf("by the list: %+v, want what the platform says", got)
	}
	if got := s.ListPrices().Price("createPod", operation.VerbCreate, pod("L4", nil)); got.Hourly != 430_001 {
		t.Errorf("by the list: %+v, want its price", got)
	}
	if got := NewSnapshot(Prices{}.Apply(lists()), Rates{}, time.Time{}).ResourceCost(operation.KindPod, running); got.Hourly != 2_990_000 {
		t.Errorf("without an agreement: %+v, want what the platform says", got)
	}
	if diff := cmp.Diff(lists(), Prices{}.Apply(lists())); diff != "" {
		t.Errorf("no agreement changed the list (-want +got):\n%s", diff)
	}
}
