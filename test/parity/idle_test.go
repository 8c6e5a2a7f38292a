package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// watching has both organisations look for idle resources.
func watching(section string) option {
	return func(d *door) {
		for _, name := range []string{"ACME", "GLOBEX"} {
			d.text = strings.Replace(d.text, "{env: "+name+"}", "{env: "+name+"}\n    idle: "+section, 1)
		}
	}
}

// used sets what pods report of their use.
func (d *door) used(t *testing.T, gpu, cpu int, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := d.platform.ChangePod(id, platform.PodChange{GPUUtil: &gpu, CPUUtil: &cpu}); err != nil {
			t.Fatal(err)
		}
	}
}

// watch lets minutes pass, with a look at the platform in each.
func (d *door) watch(t *testing.T, minutes int) {
	t.Helper()
	for range minutes {
		d.advance(time.Minute)
		d.reconcile(t)
		asOperator[money.Reconciled](t, d, "POST", "/admin/spend/reconcile?org=globex")
	}
}

// idle lists the idle resources, by name: the reason, and the cost of a month.
func (d *door) idle(t *testing.T, org string) map[string]string {
	t.Helper()
	got := make(map[string]string)
	for _, r := range asOperator[money.IdleList](t, d, "GET", "/admin/spend/idle?org="+org).Resources {
		got[r.Name] = strings.TrimSuffix(strings.Join([]string{r.Reason, r.PerMonth, r.Key}, " "), " ")
	}
	return got
}

// announced waits until the stops of pods have been announced, which happens in the background.
func (d *door) announced(t *testing.T, names ...string) {
	t.Helper()
	world.Until(t, "the stops are announced", func() bool {
		n := 0
		for _, r := range asOperator[money.IdleList](t, d, "GET", "/admin/spend/idle?org=acme").Resources {
			if r.StopAt != nil && slices.Contains(names, r.Name) {
				n++
			}
		}
		return n == len(names)
	})
}

// did lists the acts of the gateways by themselves for acme.
func (d *door) did(t *testing.T) []explain.Summary {
	t.Helper()
	return asOperator[struct{ Decisions []explain.Summary }](t, d, "GET", "/admin/decisions?org=acme&own=true").Decisions
}

func (d *door) podStatus(t *testing.T, id string) string {
	t.Helper()
	return fmt.Sprint(field(t, d.ask(t, request("GET", "/v2/pods/"+id, "key_research", "")).Body, "status"))
}

func podNamed(name string) string {
	return `{"name":"` + name + `","image":"img:1","gpu":{"id":"NVIDIA L4"}}`
}

