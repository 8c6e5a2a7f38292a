package filter

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// FairShare keeps an organisation's teams from using up its platform account's own
// quota at each other's expense. It stands last in the chain, so that it sees
// the platform's headers as they came.
type FairShare struct{}

// Name implements Filter.
func (FairShare) Name() string { return "share" }

// Request refuses with 429 a team that has used its part. The run interface has
// quotas of its own, for each endpoint.
func (FairShare) Request(_ context.Context, ex *Exchange) error {
	if ex.Dialect.IsRun() {
		return nil
	}
	ok, wait := ex.Ports.Shares.Admit(ex.Caller.Org, ex.Caller.Team, ex.Tenant.Weights[ex.Caller.Team])
	if !ok {
		seconds := max(1, int64((wait+time.Second-1)/time.Second))
		return problem.RateLimited.New("the organisation's platform account is near its own limit and the team has used its share").
			With("Retry-After", strconv.FormatInt(seconds, 10))
	}
	ex.Admission.shared = true
	return nil
}

// Response learns from the platform's answer the remaining quota.
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
