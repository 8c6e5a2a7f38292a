package admin

import (
	"context"
	"net/http"
	"reflect"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Deps are the sources of the rows. The zero value describes them, and they cannot be asked then.
type Deps struct {
	// Features are the rows of features, each in the feature's own package.
	Features []row.Row
	// Ready decides whether calls are served.
	Ready   func() Readiness
	Metrics http.Handler
}

// New returns the handler of the operators' listener.
func New(g *Guard, rows []row.Row) http.Handler {
	mux := http.NewServeMux()
	for _, r := range rows {
		h := r.Handle
		if h == nil {
			h = g.answered(&r)
			if r.Method() == http.MethodGet && r.Media == "" {
				h = wire.Compress(h).ServeHTTP
			}
		}
		if r.Role != row.Anyone {
			h = g.guarded(&r, h)
		}
		mux.HandleFunc(r.Pattern, h)
	}
	// Pages of other sites cannot make a browser change anything here.
	return http.NewCrossOriginProtection().Handler(mux)
}

func (d Deps) gatewayRows() []row.Row {
	return []row.Row{
		{Pattern: "GET /livez", Summary: "Whether the process runs", Handle: live, Answer: reflect.TypeFor[probed]()},
		{Pattern: "GET /readyz", Summary: "Whether calls are served", Handle: d.ready, Answer: reflect.TypeFor[probed](), Fails: []int{http.StatusServiceUnavailable}},
		{
			Pattern: "GET /admin/orgs", Summary: "Organisations, their teams and policies", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(orgs),
			Commands: []row.Command{{Use: "orgs", Example: "tollgate orgs"}},
		},
	}
}

func orgs(_ context.Context, s row.Scope, _ row.None) (Orgs, error) { return Orgs{s.Visible()}, nil }

// Orgs are the organisations within reach of an asker.
type Orgs struct {
	Orgs []row.Tenant `json:"orgs"`
}
