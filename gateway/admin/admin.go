package admin

import (
	"context"
	"net/http"
	"reflect"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Deps holds the dependencies of the admin API. With the zero value, the endpoints can be listed but not called.
type Deps struct {
	// Features are the endpoints defined by other packages.
	Features []adminapi.Endpoint
	// Ready reports whether calls are served.
	Ready   func() Readiness
	Metrics http.Handler
}

// New returns the handler of the admin listener.
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
	// Reject requests that browsers send on behalf of other sites (CSRF).
	return http.NewCrossOriginProtection().Handler(mux)
}

func (d Deps) gatewayRows() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{Pattern: "GET /livez", Summary: "Reports whether the process is running", HTTPHandler: live, Response: reflect.TypeFor[probed]()},
		{
			Pattern: "GET /readyz", Summary: "Reports whether calls are served", HTTPHandler: d.ready, Response: reflect.TypeFor[probed](),
			ErrorStatuses: []int{http.StatusServiceUnavailable},
		},
		{
			Pattern: "GET /admin/orgs", Summary: "Organisations, their teams and policies", Role: adminapi.Viewer,
			Subject: adminapi.SubjectCaller, Handler: adminapi.HandlerFor(orgs),
			Commands: []adminapi.Command{{Use: "orgs", Heading: "Access", Example: "tollgate orgs"}},
		},
	}
}

func orgs(_ context.Context, s adminapi.Principal, _ adminapi.NoParams) (Orgs, error) {
	return Orgs{s.Visible()}, nil
}

// Orgs lists the organisations a principal can access.
type Orgs struct {
	Orgs []adminapi.Tenant `json:"orgs"`
}
