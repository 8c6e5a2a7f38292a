package money

import (
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Resources are found by their names, and the most expensive are listed first.
func TestResourcesInParts(t *testing.T) {
	t.Parallel()
	l := &Ledger{Resources: []Resource{{ID: "vol-1", Name: "data"}}}
	for i := range 250 {
		l.Resources = append(l.Resources, Resource{ID: fmt.Sprintf("pod-%03d", i), Name: "train", Team: "research", Takes: Amounts{PerHour: fmt.Sprintf("%d.1", i)}})
	}
	p := listedResources{Paging: adminapi.Paging{Limit: 2}, Search: "TRAIN", Sort: "cost"}
	got, err := p.list(l)
	if err != nil || got.All != 250 || len(got.Resources) != 2 || got.Resources[0].ID != "pod-249" || got.Next == "" || got.PerHour != "31150" {
		t.Errorf("resources: %+v (%v), want the two most expensive of 250", got, err)
	}
}
