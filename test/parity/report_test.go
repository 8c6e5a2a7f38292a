package parity

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
)

// Callers are told why a candidate of theirs was passed over; the report has only what v2
// has no place for.
func TestTheReportHasWhatIsLost(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for field, create := range map[string]string{
			"gpuTypeIds":    request("POST", "/v1/pods", "key_research", `{"imageName":"img:1","gpuTypeIds":["NVIDIA H200","NVIDIA L4"],"gpuTypePriority":"custom","minUploadMbps":100}`),
			"gpuTypeIdList": graphql(`mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeIdList: ["NVIDIA H200", "NVIDIA L4"], imageName: "img:1", cloudType: SECURE}) { id } }`),
		} {
			a := d.ask(t, create)
			if told := strings.Join(a.Header.Values("X-Legacy-Warning"), "\n"); a.Status >= 300 || !strings.Contains(told, field+": ") || !strings.Contains(told, "gpu_allow_list") {
				t.Errorf("%s: %d %s, warned %q; want a pod and a word on the policy", field, a.Status, a.Body, told)
			}
		}
		var report struct{ Calls []legacy.Call }
		if code := d.asOperator(t, http.MethodGet, "/admin/legacy?org=acme", "", &report); code != http.StatusOK {
			t.Fatalf("report: %d", code)
		}
		lost := make(map[string]map[string]int64)
		for _, c := range report.Calls {
			lost[c.Operation] = c.Lost
		}
		want := map[string]map[string]int64{"createPod": {"minUploadMbps": 1}, "podFindAndDeployOnDemand": nil}
		if diff := cmp.Diff(want, lost); diff != "" {
			t.Errorf("lost (-want +got):\n%s", diff)
		}
	})
}
