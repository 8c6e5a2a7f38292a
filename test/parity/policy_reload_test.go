package parity

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/world"
)

// only allows one type of GPU.
func only(gpu string) string {
	return "- policy: gpu_allow_list\n  params: {gpus: [\"" + gpu + "\"]}\n"
}

// reconfigured is the configuration of a door with other policies.
func reconfigured(t *testing.T, d *door, policies string) settings.Config {
	t.Helper()
	other := &door{}
	under(policies)(other)
	return load(t, other.text, d.upstream)
}

// While configurations change under load, every decision is made by exactly one
// of them, and a broken one decides nothing and is seen.
func TestReloadUnderLoad(t *testing.T) {
	const callers, swaps = 4, 40
	gpus := []string{"NVIDIA L4", "NVIDIA GeForce RTX 4090"}
	eachDoor(t, func(t *testing.T, d *door) {
		configs := []settings.Config{reconfigured(t, d, only(gpus[0])), reconfigured(t, d, only(gpus[1]))}
		broken := reconfigured(t, d, only(gpus[0]))
		broken.Orgs[0].Policies.Policies[0].Params = map[string]any{"gpus": "everything"}
		broken.Revision = "broken"

		var over atomic.Bool
		var answered atomic.Int64
		var load sync.WaitGroup
		defer load.Wait()
		defer over.Store(true)
		for i := range callers {
			load.Go(func() {
				for n := 0; !over.Load(); n++ {
					which := (n + i) % len(gpus)
					d.ask(t, request("POST", "/v2/pods", "key_exempt", fmt.Sprintf(`{"name":"a","image":"i:1","gpu":{"id":%q}}`, gpus[which]),
						fmt.Sprintf("X-Request-Id: gpu%d-%d-%d", which, i, n)))
					answered.Add(1)
				}
			})
		}
		for n := range swaps {
			if err := d.gateway.Swap(configs[n%2]); err != nil {
				t.Error(err)
			}
			if err := d.gateway.Swap(broken); err == nil {
				t.Error("a broken configuration was taken")
			}
			var status struct{ Fault, Revision string }
			if d.asOperator(t, "GET", "/admin/status", "", &status); !strings.Contains(status.Fault, "gpus") || status.Revision != configs[n%2].Revision {
				t.Errorf("after a broken configuration: %+v, want its fault beside the revision in force", status)
			}
			world.Until(t, "the callers had their turn", func() bool { return answered.Load() > int64(n) })
		}
		over.Store(true)
		load.Wait()

		pairs, decided := map[string]string{}, 0
		for line := range strings.Lines(d.logs.String()) {
			var e struct {
				Msg, Revision, Refusal string
				RequestID              string `json:"request_id"`
				PolicyRevision         string `json:"policy_revision"`
				Denied                 []string
			}
			if json.Unmarshal([]byte(line), &e) != nil || e.Msg != "exchange" || !strings.HasPrefix(e.RequestID, "gpu") {
				continue
			}
			decided++
			if was, ok := pairs[e.Revision]; ok && was != e.PolicyRevision {
				t.Errorf("configuration %s decided by policies %s and %s", e.Revision, was, e.PolicyRevision)
			}
			pairs[e.Revision] = e.PolicyRevision
			asked := gpus[e.RequestID[3]-'0']
			allowed := gpus[0]
			switch e.Revision {
			case configs[1].Revision:
				allowed = gpus[1]
			case configs[0].Revision:
			default: // that of before the first change
				continue
			}
			if denied := len(e.Denied) == 1; denied == (asked == allowed) || e.Refusal == "policy_unavailable" {
				t.Errorf("%s: %s under %s: denied = %v, refusal %q", e.RequestID, asked, e.Revision, e.Denied, e.Refusal)
			}
		}
		if len(pairs) < 2 || decided < swaps {
			t.Errorf("%d decisions by %v: want many by both configurations", decided, pairs)
		}
	}, under(only(gpus[0])))
}

// bundleOf packs one policy as an OPA bundle.
func bundleOf(t *testing.T, revision, rego string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, f := range []struct{ name, text string }{
		{".manifest", `{"revision":"` + revision + `","roots":["policies"]}`}, {"policies/limit.rego", rego},
	} {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A persisted bundle that cannot be used is a fault of its organisation alone:
// refused there, served elsewhere, and replaced by the next download.
func TestPersistedBundleIsBroken(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept.tar.gz")
	good := bundleOf(t, "v1", "package policies.limit\n\ndeny contains \"too many\" if input.resource.after.gpu.count > 1\n")
	var up atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(good)
	}))
	t.Cleanup(s.Close)
	for name, broken := range map[string][]byte{
		"cut":              good[:len(good)/2],
		"does not compile": bundleOf(t, "v0", "package policies.limit\n\ndeny contains \"too many\" if data.tollgate.gpu.no_such_rule(1)\n"),
	} {
		t.Run(name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				up.Store(false)
				list := func(key string) int { return d.ask(t, request("GET", "/v2/pods", key, "")).Status }
				var status struct {
					Policies []struct{ Org, Fault string }
				}
				d.asOperator(t, "GET", "/admin/status", "", &status)
				if fault := status.Policies[0].Fault; !strings.Contains(fault, kept) {
					t.Errorf("the fault is %q, want it to name %s", fault, kept)
				}
				if got := []int{list("key_exempt"), list("key_globex")}; !cmp.Equal(got, []int{503, 200}) {
					t.Errorf("with a broken bundle: %v, want 503 and 200", got)
				}
				up.Store(true)
				run(t, d)
				world.Until(t, "the download", func() bool { return list("key_exempt") == 200 })
			}, func(d *door) {
				if err := os.WriteFile(kept, broken, 0o600); err != nil {
					t.Fatal(err)
				}
				before, rest, _ := strings.Cut(configuration, "    policies:\n")
				_, after, _ := strings.Cut(rest, "\n    teams:")
				d.text = before + "    bundle: {url: " + s.URL + "/acme.tar.gz, poll: 20ms, allow_unsigned: true, persist: " + kept + "}\n    teams:" + after
			})
		})
	}
}

