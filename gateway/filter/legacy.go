package filter

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/brownout"
)

// HeaderBrownout announces the windows in which calls of the caller's dialect
// will be refused: RFC 3339 times, from/until, separated by commas.
const HeaderBrownout = "X-Tollgate-Brownout"

// Brownouts holds the schedules there are, by organisation and dialect.
type Brownouts map[BrownoutKey]*brownout.Schedule

// BrownoutKey names a dialect of an organisation.
type BrownoutKey struct {
	Org     string
	Dialect route.Dialect
}

// of returns the schedule an exchange is under, nil without one. What tells
// callers how to migrate, the public routes, is never browned out.
func (b Brownouts) of(ex *Exchange) *brownout.Schedule {
	if len(b) == 0 || ex.Caller == nil || ex.Route != nil && ex.Route.Public {
		return nil
	}
	return b[BrownoutKey{ex.Caller.Org, ex.Dialect}]
}

// Legacy follows the calls of retired interfaces on their way out, whatever
// their end: it announces brownouts to their callers. It stands right behind
// Identify, so that it sees every call whose caller is known.
type Legacy struct {
	Brownouts Brownouts
	Now       func() time.Time
}

// Name implements Filter.
func (*Legacy) Name() string { return "legacy" }

// Request implements Filter; there is nothing to do on the way in.
func (*Legacy) Request(context.Context, *Exchange) error { return nil }

// Response puts the announcement on the answer of a legacy call.
func (f *Legacy) Response(_ context.Context, ex *Exchange) error {
	if ex.Dialect == route.V2 || ex.Caller == nil {
		return nil
	}
	if text := f.Brownouts.of(ex).Announce(f.Now()); text != "" {
		ex.Answer.Header.Set(HeaderBrownout, text)
	}
	return nil
}

// Dimmer is a dialect that can say that it is browned out. The words are for
// its callers, unlike those of other server errors, which old clients expect
// as they were.
type Dimmer interface {
	Brownout(text string) *translate.Outgoing
}

// Brownout refuses legacy calls inside the windows their organisation has
// scheduled. It stands behind Count and Decode, so that refused calls cost
// their callers as much as served ones, and what they asked for is known, and
// before Translate, so that nothing is done.
type Brownout struct {
	Brownouts Brownouts
	Dialects  map[route.Dialect]Dimmer
	Now       func() time.Time
}

// Name implements Filter.
func (*Brownout) Name() string { return "brownout" }

// Request answers with the dialect's 503 while a window lasts; Retry-After
// tells when it is over.
func (f *Brownout) Request(_ context.Context, ex *Exchange) error {
	schedule := f.Brownouts.of(ex)
	if schedule == nil {
		return nil
	}
	now := f.Now()
	span, text, ok := schedule.Active(now)
	if !ok {
		return nil
	}
	if text == "" {
		text = fmt.Sprintf("the %s interface is retired and switched off on purpose until %s; move to /v2",
			ex.Dialect, span.Until.UTC().Format(time.RFC3339))
	}
	ex.Answer = answerOf(f.Dialects[ex.Dialect].Brownout(text))
	ex.Answer.Header.Set("Retry-After", strconv.FormatInt(seconds(span.Until.Sub(now)), 10))
	ex.Answer.Header.Set("Cache-Control", "no-store")
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = telemetry.OutcomeRefused, "brownout", f.Name(), text
	return nil
}

// seconds rounds up, so that a caller who waits that long is not early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
