package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/world"
)

// deadlined is a create with deadlines, from the start of the clocks.
func deadlined(root, more string, stop, terminate time.Duration) string {
	at := func(d time.Duration) string { return start.Add(d).Format(time.RFC3339) }
	return graphql(fmt.Sprintf(`mutation { %s(input: {name: "a", imageName: "img:1", %s, stopAfter: %q, terminateAfter: %q}) { id } }`, root, more, at(stop), at(terminate)))
}

// The dead man's switch of a legacy create stops and terminates its pod, though another gateway took over, and
// explanations have it.
func TestDeadlinesOfLegacyCreates(t *testing.T) {
	t.Parallel()
	for root, more := range map[string]string{"podFindAndDeployOnDemand": `gpuTypeId: "NVIDIA L4"`, "deployCpuPod": `instanceId: "cpu3c-2-4"`} {
		t.Run(root, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				raw := deadlined(root, more, 10*time.Minute, 20*time.Minute)
				pass := func(minutes int) {
					t.Helper()
					for range minutes {
						d.advance(time.Minute)
						d.reconcile(t)
					}
				}
				a := d.ask(t, raw)
				id, _ := data(t, a, root)["id"].(string)
				if a.Status != http.StatusOK || id == "" {
					t.Fatalf("the create: %d %s", a.Status, a.Body)
				}
				_, body, _ := strings.Cut(raw, "\r\n\r\n")
				for what, x := range map[string]any{
					"explain of the decision": asOperator[map[string]any](t, d, "GET", "/admin/decisions/"+a.Header.Get("X-Tollgate-Decision")),
					"explain":                 d.explain(t, &operator.ExplainBody{Method: "POST", Path: "/graphql", Key: "key_research", Body: body}),
				} {
					text, err := json.Marshal(x)
					if err != nil {
						t.Fatal(err)
					}
					for _, want := range []string{"will be stopped at 2026-11-21T10:10:20Z", "will be terminated at 2026-11-21T10:20:20Z"} {
						if !strings.Contains(string(text), want) {
							t.Errorf("%s does not say %q", what, want)
						}
					}
				}
				pass(5)
				d.gateway = newGateway(t, d)
				pass(4)
				if got := d.podStatus(t, id); got != "RUNNING" {
					t.Errorf("after 9 minutes the pod is %s, want RUNNING", got)
				}
				pass(2)
				if got := d.podStatus(t, id); got != "EXITED" {
					t.Fatalf("after 11 minutes the pod is %s, want EXITED", got)
				}
				if a := d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_research", `{"action":"start"}`)); a.Status != http.StatusOK {
					t.Fatalf("start: %d %s", a.Status, a.Body)
				}
				pass(8) // the stop is made once
				if got := d.podStatus(t, id); got != "RUNNING" {
					t.Errorf("after 19 minutes the pod that was started again is %s, want RUNNING", got)
				}
				pass(2)
				if a := d.ask(t, request("GET", "/v2/pods/"+id, "key_research", "")); a.Status != http.StatusNotFound {
					t.Errorf("after 21 minutes: %d %s, want 404", a.Status, a.Body)
				}
				world.Until(t, "the acts are in the archive", func() bool { return len(d.did(t)) == 2 })
				var did []string
				for _, s := range d.did(t) {
					did = append(did, s.Operation+" "+s.Own.Resource)
				}
				if diff := cmp.Diff([]string{"deletePod " + id, "podAction " + id}, did); diff != "" {
					t.Errorf("the gateway by itself (-want +got):\n%s", diff)
				}
			}, budgeted("{per_hour: 15}"))
		})
	}
}

// A gateway that cannot keep a deadline makes no pod.
func TestDeadlinesNeedALedger(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, deadlined("podFindAndDeployOnDemand", `gpuTypeId: "NVIDIA L4"`, time.Hour, 2*time.Hour))
		if a.Status != http.StatusOK || !strings.Contains(a.Body, "stopping or terminating pods at a set time requires a budget") {
			t.Errorf("got %d %s", a.Status, a.Body)
		}
		if n := len(d.platform.CallsTo("createPod")); n != 0 {
			t.Errorf("%d pods were made", n)
		}
	})
}

// data is the object that a root field of an answer has.
func data(t *testing.T, a answer, root string) map[string]any {
	t.Helper()
	var body struct{ Data map[string]map[string]any }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	return body.Data[root]
}
