package spend

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

const (
	sandboxes = "/v2/sandboxes"
	// sandboxRate is the ceiling; the platform's rate of a standard sandbox is 0.026.
	sandboxRate = "catalog: {sandbox_rate: 0.10}"
	sandboxKey  = "    keys: [{id: ann, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}]\n"
)

// Fifty sandboxes are requested at once, at two gateways, under a budget that has room for three: three are created, whichever
// budget it is, and each holds the ceiling rate for its lifetime, however long the horizon of the organisation is.
func TestFiftySandboxesAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, body string }{
		"a count":                        {"    budget: {sandboxes: 3}\n", `{"imageName":"alpine:3"}`},
		"a rate":                         {"    budget: {per_hour: 0.35}\n", `{"imageName":"alpine:3"}`},
		"an hour by default":             {"    budget: {per_day: 0.35}\n", `{"imageName":"alpine:3"}`},
		"a long lifetime":                {"    budget: {per_day: 3.50}\n", `{"imageName":"alpine:3","maxLifetimeSeconds":36000}`},
		"a short lifetime":               {"    budget: {per_month: 0.035}\n", `{"imageName":"alpine:3","maxLifetimeSeconds":360}`},
		"a horizon of the whole quarter": {"    budget: {per_quarter: 0.35}\n    horizon: period\n", `{"imageName":"alpine:3"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, &plan{gateways: 2, config: c.config + sandboxKey, settings: sandboxRate, redis: redistest.Start(t)})
			s.reconcile(0)
			statuses := make([]int, 50)
			var wg sync.WaitGroup
			for i := range statuses {
				wg.Go(func() {
					if a, err := s.ask(i, "key_of_ann_1", http.MethodPost, sandboxes, c.body); err == nil {
						statuses[i] = a.status
					}
				})
			}
			wg.Wait()
			count := make(map[int]int)
			for _, status := range statuses {
				count[status]++
			}
			if made := len(s.platform.CallsTo("createSandbox")); count[201] != 3 || count[402] != 47 || made != 3 {
				t.Errorf("statuses %v, %d creates at the platform, want 3 created and 47 refused", count, made)
			}
		})
	}
}

// A create without a configured ceiling is refused before it is sent, also without budgets.
func TestSandboxesWithoutARate(t *testing.T) {
	t.Parallel()
	for _, budget := range []string{"", "    budget: {per_day: 1000}\n"} {
		s := open(t, &plan{gateways: 1, config: budget + sandboxKey, redis: redistest.Start(t)})
		a, err := s.ask(0, "key_of_ann_1", http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`)
		if err != nil || a.status != http.StatusForbidden || !strings.Contains(a.body, "catalog.sandbox_rate is not set") {
			t.Errorf("%q: %d %s (%v), want 403 that names the setting", budget, a.status, a.body, err)
		}
		if n := len(s.platform.CallsTo("createSandbox")); n != 0 {
			t.Errorf("%d creates reached the platform", n)
		}
	}
}

