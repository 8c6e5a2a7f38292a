package spend

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// history is one random life under random budgets, with what ought to be counted
// reckoned beside it from nothing but the calls that the platform has carried out.
type history struct {
	*rapid.T

	site    *site
	redis   *miniredis.Miniredis
	clock   *platform.Clock
	budgets budgets
	pods    map[string]*rental
}

// rental is a pod as its owner knows it.
type rental struct {
	owner            ledger.Owner
	gpus, disk, kept int64
	running          bool
}

// takes is the cost and the amounts of a pod by the platform's price list: an L4 is 0.43 USD per
// hour, a GB of disk 0.10 per month of 730 hours while the pod runs, and a GB of its volume 0.10,
// or 0.20 while it is stopped.
func (r *rental) takes() ledger.Amounts {
	hourly := func(perMonth int64) int64 { return (perMonth + 365) / 730 }
	if !r.running {
		return ledger.Amounts{ledger.Burn: hourly(200_000 * r.kept), ledger.Pods: 1}
	}
	return ledger.Amounts{
		ledger.Burn: 430_000*r.gpus + hourly(100_000*r.disk) + hourly(100_000*r.kept),
		ledger.GPUs: r.gpus, ledger.Pods: 1,
	}
}

// budgets are those of each scope, in micro-dollars per hour and counts; 0 is none.
type budgets map[ledger.Scope]ledger.Amounts

var callers = []ledger.Owner{{Team: "research", Key: "ann"}, {Team: "research", Key: "bob"}, {Team: "ops", Key: "cat"}} //nolint:gochecknoglobals // read only

func historyKey(key string) string { return "key_history_" + key }

// TestHistories holds two gateways against that reckoning in random histories of creates, changes,
// starts, stops, deletes, failures, time and reloads: a call passes if and only if every budget of
// its owner holds with it, and after each step the ledger counts the platform's resources.
func TestHistories(t *testing.T) {
	t.Parallel()
	clock := platform.ManualClock(time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC))
	store := miniredis.RunT(t)
	store.SetTime(clock.Now())
	h := &history{redis: store, clock: clock}
	h.site = open(t, &plan{gateways: 2, config: h.config(), redis: store.Addr(), clock: clock})
	rapid.Check(t, func(rt *rapid.T) {
		h.T, h.pods = rt, make(map[string]*rental)
		h.begin()
		h.reload(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"": h.check, "create": h.create, "change": h.change, "start": h.start, "stop": h.stop,
			"delete": h.remove, "fail": h.fail, "time": h.time, "reload": h.reload,
		})
	})
}

// begin takes away what an earlier history has left.
func (h *history) begin() {
	var list struct{ Pods []struct{ ID string } }
	if err := json.Unmarshal([]byte(h.site.outside(http.MethodGet, pods, "").body), &list); err != nil {
		h.Fatal(err)
	}
	for _, p := range list.Pods {
		h.site.outside(http.MethodDelete, pods+"/"+p.ID, "")
	}
	for _, key := range h.redis.Keys() { // not those of the servers' lineage: time passes by leaps here
		if strings.HasPrefix(key, prefix+"{acme}:") {
			h.redis.Del(key)
		}
	}
	h.site.reconcile(0)
}

// draw draws other budgets.
func (h *history) draw() {
	h.budgets = make(budgets)
	for _, s := range []ledger.Scope{{Kind: ledger.KindOrg}, {Kind: ledger.KindTeam, ID: "research"}, {Kind: ledger.KindTeam, ID: "ops"}, {Kind: ledger.KindKey, ID: "ann"}} {
		limit := func(what string, least, most int64) int64 {
			if rapid.Bool().Draw(h.T, s.String()+" without "+what) {
				return 0
			}
			return rapid.Int64Range(least, most).Draw(h.T, s.String()+" "+what)
		}
		h.budgets[s] = ledger.Amounts{ledger.Burn: limit("per_hour", 1, 5_000_000), ledger.GPUs: limit("gpus", 1, 8), ledger.Pods: limit("pods", 1, 7)}
	}
}

