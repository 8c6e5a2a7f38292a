package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// HeaderIdempotencyKey is the request header with the idempotency key (draft-ietf-httpapi-idempotency-key-header-07).
const HeaderIdempotencyKey = "Idempotency-Key"

// HeaderReplayed marks the response to a repeated request.
const HeaderReplayed = "Idempotent-Replayed"

// HeaderDryRun requests a prediction of the outcome instead of the call.
const HeaderDryRun = "Tollgate-Dry-Run"

// Prediction is the predicted outcome of a dry run, as recorded in the event of the request.
type Prediction = telemetry.Prediction

// AnswerDryRun responds to requests with HeaderDryRun. It runs when the body has been read and the request has been counted.
type AnswerDryRun struct {
	// Run predicts the outcome. It must remove HeaderDryRun from the request that it runs; see [Inbound.ForDryRun].
	Run Responder
}

// Name implements Filter.
func (AnswerDryRun) Name() string { return StageDryRun }

// Request responds to a dry run. It returns 400 if the header is malformed, so that a typing error never causes the real call.
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
		return problem.BadRequest.New("a dry run requires a key")
	}
	ex.Response, err = f.Run(ctx, ex)
	return err
}

// ForDryRun returns a copy of the request without the headers for dry runs, idempotency and authorization.
func (in Inbound) ForDryRun() Inbound {
	in.Header = in.Header.Clone()
	for _, name := range []string{HeaderDryRun, HeaderIdempotencyKey, "Authorization"} {
		in.Header.Del(name)
	}
	return in
}

// Ceilings returns the budget limits that applied to the call and that concern its caller.
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
