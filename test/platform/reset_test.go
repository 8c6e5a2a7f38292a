package platform

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// After a reset, an emulator answers as a new one with the same seed, in memory
// and from a data file.
func TestReset(t *testing.T) {
	seed, err := ParseSeed([]byte(seedFile))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Accounts: seed.Accounts, DataFile: filepath.Join(t.TempDir(), "p.db"), Seed: 3}
	r := newRig(t, o).as("ka")
	if err := r.ApplySeed(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	look := func(r *rig) []any {
		left, perHour, err := r.Balance("a")
		return []any{
			r.want(200, "GET", "/v2/pods", "").at("pods.0.id"), r.want(200, "GET", "/v2/templates", "").raw,
			r.want(200, "GET", "/v2/serverless", "").raw, r.as("kb").want(200, "GET", "/v2/account/ssh-keys", "").raw,
			r.want(200, "GET", "/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&product=POD", "").raw,
			fmt.Sprintf("%.2f left, %.4f per hour, %v; faults %v, latency %v", left, perHour, err, r.Faults(), r.Latency()),
		}
	}
	want := look(r)

	r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i"}`)
	r.want(201, "POST", "/v2/serverless", queueEndpoint)
	r.as("kb").want(200, "PUT", "/v2/account/ssh-keys", `{"keys":[]}`)
	if err := r.SetPrice("NVIDIA L4", Price{Secure: 9}); err != nil {
		t.Fatal(err)
	}
	if err := r.SetBalance("a", 1); err != nil {
		t.Fatal(err)
	}
	r.AddFault(Fault{Kind: FaultDrop, Operation: "createPod"})
	r.SetLatency("createPod", 1)

	if a := r.callOn(r.ControlHandler(), "POST", "/reset", ""); a.status != 204 {
		t.Fatalf("POST /reset: got %d %s, want 204", a.status, a.raw)
	}
	if n := len(r.Calls()); n != 0 {
		t.Errorf("%d calls are remembered after a reset, want none", n)
	}
	if diff := cmp.Diff(want, look(r)); diff != "" {
		t.Errorf("state after a reset (-new +reset):\n%s", diff)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	kept := newRig(t, o).as("ka")
	kept.want(200, "GET", "/v2/pods/"+fmt.Sprint(want[0]), "")
	if raw := kept.want(200, "GET", "/v2/templates", "").raw; raw != empty("templates") {
		t.Errorf("the data file brought back what a reset removed: %s", raw)
	}
}

// A job that is waited for ends when its endpoint is reset away.
func TestResetEndsJobs(t *testing.T) {
	r := newRig(t, Options{})
	id := r.want(201, "POST", "/v2/serverless", queueEndpoint).text("id")
	answered := make(chan answer)
	go func() {
		answered <- r.callOn(r.RunHandler(), "POST", "/v2/"+id+"/runsync", `{"input":{}}`)
	}()
	if _, err := r.waitCalls(t.Context(), "runSync", 1); err != nil {
		t.Fatal(err)
	}
	for r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").at("workers.0") == nil {
		continue // until the job is queued: it brings up a worker
	}
	if err := r.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.text("status") != "CANCELLED" {
		t.Errorf("job of a reset endpoint: got %d %s, want it CANCELLED", a.status, a.raw)
	}
}
