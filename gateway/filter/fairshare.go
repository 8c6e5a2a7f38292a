package filter

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// FairShare prevents one team of an organisation from using up the platform's rate limit for the whole account. It is the last stage, so
// its response phase runs first and reads the platform's headers before other stages change them.
type FairShare struct{}

// Name implements Filter.
func (FairShare) Name() string { return "fair share" }

// Request returns 429 if the caller's team has used up its share of the platform's rate limit. Requests to the run interface are exempt,
// because the platform limits them separately for each endpoint. Requests that reduce costs are exempt too: only the
// platform may refuse them.
func (FairShare) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if ex.Dialect.IsRun() || PriorityOf(row.EffectiveVerb(ex.Body.Doc)) == overload.ReducesCost {
		return nil
	}
	ok, wait := ex.Ports.Shares.Admit(ex.Caller.Org, ex.Caller.Team, ex.Tenant.Weights[ex.Caller.Team])
	if !ok {
		return rateLimited("the platform account is close to its rate limit and the team has used its share; try again later", wait)
	}
	ex.Admission.shared = true
	return nil
}

// Response reads the remaining quota of the account from the headers of the platform's response.
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