// A command is sent once, whatever becomes of its response.
func TestExecIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []platform.Fault{
		{Kind: platform.FaultDrop}, {Kind: platform.FaultDrop, After: true}, {Kind: platform.FaultCut, After: true}, {Kind: platform.FaultStatus, Status: 503},
	} {
		t.Run(fmt.Sprint(fault.Kind, fault.After), func(t *testing.T) {
			t.Parallel()
			s := open(t, &plan{gateways: 1, config: "    budget: {per_day: 10}\n" + sandboxKey, settings: sandboxRate, redis: redistest.Start(t)})
			a, err := s.ask(0, "key_of_ann_1", http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`)
			if err != nil || a.status != http.StatusCreated {
				t.Fatalf("%d %s (%v)", a.status, a.body, err)
			}
			if err := s.platform.SetSandboxState(a.id(), "RUNNING"); err != nil {
				t.Fatal(err)
			}
			fault.Operation = "execSandbox"
			s.platform.AddFault(fault)
			res, err := s.ask(0, "key_of_ann_1", http.MethodPost, sandboxes+"/"+a.id()+"/exec", `{"command":["touch","x"]}`)
			if err != nil || res.status < 500 {
				t.Errorf("%d %s (%v), want a failure", res.status, res.body, err)
			}
			if n := len(s.platform.CallsTo("execSandbox")); n != 1 {
				t.Errorf("the command was sent %d times", n)
			}
		})
	}
}

// day is a day of sandboxes.
type day struct {
	*site
	*rand.Rand

	redis *miniredis.Miniredis
	clock *platform.Clock
	live  []string
	done  map[string]int
}

func newDay(t *testing.T, seed uint64) *day {
	t.Helper()
	clock := platform.ManualClock(time.Date(2027, 3, 1, 0, 0, 1, 0, time.UTC))
	d := &day{Rand: rand.New(rand.NewPCG(seed, 3)), clock: clock, redis: miniredis.RunT(t), done: make(map[string]int)}
	d.redis.SetTime(clock.Now())
	d.site = open(t, &plan{gateways: 2, config: "    budget: {per_month: 100}\n    isolation: {change: key, read: key, exempt: []}\n" + sandboxKey, settings: sandboxRate, redis: d.redis.Addr(), clock: clock})
	d.reconcile(0)
	return d
}

// pass moves all clocks.
func (d *day) pass(by time.Duration) {
	d.clock.Advance(by)
	d.redis.SetTime(d.clock.Now())
}

func (d *day) must(want int, method, path, body string) answer {
	d.t.Helper()
	a, err := d.ask(d.IntN(2), "key_of_ann_1", method, path, body)
	if err != nil || a.status != want {
		d.t.Fatalf("%s %s %s: %d %s (%v), want %d", method, path, body, a.status, a.body, err, want)
	}
	return a
}

// create creates a sandbox, and lets its client wait until it runs, or the reconciler be the first to see that.
func (d *day) create() {
	d.t.Helper()
	idle, life := 60+d.IntN(900), 300+d.IntN(5000)
	a := d.must(http.StatusCreated, http.MethodPost, sandboxes,
		fmt.Sprintf(`{"imageName":"alpine:3","vcpuCount":%d,"idleTimeoutSeconds":%d,"maxLifetimeSeconds":%d}`, 1+d.IntN(4), idle, life))
	d.live = append(d.live, a.id())
	switch d.IntN(3) {
	case 0:
		d.pass(3 * time.Second)
		d.must(http.StatusOK, http.MethodGet, sandboxes+"/"+a.id(), "")
	case 1:
		d.pass(3 * time.Second)
		d.must(http.StatusOK, http.MethodGet, sandboxes, "")
	default:
		d.pass(20 * time.Second)
		d.reconcile(d.IntN(2))
	}
}

// step is one thing that happens to a sandbox.
func (d *day) step() {
	d.t.Helper()
	if len(d.live) < 4 {
		d.create()
		return
	}
	i := d.IntN(len(d.live))
	id := d.live[i]
	switch d.IntN(6) {
	case 0:
		d.must(http.StatusNoContent, http.MethodDelete, sandboxes+"/"+id, "")
		d.must(http.StatusNoContent, http.MethodDelete, sandboxes+"/"+id, "") // safe to repeat
		unread := d.must(http.StatusCreated, http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`)
		d.pass(30 * time.Second)
		d.must(http.StatusNoContent, http.MethodDelete, sandboxes+"/"+unread.id(), "") // nobody has read its rate
	case 1:
		if d.platform.SetSandboxState(id, "FAILED") != nil {
			return // it has ended meanwhile
		}
	case 2:
		a, err := d.ask(d.IntN(2), "key_of_ann_1", http.MethodPost, sandboxes+"/"+id+"/exec", `{"command":["true"]}`)
		if err != nil || a.status >= 500 {
			d.t.Fatalf("exec: %d %s (%v)", a.status, a.body, err)
		}
		return
	default:
		d.create()
		return
	}
	d.live = append(d.live[:i], d.live[i+1:]...)
}

// ends counts why sandboxes have ended.
func (d *day) ends() map[string]int {
	d.t.Helper()
	ends := make(map[string]int)
	for _, state := range []string{"TERMINATED", "FAILED"} {
		var list struct {
			Sandboxes []struct{ TerminationReason string }
		}
		if err := json.Unmarshal([]byte(d.outside(http.MethodGet, sandboxes+"?state="+state, "").body), &list); err != nil {
			d.t.Fatal(err)
		}
		for _, s := range list.Sandboxes {
			ends[s.TerminationReason]++
		}
	}
	return ends
}

// TestADayOfSandboxesAgreesWithTheBill lets sandboxes come and go for a day, by deletes, timeouts and failures, and wants the amounts that
// have accrued, the history and the export to be the platform's bill, to the cent.
func TestADayOfSandboxesAgreesWithTheBill(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			d := newDay(t, seed)
			begin := d.clock.Now()
			d.create() // one fails in any case
			if err := d.platform.SetSandboxState(d.live[0], "FAILED"); err != nil {
				t.Fatal(err)
			}
			d.live = nil
			for d.clock.Now().Sub(begin) < 22*time.Hour {
				d.pass(time.Duration(d.Int64N(int64(8 * time.Minute))))
				d.step()
				if d.IntN(3) == 0 {
					d.reconcile(d.IntN(2))
				}
			}
			d.pass(100 * time.Minute) // the last ones end
			d.reconcile(0)
			left, rate, err := d.platform.Balance("acme")
			if err != nil || rate != 0 {
				t.Fatalf("%f USD per hour are left (%v), want none", rate, err)
			}
			d.compare(1e9 - left)
			ends := d.ends()
			for _, reason := range []string{"IDLE_TIMEOUT", "MAX_LIFETIME", "DELETED", "FAILED"} {
				if ends[reason] == 0 {
					t.Errorf("no sandbox ended by %s: %v", reason, ends)
				}
			}
			d.pass(2 * time.Hour)
			d.reconcile(1)
			if state := d.state(); len(state.Holds)+len(state.Resources) != 0 {
				t.Errorf("%d holds and %d resources are left, want none", len(state.Holds), len(state.Resources))
			}
			t.Logf("%v; billed %.4f USD", ends, 1e9-left)
		})
	}
}

