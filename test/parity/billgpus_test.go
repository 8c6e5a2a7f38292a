package parity

import (
	"strings"
	"testing"
	"time"
)

// v1 groups bills by GPU type, which v2's bills do not have. The ledger has the types of deleted resources, whichever dialect created them.
func TestBillsHaveTheTypesOfTheLedger(t *testing.T) {
	t.Parallel()
	const endpoint = `{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"min":1,"max":1}}`
	bills := func(t *testing.T, d *door, want string) {
		t.Helper()
		for path, body := range map[string]string{"pods": podL4, "serverless": endpoint} {
			a := d.ask(t, request("POST", "/v2/"+path, "key_research", body))
			if a.Status != 201 {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
			d.advance(time.Hour)
			if want == "" {
				d.reconcile(t)
			}
			if a = d.ask(t, request("DELETE", "/v2/"+path+"/"+field(t, a.Body, "id").(string), "key_research", "")); a.Status != 204 {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		for path, gpu := range map[string]string{"pods": "NVIDIA L4", "endpoints": "NVIDIA GeForce RTX 4090"} {
			if want != "" {
				gpu = want
			}
			a := d.ask(t, request("GET", "/v1/billing/"+path+"?grouping=gpuTypeId", "key_research", ""))
			if a.Status != 200 || !strings.Contains(a.Body, `"gpuTypeId":"`+gpu+`"`) || strings.Count(a.Body, "gpuTypeId") != strings.Count(a.Body, gpu) {
				t.Errorf("%s: %d %s, want amounts of %s alone", path, a.Status, a.Body, gpu)
			}
		}
	}
	eachDoor(t, func(t *testing.T, d *door) { bills(t, d, "") }, budgeted("{gpus: 8}"))
	eachDoor(t, func(t *testing.T, d *door) { bills(t, d, "unknown") })
}
