package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// What violates a policy already can be improved step by step, in every dialect, where
// the entry says so, and made no worse.
func TestImprovingStepByStep(t *testing.T) {
	t.Parallel()
	const policies = `
- policy: serverless_workers
  ratchet: true
  params: {max_workers: 2, max_always_on: 0}
- policy: price_ceiling
  ratchet: true
  params: {max_usd_per_hour: 0.01}
- policy: images
  params: {allow: [docker.io/library]}
  ratchet: true
`
	eachDoor(t, func(t *testing.T, d *door) {
		id := fmt.Sprint(d.asPlatform(t, "POST", "/v2/serverless", `{"name":"e","type":"QUEUE","image":"evil.example/x:1","gpu":{"pools":["ADA_24"]},`+
			`"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"workers":{"max":9,"min":0}}`)["id"])
		patch := func(body string) string { return request("PATCH", "/v2/serverless/"+id, "key_platform", body) }
		save := func(fields string) string {
			return request("POST", "/graphql", "key_platform", `{"query":"mutation { saveEndpoint(input: {id: \"`+id+`\", `+fields+`}) { id } }"}`)
		}
		for _, c := range []struct {
			name, raw string
			denied    []string // policies
			warned    []string
		}{
			{"the same", patch(`{"name":"f"}`), nil, []string{"serverless_workers", "price_ceiling", "images"}},
			{"fewer workers", patch(`{"workers":{"max":8}}`), nil, []string{"serverless_workers", "price_ceiling", "images"}},
			{"more workers", patch(`{"workers":{"max":9}}`), []string{"price_ceiling /gpu", "serverless_workers /workers/max"}, nil},
			{"a new violation beside the old", patch(`{"workers":{"max":7,"min":1}}`), []string{"serverless_workers /workers/max", "serverless_workers /workers/min"}, nil},
			{"another bad image", patch(`{"image":"worse.example/x:1"}`), []string{"images /image"}, nil},
			{"dearer", patch(`{"gpu":{"pools":["ADA_80_PRO"]}}`), []string{"price_ceiling /gpu"}, nil},
			{"fewer in v1", request("PATCH", "/v1/endpoints/"+id, "key_platform", `{"workersMax":6}`), nil, []string{"serverless_workers", "price_ceiling", "images"}},
			{"more in v1", request("PATCH", "/v1/endpoints/"+id, "key_platform", `{"workersMax":7}`), []string{"403"}, nil},
			{"fewer in GraphQL", save(`name: \"f\", workersMax: 5`), nil, []string{"serverless_workers", "price_ceiling", "images"}},
			{"more in GraphQL", save(`name: \"f\", workersMax: 6`), []string{"FORBIDDEN"}, nil},
			{"all at once", patch(`{"image":"nginx:1","workers":{"max":1}}`), nil, []string{"price_ceiling"}},
			{"back again", patch(`{"workers":{"max":3}}`), []string{"price_ceiling /gpu", "serverless_workers /workers/max"}, nil},
		} {
			a := d.ask(t, c.raw)
			switch {
			case len(c.denied) == 1 && !strings.Contains(c.denied[0], "/"):
				if !strings.Contains(a.Body, c.denied[0]) {
					t.Errorf("%s: %d %s, want %s", c.name, a.Status, a.Body, c.denied[0])
				}
			case c.denied != nil:
				wantRefusal(t, a, c.denied...)
			case a.Status >= 400 || strings.Contains(a.Body, `"errors"`):
				t.Errorf("%s: %d %s", c.name, a.Status, a.Body)
			}
			told := strings.Join(a.Header.Values("X-Tollgate-Warning"), "\n")
			for _, policy := range c.warned {
				if !strings.Contains(told, policy+": ") || !strings.Contains(told, "allowed because the resource already violated this policy: ") {
					t.Errorf("%s: warned of %q, want %s", c.name, told, policy)
				}
			}
		}
		x := d.explain(t, &operator.ExplainBody{Method: "PATCH", Path: "/v2/serverless/" + id, Key: "key_platform", Body: `{"name":"g"}`})
		if len(x.ToPass) != 0 || len(x.Calls) != 1 || !strings.Contains(x.Calls[0].Policies[0].Message, "already violated this policy") {
			t.Errorf("explained as %+v, to pass %q", x.Calls, x.ToPass)
		}
		// A create does not ratchet.
		wantRefusal(t, d.ask(t, request("POST", "/v2/serverless", "key_platform", smallEndpoint)), "price_ceiling /gpu")
	}, under(policies))
}
