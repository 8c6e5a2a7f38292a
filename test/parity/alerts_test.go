package parity

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/world"
)

// alertReceiver takes deliveries of alerts: it fails the first of each, and keeps the
// rest after a look at the signature.
type alertReceiver struct {
	*httptest.Server

	got   chan string
	calls atomic.Int64
	// refuses has it answer 403.
	refuses atomic.Bool
}

const alertSecret = "a secret of twenty-four bytes"

func newAlertReceiver(t *testing.T) *alertReceiver {
	sign, err := webhooks.NewWebhookRaw([]byte(alertSecret))
	if err != nil {
		t.Fatal(err)
	}
	r := &alertReceiver{got: make(chan string, 16)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = sign.VerifyIgnoringTimestamp(body, req.Header)
		}
		if err != nil {
			t.Errorf("a delivery: %v", err)
		}
		if r.refuses.Load() {
			w.WriteHeader(http.StatusForbidden) // is not sent again
			return
		}
		if r.calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.got <- req.Header.Get("Webhook-Id") + " " + string(body)
	}))
	t.Cleanup(r.Close)
	return r
}

// told gives organisation acme the receiver.
func told(r *alertReceiver, networks string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "- id: acme\n", fmt.Sprintf(
			"- id: acme\n    alerts: {webhook: {url: %q, secret: {env: ALERTS}, networks: [%s]}}\n", r.URL, networks), 1)
	}
}

// A threshold is told of on the answer that reaches it, and once by the webhook,
// which is tried again.
func TestThresholds(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	d := openDoor(t, "http", budgeted("{per_hour: 1, gpus: 4}"), told(r, "127.0.0.0/8"))
	d.rented(t, podL4)
	a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
	if got, want := a.Header.Get("X-Tollgate-Budget"), `"team research per_hour";limit=1.0;left=0.135;reached=80`; got != want {
		t.Errorf("budget header = %s, want %s", got, want)
	}
	for range 3 {
		d.reconcile(t)
	}
	want := map[string]float64{"per_hour": 80, "gpus": 50}
	for range len(want) {
		id, body, _ := strings.Cut(<-r.got, " ")
		var event struct {
			Type string
			Data struct {
				Org, Scope, Budget string
				Percent            float64
			}
		}
		if err := json.Unmarshal([]byte(body), &event); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		e := event.Data
		if event.Type != "budget.threshold" || e.Org != "acme" || e.Scope != "team research" || e.Percent != want[e.Budget] || !strings.HasPrefix(id, "acme:team:research:"+e.Budget) {
			t.Errorf("%s %s, want a threshold of %v", id, body, want)
		}
		delete(want, e.Budget)
	}
	world.Until(t, "alerts to be remembered", func() bool {
		return strings.Contains(d.page(t, "/metrics"), `tollgate_budget_alerts_total{budget="gpus",org="acme",percent="50"`)
	})
	d.reconcile(t)
	d.rented(t, `{"name":"b","image":"img:1","cpu":{"id":"cpu3c","vcpuCount":2}}`)
	d.reconcile(t)
	select {
	case again := <-r.got:
		t.Errorf("told again: %s", again)
	default:
	}
}

