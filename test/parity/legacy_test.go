package parity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tollgate-dev/tollgate/test/world"
)

// legacyCall is a row of the report, as far as it is the same in each run.
type legacyCall struct {
	Key, Dialect, Operation, Agent string
	Count                          int64
	First, Last                    time.Time
	Statuses                       map[string]int64
	V2                             []string
	Became, Lost                   map[string]int64
}

// Whoever calls the retired interfaces is on record: with what, how it ended, the calls to make
// instead and those without a successor.
func TestLegacyCallsAreOnRecord(t *testing.T) {
	t.Parallel()
	launcher := "User-Agent: launcher/2.1 (x)"
	eachDoor(t, func(t *testing.T, d *door) {
		create := `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"minUploadMbps":100}`
		d.ask(t, request("POST", "/v1/pods", "key_research", create, launcher))
		d.advance(time.Second)
		d.ask(t, request("POST", "/v1/pods", "key_research", create, launcher))
		d.ask(t, request("POST", "/v1/pods", "key_research", `{"imageName":"img:1","gpuTypeIds":["NVIDIA H200"]}`, launcher))
		d.ask(t, request("GET", "/v1/nope", "key_research", "", launcher))
		d.ask(t, request("POST", "/graphql", "key_research", `{"query":"{ myself { pods { id } } gpuTypes { id } }"}`))
		d.ask(t, request("POST", "/graphql", "key_research", `{"query":"mutation { podBidResume(input: {podId: \"x\"}) { id } }"}`))
		d.ask(t, request("GET", "/v2/pods", "key_research", ""))
		d.ask(t, request("GET", "/v1/pods", "key_nobody", ""))
		d.ask(t, request("GET", "/v1/pods", "key_globex", ""))
		later := start.Add(time.Second)
		row := func(dialect, op, agent string, statuses map[string]int64, v2 ...string) legacyCall {
			n := int64(0)
			for _, m := range statuses {
				n += m
			}
			if v2 == nil {
				v2 = []string{}
			}
			return legacyCall{Key: "key_research", Dialect: dialect, Operation: op, Agent: agent, Count: n, First: later, Last: later, Statuses: statuses, V2: v2}
		}
		made := row("v1", "createPod", "launcher/2", map[string]int64{"2xx": 2, "4xx": 1}, "createPod")
		made.First, made.Became = start, map[string]int64{"createPod": 3, "listGpuTypes": 1} // the catalog is cached
		made.Lost = map[string]int64{"minUploadMbps": 2}
		both := map[string]int64{"listPods": 1, "listGpuTypes": 1}
		myself := row("graphql", "myself", "none", map[string]int64{"2xx": 1}, "listPods", "listEndpoints", "listTemplates", "listNetworkVolumes", "listRegistries", "getSshKeys", "listBilling")
		types := row("graphql", "gpuTypes", "none", map[string]int64{"2xx": 1}, "listGpuTypes")
		myself.Became, types.Became = both, both
		want := []legacyCall{
			made, myself, types,
			row("graphql", "podBidResume", "none", map[string]int64{"2xx": 1}),
			row("v1", "unmatched", "launcher/2", map[string]int64{"4xx": 1}),
		}
		var got struct{ Calls []legacyCall }
		if code := d.asOperator(t, http.MethodGet, "/admin/legacy?org=acme", "", &got); code != 200 {
			t.Fatalf("status = %d, want 200", code)
		}
		if diff := cmp.Diff(want, got.Calls, cmpopts.SortSlices(func(a, b legacyCall) bool { return a.Operation < b.Operation })); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if d.asOperator(t, http.MethodGet, "/admin/legacy", "", &got); len(got.Calls) != 6 {
			t.Errorf("%d rows of all organisations, want 6", len(got.Calls))
		}
		if strings.Contains(d.redis.Dump(), "key_nobody") {
			t.Error("a stranger is on record")
		}
	})
}

// Installations that share a Redis share nothing else: every key of one begins
// with its prefix.
func TestKeysBeginWithThePrefix(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", func(d *door) {
		d.text = strings.Replace(d.text, "{embedded: true}", `{embedded: true, prefix: "site-a:"}`, 1)
	})
	d.ask(t, request("POST", "/v1/pods", "key_research", `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`))
	if code := d.asOperator(t, http.MethodGet, "/admin/legacy", "", nil); code != 200 { // writes what is noted
		t.Fatalf("status = %d, want 200", code)
	}
	d.make(t, `{"id":"ci"}`)
	want := map[string]bool{"rl": true, "legacy": true, "usage": true, "intents": true, "decisions": true, "keys": true}
	world.Until(t, fmt.Sprintf("keys of %v and no others", want), func() bool { // some are written behind the answer
		sorts := map[string]bool{}
		for _, key := range d.redis.Keys() {
			rest, ok := strings.CutPrefix(key, "site-a:")
			if !ok {
				t.Errorf("key %q does not begin with the prefix", key)
			}
			sorts[rest[:max(0, strings.IndexAny(rest, ":{"))]] = true
		}
		return cmp.Equal(sorts, want)
	})
}
