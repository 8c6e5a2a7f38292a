package runs

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// TestLongWaits: a caller may wait as long as the platform lets it, whatever bounds other calls
// have. The clock of the emulator and the gateway's bounds are a hundredth of the defaults.
func TestLongWaits(t *testing.T) {
	if d := settings.Default().Timeouts.Run; d < 5*time.Minute+10*time.Second {
		t.Fatalf("timeouts.run is %v, too short for the longest wait", d)
	}
	r := newRig(t, top("timeouts: {connect: 1s, response: 600ms, call: 900ms, run: 3300ms, body: 1s, write: 300ms}"))
	base := "/v2/" + r.endpoint(t)
	slow := `{"input":{"emulator":{"delay_ms":285000}}}`
	if got := r.want(t, 200, "POST", base+"/runsync?wait=300000", slow); got["status"] != "COMPLETED" {
		t.Errorf("a wait of 300 s for a job of 285 s: %v", got)
	}
	queued := r.want(t, 200, "POST", base+"/runsync?wait=1000", slow)
	if queued["status"] == "COMPLETED" {
		t.Errorf("a wait of 1 s: %v", queued)
	}
	if got := r.want(t, 200, "GET", base+"/status-sync/"+queued["id"].(string)+"?wait=300000", ""); got["status"] != "COMPLETED" {
		t.Errorf("a wait of 300 s for the rest: %v", got)
	}
	for _, wait := range []string{"300001", "999", "1e5", "-1", "", "300000&wait=1000"} {
		if a := r.ask(t, "POST", base+"/runsync?wait="+wait, "key_research", `{"input":{}}`); a.Status != 400 && a.Status != 422 {
			t.Errorf("wait=%s: %d %s", wait, a.Status, a.Body)
		}
	}
}