// A change or removal behind the gateway is told of once, and a change by the gateway is not.
func TestDriftIsToldOf(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	d := openDoor(t, "http", budgeted("{per_hour: 3}"), told(r, "127.0.0.0/8"))
	own, changed, removed := d.rented(t, podL4), d.rented(t, podL4), d.rented(t, podL4)
	d.advance(time.Minute)
	d.reconcile(t)
	if a := d.ask(t, request("POST", "/v2/pods/"+own+"/action", "key_research", `{"action":"stop"}`)); a.Status != 200 {
		t.Fatalf("stop: %d %s", a.Status, a.Body)
	}
	outside(t, d, "POST", "/v2/pods/"+changed+"/action", `{"action":"stop"}`)
	outside(t, d, "DELETE", "/v2/pods/"+removed, "")
	d.advance(time.Minute)
	d.reconcile(t)
	type drift struct {
		Resource, Kind, Name, Team, Key string
		Before                          json.Number `json:"per_hour_before"`
		PerHour                         json.Number `json:"per_hour"`
	}
	got := make(map[string]drift)
	for range 2 {
		id, body, _ := strings.Cut(<-r.got, " ")
		var event struct {
			Type string
			Data drift
		}
		if err := json.Unmarshal([]byte(body), &event); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !strings.HasPrefix(id, event.Type+":acme:"+event.Data.Resource+":") {
			t.Errorf("the id of %s is %s", body, id)
		}
		got[event.Type] = event.Data
	}
	want := map[string]drift{
		"resource.changed": {changed, "pod", "a", "research", "key_research", "0.43274", got["resource.changed"].PerHour},
		"resource.removed": {removed, "pod", "a", "research", "key_research", "0.43274", "0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if rate, err := got["resource.changed"].PerHour.Float64(); err != nil || rate >= 0.4 {
		t.Errorf("the stopped pod costs %s, want less than when it ran", got["resource.changed"].PerHour)
	}
	d.reconcile(t)
	select {
	case again := <-r.got:
		t.Errorf("told again: %s", again)
	default:
	}
}

// A resource that is made behind the gateway is told of once; one that was there before the
// gateway is not.
func TestStrangersAreToldOf(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	d := openDoor(t, "http", budgeted("{per_hour: 3}"), told(r, "127.0.0.0/8"))
	outside(t, d, "POST", "/v2/pods", `{"name":"before","image":"img:1","gpu":{"id":"NVIDIA L4"}}`)
	d.reconcile(t)
	d.rented(t, podL4)
	outside(t, d, "POST", "/v2/pods", `{"name":"behind","image":"img:1","gpu":{"id":"NVIDIA L4"}}`)
	d.advance(time.Minute)
	d.reconcile(t)
	id, body, _ := strings.Cut(<-r.got, " ")
	var event struct {
		Type string
		Data struct {
			Org, Resource, Kind, Name string
			PerHour                   json.Number `json:"per_hour"`
		}
	}
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if e := event.Data; event.Type != "resource.unowned" || id != "resource.unowned:acme:"+e.Resource || e.Org != "acme" || e.Kind != "pod" || e.Name != "behind" || e.PerHour != "0.43274" {
		t.Errorf("%s %s, want the pod behind at 0.43274", id, body)
	}
	d.reconcile(t)
	select {
	case again := <-r.got:
		t.Errorf("told again: %s", again)
	default:
	}
}

// A receiver whose name leads to a private address that the configuration does not list is not asked. An address of that kind is a fault of
// the configuration.
func TestAlertsStayOutside(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	byName := func(d *door) {
		d.text = strings.Replace(d.text, r.URL, strings.Replace(r.URL, "127.0.0.1", "localhost", 1), 1)
	}
	d := openDoor(t, "http", budgeted("{gpus: 1}"), told(r, "10.0.0.0/8"), byName)
	d.rented(t, podL4)
	d.reconcile(t)
	world.Until(t, "word of the refusal", func() bool {
		return strings.Contains(d.logs.String(), "private address that is not listed in networks")
	})
	if n := r.calls.Load(); n != 0 {
		t.Errorf("the receiver was asked %d times", n)
	}
}

// A team that has chosen so has its pods stopped, after notice, when its budget is
// used up; others go on.
func TestStopWhenOver(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.calls.Add(1) // takes the first delivery, too
	d := openDoor(t, "http", budgeted("{per_day: 2}, over: {stop: newest, notice: 10m}"), told(r, "127.0.0.0/8"))
	id := d.rented(t, podL4)
	if a := d.ask(t, request("POST", "/v2/pods", "key_platform", podL4)); a.Status != 201 {
		t.Fatalf("another team: %d %s", a.Status, a.Body)
	}
	status := func() string {
		return fmt.Sprint(field(t, d.ask(t, request("GET", "/v2/pods/"+id, "key_research", "")).Body, "status"))
	}
	d.reconcile(t)
	d.advance(5 * time.Hour)
	d.reconcile(t)
	d.advance(9 * time.Minute)
	d.reconcile(t)
	if got := status(); got == "EXITED" {
		t.Fatalf("status = %s before the notice is over", got)
	}
	d.advance(time.Minute)
	d.reconcile(t)
	if got := status(); got != "EXITED" {
		t.Errorf("status = %s, want EXITED", got)
	}
	d.holds(t, 0, 0)
	d.reconcile(t)
	if calls := d.platform.CallsTo("podAction"); len(calls) != 1 {
		t.Errorf("%d pods were stopped, want 1", len(calls))
	}
	got := make(map[string]string)
	for range 3 {
		_, body, _ := strings.Cut(<-r.got, " ")
		got[fmt.Sprint(field(t, body, "type"))] = body
	}
	for kind, want := range map[string]string{"budget.threshold": `"percent":100`, "budget.over": `"stop_at":"2026-11-21T15:10:20Z"`, "budget.stopped": `"resource":"` + id + `"`} {
		if !strings.Contains(got[kind], want) {
			t.Errorf("%s: %s, want %s", kind, got[kind], want)
		}
	}
}

// prices is what acme has agreed with the platform.
func prices(text string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "- id: acme\n", "- id: acme\n    prices: "+text+"\n", 1)
	}
}

