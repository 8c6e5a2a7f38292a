package parity

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// A price list that cannot be read stops the calls that a policy must judge by price,
// and nothing else; readiness says so.
func TestWithoutPrices(t *testing.T) {
	const endpoint = `{"name":"e","type":"QUEUE","image":"i:1","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`
	v1 := request("POST", "/v1/pods", "key_platform", `{"name":"a","imageName":"i:1","gpuTypeIds":["NVIDIA L4"]}`)
	graphQL := request("POST", "/graphql", "key_platform",
		`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"c\", imageName: \"i:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1}) { id } }"}`)
	ceiling := "- policy: price_ceiling\n  params: {max_usd_per_hour: 40}\n"
	types := "- policy: gpu_allow_list\n  params: {gpus: [NVIDIA L4]}\n"
	for name, c := range map[string]struct {
		policies, raw string
		want          int    // status; of GraphQL its extension
		tell          string // in the warning header
	}{
		"a ceiling":               {ceiling, request("POST", "/v2/pods", "key_platform", podH100), 503, ""},
		"a ceiling in v1":         {ceiling, v1, 503, ""},
		"a ceiling in GraphQL":    {ceiling, graphQL, 503, ""},
		"a ceiling, a read":       {ceiling, request("GET", "/v2/pods", "key_platform", ""), 200, ""},
		"for another team":        {ceiling + "  teams: [research]\n", request("POST", "/v2/pods", "key_platform", podH100), 201, ""},
		"a ceiling that warns":    {ceiling + "  mode: warn\n", request("POST", "/v2/pods", "key_platform", podH100), 201, "price_ceiling: the price per hour is unknown"},
		"a ceiling in shadow":     {ceiling + "  mode: shadow\n", v1, 201, ""},
		"no policy":               {"- policy: naming\n  params: {max_length: 9}\n", graphQL, 200, ""},
		"denied whatever it cost": {ceiling + "- policy: clusters\n- policy: read_only\n", request("POST", "/v2/pods", "key_platform", podH100), 403, ""},
		"members of a pool":       {types, request("POST", "/v2/serverless", "key_platform", endpoint), 503, ""},
		"a type by its name":      {types, v1, 201, ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				d.platform.AddFault(platform.Fault{Kind: platform.FaultStatus, Status: 500, Operation: "listGpuTypes"})
				a := d.ask(t, c.raw)
				status := a.Status
				if strings.Contains(a.Body, `"status":503`) {
					status = 503
				}
				if status != c.want || !strings.Contains(a.Header.Get("X-Tollgate-Warning"), c.tell) {
					t.Errorf("%d %s, warning %q; want %d and %q", a.Status, a.Body, a.Header.Get("X-Tollgate-Warning"), c.want, c.tell)
				}
				if made := len(d.platform.CallsTo("createPod")) + len(d.platform.CallsTo("createEndpoint")); c.want >= 400 && made > 0 {
					t.Errorf("%d resources were asked for", made)
				}
				if c.want == 503 && strings.HasPrefix(c.raw, "POST /v2/") && a.Header.Get("Retry-After") == "" {
					t.Errorf("no Retry-After: %v", a.Header)
				}
			}, under(c.policies))
		})
	}
	d := openDoor(t, "http", under(ceiling))
	d.platform.AddFault(platform.Fault{Kind: platform.FaultStatus, Status: 500, Operation: "listGpuTypes"})
	run(t, d)
	world.Until(t, "word of the price list", func() bool {
		return strings.Contains(d.page(t, "/readyz"), `"ready, but an organisation's price list is unavailable`)
	})
}

// The shared store is away: calls that cost money stop, reads go on.
func TestWithoutTheStore(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.ask(t, request("GET", "/v2/pods", "key_platform", ""))
		d.redis.Close()
		if a := d.ask(t, request("POST", "/v2/pods", "key_platform", pod4090)); a.Status != 503 {
			t.Errorf("create: %d %s, want 503", a.Status, a.Body)
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_platform", "")); a.Status != 200 {
			t.Errorf("list: %d %s, want 200", a.Status, a.Body)
		}
		if calls := d.platform.CallsTo("createPod"); len(calls) != 0 {
			t.Errorf("%d pods were asked for", len(calls))
		}
	})
}

// In GraphQL, queries are reads and mutations are not, by any method.
func TestGraphQLWithoutTheStore(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.ask(t, request("GET", "/v2/pods", "key_platform", ""))
		d.redis.Close()
		query := func(text string) answer {
			return d.ask(t, request("POST", "/graphql", "key_platform", `{"query": "`+text+`"}`))
		}
		if a := query("{ myself { pods { id } } }"); a.Status != 200 || strings.Contains(a.Body, "errors") {
			t.Errorf("a query: %d %s, want an answer", a.Status, a.Body)
		}
		if a := query(`mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"i:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1, cloudType: SECURE}) { id } }`); !strings.Contains(a.Body, `"status":503`) {
			t.Errorf("a mutation: %d %s, want it refused", a.Status, a.Body)
		}
		if calls := d.platform.CallsTo("createPod"); len(calls) != 0 {
			t.Errorf("%d pods were asked for", len(calls))
		}
	})
}

// A class follows its organisation's own failure policy.
func TestClassesFollowTheOrganisationsFailurePolicy(t *testing.T) {
	for legacy, raw := range map[string]string{
		"v2": request("POST", "/v2/pods", "key_platform", pod4090),
		"v1": request("POST", "/v1/pods", "key_platform", `{"name": "a", "imageName": "i:1", "gpuTypeIds": ["NVIDIA L4"]}`),
	} {
		t.Run(legacy, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				d.redis.Close()
				if a := d.ask(t, raw); a.Status != 201 {
					t.Errorf("create: %d %s, want 201, uncounted", a.Status, a.Body)
				}
			}, func(d *door) {
				d.text = strings.Replace(configuration, "    teams: [{id: research}", `    failure: {write: open}
    classes: [{id: creates, operations: [createPod], limits: {minute: 3}}]
    teams: [{id: research}`, 1)
			})
		})
	}
}
