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

// HeaderBrownout announces the windows in which calls of the caller's dialect
// will be refused: RFC 3339 times, from/until, separated by commas.
const HeaderBrownout = "X-Tollgate-Brownout"

// brownouts returns the schedule an exchange is under, nil without one. The public
// routes of v1, which tell callers how to migrate, are never browned out.
func (ex *Exchange) brownouts() *translate.Schedule {
	if ex.Tenant == nil || ex.Dialect == route.V1 && ex.Route != nil && ex.Route.Public {
		return nil
	}
	return ex.Tenant.Brownouts[ex.Dialect]
}

// anonymousKey stands for the key of callers without one.
const anonymousKey = "anonymous"

// OperationNamer names the operations of a request in a dialect whose routes do not.
type OperationNamer interface {
	// Fields returns at least one name, none of them the caller's own text.
	Fields(in *translate.Incoming) []string
}

// unreadOperation stands for the operations of a request that was refused before its body
// was looked at.
const unreadOperation = "unread"

// RecordLegacyUse follows the calls of retired interfaces on their way out, with any
// outcome: it notes them for the migration report and announces brownouts to
// their callers. It stands right behind Identify, so that it sees every call
// whose caller is known.
type RecordLegacyUse struct {
	// Names holds the dialects with a single route.
	Names map[route.Dialect]OperationNamer
}

// Name implements Filter.
func (RecordLegacyUse) Name() string { return "legacy" }

// Request implements Filter; there is nothing to do on the way in.
func (RecordLegacyUse) Request(context.Context, *Exchange) error { return nil }

// Response notes a legacy call and puts the announcement on its answer.
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

// operations names the operations of a legacy call.
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

// Brownout refuses legacy calls inside the windows their organisation has
// scheduled; a request is inside if it was received then. It stands behind Count and Decode, so that refused calls cost
// their callers as much as served ones, and their operations are known, and
// before Translate, so that nothing is done.
type Brownout struct{}

// Name implements Filter.
func (Brownout) Name() string { return "brownout" }

// Request answers with the dialect's 503 while a window lasts; Retry-After
// tells when it is over.
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
		text = fmt.Sprintf("the %s interface is retired and switched off on purpose until %s; move to /v2",
			ex.Dialect, span.Until.UTC().Format(time.RFC3339))
	}
	ex.Response = responseOf(ex.Ports.Translators[ex.Dialect].Brownout(ex.Route.ID, ex.Params, text))
	ex.Response.Header.Set("Retry-After", strconv.FormatInt(seconds(span.Until.Sub(now)), 10))
	ex.Response.Header.Set("Cache-Control", "no-store")
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = telemetry.OutcomeRefused, string(problem.Brownout), f.Name(), text
	return nil
}

// seconds rounds up, so that a caller who waits that long is not early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