func (h *history) config() string {
	budget := func(s ledger.Scope) string {
		b := h.budgets[s]
		text := "per_month: 1000000"
		for name, n := range map[string]int64{"gpus": b[ledger.GPUs], "pods": b[ledger.Pods]} {
			if n > 0 {
				text += fmt.Sprintf(", %s: %d", name, n)
			}
		}
		if b[ledger.Burn] > 0 {
			text += fmt.Sprintf(", per_hour: %d.%06d", b[ledger.Burn]/1_000_000, b[ledger.Burn]%1_000_000)
		}
		return "{" + text + "}"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    budget: %s\n    teams:\n", budget(ledger.Scope{Kind: ledger.KindOrg}))
	for _, team := range []string{"research", "ops"} {
		fmt.Fprintf(&b, "      - {id: %s, budget: %s}\n", team, budget(ledger.Scope{Kind: ledger.KindTeam, ID: team}))
	}
	b.WriteString("    keys:\n")
	for _, c := range callers {
		fmt.Fprintf(&b, "      - {id: %s, team: %s, sha256: SHA256(%s), roles: [admin], exempt: true", c.Key, c.Team, historyKey(c.Key))
		if c.Key == "ann" {
			b.WriteString(", budget: " + budget(ledger.Scope{Kind: ledger.KindKey, ID: "ann"}))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// counted is the count of a scope.
func (h *history) counted(s ledger.Scope) (sum ledger.Amounts) {
	for _, r := range h.pods {
		if slices.Contains(r.owner.Scopes(), s) {
			for d, n := range r.takes() {
				sum[d] += n
			}
		}
	}
	return sum
}

// fits reports whether all budgets of an owner hold with more.
func (h *history) fits(owner ledger.Owner, more ledger.Amounts) bool {
	for _, s := range owner.Scopes() {
		has := h.counted(s)
		for d, limit := range h.budgets[s] {
			if limit > 0 && more[d] > 0 && has[d]+more[d] > limit {
				return false
			}
		}
	}
	return true
}

// ask makes a call at one of the gateways and wants a status.
func (h *history) ask(key, method, path, body string, want int) answer {
	h.Helper()
	h.advance(10 * time.Second) // what was made or started is there
	a, err := h.site.ask(rapid.IntRange(0, 1).Draw(h.T, "gateway"), historyKey(key), method, path, body)
	if err != nil || a.status != want {
		h.Fatalf("%s %s %s by %s: %d %s (%v), want %d\nbudgets %v\npods %v", method, path, body, key, a.status, a.body, err, want, h.budgets, h.show())
	}
	return a
}

func (h *history) show() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(h.pods)) {
		fmt.Fprintf(&b, "\n  %s %+v takes %v", id, *h.pods[id], h.pods[id].takes())
	}
	return b.String()
}

func (h *history) advance(d time.Duration) {
	h.clock.Advance(d)
	h.redis.SetTime(h.clock.Now())
}

func (h *history) check(t *rapid.T) {
	h.T = t
	state := h.site.state()
	if len(state.Holds) != 0 || !state.Complete {
		t.Fatalf("holds %v, complete %t, lost %q, want none, true and nothing", state.Holds, state.Complete, state.Lost)
	}
	want := make(map[ledger.Scope]ledger.Amounts)
	for _, r := range h.pods {
		for _, s := range r.owner.Scopes() {
			want[s] = h.counted(s)
		}
	}
	got := make(map[ledger.Scope]ledger.Amounts)
	for _, b := range state.Balances {
		if b.Reserved != (ledger.Amounts{}) {
			t.Fatalf("%s has %v reserved", b.Scope, b.Reserved)
		}
		if b.Committed != (ledger.Amounts{}) {
			got[b.Scope] = b.Committed
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the ledger counts something else than there is (-want +got):\n%s%s", diff, h.show())
	}
}

// new draws a pod that is not there yet.
func (h *history) new() (r *rental, body string) {
	r = &rental{
		owner: rapid.SampledFrom(callers).Draw(h.T, "owner"), gpus: rapid.Int64Range(1, 3).Draw(h.T, "gpus"),
		disk: rapid.Int64Range(10, 60).Draw(h.T, "disk"), kept: rapid.Int64Range(0, 50).Draw(h.T, "kept"), running: true,
	}
	mounts := ""
	if r.kept > 0 {
		r.kept += 9
		mounts = fmt.Sprintf(`,"mounts":{"persistent":{"size":%d,"path":"/workspace"}}`, r.kept)
	}
	return r, fmt.Sprintf(`{"name":"p","image":"img:1","disk":%d,"gpu":{"id":"NVIDIA L4","count":%d}%s}`, r.disk, r.gpus, mounts)
}

func (h *history) create(t *rapid.T) {
	h.T = t
	r, body := h.new()
	if !h.fits(r.owner, r.takes()) {
		h.ask(r.owner.Key, http.MethodPost, pods, body, http.StatusPaymentRequired)
		return
	}
	h.pods[h.ask(r.owner.Key, http.MethodPost, pods, body, http.StatusCreated).id()] = r
}

// fail creates a pod that the platform refuses, or fails to make.
func (h *history) fail(t *rapid.T) {
	h.T = t
	r, body := h.new()
	if !h.fits(r.owner, r.takes()) {
		return
	}
	f := rapid.SampledFrom([]platform.Fault{{Kind: platform.FaultCapacity}, {Kind: platform.FaultForbidden}, {Kind: platform.FaultStatus, Status: 500}}).Draw(t, "fault")
	f.Operation = "createPod"
	h.site.platform.AddFault(f)
	want := map[platform.FaultKind]int{platform.FaultCapacity: 400, platform.FaultForbidden: 403, platform.FaultStatus: 500}[f.Kind]
	h.ask(r.owner.Key, http.MethodPost, pods, body, want)
	h.site.platform.ClearFaults()
	h.site.reconcile(0)
}

// any draws a pod, with who calls about it.
func (h *history) any() (id string, r *rental, key string) {
	if len(h.pods) == 0 {
		h.Skip("there is no pod")
	}
	id = rapid.SampledFrom(slices.Sorted(maps.Keys(h.pods))).Draw(h.T, "pod")
	return id, h.pods[id], rapid.SampledFrom(callers).Draw(h.T, "caller").Key
}

func (h *history) change(t *rapid.T) {
	h.T = t
	id, r, key := h.any()
	after := *r
	after.disk = rapid.Int64Range(10, 60).Draw(t, "disk")
	want := http.StatusOK
	if !h.fits(r.owner, after.takes().Excess(r.takes())) {
		want = http.StatusPaymentRequired
	}
	h.ask(key, http.MethodPatch, pods+"/"+id, fmt.Sprintf(`{"disk":%d}`, after.disk), want)
	if want == http.StatusOK {
		*r = after
	}
}

func (h *history) start(t *rapid.T) {
	h.T = t
	id, r, key := h.any()
	after := *r
	after.running = true
	want := http.StatusOK
	switch {
	case r.running:
		want = http.StatusConflict
	case !h.fits(r.owner, after.takes().Excess(r.takes())):
		want = http.StatusPaymentRequired
	}
	h.ask(key, http.MethodPost, pods+"/"+id+"/action", `{"action":"start"}`, want)
	r.running = r.running || want == http.StatusOK
}

func (h *history) stop(t *rapid.T) {
	h.T = t
	id, r, key := h.any()
	want := http.StatusOK
	if !r.running {
		want = http.StatusConflict
	}
	h.ask(key, http.MethodPost, pods+"/"+id+"/action", `{"action":"stop"}`, want)
	r.running = false
}

func (h *history) remove(t *rapid.T) {
	h.T = t
	id, _, key := h.any()
	h.ask(key, http.MethodDelete, pods+"/"+id, "", http.StatusNoContent)
	delete(h.pods, id)
}

func (h *history) time(t *rapid.T) {
	h.T = t
	h.advance(time.Duration(rapid.Int64Range(0, int64(36*time.Hour)).Draw(t, "time")))
}

// reload puts other budgets in force, at both gateways.
func (h *history) reload(t *rapid.T) {
	h.T = t
	h.draw()
	for _, g := range h.site.gateways {
		cfg := world.Configuration(h.site.t, h.site.text(h.config()), map[string]string{"ACME": credential})
		if err := g.Swap(cfg); err != nil {
			t.Fatal(err)
		}
	}
}