func (d *day) compare(billed float64) {
	d.t.Helper()
	state := d.state()
	all := balance(&state, ledger.Scope{Kind: ledger.KindOrg})
	if all.Committed != (ledger.Amounts{}) || all.Reserved != (ledger.Amounts{}) {
		d.t.Errorf("committed %v and reserved %v, want nothing", all.Committed, all.Reserved)
	}
	const range1 = "org=acme&from=2027-03-01&to=2027-03-02"
	history := dollars(d.t, get[money.Costs](d.site, "/admin/spend/history?"+range1+"&by=kind&bucket=day").Rows[0].USD)
	exported := 0.0
	for _, row := range exportOf(d.site, range1+"&bucket=day") {
		exported += dollars(d.t, row["BilledCost"])
		if row["ServiceName"] != "Sandboxes" || row["PricingUnit"] != "Hours" {
			d.t.Errorf("an exported row is %v", row)
		}
	}
	for name, got := range map[string]float64{"accrued": float64(all.Month) / 1e6, "history": history, "export": exported} {
		if math.Abs(got-billed) >= 0.005 {
			d.t.Errorf("%s %.6f, billed %.6f: off by %.6f", name, got, billed, got-billed)
		}
	}
}

// A sandbox whose gateway is killed in mid-create is made once: a repeat of the request at another gateway finds it by its label.
func TestSandboxesOfAKilledGateway(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t)
	p := &plan{gateways: 1, run: true, redis: addr, client: brisk(t, addr), config: "    budget: {sandboxes: 5}\n" + sandboxKey, settings: sandboxRate}
	s := open(t, p)
	client := p.client
	p.client = nil
	s.start(p) // the survivor
	s.await("the ledger is complete", func() bool { s := s.state(); return s.Complete })
	s.platform.SetLatency("createSandbox", 3*time.Second)
	var wg sync.WaitGroup
	bodies := make([]string, 5)
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"name":"s%d","imageName":"alpine:3"}`, i)
		wg.Go(func() { // its caller has gone with it
			s.visit(0, &wish{path: sandboxes, body: bodies[i]}, 2*time.Second) // sent by then, also on a busy machine
		})
	}
	wg.Wait()
	_ = client.Close() // the gateway reaches neither its callers nor the store any more
	ids := make([]string, len(bodies))
	for i, body := range bodies {
		wg.Go(func() {
			s.await("the repeat of "+body+" is answered", func() bool {
				a, err := s.ask(1, "key_of_ann_1", http.MethodPost, sandboxes, body)
				ids[i] = a.id()
				return err == nil && a.status == http.StatusCreated
			})
		})
	}
	wg.Wait()
	var list struct{ Sandboxes []struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(s.outside(http.MethodGet, sandboxes, "").body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Sandboxes) != len(bodies) {
		t.Errorf("%d sandboxes were made for %d requests: %v", len(list.Sandboxes), len(bodies), list)
	}
	for _, made := range list.Sandboxes {
		if i := int(made.Name[1] - '0'); ids[i] != made.ID {
			t.Errorf("the repeat for %s was answered with %s, want %s", made.Name, ids[i], made.ID)
		}
	}
}

// After a loss of the ledger, sandboxes have their owners back, also those that a gateway without memory finds. Those made without the
// gateway count for the organisation. Over a used-up budget, sandboxes are deleted.
func TestSandboxesAfterALossAndOverABudget(t *testing.T) {
	t.Parallel()
	d := newDay(t, 9)
	var ids []string
	for range 3 {
		ids = append(ids, d.must(http.StatusCreated, http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`).id())
	}
	ids = append(ids, d.outside(http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`).id())
	d.pass(10 * time.Second)
	d.redis.FlushAll()
	d.reconcile(0)
	lost := d.state()
	if all := balance(&lost, ledger.Scope{Kind: ledger.KindOrg}); all.Day > 3000 {
		t.Errorf("%d micro-dollars have accrued after a loss, want those of 10 s", all.Day)
	}
	d.redis.FlushAll()
	d.gateways = nil
	d.start(&plan{
		gateways: 1, redis: d.redis.Addr(),
		config: "    budget: {per_hour: 0.06}\n    over: {stop: newest, notice: 1m}\n" + sandboxKey, settings: sandboxRate,
	})
	d.reconcile(0)
	owners := make(map[string]string)
	for _, r := range d.state().Resources {
		owners[r.ID] = r.Owner.String()
	}
	for i, id := range ids {
		if want := []string{"key ann", "key ann", "key ann", "organisation"}[i]; owners[id] != want {
			t.Errorf("sandbox %d belongs to %q, want %q", i, owners[id], want)
		}
	}
	for range 2 {
		d.pass(90 * time.Second)
		d.reconcile(0)
	}
	state := d.state()
	if all := balance(&state, ledger.Scope{Kind: ledger.KindOrg}).Committed; all[ledger.Sandboxes] != 2 || all[ledger.Burn] != 52_000 {
		t.Errorf("committed %v, want two sandboxes at 0.026", all)
	}
	if n := len(d.platform.CallsTo("deleteSandbox")); n != 2 {
		t.Errorf("%d sandboxes were deleted, want 2 of 4", n)
	}
}

// Sandboxes that the ledger has stay there, and cost, when the platform denies that it has any, or denies the platform key the list.
func TestSandboxesWithoutAList(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden} {
		d := newDay(t, 7)
		d.must(http.StatusCreated, http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`)
		d.pass(2 * time.Minute)
		for _, operation := range []string{"listSandboxes", "getSandbox"} {
			d.platform.AddFault(platform.Fault{Operation: operation, Kind: platform.FaultStatus, Status: status})
		}
		if out, err := d.site.pass(0); err == nil {
			t.Errorf("%d: the pass succeeds: %+v", status, out)
		}
		state := d.state()
		if all := balance(&state, ledger.Scope{Kind: ledger.KindOrg}).Committed; all[ledger.Sandboxes] != 1 {
			t.Errorf("%d: committed %v, want one sandbox", status, all)
		}
	}
}

