package parity

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// A create whose answer is lost stays counted; the reconciler finds the pod, and
// there is one pod that counts once.
func TestALostAnswerStaysCounted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault platform.Fault
		// found and released are the numbers of holds that the reconciler ends so.
		found, released int
		committed       int64
	}{
		{"made, then cut off", platform.Fault{Kind: platform.FaultDrop, After: true}, 1, 0, 1},
		{"made, and the answer breaks off", platform.Fault{Kind: platform.FaultCut}, 1, 0, 1},
		{"made, and the response cannot be read", platform.Fault{Kind: platform.FaultMalformed}, 1, 0, 1},
		{"made, then 504", platform.Fault{Kind: platform.FaultStatus, Status: 504, After: true}, 1, 0, 1},
		{"made, then 500", platform.Fault{Kind: platform.FaultStatus, Status: 500, After: true}, 1, 0, 1},
		{"not made, 500", platform.Fault{Kind: platform.FaultStatus, Status: 500}, 0, 1, 0},
		{"not made, cut off", platform.Fault{Kind: platform.FaultDrop}, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				if d.name == "envoy" && tt.fault.Kind == platform.FaultCut {
					t.Skip("the minimal Envoy takes a broken answer for its own fault")
				}
				d.reconcile(t)
				tt.fault.Operation, tt.fault.Times = "createPod", 1
				d.platform.AddFault(tt.fault)
				if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status == 201 {
					t.Fatalf("create: %d %s, want a failure", a.Status, a.Body)
				}
				d.holds(t, 0, 1)
				other := strings.Replace(podL4, `"a"`, `"b"`, 1)
				if a := d.ask(t, request("POST", "/v2/pods", "key_research", other)); a.Status != 402 {
					t.Errorf("the last slot is given away: %d %s", a.Status, a.Body)
				}
				r := d.reconcile(t)
				if r.Found != tt.found || r.Released != tt.released || r.Adopted != 0 {
					t.Errorf("reconciled: %+v, want %d found and %d released", r, tt.found, tt.released)
				}
				if tt.found+tt.released == 0 {
					if r.Open != 1 {
						t.Errorf("reconciled: %+v, want it looked for on", r)
					}
					d.advance(11 * time.Minute)
					if r := d.reconcile(t); r.Released != 1 {
						t.Errorf("reconciled after eleven minutes: %+v, want it released", r)
					}
				}
				d.holds(t, tt.committed, 0)
			}, budgeted("{gpus: 1}"), patient("0s"))
		})
	}
}

// A definite refusal releases the reservation.
func TestARefusalReleases(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for _, kind := range []platform.FaultKind{platform.FaultCapacity, platform.FaultBalance, platform.FaultRateLimit} {
			d.platform.AddFault(platform.Fault{Kind: kind, Operation: "createPod", Times: 1})
			if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status < 400 || a.Status >= 500 {
				t.Errorf("%s: %d %s", kind, a.Status, a.Body)
			}
			d.holds(t, 0, 0)
		}
	}, budgeted("{gpus: 1}"))
}

// The ledger follows what happens without the gateway.
func TestTheLedgerFollowsThePlatform(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.rented(t, podL4)
		d.advance(time.Minute)
		outside(t, d, "POST", "/v2/pods", podL4)
		if r := d.reconcile(t); r.Adopted != 1 {
			t.Errorf("reconciled: %+v, want one adopted", r)
		}
		d.holds(t, 1, 0)
		outside(t, d, "POST", "/v2/pods/"+id+"/action", `{"action":"stop"}`)
		if r := d.reconcile(t); r.Changed != 1 {
			t.Errorf("reconciled: %+v, want one changed", r)
		}
		d.holds(t, 0, 0)
		outside(t, d, "DELETE", "/v2/pods/"+id, "")
		d.advance(time.Minute)
		if r := d.reconcile(t); r.Removed != 1 {
			t.Errorf("reconciled: %+v, want one removed", r)
		}
		if got := d.ledger(t).Resources; len(got) != 1 || got[0].Team != "" {
			t.Errorf("resources = %+v, want the organisation's", got)
		}
	}, budgeted("{gpus: 5}"))
}

// outside calls the platform with the organisation's own key.
func outside(t *testing.T, d *door, method, path, body string) {
	t.Helper()
	outsideAt(t, d.platform.URL, method, path, body)
}

// outsideAt is outside at an address of the platform.
func outsideAt(t *testing.T, address, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer pk-acme-"+canary)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("%s %s: %d", method, path, res.StatusCode)
	}
}

// While the ledger cannot be asked, what raises cost is refused and what lowers it
// is not.
func TestWithoutTheLedger(t *testing.T) {
	t.Parallel()
	exempt := func(d *door) {
		budgeted("{gpus: 5}")(d)
		d.text = strings.Replace(d.text, "id: key_research, team: research,", "id: key_research, team: research, exempt: true,", 1)
		d.text = strings.Replace(d.text, "roles: [admin], limits: {minute: 600, hour: 3000, day: 50000}}", "roles: [admin]}", 1)
	}
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.rented(t, podL4)
		d.redis.SetError("ERR away")
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 503 || !strings.Contains(a.Body, "spending cannot be checked") {
			t.Errorf("create: %d %s, want 503", a.Status, a.Body)
		}
		for _, action := range []string{"stop", "start"} {
			want := map[string]int{"stop": 200, "start": 503}[action]
			if a := d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_research", `{"action":"`+action+`"}`)); a.Status != want {
				t.Errorf("%s: %d %s, want %d", action, a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_research", "")); a.Status != 204 {
			t.Errorf("delete: %d %s", a.Status, a.Body)
		}
		d.redis.SetError("")
		d.advance(time.Minute)
		if r := d.reconcile(t); r.Removed != 1 {
			t.Errorf("reconciled: %+v, want the pod removed", r)
		}
		d.holds(t, 0, 0)
	}, exempt)
}

// An emptied store is rebuilt from the platform before anything is admitted.
func TestAnEmptiedLedgerIsRebuilt(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.rented(t, podL4)
		d.forget()
		if l := d.ledger(t); l.Complete {
			t.Error("the ledger passes for complete")
		}
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 {
			t.Errorf("create: %d %s, want 402: the pod still runs", a.Status, a.Body)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    budget: {gpus: 1}", 1)
	})
}
