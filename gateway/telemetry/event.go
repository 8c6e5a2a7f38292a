package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Outcome classifies the result of an exchange.
type Outcome string

// Outcomes.
const (
	OutcomeOK         Outcome = "ok"         // answered by the platform, or locally as requested
	OutcomeRefused    Outcome = "refused"    // refused by the gateway
	OutcomeUpstream   Outcome = "upstream"   // the platform refused or failed
	OutcomeFault      Outcome = "fault"      // the gateway failed
	OutcomeCanceled   Outcome = "canceled"   // the caller disconnected before the response
	OutcomeTerminated Outcome = "terminated" // the gateway ended a stream
)

// Event is the record of one exchange. Only the goroutine that runs the exchange changes it. It must not be used after Record.
type Event struct {
	Start      time.Time
	RequestID  string
	DecisionID string
	// Revision is the revision of the configuration used for the exchange.
	Revision string
	// Door is the way in which the request arrived: "http" or "envoy". Dialect is "v2", "v1", "graphql", "run" or "chat".
	Door, Dialect string
	Method        string
	// Operation is the ID of the matched route, or "unmatched".
	Operation string
	// Calls lists the v2 operations that a legacy call resulted in.
	Calls []string
	Peer  string
	Agent string

	Org, Team, Key string
	// Subject is the subject of the caller's token, or "" for a caller with a key.
	Subject string

	Status  int
	Outcome Outcome
	// Refusal is the kind of problem in the response, Stage the filter that raised it, and Detail the text sent to the caller.
	Refusal, Stage, Detail string
	// Approval is the ID of the approval request created by the refusal.
	Approval string
	// Denied, Warned and Shadowed contain names of policies.
	Denied, Warned, Shadowed []string
	// Excepted contains the exceptions that suppressed a violation. Changed contains the body fields changed by policies, as
	// "policy: pointer".
	Excepted, Changed []string
	// Unknown lists the parts of the sent request that the platform's API description does not contain: body members as pointers,
	// query parameters after ?, or the path of a read. Ignored lists URL-encoded parameters that were not sent.
	Unknown, Ignored []string
	// Labels are the labels of a new resource as name=value, separated by commas.
	Labels string
	// PolicyRevision is the revision of the policies that were evaluated.
	PolicyRevision string
	// LimitSource names the component that made the rate limit decision. Degraded is set if the shared store was unavailable.
	LimitSource string
	Degraded    bool
	// Throttled lists the rate limit windows that refused the request, as "scope window", such as "key:ann minute".
	Throttled []string
	// Hourly is the price of the requested resource in USD per hour.
	Hourly float64
	Priced bool

	// Job holds the facts about a run in its response, or is nil.
	Job *Job
	// DryRun is the predicted outcome of a dry run, or nil for other requests.
	DryRun *Prediction

	UpstreamStatus  int
	UpstreamLatency time.Duration
	BytesIn         int64
	BytesOut        int64
	// Cause is the internal error that caused a refusal or fault. It is only logged.
	Cause error

	// failed is the last merged call that failed, or nil.
	failed *Event
}

// Prediction is the outcome predicted by a dry run. Refusal, Stage, Detail and the policies correspond to the fields of Event.
// Status is 0 if the platform would have responded.
type Prediction struct {
	// Verdict is allowed, refused or unknown.
	Verdict                                     string
	Status                                      int
	Refusal, Stage, Detail                      string
	Denied, Warned, Shadowed, Excepted, Changed []string
}

// Job holds the known facts about a run.
type Job struct {
	// Finished is set if the job has ended. Then Queued and Executed are how long it waited and ran.
	Finished         bool
	Queued, Executed time.Duration
	// Prompt and Completion count tokens. Cached is the part of Prompt that was read from a cache.
	Prompt, Completion, Cached int64
	// Cost is the cost of the run in USD.
	Cost float64
}

// Merge adds the event of a v2 call to e, the event of the legacy request that caused the call.
func (e *Event) Merge(call *Event) {
	e.Denied = union(e.Denied, call.Denied)
	e.Warned = union(e.Warned, call.Warned)
	e.Shadowed = union(e.Shadowed, call.Shadowed)
	e.Excepted = union(e.Excepted, call.Excepted)
	e.Changed = union(e.Changed, call.Changed)
	e.PolicyRevision = cmp.Or(call.PolicyRevision, e.PolicyRevision)
	e.Labels = cmp.Or(call.Labels, e.Labels)
	if call.Priced {
		e.Priced, e.Hourly = true, call.Hourly
	}
	if call.UpstreamStatus != 0 {
		e.UpstreamStatus = call.UpstreamStatus
		e.UpstreamLatency += call.UpstreamLatency
	}
	if call.Outcome != OutcomeOK {
		e.failed = call
	}
}

