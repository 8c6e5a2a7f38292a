package clients

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// offer is the collector's row of one machine in one place.
type offer struct {
	Name     string   `json:"instance_name"`
	Location string   `json:"location"`
	Price    float64  `json:"price"`
	GPUs     int      `json:"gpu_count"`
	Memory   float64  `json:"gpu_memory"`
	CPU      int      `json:"cpu"`
	RAM      float64  `json:"memory"`
	Flags    []string `json:"flags"`
}

func (o offer) String() string {
	return fmt.Sprintf("%d x %s with %v GB, %d vCPU in %s: %.3f USD/h", o.GPUs, o.Name, o.Memory, o.CPU, o.Location, o.Price)
}

// The collector asks without a key, and finds exactly the offers of the platform's
// catalog: types by data center in the SECURE cloud and by country in the COMMUNITY one,
// with as many cards as one machine has. It asks for hosts of CUDA 12.8, but the v2
// catalog tells stock for all hosts of a type together.
func TestPriceCollector(t *testing.T) {
	python := installed(t, "gpuhunt-0.1.34/bin/python")
	got, clusters := map[string]bool{}, 0
	for _, o := range drive[struct{ Offers []offer }](t, newStack(t, standing()), python, "prices.py").Offers {
		if o.GPUs > 0 {
			if o.CPU < 2*o.GPUs || o.RAM < 8*float64(o.GPUs) {
				t.Errorf("%s: the collector knows no vCPUs or no memory (%v GB) of it", o, o.RAM)
			}
			o.CPU, o.RAM = 0, 0 // what a GPU type comes with is not in the catalog
		}
		if slices.Contains(o.Flags, "runpod-cluster") { // whole machines, once more
			clusters++
			continue
		}
		if got[o.String()] {
			t.Errorf("offered twice: %s", o)
		}
		got[o.String()] = true
	}
	if clusters == 0 {
		t.Error("no offers of clusters")
	}
	if diff := cmp.Diff(catalogOffers(platform.DefaultCatalog()), got); diff != "" {
		t.Errorf("offers (-catalog +collected):\n%s", diff)
	}
}

// catalogOffers are the offers that the collector should find in a catalog.
func catalogOffers(c *platform.Catalog) map[string]bool {
	country := map[string]string{}
	for _, dc := range c.DataCenters {
		country[dc.ID] = dc.Country
	}
	// The collector knows no names for parts of a card.
	unnamed := []string{"PRO 6000 MIG 24GB", "PRO 6000 MIG 48GB"}
	offers := map[string]bool{}
	for _, g := range c.GPUs {
		if slices.Contains(unnamed, g.Name) {
			continue
		}
		for _, dc := range g.DataCenters {
			for n := 1; n <= g.MaxSecure && g.Price.Secure > 0; n++ {
				offers[offer{g.ID, dc, float64(n) * g.Price.Secure, n, float64(g.Memory), 0, 0, nil}.String()] = true
			}
			for n := 1; n <= g.MaxCommunity && g.Price.Community > 0; n++ {
				offers[offer{g.ID, country[dc], float64(n) * g.Price.Community, n, float64(g.Memory), 0, 0, nil}.String()] = true
			}
		}
	}
	for _, f := range c.CPUs {
		for n := f.MinVCPU; n <= f.MaxVCPU; n *= 2 {
			name := fmt.Sprintf("%s-%d-%d", f.ID, n, int(float64(n)*f.RAMPerVCPU))
			for _, dc := range f.DataCenters {
				offers[offer{name, dc, float64(n) * f.Secure, 0, 0, n, 0, nil}.String()] = true
			}
		}
	}
	return offers
}