// The kill switch keeps no caller from saving money, in any dialect.
func TestKillSwitchLetsStopping(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		var ids []string
		for range 4 {
			pod := d.ask(t, request("POST", "/v2/pods", "key_exempt", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`))
			ids = append(ids, fmt.Sprint(field(t, pod.Body, "id")))
		}
		if err := d.gateway.Swap(reconfigured(t, d, "- policy: kill_switch\n")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, method, target, body string
			want                       int
		}{
			{"read", "GET", "/v2/pods/" + ids[0], "", 403},
			{"create", "POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`, 403},
			{"start", "POST", "/v2/pods/" + ids[0] + "/action", `{"action":"start"}`, 403},
			{"stop", "POST", "/v2/pods/" + ids[0] + "/action", `{"action":"stop"}`, 200},
			{"delete", "DELETE", "/v2/pods/" + ids[0], "", 204},
			{"stop in v1", "POST", "/v1/pods/" + ids[1] + "/stop", "", 200},
			{"delete in v1", "DELETE", "/v1/pods/" + ids[1], "", 204},
			{"stop in GraphQL", "POST", "/graphql", `{"query":"mutation{podStop(input:{podId:\"` + ids[2] + `\"}){id}}"}`, 200},
			{"delete in GraphQL", "POST", "/graphql", `{"query":"mutation{podTerminate(input:{podId:\"` + ids[3] + `\"})}"}`, 200},
		} {
			a := d.ask(t, request(c.method, c.target, "key_exempt", c.body))
			if a.Status != c.want || strings.Contains(a.Body, `"errors"`) && c.want == 200 {
				t.Errorf("%s: %d %s, want %d", c.name, a.Status, a.Body, c.want)
			}
		}
	}, under("- policy: kill_switch\n  mode: shadow\n"))
}

