package parity

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// typesOf asks for the types of the billed resources.
func (d *door) typesOf(t *testing.T, key, kind string, ids ...string) map[string]string {
	t.Helper()
	a := d.ask(t, request("GET", "/tollgate/billing/types?"+url.Values{"kind": {kind}, "id": ids, "from": {"2026-11-01T00:00:00Z"}}.Encode(), key, ""))
	var out struct{ Types map[string]string }
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil || a.Status != 200 {
		t.Fatalf("%s: %d %s", key, a.Status, a.Body)
	}
	return out.Types
}

// notesOfPods are the keys of the notes about pods.
func (d *door) notesOfPods() []string {
	return slices.DeleteFunc(d.redis.Keys(), func(key string) bool { return !strings.Contains(key, "{acme:pod}:") })
}

// The types of billed resources are known, of those that are there and of those that are gone,
// whether made through the gateway or not, and only to callers that may read them.
func TestTypesOfWhatWasBilled(t *testing.T) {
	t.Parallel()
	const endpoint = `{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"min":0,"max":1}}`
	prepare := func(t *testing.T, d *door) (mine, gone, stray, lost, theirs, worker string) {
		t.Helper()
		id := func(key, path, body string) string {
			a := d.ask(t, request("POST", path, key, body))
			if a.Status != 201 {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
			return field(t, a.Body, "id").(string)
		}
		mine, gone = id("key_research", "/v2/pods", podL4), id("key_research", "/v2/pods", podL4)
		theirs, worker = id("key_platform", "/v2/pods", podL4), id("key_research", "/v2/serverless", endpoint)
		made := func() string { return d.asPlatform(t, "POST", "/v2/pods", podL4)["id"].(string) }
		stray, lost = made(), made()
		d.reconcile(t)
		d.advance(time.Hour)
		for _, dead := range []string{gone, lost} {
			if a := d.ask(t, request("DELETE", "/v2/pods/"+dead, "key_platform", "")); a.Status != 204 {
				t.Fatalf("delete: %d %s", a.Status, a.Body)
			}
		}
		return mine, gone, stray, lost, theirs, worker
	}
	eachDoor(t, func(t *testing.T, d *door) {
		mine, gone, stray, lost, theirs, worker := prepare(t, d)
		want := map[string]string{}
		for _, id := range []string{mine, gone, stray, lost, theirs} {
			want[id] = "NVIDIA L4"
		}
		if diff := cmp.Diff(want, d.typesOf(t, "key_research", "pod", mine, gone, stray, lost, theirs, "nothing")); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{worker: "NVIDIA GeForce RTX 4090"}, d.typesOf(t, "key_research", "endpoint", worker)); diff != "" {
			t.Errorf("endpoints (-want +got):\n%s", diff)
		}
		for query, want := range map[string]int{
			"": 400, "kind=pod&id=x": 400, "kind=volume&id=x&from=2026-11-01T00:00:00Z": 400, "kind=pod&id=x&from=yesterday": 400, "kind=pod&from=2026-11-01T00:00:00Z": 400,
			"kind=pod&id=x&from=2026-11-01T00:00:00Z&org=globex": 400,
		} {
			if a := d.ask(t, request("GET", "/tollgate/billing/types?"+query, "key_research", "")); a.Status != want {
				t.Errorf("%q: %d %s, want %d", query, a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("GET", "/tollgate/billing/types?kind=pod&id="+mine, "key_nowhere", "")); a.Status != 401 {
			t.Errorf("a stranger: %d %s, want 401", a.Status, a.Body)
		}
		// The ledger has counted them all, one of a second too, so there is no note, and v1 asks the ledger.
		brief := d.rented(t, podL4)
		d.advance(time.Second)
		if a := d.ask(t, request("DELETE", "/v2/pods/"+brief, "key_research", "")); a.Status != 204 {
			t.Fatalf("delete: %d %s", a.Status, a.Body)
		}
		if diff := cmp.Diff(map[string]string{brief: "NVIDIA L4"}, d.typesOf(t, "key_research", "pod", brief)); diff != "" {
			t.Errorf("a pod of a second (-want +got):\n%s", diff)
		}
		if notes := d.notesOfPods(); len(notes) > 0 {
			t.Errorf("there are notes of pods that the ledger counts: %q", notes)
		}
		bill := d.ask(t, request("GET", "/v1/billing/pods?grouping=gpuTypeId", "key_research", ""))
		if bill.Status != 200 || !strings.Contains(bill.Body, `"gpuTypeId":"NVIDIA L4"`) || strings.Contains(bill.Body, "unknown") {
			t.Errorf("v1: %d %s", bill.Status, bill.Body)
		}
	}, budgeted("{gpus: 8}"))
	eachDoor(t, func(t *testing.T, d *door) {
		gone := d.rented(t, podL4)
		if a := d.ask(t, request("DELETE", "/v2/pods/"+gone, "key_platform", "")); a.Status != 204 {
			t.Fatalf("delete: %d %s", a.Status, a.Body)
		}
		if diff := cmp.Diff(map[string]string{gone: "NVIDIA L4"}, d.typesOf(t, "key_research", "pod", gone)); diff != "" {
			t.Errorf("a pod that is gone (-want +got):\n%s", diff)
		}
		if n := len(d.notesOfPods()); n != 1 {
			t.Errorf("%d notes of a pod that no ledger counts", n)
		}
	})
	eachDoor(t, func(t *testing.T, d *door) {
		mine, _, stray, _, theirs, _ := prepare(t, d)
		if diff := cmp.Diff(map[string]string{mine: "NVIDIA L4"}, d.typesOf(t, "key_research", "pod", mine, stray, theirs)); diff != "" {
			t.Errorf("a team apart (-want +got):\n%s", diff)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "- id: acme\n", "- id: acme\n    isolation: {read: team, change: team, exempt: [admin]}\n", 1)
	})
	// Whoever may not list bills may not ask for their types.
	eachDoor(t, func(t *testing.T, d *door) {
		if a := d.ask(t, request("GET", "/tollgate/billing/types?kind=pod&id=x&from=2026-11-01T00:00:00Z", "key_tiny", "")); a.Status != 403 || !strings.Contains(a.Body, "list the bills") {
			t.Errorf("%d %s, want 403", a.Status, a.Body)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "      - policy: price_ceiling\n", "      - policy: roles\n        params: {grants: {operator: [\"pod:read\"], admin: [\"*:*\"]}}\n      - policy: price_ceiling\n", 1)
	})
}
