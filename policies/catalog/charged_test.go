package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// createdPod is the platform's record of a pod with L4s.
func createdPod(count, cost string) map[string]any {
	return map[string]any{"status": "RUNNING", "cloud": "SECURE", "cost": json.Number(cost), "gpu": map[string]any{"id": "NVIDIA L4", "count": json.Number(count)}}
}

// TestChargedPrices: a price above the list counts at once. Run reads the list at once and no more often than every five
// seconds, and the raise ends with the list's next price, or after five minutes with the same one.
func TestChargedPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFetcher{}
		f.set(oneGPU("0.43"), nil)
		c := newCatalog(t, f)
		c.ObserveCharge("acme", createdPod("1", "9")) // before the first list
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Run(ctx, "acme"); !errors.Is(err, context.Canceled) {
				t.Errorf("Run: got %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		time.Sleep(time.Minute)
		want := func(when, price string, reads int64) {
			t.Helper()
			synctest.Wait()
			if got := hourly(t, c); got != price || f.calls.Load() != reads {
				t.Errorf("%s: %s after %d reads, want %s after %d", when, got, f.calls.Load(), price, reads)
			}
		}
		for _, pod := range []map[string]any{createdPod("3", "1.2900000000000002"), createdPod("1", "0.4"), createdPod("1", "-1"), {}, nil} {
			c.ObserveCharge("acme", pod)
		}
		want("prices that are no higher", "0.43274", 1)
		c.ObserveCharge("globex", createdPod("1", "9"))
		want("another organisation", "0.43274", 1)
		c.ObserveCharge("acme", createdPod("2", "2"))
		want("a higher price", "1.00274", 2)
		for range 20 {
			c.ObserveCharge("acme", createdPod("1", "1.1"))
			synctest.Wait()
		}
		want("more of them", "1.10274", 2)
		f.set(oneGPU("1.05"), nil)
		time.Sleep(5 * time.Second)
		want("the list has caught up", "1.05274", 3)
		c.ObserveCharge("acme", createdPod("1", "1.5"))
		time.Sleep(5*time.Minute - time.Second)
		want("the list stays as it was", "1.50274", 4)
		time.Sleep(10 * time.Second)
		want("for longer", "1.05274", 5)
		cancel()
		wg.Wait()
	})
}

// TestChargedPricesOfMachines: prices are raised for the cloud and the machine that were charged, per GPU and per vCPU.
func TestChargedPricesOfMachines(t *testing.T) {
	t.Parallel()
	known := func(usd catalog.Money) catalog.Price { return catalog.Price{Known: true, PerHour: usd} }
	newLists := func() catalog.Lists {
		return catalog.Lists{
			GPUs: []catalog.GPU{{ID: "A", Secure: catalog.Offer{Offered: true, Price: known(200_000)}, Community: catalog.Offer{Offered: true, Price: known(100_000)}}},
			CPUs: []catalog.CPU{{ID: "cpu3c", Secure: known(10_000)}, {ID: "cpu5c", Secure: known(20_000)}},
		}
	}
	lists, agreed := newLists(), catalog.Prices{Discount: 50}.Apply(newLists())
	pod := func(cloud, gpu, cpu string) map[string]any {
		p := map[string]any{"cloud": cloud}
		if gpu != "" {
			p["gpu"] = map[string]any{"id": gpu, "count": json.Number("2")}
		} else {
			p["cpu"] = map[string]any{"id": cpu, "vcpuCount": json.Number("4")}
		}
		return p
	}
	for _, tt := range []struct {
		name      string
		lists     catalog.Lists
		pod       map[string]any
		cost      string
		community string // of two A
		secure    string
		cpu3      string // of four vCPUs
		cpu5      string
	}{
		{"community", lists, pod("COMMUNITY", "A", ""), "0.7", "0.70274", "0.40274", "0.04274", "0.08274"},
		{"secure", lists, pod("SECURE", "A", ""), "0.7", "0.20274", "0.70274", "0.04274", "0.08274"},
		{"vCPUs", lists, pod("SECURE", "", "cpu3c"), "0.1", "0.20274", "0.40274", "0.10274", "0.08274"},
		{"vCPUs in the name", lists, pod("SECURE", "", "cpu3c-8-16"), "0.16", "0.20274", "0.40274", "0.08274", "0.08274"},
		{"agreed prices", agreed, pod("SECURE", "A", ""), "0.7", "0.10274", "0.20274", "0.02274", "0.04274"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCatalog(t, fixedLists(tt.lists))
			if _, err := c.Snapshot(t.Context(), "acme"); err != nil {
				t.Fatal(err)
			}
			charged := map[string]any{"status": "RUNNING", "cost": json.Number(tt.cost)}
			maps.Copy(charged, tt.pod)
			c.ObserveCharge("acme", charged)
			snap, err := c.Snapshot(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{tt.community, tt.secure, tt.cpu3, tt.cpu5} {
				asked := []map[string]any{pod("COMMUNITY", "A", ""), pod("SECURE", "A", ""), pod("SECURE", "", "cpu3c"), pod("SECURE", "", "cpu5c")}[i]
				if got := snap.Price("createPod", operation.VerbCreate, asked).Hourly.String(); got != want {
					t.Errorf("%v costs %s, want %s", asked, got, want)
				}
			}
		})
	}
}

// fixedLists is a fetcher of the same lists.
type fixedLists catalog.Lists

// Lists reads the lists.
func (f fixedLists) Lists(context.Context, string, *catalog.Snapshot) (catalog.Lists, error) {
	return catalog.Lists(f), nil
}
