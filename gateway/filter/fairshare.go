package filter

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// FairShare prevents the teams of an organisation from exhausting the quota of the platform account at each other's expense. It is the last
// stage, so its response phase sees the platform's headers unmodified.
type FairShare struct{}

// Name implements Filter.
func (FairShare) Name() string { return "fair share" }

// Request returns 429 for a team that has used its share. Calls of the run interface are exempt, because each endpoint has its own quota.
func (FairShare) Request(_ context.Context, ex *Exchange) error {
	if ex.Dialect.IsRun() {
		return nil
	}
	ok, wait := ex.Ports.Shares.Admit(ex.Caller.Org, ex.Caller.Team, ex.Tenant.Weights[ex.Caller.Team])
	if !ok {
		seconds := max(1, int64((wait+time.Second-1)/time.Second))
		return problem.RateLimited.New("the platform account is close to its rate limit and the team has used its share; try again later").
			With("Retry-After", strconv.FormatInt(seconds, 10))
	}
	ex.Admission.shared = true
	return nil
}

// Response updates the remaining quota from the platform's response.
func (FairShare) Response(_ context.Context, ex *Exchange) error {
	if !ex.Admission.shared {
		return nil
	}
	ex.Admission.shared = false
	status, header := 0, http.Header(nil)
	if ex.Response.Relayed {
		status, header = ex.Response.Status, ex.Response.Header
	}
	ex.Ports.Shares.Observe(ex.Caller.Org, status, header)
	return nil
}
