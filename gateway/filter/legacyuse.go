package filter

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// HeaderBrownout is the response header that announces when calls of the caller's dialect will be refused: comma-separated from/until pairs
// of RFC 3339 times.
const HeaderBrownout = "X-Tollgate-Brownout"

// brownouts returns the brownout schedule for an exchange, or nil. Public v1 routes, which explain the migration, are never refused.
func (ex *Exchange) brownouts() *translate.Schedule {
	if ex.Tenant == nil || ex.Dialect == route.V1 && ex.Route != nil && ex.Route.Public {
		return nil
	}
	return ex.Tenant.Brownouts[ex.Dialect]
}

// anonymousKey is the key ID recorded for anonymous callers.
const anonymousKey = "anonymous"

// OperationNamer determines the operations of a request in a dialect with a single route, such as GraphQL.
type OperationNamer interface {
	// Fields returns at least one operation name. It never returns text chosen by the caller.
	Fields(in *translate.Incoming) []string
}

// unreadOperation is recorded for requests that were refused before their body was read.
const unreadOperation = "unread"

// RecordLegacyUse records calls to retired APIs for the migration report, whatever their outcome, and announces brownouts to their callers.
// It runs directly after Authenticate, so its response phase sees every call with a known caller.
type RecordLegacyUse struct {
	// Names lists the operations of a request, for dialects that have a single route.
	Names map[route.Dialect]OperationNamer
}

// Name implements Filter.
func (RecordLegacyUse) Name() string { return "record legacy use" }

// Request implements Filter. It does nothing.
func (RecordLegacyUse) Request(context.Context, *Exchange) error { return nil }

// Response records a legacy call and adds HeaderBrownout.
func (f RecordLegacyUse) Response(ctx context.Context, ex *Exchange) error {
	if ex.Dialect == route.V2 || ex.Dialect.IsRun() || ex.Tenant == nil {
		return nil
	}
	if text := ex.brownouts().Announce(ex.In.Received); text != "" {
		ex.Response.Header.Set(HeaderBrownout, text)
	}
	if ex.Ports.Usage == nil {
		return nil
	}
	key := anonymousKey
	if ex.Caller != nil {
		key = ex.Caller.Key
	}
	ex.Ports.Usage.Record(ctx, usage.Call{
		Org: ex.Tenant.ID, Key: key, Dialect: string(ex.Dialect), Operations: f.operations(ex),
		Agent: ex.Event.Agent, Status: ex.Response.Status, V2: ex.Event.Calls, Lost: ex.Translation.droppedFields,
	})
	return nil
}

// operations returns the operation names of a legacy call.
func (f RecordLegacyUse) operations(ex *Exchange) []string {
	names, ok := f.Names[ex.Dialect]
	switch {
	case ex.Translation.operations != nil:
		return ex.Translation.operations
	case !ok || ex.Route == nil:
		return []string{ex.Event.Operation}
	case !ex.Body.HasDoc:
		return []string{unreadOperation}
	}
	return names.Fields(&translate.Incoming{
		Header: http.Header{"Content-Type": ex.In.Header["Content-Type"]}, Body: ex.Body.Doc, HasBody: true,
	})
}

// Brownout refuses legacy calls that were received within a brownout window of their organisation. It runs after RateLimit and DecodeBody,
// so that refused calls use quota like others and their operations are known, and before Translate, so that nothing is executed.
type Brownout struct{}

// Name implements Filter.
func (Brownout) Name() string { return "brownout" }

// Request responds with the dialect's 503 during a window. Retry-After is the time until its end.
func (f Brownout) Request(_ context.Context, ex *Exchange) error {
	schedule := ex.brownouts()
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
	ex.Response = responseOf(ex.Ports.Translators[ex.Dialect].Brownout(ex.Route.ID, ex.Params, text))
	ex.Response.Header.Set("Retry-After", strconv.FormatInt(seconds(span.Until.Sub(now)), 10))
	ex.Response.Header.Set("Cache-Control", "no-store")
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = telemetry.OutcomeRefused, string(problem.Brownout), f.Name(), text
	return nil
}

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
