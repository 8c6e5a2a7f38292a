package parity

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Verdicts of policies are counted by policy, verdict, team and hour, in each dialect, and told of
// one organisation.
func TestPoliciesAreCounted(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		counts := func(g *door, query string) []decisions.PolicyCount {
			return asOperator[decisions.PolicyCounts](t, g, "GET", "/admin/policies/counts?org="+query).Counts
		}
		calls := func(query string) (n int64) {
			for _, c := range counts(d, query) {
				n += c.Calls
			}
			return n
		}
		d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`))
		d.ask(t, request("POST", "/v2/pods", "key_platform", podL4))
		d.ask(t, request("GET", "/v2/pods", "key_platform", ""))
		world.Until(t, "what was said is counted", func() bool { return calls("acme") == 6 }) // behind the answers
		d.advance(2 * time.Hour)
		d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		world.Until(t, "what was said later is counted", func() bool { return calls("acme") == 8 })
		for query, want := range map[string]int64{
			"acme&verdict=denies": 4, "acme&verdict=would+deny&policy=gpu_count": 4, "acme&team=research": 6, "acme&team=platform": 2, "acme&verdict=warns": 0,
			"acme&since=30m": 2, "globex": 0,
		} {
			if got := calls(query); got != want {
				t.Errorf("%s: %d calls, want %d", query, got, want)
			}
		}
		other := counts(d.other(t), "acme&bucket=hour&verdict=denies&team=research")
		if len(other) != 2 || other[0].Calls != 2 || other[1].Calls != 1 || other[1].Hour.Sub(other[0].Hour) != 2*time.Hour || other[0].Policy != "price_ceiling" {
			t.Errorf("another gateway counts %+v, want two and one, two hours later", other)
		}
	}, under(`
- policy: price_ceiling
  params: {max_usd_per_hour: 0.4}
- policy: gpu_count
  mode: shadow
  params: {max_per_pod: 0}
`), func(d *door) { d.text = strings.Replace(d.text, "teams: [research]", "", 1) })
}
