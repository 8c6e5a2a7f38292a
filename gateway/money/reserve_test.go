package money

import (
	"context"
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// meeting are intents and approvals of tests: the budget has no room, the call is approved, and by then an equal request has been answered.
type meeting struct {
	filter.Intents
	filter.Approvals

	asked int
	fails error // the refusal of the repeat, nil for an answer
}

func (m *meeting) Reserve(_ context.Context, ex *filter.Exchange) (q ledger.Quote, repeated bool, err error) {
	if m.asked++; m.asked > 1 {
		if m.fails == nil {
			ex.Reply(&filter.Response{Status: http.StatusCreated})
		}
		return q, true, m.fails
	}
	c := ledger.Ceiling{Index: ledger.CeilingGPUs, Limit: 1, Level: ledger.Level{Used: 1, Needs: 1}}
	return ledger.Quote{Ceilings: []*ledger.Ceiling{&c}, Refused: &c}, false, nil
}

func (*meeting) Approve(_ context.Context, _ *filter.Exchange, violations []policies.Violation, _ *problem.Problem) []policies.Excepted {
	return []policies.Excepted{{Violation: violations[0], Exception: "ap-1"}}
}

// A call that was approved and turns out to be the repeat of another request has the other one's answer: it reserves nothing, and its end
// settles nothing. A repeat that is refused is refused as such, and not for its budget.
func TestARepeatAfterAWaiver(t *testing.T) {
	t.Parallel()
	underWay := problem.InProgress.New("the other request is under way")
	for name, fails := range map[string]error{"answered": nil, "refused": underWay} {
		m := &meeting{fails: fails}
		ex := &filter.Exchange{
			Ports: &filter.Ports{Intents: m, Approvals: m}, Event: new(telemetry.Event), Idempotency: new(filter.IdempotencyState), Caller: &identity.Caller{Org: "acme", Key: "ann"},
			Tenant: &filter.Tenant{ID: "acme", Budgets: &ledger.Plan{Org: ledger.Budget{Approvable: true}}},
		}
		ex.Cost.Reservation = new(filter.Reservation)
		err := admit(t.Context(), ex, true)
		if err != fails || m.asked != 2 { //nolint:errorlint // it is passed on as it is
			t.Errorf("%s: %v after %d questions, want %v after 2", name, err, m.asked, fails)
		}
		if ex.Cost.Reservation != nil || (ex.Response != nil) != (fails == nil) {
			t.Errorf("%s: held %+v, answered %+v", name, ex.Cost.Reservation, ex.Response)
		}
	}
}