// A budget goes by the prices agreed with the platform, and by another agreement from the moment
// it is configured.
func TestAgreedPrices(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		if got, want := a.Header.Get("X-Tollgate-Cost"), "0.21774"; a.Status != 201 || got != want {
			t.Errorf("%d %s, cost %q, want %q", a.Status, a.Body, got, want)
		}
		d.reconcile(t)
		d.holds(t, 1, 0)
		text := strings.Replace(d.text, "{discount: 50}", `{gpus: {"NVIDIA L4": 0.9}}`, 1)
		if err := d.gateway.Swap(load(t, text, d.upstream)); err != nil {
			t.Fatal(err)
		}
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 || field(t, a.Body, "needs") != 0.90274 {
			t.Errorf("%d %s, want 402 for what was agreed since", a.Status, a.Body)
		}
	}, budgeted("{per_hour: 1}"), prices("{discount: 50}"))
}

// An hour that costs many times its usual is told of once a day for each scope, though
// it goes on.
func TestUnusualHoursAreToldOf(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.calls.Add(1) // takes the first delivery, too
	d := openDoor(t, "http", told(r, "127.0.0.0/8"), func(d *door) {
		d.text = strings.Replace(d.text, "alerts: {", "alerts: {unusual: {times: 3}, ", 1)
	})
	d.rented(t, podL4)
	d.reconcile(t)
	d.advance(9 * 24 * time.Hour)
	d.reconcile(t)
	for range 5 {
		d.rented(t, podL4)
	}
	for range 2 {
		d.advance(58 * time.Minute / 2)
		d.reconcile(t)
	}
	d.advance(time.Minute)
	d.reconcile(t)
	scopes := map[string]bool{"organisation": true, "team research": true, "key key_research": true}
	for range len(scopes) {
		id, body, _ := strings.Cut(<-r.got, " ")
		data, _ := field(t, body, "data").(map[string]any)
		scope := fmt.Sprint(data["scope"])
		if field(t, body, "type") != "spend.unusual" || !scopes[scope] || data["usual"] != 0.43274 || data["hour"] != "2026-11-30T10:00:00Z" || !strings.HasPrefix(id, "acme:unusual:") || !strings.HasSuffix(id, ":2026-11-30") {
			t.Errorf("%s %s, want an unusual hour of one of %v", id, body, scopes)
		}
		delete(scopes, scope)
	}
	d.advance(time.Hour)
	d.reconcile(t)
	d.reconcile(t)
	if len(r.got) > 0 {
		t.Errorf("told again: %s", <-r.got)
	}
}

// An exception is told of before it ends, once, whichever gateway runs.
func TestExpiringExceptionsAreToldOf(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.calls.Add(1) // takes the first delivery, too
	const exception = "      - {id: %s, policy: gpu_count, teams: [research], until: %s, reason: a demo, granted_by: ada}\n"
	d := openDoor(t, "http", told(r, "127.0.0.0/8"), func(d *door) {
		list := "    exceptions:\n"
		for id, until := range map[string]time.Duration{"ended": -time.Hour, "soon": 48 * time.Hour, "later": 100 * time.Hour} {
			list += fmt.Sprintf(exception, id, start.Add(until).Format(time.RFC3339))
		}
		d.text = strings.Replace(d.text, "    teams: [{id: research}", list+"    teams: [{id: research}", 1)
	})
	for _, want := range []string{"soon", "later"} {
		d.redis.FastForward(time.Hour) // the gateway before leads no longer
		cfg := load(t, d.text, d.upstream)
		end := world.Run(t, world.Gateway(t, cfg, gateway.Deps{
			Redis: world.Redis(t, d.redis.Addr()), Providers: world.Providers(t, cfg.Telemetry), Now: d.clock.Now, Logger: d.logs.Logger(),
			Data: world.Listen(t), Admin: world.Listen(t),
		}))
		id, body, _ := strings.Cut(<-r.got, " ")
		data, _ := field(t, body, "data").(map[string]any)
		if field(t, body, "type") != "exception.expiring" || data["exception"] != want || data["policy"] != "gpu_count" || data["granted_by"] != "ada" || !strings.HasPrefix(id, "exception.expiring:acme:"+want+":2026-11-2") {
			t.Errorf("%s %s, want the exception %s", id, body, want)
		}
		world.Until(t, "what was told to be remembered", func() bool {
			for _, key := range d.redis.Keys() {
				if strings.HasSuffix(key, "{acme}:notices") && d.redis.HGet(key, "exception:"+want) != "" {
					return true
				}
			}
			return false
		})
		end()
		d.advance(29 * time.Hour)
	}
	if len(r.got) > 0 {
		t.Errorf("told again: %s", <-r.got)
	}
}