// An idle pod is found and, after notice, stopped, though the gateway that looks is
// another one halfway. What works, is kept, is locked or has no owner goes on, and so
// do pods of others.
func TestIdlePodsAreStopped(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.calls.Add(1) // takes the first delivery, too
	d := openDoor(t, "http", watching("{for: 10m, action: stop, notice: 5m}"), told(r, "127.0.0.0/8"))
	ids := make(map[string]string)
	for _, name := range []string{"idle", "busy", "kept", "locked", "late"} {
		ids[name] = d.rented(t, podNamed(name))
	}
	outside(t, d, "POST", "/v2/pods", podNamed("outside"))
	a := d.ask(t, request("POST", "/v2/pods", "key_globex", podNamed("other")))
	if a.Status != 201 {
		t.Fatalf("globex: %d %s", a.Status, a.Body)
	}
	other, locked := fmt.Sprint(field(t, a.Body, "id")), true
	if err := d.platform.ChangePod(ids["locked"], platform.PodChange{Locked: &locked}); err != nil {
		t.Fatal(err)
	}
	d.reconcile(t)
	for _, res := range d.ledger(t).Resources {
		if res.Key == "" {
			ids["outside"] = res.ID
		}
		d.used(t, 0, 3, res.ID)
	}
	d.used(t, 0, 60, ids["busy"]) // its processors work
	d.used(t, 50, 3, other)

	d.watch(t, 6)
	d.gateway = newGateway(t, d)
	d.watch(t, 3)
	if got := d.idle(t, "acme"); len(got) != 0 {
		t.Fatalf("after 9 minutes, %v is idle", got)
	}
	asOperator[money.Snoozed](t, d, "POST", "/admin/spend/snooze?org=acme&for=24h&id="+ids["kept"])
	d.watch(t, 2)
	d.announced(t, "idle", "late")
	const cost = "unused 315.9002"
	want := map[string]string{"idle": cost + " key_research", "kept": cost + " key_research", "locked": cost + " key_research", "late": cost + " key_research", "outside": cost}
	if diff := cmp.Diff(want, d.idle(t, "acme")); diff != "" {
		t.Errorf("idle, want-, got+:\n%s", diff)
	}
	if got := d.idle(t, "globex"); len(got) != 0 {
		t.Errorf("globex has idle %v, want nothing", got)
	}
	d.watch(t, 3)
	d.used(t, 90, 3, ids["late"]) // works again before the notice is over
	if n := len(d.platform.CallsTo("podAction")); n != 0 {
		t.Fatalf("%d pods were stopped before the notice was over", n)
	}
	d.watch(t, 3)
	for name, id := range ids {
		want := "RUNNING"
		if name == "idle" {
			want = "EXITED"
		}
		if got := d.podStatus(t, id); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	wantEvents := map[string]int{
		"resource.idle idle true": 1, "resource.idle late true": 1, "resource.idle locked false": 1, "resource.idle outside false": 1, "resource.stopped idle true": 1,
		"resource.unowned outside false": 1,
	}
	world.Until(t, "deliveries", func() bool { return len(r.got) >= len(wantEvents) })
	events := make(map[string]int)
	for len(r.got) > 0 {
		_, body, _ := strings.Cut(<-r.got, " ")
		data, _ := field(t, body, "data").(map[string]any)
		_, stops := data["stop_at"]
		events[fmt.Sprint(field(t, body, "type"), " ", data["name"], " ", stops)]++
	}
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Errorf("deliveries, want-, got+:\n%s", diff)
	}
	d.gateway = newGateway(t, d)                                                   // any gateway tells what was done
	world.Until(t, "the archive has it", func() bool { return len(d.did(t)) > 0 }) // it is written behind
	if got := d.did(t); len(got) != 1 || got[0].Operation != "podAction" || got[0].Team != "research" || got[0].Own.Resource != ids["idle"] ||
		!strings.Contains(got[0].Own.Did, "stopped pod "+ids["idle"]+" (idle) of key key_research: idle (unused) since ") {
		t.Errorf("by itself the gateway did %+v, want one stop", got)
	}
	// Nothing follows, until the kept pod is let go.
	d.watch(t, 5)
	if n := len(d.platform.CallsTo("podAction")); n != 1 {
		t.Errorf("%d pods were stopped, want 1", n)
	}
	asOperator[money.Snoozed](t, d, "POST", "/admin/spend/snooze?org=acme&for=0s&id="+ids["kept"])
	d.watch(t, 7)
	if got := d.podStatus(t, ids["kept"]); got != "EXITED" {
		t.Errorf("the pod that is no longer kept is %s, want EXITED", got)
	}
	for delivered := ""; !strings.Contains(delivered, "resource.stopped"); delivered = <-r.got {
	}
}

// A pod that worked while no gateway looked is not stopped, although the first look afterwards finds it idle: by default a
// gateway that is restarted looks again after three minutes at most.
func TestPodsThatWorkUnseenGoOn(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.calls.Add(1)
	d := openDoor(t, "http", watching("{for: 10m, action: stop, notice: 3m}"), told(r, "127.0.0.0/8"))
	id := d.rented(t, podNamed("idle"))
	d.used(t, 0, 3, id)
	d.watch(t, 11)
	d.announced(t, "idle")
	d.advance(121 * time.Second) // in which it works
	d.gateway = newGateway(t, d)
	d.watch(t, 10)
	if got := d.podStatus(t, id); got != "RUNNING" || len(d.idle(t, "acme")) != 0 {
		t.Errorf("nine minutes after its work the pod is %s, idle are %v", got, d.idle(t, "acme"))
	}
	d.watch(t, 1)
	d.announced(t, "idle")
	d.watch(t, 3)
	if got := d.podStatus(t, id); got != "EXITED" {
		t.Errorf("after ten idle minutes and the notice the pod is %s, want EXITED", got)
	}
}

