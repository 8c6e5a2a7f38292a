package catalog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// TestListsAreShared reads lists of several organisations: equal ones are in memory once, each with the time when it was read.
func TestListsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prices := map[string]string{"acme": "0.44", "globex": "0.44", "hooli": "0.44", "initech": "0.40"}
		agreed := map[string]catalog.Lists{"acme": {GPUs: oneGPU("0.50")}, "globex": {GPUs: oneGPU("0.50")}, "hooli": {GPUs: oneGPU("0.51")}}
		c, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{Fetch: func(_ context.Context, org string, _ *catalog.Snapshot) (catalog.Lists, error) {
			l := catalog.Lists{GPUs: oneGPU(prices[org])}
			if listed, ok := agreed[org]; ok {
				l.ListPrices = &listed
			}
			return l, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		read := func(org string) *catalog.Snapshot {
			time.Sleep(time.Minute)
			s, err := c.Snapshot(t.Context(), org)
			if err != nil {
				t.Fatal(err)
			}
			if got := time.Since(s.Fetched()); got != 0 {
				t.Errorf("the list of %s was read %s ago, want now", org, got)
			}
			return s
		}
		first := read("acme")
		if second := read("globex"); &first.GPUs()[0] != &second.GPUs()[0] {
			t.Error("equal lists are in memory twice")
		}
		if other := read("hooli"); other.ListPrices().Digest() == first.ListPrices().Digest() {
			t.Error("a list with another list price is taken for an equal one")
		}
		if other := read("initech"); &first.GPUs()[0] == &other.GPUs()[0] {
			t.Error("a list with another price is taken for an equal one")
		}
	})
}
