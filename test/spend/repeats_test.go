package spend

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// TestCallsThatAreRepeated: a call whose answer was lost is repeated at another gateway. A start needs the budget once, and a
// delete of what the first one has deleted frees it.
func TestCallsThatAreRepeated(t *testing.T) {
	t.Parallel()
	s := open(t, &plan{gateways: 2, redis: redistest.Start(t), config: "    budget: {per_hour: 0.6}\n    keys: [{id: ann, sha256: SHA256(key_of_ann_1)}]\n"})
	s.reconcile(0)
	ask := func(g, want int, method, path, body string) answer {
		t.Helper()
		a, err := s.ask(g, "key_of_ann_1", method, path, body)
		if err != nil || a.status != want {
			t.Fatalf("%s %s %s: %d %s (%v), want %d", method, path, body, a.status, a.body, err, want)
		}
		return a
	}
	path := pods + "/" + ask(0, http.StatusCreated, http.MethodPost, pods, slotPod).id()
	for _, tt := range []struct {
		after bool
		again int
	}{{false, http.StatusOK}, {true, http.StatusConflict}} {
		ask(0, http.StatusOK, http.MethodPost, path+"/action", `{"action":"stop"}`)
		s.platform.AddFault(platform.Fault{Operation: "podAction", Kind: platform.FaultDrop, After: tt.after, Times: 1})
		ask(0, http.StatusBadGateway, http.MethodPost, path+"/action", `{"action":"start"}`)
		ask(1, tt.again, http.MethodPost, path+"/action", `{"action":"start"}`)
		ask(0, http.StatusPaymentRequired, http.MethodPost, pods, slotPod) // the pod runs, whichever call has started it
		s.reconcile(0)
		if state := s.state(); len(state.Holds) != 0 {
			t.Errorf("%+v are left, want no hold", state.Holds)
		}
	}
	s.platform.AddFault(platform.Fault{Operation: "deletePod", Kind: platform.FaultDrop, After: true, Times: 1})
	ask(0, http.StatusBadGateway, http.MethodDelete, path, "")
	ask(1, http.StatusNotFound, http.MethodDelete, path, "")
	ask(0, http.StatusCreated, http.MethodPost, pods, slotPod)
}