// Complete sets the status, the size and the outcome of the response. If the response reports an error, and the event itself has no reason
// for it, Complete uses the reason of the last merged call that failed.
func (e *Event) Complete(status, bytes int) {
	e.Status, e.BytesOut = status, int64(bytes)
	failed := status >= http.StatusBadRequest || e.Outcome != "" && e.Outcome != OutcomeOK // GraphQL reports errors with status 200
	switch f := e.failed; {
	case failed && f != nil && e.Refusal == "":
		e.Outcome, e.Refusal, e.Stage, e.Detail, e.Approval, e.Cause = f.Outcome, f.Refusal, f.Stage, f.Detail, f.Approval, f.Cause
		e.Throttled = f.Throttled
	case e.Outcome != "":
	case failed:
		e.Outcome = OutcomeUpstream
	default:
		e.Outcome = OutcomeOK
	}
	e.failed = nil
}

// union returns a with the items of b that it lacks.
func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// maxText limits text chosen by callers in a log line, in bytes.
const maxText = 256

func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}

// attributes is a pool of attribute slices; handlers do not retain their arguments.
//
//nolint:gochecknoglobals // safe for concurrent use
var attributes = sync.Pool{New: func() any { a := make([]slog.Attr, 0, 48); return &a }}

// log writes the event as one line. Faults are logged as errors, refusals and upstream failures as warnings, and everything else as
// info. The line of a read may be delayed until after its response.
func (e *Event) log(ctx context.Context, logger *slog.Logger, now time.Time) {
	level := slog.LevelInfo
	switch e.Outcome {
	case OutcomeFault:
		level = slog.LevelError
	case OutcomeUpstream, OutcomeTerminated:
		level = slog.LevelWarn
	case OutcomeOK, OutcomeRefused, OutcomeCanceled:
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	room, _ := attributes.Get().(*[]slog.Attr)
	attrs := (*room)[:0]
	str := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, clip(value)))
		}
	}
	list := func(key string, values []string) {
		if len(values) > 0 {
			attrs = append(attrs, slog.Any(key, values))
		}
	}
	str("request_id", e.RequestID)
	str("decision_id", e.DecisionID)
	str("door", e.Door)
	str("dialect", e.Dialect)
	str("http.request.method", e.Method)
	str("operation", e.Operation)
	list("calls", e.Calls)
	attrs = append(attrs, slog.Int("http.response.status_code", e.Status))
	str("outcome", string(e.Outcome))
	str("org", e.Org)
	str("team", e.Team)
	str("key", e.Key)
	str("subject", e.Subject)
	str("client.address", e.Peer)
	str("user_agent.original", e.Agent)
	str("refusal", e.Refusal)
	str("stage", e.Stage)
	str("detail", e.Detail)
	str("approval", e.Approval)
	if e.DryRun != nil {
		str("dry_run", e.DryRun.Verdict)
	}
	list("denied", e.Denied)
	list("warned", e.Warned)
	list("shadowed", e.Shadowed)
	list("excepted", e.Excepted)
	list("changed", e.Changed)
	list("unknown", e.Unknown)
	list("ignored", e.Ignored)
	str("labels", e.Labels)
	str("policy_revision", e.PolicyRevision)
	str("limit_source", e.LimitSource)
	if e.Degraded {
		attrs = append(attrs, slog.Bool("limit_degraded", true))
	}
	if e.Priced {
		attrs = append(attrs, slog.Float64("usd_per_hour", e.Hourly))
	}
	if j := e.Job; j != nil {
		if j.Finished {
			attrs = append(attrs, slog.Float64("job_queued_ms", milliseconds(j.Queued)), slog.Float64("job_executed_ms", milliseconds(j.Executed)))
		}
		if j.Prompt+j.Completion > 0 {
			attrs = append(attrs, slog.Int64("gen_ai.usage.input_tokens", j.Prompt), slog.Int64("gen_ai.usage.output_tokens", j.Completion))
			if j.Cached > 0 {
				attrs = append(attrs, slog.Int64("gen_ai.usage.cache_read.input_tokens", j.Cached))
			}
		}
		if j.Cost > 0 {
			attrs = append(attrs, slog.Float64("usd", j.Cost))
		}
	}
	if e.UpstreamStatus != 0 {
		attrs = append(attrs, slog.Int("upstream_status", e.UpstreamStatus), slog.Float64("upstream_latency_ms", milliseconds(e.UpstreamLatency)))
	}
	attrs = append(attrs, slog.Int64("http.request.body.size", e.BytesIn), slog.Int64("http.response.body.size", e.BytesOut),
		slog.Float64("duration_ms", milliseconds(now.Sub(e.Start))))
	str("revision", e.Revision)
	if e.Cause != nil {
		str("cause", e.Cause.Error())
	}
	// Bypass the logger, which would determine the source position and copy the attributes. The attributes of a group without a
	// name are added to the record itself.
	r := slog.NewRecord(now, level, "exchange", 0)
	r.AddAttrs(slog.Attr{Value: slog.GroupValue(attrs...)})
	_ = logger.Handler().Handle(ctx, r)
	clear(attrs)
	*room = attrs
	attributes.Put(room)
}

// milliseconds returns a duration in milliseconds, with microsecond precision.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
