package money

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// didStop keeps that a pod was stopped, and why.
func (m *Money) didStop(c *spend.Cause, r *spend.Record) {
	var why string
	if x := c.Excess; x != nil {
		why = fmt.Sprintf("the budget %s %s is passed, %s of %s", x.Scope, spend.CeilingName(x.Ceiling), spend.AmountText(x.Ceiling, x.Used), spend.AmountText(x.Ceiling, x.Limit))
	} else {
		why = fmt.Sprintf("it is idle (%s) since %s", c.Idle.Reason, c.Idle.Since.UTC().Format(time.RFC3339))
	}
	m.deps.Did(c.Org, r.Owner, "podAction", r.ID, fmt.Sprintf("stopped pod %s (%s) of %s: %s", r.ID, r.About.Name, r.Owner.Scopes()[0], why))
}

// didReach keeps that a pod was stopped or terminated at its deadline.
func (m *Money) didReach(_ context.Context, org string, r spend.Record, terminated bool) {
	op, what, at := "podAction", "stopped", r.About.StopAt
	if terminated {
		op, what, at = "deletePod", "terminated", r.About.EndAt
	}
	m.deps.Did(org, r.Owner, op, r.ID, fmt.Sprintf("%s pod %s (%s) of %s: its create (decision %s) asked for it at %s",
		what, r.ID, r.About.Name, r.Owner.Scopes()[0], r.About.Decision, time.Unix(at, 0).UTC().Format(time.RFC3339)))
}

// didEnd keeps which reservations were ended whose calls had an unknown end.
func (m *Money) didEnd(org string, ended []spend.EndedHold) {
	for i := range ended {
		h := &ended[i]
		what := "nothing was found of it, so what was reserved is free"
		switch {
		case h.Carried && h.Kind == string(operation.KindJob):
			what = "its job has ended, or cannot be asked for any more"
		case h.Carried && h.Made != "":
			what = "it was carried out: " + h.Made
		case h.Carried:
			what = "it was carried out"
		}
		m.deps.Did(org, h.Owner, h.About.Operation, h.Made, fmt.Sprintf("ended the reservation of %s of %s (decision %s): %s", h.About.Operation, h.Owner.Scopes()[0], h.About.Decision, what))
	}
}

// didRelease keeps that a reservation was released that no call has in hand.
func (m *Money) didRelease(org string, h *spend.Hold) {
	m.deps.Did(org, h.Owner, h.About.Operation, h.Resource, fmt.Sprintf("released the reservation of %s of %s (decision %s): its call has ended", h.About.Operation, h.Owner.Scopes()[0], h.About.Decision))
}
