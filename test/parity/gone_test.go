package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// One empty answer to a list takes no owner away and gives no room, and is told of; a GET that
// fails or finds the pod, too. A pod is gone when a GET says so.
func TestAnEmptyListTakesNothingAway(t *testing.T) {
	for _, get := range []platform.Fault{{}, {Operation: "getPod", Kind: platform.FaultStatus, Status: 502}, {Operation: "getPod", Kind: platform.FaultStatus, Status: 403}} {
		t.Run(fmt.Sprint(get.Status), func(t *testing.T) {
			r := newAlertReceiver(t)
			d := openDoor(t, "http", budgeted("{gpus: 1}"), told(r, "127.0.0.0/8"), func(d *door) {
				d.text = strings.Replace(d.text, "alerts: {webhook", "alerts: {thresholds: [], webhook", 1)
			})
			id := d.rented(t, podL4)
			d.advance(2 * time.Minute)
			d.platform.AddFault(platform.Fault{Operation: "listPods", Kind: platform.FaultMalformed, Body: `{"pods":[]}`})
			if get.Kind != "" {
				d.platform.AddFault(get)
			}
			for range 2 {
				if r := d.reconcile(t); r.Removed != 0 {
					t.Errorf("reconciled: %+v, want none removed", r)
				}
			}
			if got := d.ledger(t).Resources; len(got) != 1 || got[0].ID != id || got[0].Key != "key_research" {
				t.Errorf("resources = %+v, want ann's pod", got)
			}
			if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 {
				t.Errorf("a second pod: %d %s, want 402", a.Status, a.Body)
			}
			var event struct {
				Type string
				Data struct{ Listed, Missing int }
			}
			_, body, _ := strings.Cut(<-r.got, " ")
			if err := json.Unmarshal([]byte(body), &event); err != nil || event.Type != "platform.list_short" || event.Data.Listed != 0 || event.Data.Missing != 1 {
				t.Errorf("told of %s (%v), want a short list", body, err)
			}
			if !strings.Contains(d.logs.String(), "platform's list omits most known resources") || !strings.Contains(d.page(t, "/metrics"), `tollgate_ledger_missing{org="acme"} 1`) {
				t.Error("neither the log nor the metrics tell of it")
			}
			d.platform.ClearFaults()
			outside(t, d, "DELETE", "/v2/pods/"+id, "")
			if r := d.reconcile(t); r.Removed != 1 {
				t.Errorf("reconciled: %+v, want one removed", r)
			}
			d.holds(t, 0, 0)
		})
	}
}

// A delete gives room when a GET behind it is answered 404, and otherwise when the
// reconciler has found out: not for the platform's word that it is done.
func TestRoomAfterADelete(t *testing.T) {
	t.Parallel()
	for _, call := range []struct{ method, path, body string }{{"DELETE", "", ""}, {"POST", "/action", `{"action":"terminate"}`}} {
		eachDoor(t, func(t *testing.T, d *door) {
			first, second := d.rented(t, podL4), d.rented(t, podL4)
			if a := d.ask(t, request(call.method, "/v2/pods/"+first+call.path, "key_research", call.body)); a.Status != 204 {
				t.Fatalf("%d %s, want 204", a.Status, a.Body)
			}
			d.holds(t, 1, 0)
			d.platform.AddFault(platform.Fault{Operation: "getPod", Kind: platform.FaultMalformed, Body: `{"id":"` + second + `","status":"RUNNING"}`})
			if a := d.ask(t, request(call.method, "/v2/pods/"+second+call.path, "key_research", call.body)); a.Status != 204 {
				t.Fatalf("%d %s, want 204", a.Status, a.Body)
			}
			d.holds(t, 1, 0)
			if got := d.ledger(t).Holds; len(got) != 1 || !got[0].Open {
				t.Errorf("holds = %+v, want an open one", got)
			}
			d.platform.ClearFaults()
			d.advance(time.Minute)
			if r := d.reconcile(t); r.Found != 1 || r.Open != 0 {
				t.Errorf("reconciled: %+v, want one found", r)
			}
			d.holds(t, 0, 0)
		}, budgeted("{gpus: 2}"))
	}
}

// An endpoint that is to have no workers counts with those it has, until they are gone.
func TestRoomAfterWorkersAreGone(t *testing.T) {
	const endpoint = `{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"min":0,"max":3}}`
	worker := `{"id":"w","status":"RUNNING"}`
	three := platform.Fault{Operation: "listEndpointWorkers", Kind: platform.FaultMalformed, Body: `{"workers":[` + strings.Repeat(worker+",", 2) + worker + `]}`}
	for name, fault := range map[string]platform.Fault{
		"three are listed": three, "the list fails": {Operation: "listEndpointWorkers", Kind: platform.FaultStatus, Status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				made := d.ask(t, request("POST", "/v2/serverless", "key_research", endpoint))
				id := fmt.Sprint(field(t, made.Body, "id"))
				d.platform.AddFault(fault)
				if a := d.ask(t, request("PATCH", "/v2/serverless/"+id, "key_research", `{"workers":{"max":0}}`)); a.Status != 200 {
					t.Fatalf("%d %s, want 200", a.Status, a.Body)
				}
				d.holds(t, 3, 0)
				d.advance(time.Minute)
				d.reconcile(t)
				d.holds(t, 3, 0)
				d.platform.ClearFaults()
				d.reconcile(t)
				d.holds(t, 0, 0)
			}, budgeted("{gpus: 3}"))
		})
	}
}
