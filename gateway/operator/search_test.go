package operator_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// searchable returns a search over two organisations. The ledger of globex is not available.
func searchable() operator.Search {
	current := view.New(time.Now)
	current.Set(&view.View{Orgs: map[string]*settings.Org{
		"acme": {ID: "acme", Keys: []settings.Key{{ID: "train-key", Team: "research", Owner: "ann@acme.example"}}},
	}})
	return operator.Search{
		Current: current,
		Show: func(_ context.Context, org string) (*money.Ledger, error) {
			if org == "globex" {
				return nil, errors.New("away")
			}
			return &money.Ledger{Resources: []money.Resource{{ID: "k2n5x8", Name: "train", Team: "research", Kind: "pod", GPU: "NVIDIA L4"}, {ID: "p1", Name: "Retrain"}}}, nil
		},
		Costs: func(context.Context, string, *ledger.Query) (*money.Costs, error) {
			return &money.Costs{Rows: []money.Cost{
				{CostGroup: money.CostGroup{Resource: "Gone1", Name: "old", Kind: "pod"}},
				{CostGroup: money.CostGroup{Resource: "Gone2", Name: "other", Kind: "pod"}},
			}}, nil
		},
		Decision: func(_ context.Context, _ adminapi.Principal, id string) (*explain.Report, error) {
			if id == "01KBDXV1G0000000000000000A" {
				return &explain.Report{DecisionID: id, Operation: "createPod", Verdict: explain.Refused, Caller: explain.Caller{Org: "acme", Team: "research"}}, nil
			}
			return nil, adminapi.RefusedError{Status: http.StatusNotFound}
		},
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	rows := adminapi.NewTable(searchable().Endpoints(), adminapi.Direct{})
	scope := adminapi.Principal{Orgs: []adminapi.Tenant{
		{ID: "acme", Teams: []string{"research", "training"}, Entries: []adminapi.Entry{{Policy: "gpu_count", Mode: "enforce"}, {Policy: "gpu_count", Mode: "shadow"}}},
		{ID: "globex", Teams: []string{"train"}},
	}}
	for _, tt := range []struct{ query, bound, want, unknown string }{
		{"q=train&org=acme", "", "resource k2n5x8, key train-key, team training, resource p1", ""},
		{"q=TRAIN", "", "resource k2n5x8, team train, key train-key, team training, resource p1", "resources of globex"},
		{"q=train", "acme", "resource k2n5x8, key train-key, team training, resource p1", ""},
		{"q=train&org=acme&limit=1", "", "resource k2n5x8", ""},
		{"q=k2n5x8&org=acme", "", "resource k2n5x8", ""},
		{"q=ann@&org=acme", "", "key train-key", ""},
		{"q=gpu_c&org=acme", "", "policy gpu_count", ""},
		{"q=Gone1&org=acme", "", "resource Gone1", ""},
		{"q=old&org=acme", "", "resource Gone1", ""},
		{"q=gone&org=acme", "", "resource Gone1, resource Gone2", ""},
		{"q=01kbdxv1g0000000000000000a&org=acme", "", "decision 01KBDXV1G0000000000000000A", ""},
		{"q=01KBDXV1G0000000000000000A&org=globex", "", "", "resources of globex"},
		{"q=01KBDXV1G0000000000000000B&org=acme", "", "", ""},
	} {
		values, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		scope.Org = tt.bound
		got, err := adminapi.Call[operator.SearchResults](t.Context(), rows, "GET /admin/search", scope, values, nil)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, r := range got.Results {
			found = append(found, r.Kind+" "+r.ID)
		}
		if list := strings.Join(found, ", "); list != tt.want || !strings.HasPrefix(strings.Join(got.Unknown, ", "), tt.unknown) || tt.unknown == "" && len(got.Unknown) > 0 {
			t.Errorf("%s: %s, unknown %q; want %s", tt.query, list, got.Unknown, tt.want)
		}
	}
	for query, want := range map[string]int{"q=+&org=acme": 400, "org=acme": 400, "q=a&org=initech": 404} {
		values, _ := url.ParseQuery(query)
		_, err := adminapi.Call[operator.SearchResults](t.Context(), rows, "GET /admin/search", adminapi.Principal{Orgs: scope.Orgs}, values, nil)
		if status, _ := adminapi.StatusOf(err); status != want {
			t.Errorf("%s: %v, want %d", query, err, want)
		}
	}
}
