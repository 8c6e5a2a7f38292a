package parity

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/test/world"
)

// other opens a second gateway that shares a door's store.
func (d *door) other(t *testing.T) *door {
	t.Helper()
	cfg := load(t, d.text, d.upstream)
	second := *d
	second.gateway = world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, d.redis.Addr()), Now: d.clock.Now})
	return &second
}

// listed lists decisions.
func (d *door) listed(t *testing.T, filter string) (list []explain.Summary, incomplete string) {
	t.Helper()
	a := asOperator[struct {
		Decisions  []explain.Summary
		Incomplete string
	}](t, d, "GET", "/admin/decisions?"+filter)
	return a.Decisions, a.Incomplete
}

// What one gateway decided is explained by another that shares its store, and so after
// a restart, in each dialect.
func TestAnyGatewayExplains(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		refused := map[string]string{ // by decision, the dialect
			d.ask(t, request("POST", "/v2/pods", "key_research", podH100)).Header.Get("X-Tollgate-Decision"): "v2",
			d.ask(t, request("POST", "/v1/pods", "key_research",
				`{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA H100 80GB HBM3"]}`)).Header.Get("X-Tollgate-Decision"): "v1",
			d.ask(t, graphql(`mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA H100 80GB HBM3", imageName: "img:1"}) { id } }`)).
				Header.Get("X-Tollgate-Decision"): "graphql",
		}
		passed := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)).Header.Get("X-Tollgate-Decision")
		read := d.ask(t, request("GET", "/v2/pods", "key_research", "")).Header.Get("X-Tollgate-Decision")

		other := d.other(t)
		world.Until(t, "the decisions are written", func() bool { // behind the answers
			list, _ := other.listed(t, "org=acme")
			return len(list) == len(refused)+1
		})
		for id, dialect := range refused {
			var own, theirs explain.Report
			if code := d.asOperator(t, "GET", "/admin/decisions/"+id, "", &own); code != 200 {
				t.Fatalf("%s: its own gateway answers %d", dialect, code)
			}
			if code := other.asOperator(t, "GET", "/admin/decisions/"+id, "", &theirs); code != 200 {
				t.Fatalf("%s: the other gateway answers %d", dialect, code)
			}
			if a := other.ask(t, request("GET", "/tollgate/decisions/"+id, "key_research", "")); a.Status != 200 || !strings.Contains(a.Body, id) {
				t.Errorf("%s: the other gateway answers the caller %d %s", dialect, a.Status, a.Body)
			}
			if got, want := encode(t, theirs), encode(t, own); got != want || theirs.Dialect != dialect || theirs.Verdict != explain.Refused {
				t.Errorf("%s: explained otherwise:\n got %s\nwant %s", dialect, got, want)
			}
		}
		if code := other.asOperator(t, "GET", "/admin/decisions/"+passed, "", new(explain.Report)); code != 200 {
			t.Errorf("a create that passed: %d, want 200", code)
		}
		if code := other.asOperator(t, "GET", "/admin/decisions/"+read, "", new(explain.Report)); code != 404 {
			t.Errorf("a read that passed: %d, want 404: it is not kept", code)
		}
		for filter, want := range map[string]int{
			"org=acme": 4, "": 4, "org=globex": 0, "team=research&refused=true": 3, "team=platform": 0, "key=key_research&limit=2": 4, // all of them began at the same time
			"since=" + url.QueryEscape(d.clock.Now().Add(time.Hour).Format(time.RFC3339)): 0,
		} {
			if list, incomplete := other.listed(t, filter); len(list) != want || incomplete != "" {
				t.Errorf("%q lists %d (%s), want %d", filter, len(list), incomplete, want)
			}
		}
		for _, key := range d.redis.Keys() {
			if strings.Contains(key, ":decisions:") && key != "tollgate:decisions:{acme}" && !strings.HasPrefix(key, "tollgate:decisions:policies:{acme}:") {
				t.Errorf("key %s", key)
			}
		}

		own, _ := d.listed(t, "refused=true")
		theirs, _ := other.listed(t, "refused=true")
		if got, want := encode(t, theirs), encode(t, own); got != want {
			t.Errorf("listed otherwise:\n got %s\nwant %s", got, want)
		}

		d.redis.SetError("LOADING")
		defer d.redis.SetError("")
		if list, incomplete := d.listed(t, "org=acme"); len(list) != 5 || incomplete == "" {
			t.Errorf("without the store: %d (%q), want this gateway's 5 and that they are not all", len(list), incomplete)
		}
		for id := range refused {
			if code := other.asOperator(t, "GET", "/admin/decisions/"+id, "", nil); code != 503 {
				t.Errorf("without the store: %d, want 503", code)
			}
		}
	})
}
