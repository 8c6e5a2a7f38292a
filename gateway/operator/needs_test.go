package operator_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
)

func TestNeeds(t *testing.T) {
	for _, tc := range []struct {
		operation, method, path string
		change                  schema.Change
		want                    string
	}{
		{"listTags", "GET", "/v2/tags", schema.Change{What: schema.New, In: schema.InOperation}, "schema: describe it; a spec in policies/operation with kind and verb"},
		{
			"createTag", "POST", "/v2/tags/{id}",
			schema.Change{What: schema.New, In: schema.InOperation},
			"schema: describe it; a spec in policies/operation with kind and verb; price rule: its cost, if it creates or starts something; " +
				"ownership: check that the id in the path has the kind of the spec; policies: its resulting state, and library policies for its members",
		},
		{"listPods", "GET", "/v2/pods", schema.Change{What: schema.Gone, In: schema.InOperation}, "remove its description and its spec"},
		{"listPods", "GET", "/v2/pods", schema.Change{What: schema.New, In: schema.InQuery, Name: "cursor"}, "schema: describe it; paging: the list member in the spec"},
		{"listPods", "GET", "/v2/pods", schema.Change{What: schema.New, In: schema.InQuery, Name: "clusterId"}, "schema: describe it; ownership: a reference in policies/operation"},
		{"listPods", "GET", "/v2/pods", schema.Change{What: schema.New, In: schema.InResponse, Name: "pods[].hostId"}, "schema: describe it"},
		{
			"createPod", "POST", "/v2/pods",
			schema.Change{What: schema.New, In: schema.InBody, Name: "mounts.globalVolumes[]"},
			"schema: describe it; ownership: a reference in policies/operation; price rule: whether it changes the cost; policies: its effect on the resulting state, and library policies for it",
		},
		{"createPod", "POST", "/v2/pods", schema.Change{What: schema.Changed, In: schema.InBody, Name: "cloud"}, "schema: change the constraint; price rule: whether it changes the cost"},
		{"createTemplate", "POST", "/v2/templates", schema.Change{What: schema.Changed, In: schema.InBody, Name: "name"}, "schema: change the constraint"},
		{"createPod", "POST", "/v2/pods", schema.Change{What: schema.Gone, In: schema.InBody, Name: "cloud"}, "schema: remove it, unless the gateway accepts it on purpose"},
		{"listPods", "GET", "/v2/pods", schema.Change{What: schema.Changed, In: schema.InOperation}, "schema: change the constraint"},
		{"listPods", "GET", "/v2/pods", schema.Change{What: schema.New, In: schema.InError, Name: "requestId"}, "schema: describe it"},
		{"createPod", "POST", "/v2/pods", schema.Change{What: schema.New, In: schema.InStatus, Name: "503"}, "schema: declare it; check how the error is mapped for legacy callers"},
	} {
		d := schema.Difference{Operation: tc.operation, Method: tc.method, Path: tc.path}
		if got := operator.RequiredChanges(d, tc.change); got != tc.want {
			t.Errorf("%s, %s %s %s needs\n%s, want\n%s", tc.operation, tc.change.What, tc.change.In, tc.change.Name, got, tc.want)
		}
	}
}