// A pod whose owner could not be notified is not stopped. Its notice is sent again by each pass, and the pod is stopped when
// the notice has passed since the delivery.
func TestUndeliveredNoticeHoldsBackTheStop(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.calls.Add(1)
	r.refuses.Store(true)
	d := openDoor(t, "http", watching("{for: 10m, action: stop, notice: 10m}"), told(r, "127.0.0.0/8"))
	id := d.rented(t, podNamed("idle"))
	d.used(t, 0, 3, id)
	d.watch(t, 20)
	if got := d.podStatus(t, id); got != "RUNNING" {
		t.Fatalf("without a delivered notice the pod is %s, want RUNNING", got)
	}
	r.refuses.Store(false)
	world.Until(t, "the notice is delivered", func() bool {
		d.watch(t, 1)
		return len(r.got) > 0
	})
	d.announced(t, "idle")
	d.watch(t, 2)
	if got := d.podStatus(t, id); got != "RUNNING" {
		t.Errorf("two minutes after the notice the pod is %s, want RUNNING", got)
	}
	d.watch(t, 10)
	if got := d.podStatus(t, id); got != "EXITED" {
		t.Errorf("after the notice the pod is %s, want EXITED", got)
	}
}

// Endpoints whose workers have no jobs, volumes that nothing mounts and pods that pay for storage
// while they are stopped are listed with their cost, and stay.
func TestForgottenResources(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", watching("{for: 10m, forgotten: 10m, action: stop, notice: 1m}"))
	made := func(path, body string) string {
		t.Helper()
		a := d.ask(t, request("POST", path, "key_platform", body))
		if a.Status != 201 {
			t.Fatalf("%s: %d %s", body, a.Status, a.Body)
		}
		return fmt.Sprint(field(t, a.Body, "id"))
	}
	made("/v2/network-volumes", `{"name":"alone","size":100,"dataCenter":"EU-RO-1"}`)
	volume := made("/v2/network-volumes", `{"name":"mounted","size":100,"dataCenter":"EU-RO-1"}`)
	served := made("/v2/network-volumes", `{"name":"served","size":100,"dataCenter":"EU-RO-1"}`)
	busy := made("/v2/pods", `{"name":"works","image":"img:1","cpu":{"id":"cpu3c","vcpuCount":2},"dataCenterIds":["EU-RO-1"],"mounts":{"network":[{"volumeId":"`+volume+`","path":"/data"}]}}`)
	halted := made("/v2/pods", `{"name":"halted","image":"img:1","gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":100,"path":"/workspace"}}}`)
	const endpoint = `{"name":%q,"image":"i:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"networkVolumes":[%s],"workers":{"min":%d,"max":3},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`
	made("/v2/serverless", fmt.Sprintf(endpoint, "waits", "", 1))
	made("/v2/serverless", fmt.Sprintf(endpoint, "sleeps", `"`+served+`"`, 0))
	if a := d.ask(t, request("POST", "/v2/pods/"+halted+"/action", "key_platform", `{"action":"stop"}`)); a.Status != 200 {
		t.Fatalf("stop: %d %s", a.Status, a.Body)
	}
	d.reconcile(t)
	d.used(t, 50, 50, busy)
	d.watch(t, 12)
	want := map[string]string{"alone": "unmounted 6.99997 key_platform", "halted": "stopped 19.99981 key_platform", "waits": "no_jobs 805.0002 key_platform"}
	if diff := cmp.Diff(want, d.idle(t, "acme")); diff != "" {
		t.Errorf("idle, want-, got+:\n%s", diff)
	}
	d.watch(t, 3)
	if calls := d.platform.CallsTo("podAction"); len(calls) != 1 {
		t.Errorf("%d actions, want that of the caller alone", len(calls))
	}
}
