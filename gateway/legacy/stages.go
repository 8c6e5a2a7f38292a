package legacy

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// HeaderBrownout is the response header that announces brownouts of the API that the caller used. Its value is a comma-separated list of
// start/end pairs of RFC 3339 times.
const HeaderBrownout = "X-Tollgate-Brownout"

// Schedules holds the brownouts of a configuration by organisation and dialect.
type Schedules map[string]map[route.Dialect]Schedule

// SchedulesOf returns the brownouts in cfg, which must be valid.
func SchedulesOf(cfg *settings.Config) Schedules {
	s := make(Schedules)
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		if len(o.Brownouts) == 0 {
			continue
		}
		s[o.ID] = make(map[route.Dialect]Schedule)
		for _, dialect := range []route.Dialect{route.V1, route.GraphQL} {
			s[o.ID][dialect] = NewSchedule(o.Brownouts, settings.Dialect(dialect))
		}
	}
	return s
}

// schedule returns the brownout schedule for an exchange, or nil. Public v1 routes, which explain the migration, are never refused.
func (s Schedules) schedule(ex *filter.Exchange) Schedule {
	if ex.Tenant == nil || ex.Dialect == route.V1 && ex.Route != nil && ex.Route.Public {
		return nil
	}
	return s[ex.Tenant.ID][ex.Dialect]
}

// anonymousKey is the key ID recorded for anonymous callers.
const anonymousKey = "anonymous"

// unreadOperation is recorded for requests that were refused before their body was read.
const unreadOperation = "unread"

// RecordUse records calls to the legacy APIs for the migration report, successful or not, and announces brownouts to their callers. It runs
// directly after filter.Authenticate, so that its response phase sees every call with a known caller.
type RecordUse struct{ Schedules }

// Name implements filter.Filter.
func (RecordUse) Name() string { return "record legacy use" }

// Request implements filter.Filter. It does nothing.
func (RecordUse) Request(context.Context, *filter.Exchange) error { return nil }

// Response records a legacy call and adds HeaderBrownout.
func (f RecordUse) Response(ctx context.Context, ex *filter.Exchange) error {
	t := translatorOf(ex)
	if t == nil || ex.Tenant == nil {
		return nil
	}
	if text := f.schedule(ex).Announce(ex.In.Received); text != "" {
		ex.Response.Header.Set(HeaderBrownout, text)
	}
	if t.usage == nil {
		return nil
	}
	key := anonymousKey
	if ex.Caller != nil {
		key = ex.Caller.Key
	}
	t.usage.Record(ctx, usage.Call{
		Org: ex.Tenant.ID, Key: key, Dialect: string(ex.Dialect), Operations: t.operations(ex),
		Agent: ex.Event.Agent, Status: ex.Response.Status, V2: ex.Event.Calls, Lost: ex.Translation.DroppedFields,
	})
	return nil
}

// ApplyBrownouts refuses the legacy calls of an organisation during its brownouts. It runs after filter.RateLimit and filter.DecodeBody, so
// that refused calls use quota as usual and the operation is known. It runs before Translate, so that nothing is executed.
type ApplyBrownouts struct{ Schedules }

// Name implements filter.Filter.
func (ApplyBrownouts) Name() string { return "brownout" }

// Request responds to a legacy call during a brownout with a 503 in the form of the dialect. Retry-After is the time until the brownout
// ends.
func (f ApplyBrownouts) Request(_ context.Context, ex *filter.Exchange) error {
	schedule := f.schedule(ex)
	if schedule == nil {
		return nil
	}
	now := ex.In.Received
	span, text, ok := schedule.Active(now)
	if !ok {
		return nil
	}
	if text == "" {
		text = fmt.Sprintf("the %s API is retired and is switched off until %s as announced; use /v2",
			ex.Dialect, span.Until.UTC().Format(time.RFC3339))
	}
	a := responseOf(translatorOf(ex).dialect.Brownout(ex.Route.ID, ex.Params, text))
	a.Header.Set("Retry-After", strconv.FormatInt(seconds(span.Until.Sub(now)), 10))
	a.Header.Set("Cache-Control", "no-store")
	ex.Reply(a)
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = telemetry.OutcomeRefused, string(problem.Brownout), f.Name(), text
	return nil
}

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// responseOf converts the response of a dialect.
func responseOf(out *translate.Outgoing) *filter.Response {
	a := &filter.Response{Status: out.Status, Header: out.Header.Clone(), Body: out.Body, Failed: out.Failed}
	if a.Header == nil {
		a.Header = make(http.Header, 8)
	}
	if out.ContentType != "" {
		a.Header.Set("Content-Type", out.ContentType)
	}
	return a
}
