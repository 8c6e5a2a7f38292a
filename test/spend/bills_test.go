package spend

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The sums that the ledger has counted at prices that are wrong, too low, too high and changed by
// the platform in the middle of an hour, and endpoints that it counts with all the workers they
// may have, are the bill to the cent once the hours have closed: accruals, the history and the
// export, for each team.
func TestAMonthIsCorrectedToTheBill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a month, one call after the other, takes long")
	}
	prices := func(l4, rtx, a5000 string) string {
		return fmt.Sprintf("    prices: {gpus: {\"NVIDIA L4\": %s, \"NVIDIA GeForce RTX 4090\": %s, \"NVIDIA RTX A5000\": %s}}\n", l4, rtx, a5000)
	}
	m := newMonth(t, 11, prices("0.05", "2.5", "0.01"))
	m.at(time.Date(2027, 3, 1, 1, 0, 0, 0, time.UTC)) // the first hour that is compared
	for _, team := range teams[:6] {
		body := `{"name":"e","image":"img:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"workers":{"min":0,"max":3},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`
		if id := m.made("create endpoint", team, "/v2/serverless", body); id == "" {
			t.Fatalf("no endpoint was made: %v", m.done)
		}
	}
	end := time.Date(2027, 3, 31, 12, 0, 0, 0, time.UTC)
	for next, changed := m.clock.Now(), false; ; {
		next = next.Add(time.Duration(m.Int64N(int64(5 * time.Hour))))
		if !next.Before(end) {
			break
		}
		m.at(next)
		m.step()
		if m.IntN(8) == 0 {
			m.reconcile(m.IntN(2))
		}
		if !changed && next.Day() > 15 {
			changed = true
			if err := m.platform.SetPrice("NVIDIA L4", platform.Price{Secure: 0.77, Community: 0.6, Serverless: 0.9}); err != nil {
				t.Fatal(err)
			}
			for _, g := range m.gateways {
				cfg := world.Configuration(t, m.text(prices("4", "0.01", "0.3")+teamsConfig()), map[string]string{"ACME": credential})
				if err := g.Swap(cfg); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	m.at(end)
	for _, one := range m.live {
		if !m.does("delete", m.owner[one.id], http.MethodDelete, one.kind+"/"+one.id, "") {
			t.Errorf("%s was not deleted: %v", one.id, m.done)
		}
	}
	for id, team := range m.owner {
		if a, err := m.ask(0, keyOf(team), http.MethodDelete, "/v2/serverless/"+id, ""); err != nil || a.status != http.StatusNoContent && a.status != http.StatusNotFound {
			t.Errorf("deleting %s: %d %s, %v", id, a.status, a.body, err)
		}
	}
	m.reconcile(0)
	before, billed := m.state(), m.billed()
	last := time.Date(2027, 3, 31, 23, 59, 0, 0, time.UTC)
	for at := end.Add(3 * time.Hour); at.Before(last); at = at.Add(time.Hour) { // a day at each comparison
		m.at(at)
		m.reconcile(0)
	}
	m.at(last)
	if len(before.Balances) == 0 {
		t.Fatal("nothing has accrued")
	}
	m.compare(billed)
}
