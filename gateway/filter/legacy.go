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
	"github.com/tollgate-dev/tollgate/translate/brownout"
	"github.com/tollgate-dev/tollgate/translate/usage"
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
// callers how to migrate, v1's public routes, is never browned out.
func (b Brownouts) of(ex *Exchange, org string) *brownout.Schedule {
	if len(b) == 0 || org == "" || ex.Dialect == route.V1 && ex.Route != nil && ex.Route.Public {
		return nil
	}
	return b[BrownoutKey{org, ex.Dialect}]
}

// anonymousKey stands for the key of callers without one.
const anonymousKey = "anonymous"

// legacyCaller names who makes a legacy call; anonymous is the organisation
// that answers GraphQL callers without a key. Both are empty when nobody is
// known, and for v2.
func legacyCaller(ex *Exchange, anonymous string) (org, key string) {
	switch {
	case ex.Dialect == route.V2:
		return "", ""
	case ex.Caller != nil:
		return ex.Caller.Org, ex.Caller.Key
	case ex.Dialect == route.GraphQL && ex.Route != nil && ex.Route.Public && anonymous != "":
		return anonymous, anonymousKey
	default:
		return "", ""
	}
}

// Namer tells what a request asks for in a dialect whose routes do not say it.
type Namer interface {
	// Fields returns at least one name, none of them the caller's own text.
	Fields(in *translate.Incoming) []string
}

// unread stands for what a request asked for that was refused before its body
// was looked at.
const unread = "unread"

// Legacy follows the calls of retired interfaces on their way out, whatever
// their end: it notes them for the migration report and announces brownouts to
// their callers. It stands right behind Identify, so that it sees every call
// whose caller is known.
type Legacy struct {
	// Names holds the dialects with a single route.
	Names     map[route.Dialect]Namer
	Brownouts Brownouts
	// Anonymous is the organisation GraphQL callers without a key count for.
	Anonymous string
	Now       func() time.Time
}

// Name implements Filter.
func (*Legacy) Name() string { return "legacy" }

// Request implements Filter; there is nothing to do on the way in.
func (*Legacy) Request(context.Context, *Exchange) error { return nil }

// Response notes a legacy call and puts the announcement on its answer.
func (f *Legacy) Response(ctx context.Context, ex *Exchange) error {
	org, key := legacyCaller(ex, f.Anonymous)
	if org == "" {
		return nil
	}
	if text := f.Brownouts.of(ex, org).Announce(f.Now()); text != "" {
		ex.Answer.Header.Set(HeaderBrownout, text)
	}
	if ex.Ports.Usage == nil {
		return nil
	}
	ex.Ports.Usage.Note(ctx, usage.Call{
		Org: org, Key: key, Dialect: string(ex.Dialect), Operations: f.operations(ex),
		Agent: ex.Event.Agent, Status: ex.Answer.Status, V2: ex.Event.Calls, Warnings: ex.Answer.Header[headerLegacyWarning],
	})
	return nil
}

// headerLegacyWarning tells callers what was lost in translation, "field: what".
const headerLegacyWarning = "X-Legacy-Warning"

// operations names what a legacy call asked for.
func (f *Legacy) operations(ex *Exchange) []string {
	names, ok := f.Names[ex.Dialect]
	switch {
	case !ok || ex.Route == nil:
		return []string{ex.Event.Operation}
	case !ex.HasDoc:
		return []string{unread}
	}
	return names.Fields(&translate.Incoming{
		Header: http.Header{"Content-Type": ex.In.Header["Content-Type"]}, Body: ex.Doc, HasBody: true,
	})
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
	// Anonymous is as in Legacy.
	Anonymous string
	Now       func() time.Time
}

// Name implements Filter.
func (*Brownout) Name() string { return "brownout" }

// Request answers with the dialect's 503 while a window lasts; Retry-After
// tells when it is over.
func (f *Brownout) Request(_ context.Context, ex *Exchange) error {
	org, _ := legacyCaller(ex, f.Anonymous)
	schedule := f.Brownouts.of(ex, org)
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
	e.Outcome, e.Refusal, e.Stage, e.Detail = telemetry.OutcomeRefused, string(problem.Brownout), f.Name(), text
	return nil
}

// seconds rounds up, so that a caller who waits that long is not early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
