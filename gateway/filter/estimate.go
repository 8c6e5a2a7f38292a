package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// HeaderIdempotencyKey is the key of a request that must not be carried out twice
// (draft-ietf-httpapi-idempotency-key-header-07).
const HeaderIdempotencyKey = "Idempotency-Key"

// HeaderReplayed marks an answer that was given before.
const HeaderReplayed = "Idempotent-Replayed"

// HeaderDryRun asks for the outcome of a request without making it.
const HeaderDryRun = "Tollgate-Dry-Run"

// Prediction is the outcome that a dry run predicts, for the event of the request.
type Prediction = telemetry.Prediction

// AnswerDryRun answers requests that only ask for their outcome. It stands where
// a request is whole and counted.
type AnswerDryRun struct {
	// Run makes the answer; its request is without the header.
	Run Responder
}

// Name implements Filter.
func (AnswerDryRun) Name() string { return "estimate" }

// Request answers a dry run. It refuses with 400 a malformed one, so
// that no request is made by mistake.
func (f AnswerDryRun) Request(ctx context.Context, ex *Exchange) (err error) {
	values := ex.In.Header.Values(HeaderDryRun)
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "false":
		return nil
	case len(values) != 1 || values[0] != "true":
		return problem.BadRequest.New(HeaderDryRun + " must be true or false")
	case ex.Dialect.IsRun():
		return problem.BadRequest.New("there are no dry runs of the run interface")
	case ex.Caller == nil:
		return problem.BadRequest.New("a dry run requires a key")
	}
	ex.Response, err = f.Run(ctx, ex)
	return err
}

// ForDryRun returns the request of a dry run as it would be made, for once and by itself.
func (in Inbound) ForDryRun() Inbound {
	in.Header = in.Header.Clone()
	for _, name := range []string{HeaderDryRun, HeaderIdempotencyKey, "Authorization"} {
		in.Header.Del(name)
	}
	return in
}

// Ceilings returns the budgets that a call was held against and that concern its
// caller.
func (ex *Exchange) Ceilings() []*ledger.Ceiling {
	if ex.Cost.Reservation == nil {
		return nil
	}
	var out []*ledger.Ceiling
	for _, c := range ex.Cost.Reservation.Quote.Ceilings {
		if c.Scope.Kind == ledger.KindOrg || c.Scope == (ledger.Scope{Kind: ledger.KindTeam, ID: ex.Caller.Team}) || c.Scope == (ledger.Scope{Kind: ledger.KindKey, ID: ex.Caller.Key}) {
			out = append(out, c)
		}
	}
	return out
}
