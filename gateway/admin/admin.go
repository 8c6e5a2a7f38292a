package admin

import (
	"context"
	"net/http"
	"reflect"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Deps are the sources of the rows. The zero value describes them, and they cannot be asked then.
type Deps struct {
	// Features are the rows of features, each in the feature's own package.
	Features []adminapi.Endpoint
	// Ready decides whether calls are served.
	Ready   func() Readiness
	Metrics http.Handler
}

// New returns the handler of the operators' listener.
func New(g *Guard, rows []adminapi.Endpoint) http.Handler {
	mux := http.NewServeMux()
	for _, r := range rows {
		h := r.HTTPHandler
		if h == nil {
			h = g.answered(&r)
			if r.Method() == http.MethodGet && r.ContentType == "" {
				h = wire.Compress(h).ServeHTTP
			}
		}
		if r.Role != adminapi.Anyone {
			h = g.guarded(&r, h)
		}
		mux.HandleFunc(r.Pattern, h)
	}
	// Pages of other sites cannot make a browser change anything here.
	return http.NewCrossOriginProtection().Handler(mux)
}

func (d Deps) gatewayRows() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{Pattern: "GET /livez", Summary: "Whether the process runs", HTTPHandler: live, Response: reflect.TypeFor[probed]()},
		{Pattern: "GET /readyz", Summary: "Whether calls are served", HTTPHandler: d.ready, Response: reflect.TypeFor[probed](), ErrorStatuses: []int{http.StatusServiceUnavailable}},
		{
			Pattern: "GET /admin/orgs", Summary: "Organisations, their teams and policies", Role: adminapi.Viewer, Subject: adminapi.SubjectCaller, Handler: adminapi.HandlerFor(orgs),
			Commands: []adminapi.Command{{Use: "orgs", Example: "tollgate orgs"}},
		},
	}
}

func orgs(_ context.Context, s adminapi.Principal, _ adminapi.NoParams) (Orgs, error) {
	return Orgs{s.Visible()}, nil
}

// Orgs are the organisations within reach of an asker.
type Orgs struct {
	Orgs []adminapi.Tenant `json:"orgs"`
}
