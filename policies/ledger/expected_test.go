package ledger_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

func TestWhatRunsAreExpectedToCost(t *testing.T) {
	c := ledger.NewRunCosts()
	expect := func(key, model string, most, want catalog.Money) {
		t.Helper()
		if got := c.Expected("acme", key, model, most); got != want {
			t.Errorf("%s on %s: %d of %d expected, want %d", key, model, got, most, want)
		}
	}
	for i := range 49 {
		c.Add("acme", "ann", "llm", catalog.Money(i+1))
		expect("ann", "llm", 1000, 1000)
	}
	c.Add("acme", "ann", "llm", 50)
	expect("ann", "llm", 1000, 50)
	expect("ann", "llm", 20, 20)
	expect("bob", "llm", 1000, 1000)
	expect("ann", "img", 1000, 1000)
	if got := c.Expected("other", "ann", "llm", 1000); got != 1000 {
		t.Errorf("another organisation: %d, want 1000", got)
	}
	for range 197 {
		c.Add("acme", "ann", "llm", 7)
	}
	expect("ann", "llm", 1000, 48) // two of 200 were above it
	c.Add("acme", "ann", "llm", 7)
	expect("ann", "llm", 1000, 7) // those two are the rest
	for i := range 5000 {
		c.Add("acme", fmt.Sprint("key-", i), "llm", 1)
	}
	expect("ann", "llm", 1000, 1000) // what is used least is forgotten
}

// With any history, the expected cost is never above the most, and of 200 runs at
// most two have cost more.
func TestFewRunsCostMoreThanExpected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.Int64Range(1, 1000), 0, 500).Draw(t, "costs")
		most := catalog.Money(rapid.Int64Range(0, 2000).Draw(t, "most"))
		c := ledger.NewRunCosts()
		for _, n := range costs {
			c.Add("acme", "ann", "llm", catalog.Money(n))
		}
		got := c.Expected("acme", "ann", "llm", most)
		lately := costs[max(0, len(costs)-200):]
		above := 0
		for _, n := range lately {
			if catalog.Money(n) > got {
				above++
			}
		}
		if got > most || len(costs) < 50 && got != most || got < most && above*100 > len(lately) {
			t.Fatalf("%d of %d expected, %d of %d have cost more", got, most, above, len(lately))
		}
	})
}
