package parity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// An audit holds what there is, made through the gateway or beside it, against the
// policies in force, with owner and cost, and makes reads only.
func TestAudit(t *testing.T) {
	t.Parallel()
	const policies = `
- policy: gpu_count
  params: {max_per_pod: 1}
- policy: images
  teams: [research]
  params: {allow: [ghcr.io/acme]}
- policy: naming
  mode: warn
  params: {pattern: "[b-z]"}
`
	eachDoor(t, func(t *testing.T, d *door) {
		mine := strings.TrimSpace(d.rented(t, `{"name":"b","image":"ghcr.io/acme/i:1","gpu":{"id":"NVIDIA L4"}}`))
		beside := d.asPlatform(t, "POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":2}}`)
		volume := d.asPlatform(t, "POST", "/v2/network-volumes", `{"name":"v","size":100,"dataCenter":"EU-RO-1"}`)
		d.reconcile(t)
		changes := len(d.platform.CallsTo("updatePod")) + len(d.platform.CallsTo("updateNetworkVolume"))
		x := asOperator[explain.Audit](t, d, "GET", "/admin/audit?org=acme")
		type line struct{ owner, verdict, hour, said string }
		got := map[string]line{}
		for _, s := range x.Resources {
			var said []string
			for _, p := range s.Policies {
				said = append(said, p.Policy+" "+p.Verdict)
			}
			got[s.ID] = line{s.Team + "/" + s.Key, string(s.Verdict), s.USDPerHour, strings.Join(said, ", ")}
		}
		want := map[string]line{
			mine:                  {"research/key_research", "allowed", "0.43274", ""},
			beside["id"].(string): {"/", "refused", "0.86274", "gpu_count denies, naming warns"},
			volume["id"].(string): {"/", "allowed", "0.009589", ""},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
			t.Errorf("audit (-want +got):\n%s", diff)
		}
		if got := len(d.platform.CallsTo("updatePod")) + len(d.platform.CallsTo("updateNetworkVolume")); got != changes {
			t.Errorf("the audit made %d changes", got-changes)
		}
		if x.Revision == "" || x.Ownerless != "" {
			t.Errorf("revision %q, ownerless %q, want a revision and owners", x.Revision, x.Ownerless)
		}
	}, under(policies), budgeted("{gpus: 8}"))
}
