package parity

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// labelled lets acme's callers set labels; key_research may set one of them.
func labelled(rules string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    labels: "+rules, 1)
		d.text = strings.Replace(d.text, "SHA256(key_tiny), roles", "SHA256(key_tiny), labels: [project], roles", 1)
	}
}

const someLabels = `[{name: project, values: [llm, vision]}, {name: cost_center}]`

// podCreates makes a pod in each dialect.
var podCreates = map[string]func(key string, header ...string) string{ //nolint:gochecknoglobals // read only
	"v2": func(key string, header ...string) string { return request("POST", "/v2/pods", key, podL4, header...) },
	"v1": func(key string, header ...string) string {
		return request("POST", "/v1/pods", key, `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA RTX A5000","NVIDIA L4"]}`, header...)
	},
	"GraphQL": func(key string, header ...string) string {
		return request("POST", "/graphql", key,
			`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", gpuTypeId: \"NVIDIA L4\", imageName: \"img:1\", cloudType: SECURE}) { id } }"}`, header...)
	},
}

// A resource that is made with labels has them in the ledger, its costs, the log and the audit
// log, and policies see them; the platform learns nothing of them.
func TestLabelsStayWithWhatWasMade(t *testing.T) {
	for dialect, create := range podCreates {
		t.Run(dialect, func(t *testing.T) {
			dir := t.TempDir()
			eachDoor(t, func(t *testing.T, d *door) {
				d.reconcile(t) // costs are counted from now on
				a := d.ask(t, create("key_research", "X-Tollgate-Labels: project=llm", "X-Tollgate-Labels: cost_center=0047"))
				if a.Status >= http.StatusMultipleChoices || strings.Contains(a.Body, `"errors"`) {
					t.Fatalf("create: %d %s", a.Status, a.Body)
				}
				want := map[string]string{"project": "llm", "cost_center": "0047"}
				resources := d.ledger(t).Resources
				if len(resources) != 1 {
					t.Fatalf("resources = %+v, want one", resources)
				}
				if diff := cmp.Diff(want, resources[0].Labels); diff != "" {
					t.Errorf("labels in the ledger (-want +got):\n%s", diff)
				}
				for _, c := range d.platform.Calls() {
					if c.Header.Get("X-Tollgate-Labels") != "" || strings.Contains(string(c.Body), "0047") {
						t.Errorf("the platform was told of labels: %+v", c)
					}
				}
				d.advance(3600e9)
				costs := asOperator[money.Costs](t, d, "GET", "/admin/spend/history?org=acme&by=label:project&by=label:cost_center&bucket=total&label=project=llm&label=project=vision")
				if len(costs.Rows) != 1 || cmp.Diff(want, costs.Rows[0].Labels) != "" || costs.Total == "0" {
					t.Errorf("costs by label = %+v, want one row of %v", costs, want)
				}
				if rest := asOperator[money.Costs](t, d, "GET", "/admin/spend/history?org=acme&label=project="); len(rest.Rows) != 0 {
					t.Errorf("costs of what has no project = %+v, want none", rest.Rows)
				}
				if !strings.Contains(d.logs.String(), `"labels":"cost_center=0047,project=llm"`) {
					t.Error("the log does not have the labels")
				}
				if text, err := os.ReadFile(filepath.Join(dir, d.name)); err != nil || !strings.Contains(string(text), `"labels":"cost_center=0047,project=llm"`) {
					t.Errorf("the audit log does not have the labels (%v)", err)
				}
				if a := d.ask(t, create("key_research", "X-Tollgate-Labels: project=vision")); !strings.Contains(a.Body, "no vision here") {
					t.Errorf("what a policy denies by its labels: %d %s", a.Status, a.Body)
				}
			}, denyVision(t), labelled(someLabels), func(d *door) { audited(filepath.Join(dir, d.name))(d) })
		})
	}
}

// denyVision is a policy of the organisation's own that reads labels.
func denyVision(t *testing.T) option {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "labels.rego", `# METADATA
# title: Labels
# description: No vision.
package policies.labels

deny contains {"message": "no vision here", "pointer": ""} if input.request.labels.project == "vision"
`)
	return ownRego(dir)
}

// Labels that cannot be set are refused with every fault and where it is, in each
// dialect, and the platform is asked for nothing.
func TestLabelsThatCannotBeSet(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for _, tt := range []struct {
			name, key string
			header    []string
			want      string
		}{
			{"required", "key_research", nil, "X-Tollgate-Labels.project: is required"},
			{"another value", "key_research", []string{"project=audio"}, "X-Tollgate-Labels.project: must be one of llm, vision"},
			{"of another key", "key_tiny", []string{"project=llm, cost_center=1"}, "X-Tollgate-Labels.cost_center: this key is not allowed to set this label, only project"},
			{"unknown", "key_research", []string{"project=llm,stage=test"}, "X-Tollgate-Labels.stage: this key is not allowed to set this label, only project, cost_center"},
			{"twice", "key_research", []string{"project=llm", "project=vision"}, "X-Tollgate-Labels.project: must not be set twice"},
			{"no pairs", "key_research", []string{"project=llm, =HYPERLINK(1)"}, "X-Tollgate-Labels[1]: must be name=value"},
			{"a formula", "key_research", []string{"project=llm, cost_center==1+1"}, "X-Tollgate-Labels.cost_center: must be at most 63"},
			{"huge", "key_research", []string{"project=llm, cost_center=" + strings.Repeat("1", 2000)}, "X-Tollgate-Labels: must not be longer than 1024 bytes"},
			{"an organisation without labels", "key_globex", []string{"project=llm"}, "X-Tollgate-Labels.project: this key is not allowed to set this label or any other label"},
		} {
			var header []string
			for _, h := range tt.header {
				header = append(header, "X-Tollgate-Labels: "+h)
			}
			for dialect, create := range podCreates {
				a := d.ask(t, create(tt.key, header...))
				status := map[string]int{"v2": 422, "v1": 400, "GraphQL": 200}[dialect]
				if a.Status != status || !strings.Contains(a.Body, tt.want) {
					t.Errorf("%s, %s: %d %s, want %d and %q", tt.name, dialect, a.Status, a.Body, status, tt.want)
				}
			}
		}
		if calls := d.platform.CallsTo("createPod"); len(calls) > 0 {
			t.Errorf("the platform was asked for %d pods", len(calls))
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_research", "", "X-Tollgate-Labels: =")); a.Status != 200 {
			t.Errorf("a read: %d %s, want 200: labels mean nothing there", a.Status, a.Body)
		}
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4, "X-Tollgate-Labels: project=\x01")); a.Status != 400 {
			t.Errorf("control characters: %d %s, want 400", a.Status, a.Body)
		}
	}, labelled(strings.Replace(someLabels, "vision]", "vision], required: true", 1)))
}
