package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// HeaderIdempotencyKey is the request header with the idempotency key (draft-ietf-httpapi-idempotency-key-header-07).
const HeaderIdempotencyKey = "Idempotency-Key"

// HeaderReplayed is the response header that marks a response to a repeated request. Its value is true.
const HeaderReplayed = "Idempotent-Replayed"

// HeaderDryRun is the request header that asks the gateway to predict the outcome of the call instead of sending the call.
const HeaderDryRun = "Tollgate-Dry-Run"

// Prediction is the predicted outcome of a dry run, as recorded in the event of the request.
type Prediction = telemetry.Prediction

// AnswerDryRun responds to requests with HeaderDryRun. It runs after the body has been read and the request has been counted against
// quotas.
type AnswerDryRun struct {
	// Run predicts the outcome. It must remove HeaderDryRun from the request that it runs; see [Inbound.ForDryRun].
	Run Responder
}

// Name implements Filter.
func (AnswerDryRun) Name() string { return StageDryRun }

// Request responds to a dry run. It returns 400 if the header is malformed, so that a typo never causes a real call. It also returns 400
// for anonymous requests and for requests to the run interface.
func (f AnswerDryRun) Request(ctx context.Context, ex *Exchange) (err error) {
	values := ex.In.Header.Values(HeaderDryRun)
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "false":
		return nil
	case len(values) != 1 || values[0] != "true":
		return problem.BadRequest.New(HeaderDryRun + " must be true or false")
	case ex.Dialect.IsRun():
		return problem.BadRequest.New("the run interface does not support dry runs")
	case ex.Caller == nil:
		return problem.BadRequest.New("a dry run requires a gateway key")
	}
	ex.Response, err = f.Run(ctx, ex)
	return err
}

// ForDryRun returns a copy of the request without the headers for dry runs and idempotency.
func (in Inbound) ForDryRun() Inbound {
	in.Header = in.Header.Clone()
	for _, name := range []string{HeaderDryRun, HeaderIdempotencyKey} {
		in.Header.Del(name)
	}
	return in
}

// Ceilings returns those budget limits checked for the call that belong to the caller's organisation, team or key.
func (ex *Exchange) Ceilings() []*ledger.Ceiling {
	if ex.Cost.Reservation == nil {
		return nil
	}
	var out []*ledger.Ceiling
	for _, c := range ex.Cost.Reservation.Quote.Ceilings {
		if c.Scope.Kind == ledger.KindOrg || c.Scope == (ledger.Scope{Kind: ledger.KindTeam, ID: ex.Caller.Team}) ||
			c.Scope == (ledger.Scope{Kind: ledger.KindKey, ID: ex.Caller.Key}) {
			out = append(out, c)
		}
	}
	return out
}