// A sandbox whose create has lost its response, and that has ended before a pass saw it, has cost the ceiling rate until its
// end. The reservation of one that was not made is released.
func TestLostSandboxesThatHaveEnded(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"TERMINATED", "FAILED", ""} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			d := newDay(t, 5)
			d.platform.AddFault(platform.Fault{Operation: "createSandbox", Kind: platform.FaultDrop, After: state != ""})
			d.platform.AddFault(platform.Fault{Operation: "listSandboxes", Kind: platform.FaultStatus, Status: http.StatusServiceUnavailable})
			if a, err := d.ask(0, "key_of_ann_1", http.MethodPost, sandboxes, `{"imageName":"alpine:3"}`); err != nil || a.status < 500 {
				t.Fatalf("%d %s (%v), want a failure", a.status, a.body, err)
			}
			d.platform.ClearFaults()
			var list struct{ Sandboxes []struct{ ID string } }
			if err := json.Unmarshal([]byte(d.outside(http.MethodGet, sandboxes, "").body), &list); err != nil {
				t.Fatal(err)
			}
			d.pass(6 * time.Minute)
			for _, made := range list.Sandboxes {
				if err := d.platform.SetSandboxState(made.ID, state); err != nil {
					t.Fatal(err)
				}
			}
			d.pass(14 * time.Minute)
			d.reconcile(0)
			d.reconcile(0)
			now := d.state()
			all := balance(&now, ledger.Scope{Kind: ledger.KindOrg})
			want := int64(10_000)
			if state == "" {
				want = 0
			}
			if all.Day != want || len(now.Holds) != 0 || all.Committed != (ledger.Amounts{}) {
				t.Errorf("%q: %d accrued, %v committed, %d holds, want %d micro-dollars and nothing else", state, all.Day, all.Committed, len(now.Holds), want)
			}
		})
	}
}