// A bundle is followed while the gateway runs; a broken one changes nothing and
// is seen, and a new configuration begins with the last good one.
func TestBundlesAreFollowed(t *testing.T) {
	t.Parallel()
	deny := func(above int) string {
		return fmt.Sprintf("package policies.limit\n\ndeny contains \"too many\" if input.resource.after.gpu.count > %d\n", above)
	}
	var bundle atomic.Pointer[[]byte]
	serve := func(b []byte) { bundle.Store(&b) }
	serve(bundleOf(t, "v1", deny(1)))
	var down atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(*bundle.Load())
	}))
	t.Cleanup(s.Close)
	d := openDoor(t, "http", func(d *door) {
		before, rest, _ := strings.Cut(configuration, "    policies:\n")
		_, after, _ := strings.Cut(rest, "\n    teams:")
		d.text = before + "    bundle: {url: " + s.URL + "/acme.tar.gz, poll: 20ms, allow_unsigned: true}\n    teams:" + after
	})
	run(t, d)
	create := func(count int) int {
		return d.ask(t, request("POST", "/v2/pods", "key_exempt", fmt.Sprintf(`{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4","count":%d}}`, count))).Status
	}
	status := func() (revision, fault string) {
		var s struct {
			Policies []struct{ Org, Bundle, Fault string }
		}
		d.asOperator(t, "GET", "/admin/status", "", &s)
		return s.Policies[0].Bundle, s.Policies[0].Fault
	}
	world.Until(t, "the first bundle", func() bool { r, _ := status(); return r == "v1" })
	if got := []int{create(1), create(2)}; !cmp.Equal(got, []int{201, 403}) {
		t.Errorf("under v1: %v", got)
	}
	pod := d.ask(t, request("POST", "/v2/pods", "key_exempt", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`))
	lines, stop := d.stream(t, fmt.Sprintf("/v2/pods/%s/logs", field(t, pod.Body, "id")), "key_exempt")
	defer stop()
	serve(bundleOf(t, "v2", deny(2)))
	world.Until(t, "the second bundle", func() bool { r, _ := status(); return r == "v2" })
	for range lines { // streams allowed by the first are cut
	}
	if got := []int{create(2), create(3)}; !cmp.Equal(got, []int{201, 403}) {
		t.Errorf("under v2: %v", got)
	}
	serve(bundleOf(t, "v3", "package policies.limit\n\ndeny contains http.send({}) if true\n"))
	world.Until(t, "the fault", func() bool { _, f := status(); return strings.Contains(f, "http.send") })
	if got := []int{create(2), create(3)}; !cmp.Equal(got, []int{201, 403}) {
		t.Errorf("under a broken bundle: %v", got)
	}
	if want := `tollgate_source_failed{kind="bundle",org="acme"} 1`; !strings.Contains(d.page(t, "/metrics"), want) {
		t.Errorf("metrics do not have %s", want)
	}
	serve(bundleOf(t, "v4", "package policies.limit.parts\n\nx := 1\n"))
	world.Until(t, "the fault of a bundle without policies", func() bool { _, f := status(); return strings.Contains(f, "contains no policy") })
	if got := []int{create(2), create(3)}; !cmp.Equal(got, []int{201, 403}) {
		t.Errorf("under a bundle without policies: %v", got)
	}
	down.Store(true)
	if err := d.gateway.Swap(load(t, d.text, d.upstream)); err != nil {
		t.Fatal(err)
	}
	if got := []int{create(2), create(3)}; !cmp.Equal(got, []int{201, 403}) {
		t.Errorf("after a new configuration, with the server away: %v", got)
	}
}

// run makes a door's gateway one that runs, with its background work. end stops it
// and waits for that; the end of the test does, too.
func run(t *testing.T, d *door) (end func()) {
	t.Helper()
	data := world.Listen(t)
	d.gateway = world.Gateway(t, load(t, d.text, d.upstream), gateway.Deps{
		Redis: world.Redis(t, d.redis.Addr()), Logger: d.logs.Logger(), Data: data, Admin: world.Listen(t),
	})
	d.addr = data.Addr().String()
	return world.Run(t, d.gateway)
}

// The kill switch stops everything its callers do, and nobody else's calls.
func TestKillSwitch(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for name, raw := range map[string]string{
			"a read":  request("GET", "/v2/pods", "key_research", ""),
			"a pod":   request("POST", "/v2/pods", "key_research", pod4090),
			"logs":    request("GET", "/v2/pods/nope1234/logs", "key_research", ""),
			"v1":      request("GET", "/v1/pods", "key_research", ""),
			"graphql": request("POST", "/graphql", "key_research", `{"query":"{ myself { pods { id } } }"}`),
		} {
			if a := d.ask(t, raw); !strings.Contains(a.Body, "all calls are refused: under investigation") {
				t.Errorf("%s: %d %s", name, a.Status, a.Body)
			}
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_platform", "")); a.Status != 200 {
			t.Errorf("another team: %d %s", a.Status, a.Body)
		}
		for _, c := range d.platform.Calls() {
			if c.Path != "/v2/pods" && !strings.HasPrefix(c.Path, "/v2/catalog/") || c.Method != http.MethodGet {
				t.Errorf("%s %s reached the platform", c.Method, c.Path)
			}
		}
		if n := len(d.platform.CallsTo("listPods")); n != 1 {
			t.Errorf("%d lists reached the platform, want the other team's alone", n)
		}
		x := d.explain(t, &operator.ExplainBody{Method: "GET", Path: "/v2/pods", Key: "key_research"})
		if len(x.ToPass) != 1 || !strings.HasPrefix(x.ToPass[0], "kill_switch: ") {
			t.Errorf("to pass: %q", x.ToPass)
		}
	}, under(`
- policy: kill_switch
  teams: [research]
  params: {reason: under investigation}
`))
}

// A directory that a policy in force has gone from is not taken in silence.
func TestRegoMayNotDropPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	eachDoor(t, func(t *testing.T, d *door) {
		create := func() int {
			return d.ask(t, request("POST", "/v2/pods", "key_exempt", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)).Status
		}
		if err := os.Remove(filepath.Join(dir, "b.rego")); err != nil {
			t.Fatal(err)
		}
		err := d.gateway.Swap(load(t, d.text, d.upstream))
		if err == nil || !strings.Contains(err.Error(), "policies.b; set rego_may_drop") {
			t.Errorf("got %v, want a fault that names policies.b", err)
		}
		if got := create(); got != 403 {
			t.Errorf("a create is answered with %d, want 403 by the policy that is gone", got)
		}
		if err := d.gateway.Swap(load(t, strings.Replace(d.text, "    rego: ", "    rego_may_drop: true\n    rego: ", 1), d.upstream)); err != nil {
			t.Fatal(err)
		}
		if got := create(); got != 201 {
			t.Errorf("a create is answered with %d, want 201 without the policy", got)
		}
	}, func(d *door) {
		write(t, dir, "a.rego", "package policies.a\n\nwarn contains \"x\" if input.request.verb == \"create\"\n")
		write(t, dir, "b.rego", "package policies.b\n\ndeny contains \"no\" if input.request.verb == \"create\"\n")
		ownRego(dir)(d)
	})
}
