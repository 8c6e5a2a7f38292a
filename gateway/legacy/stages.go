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

// HeaderBrownout is the response header that announces when calls of the caller's dialect will be refused: comma-separated from/until pairs
// of RFC 3339 times.
const HeaderBrownout = "X-Tollgate-Brownout"

// Schedules holds the brownouts of a configuration.
type Schedules struct {
	// of maps organisations and dialects to their schedules.
	of map[string]map[route.Dialect]*Schedule
}

// SchedulesOf returns the brownouts of a configuration, which must be valid.
func SchedulesOf(cfg *settings.Config) Schedules {
	s := Schedules{make(map[string]map[route.Dialect]*Schedule)}
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		if len(o.Brownouts) == 0 {
			continue
		}
		s.of[o.ID] = make(map[route.Dialect]*Schedule)
		for _, dialect := range []route.Dialect{route.V1, route.GraphQL} {
			s.of[o.ID][dialect] = NewSchedule(o.Brownouts, settings.Dialect(dialect))
		}
	}
	return s
}

// schedule returns the brownout schedule for an exchange, or nil. Public v1 routes, which explain the migration, are never refused.
func (s Schedules) schedule(ex *filter.Exchange) *Schedule {
	if ex.Tenant == nil || ex.Dialect == route.V1 && ex.Route != nil && ex.Route.Public {
		return nil
	}
	return s.of[ex.Tenant.ID][ex.Dialect]
}

// anonymousKey is the key ID recorded for anonymous callers.
const anonymousKey = "anonymous"

// unreadOperation is recorded for requests that were refused before their body was read.
const unreadOperation = "unread"

// RecordUse records calls to the legacy APIs for the migration report, whatever their outcome, and announces brownouts to their callers.
// It runs directly after filter.Authenticate, so its response phase sees every call with a known caller.
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

// ApplyBrownouts refuses legacy calls that were received within a brownout window of their organisation. It runs after filter.RateLimit and
// filter.DecodeBody, so that refused calls use quota like others and their operations are known, and before Translate, so that nothing is
// executed.
type ApplyBrownouts struct{ Schedules }

// Name implements filter.Filter.
func (ApplyBrownouts) Name() string { return "brownout" }

// Request responds with the dialect's 503 during a window. Retry-After is the time until its end.
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
