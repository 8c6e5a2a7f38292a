package telemetry

import (
	"context"
	"log/slog"
	"time"
)

// Outcome says how an exchange ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK       Outcome = "ok"       // answered by the platform, or locally as asked
	OutcomeRefused  Outcome = "refused"  // answered by the gateway with a refusal
	OutcomeUpstream Outcome = "upstream" // the platform refused or failed
	OutcomeFault    Outcome = "fault"    // the gateway failed
	OutcomeGone     Outcome = "gone"     // the caller left before the answer
	OutcomeCut      Outcome = "cut"      // an event stream ended because what allowed it was withdrawn
)

// Event is the one record of an exchange. It is filled along the chain by the
// goroutine that drives the exchange and must not be used after Record.
type Event struct {
	Start      time.Time
	RequestID  string
	DecisionID string
	// Revision names the configuration the exchange was judged by.
	Revision string
	// Door is "http" or "envoy", Dialect "v2", "v1" or "graphql".
	Door, Dialect string
	Method        string
	// Operation is the id of the matched route, "unmatched" without one.
	Operation string
	// Calls lists the v2 operations a legacy call became.
	Calls []string
	Peer  string
	Agent string

	Org, Team, Key string

	Status  int
	Outcome Outcome
	// Refusal is the kind of problem the gateway answered with, Stage the
	// filter that raised it, Detail the caller's text.
	Refusal, Stage, Detail string
	// Denied, Warned and Shadowed name policies.
	Denied, Warned, Shadowed []string
	// Excepted names the exceptions that lifted a denial, Changed the fields
	// policies changed in the body, as "policy: pointer".
	Excepted, Changed []string
	// PolicyRevision is the revision of the verdict.
	PolicyRevision string
	// LimitSource says who decided on the rate limit; Degraded that the shared
	// store was away.
	LimitSource string
	Degraded    bool
	// Hourly is the price of what was asked for, USD per hour.
	Hourly float64
	Priced bool

	UpstreamStatus  int
	UpstreamLatency time.Duration
	BytesIn         int64
	BytesOut        int64
	// Cause is the inner error behind a refusal or fault; log only.
	Cause error
}

// maxText bounds caller-chosen text in a log line.
const maxText = 256

func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}

// log writes the event as one line. Levels: faults are errors, refusals and
// upstream failures warnings, everything else info.
func (e *Event) log(ctx context.Context, logger *slog.Logger, took time.Duration) {
	level := slog.LevelInfo
	switch e.Outcome {
	case OutcomeFault:
		level = slog.LevelError
	case OutcomeUpstream, OutcomeCut:
		level = slog.LevelWarn
	case OutcomeOK, OutcomeRefused, OutcomeGone:
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 32)
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
	str("method", e.Method)
	str("operation", e.Operation)
	list("calls", e.Calls)
	attrs = append(attrs, slog.Int("status", e.Status))
	str("outcome", string(e.Outcome))
	str("org", e.Org)
	str("team", e.Team)
	str("key", e.Key)
	str("peer", e.Peer)
	str("user_agent", e.Agent)
	str("refusal", e.Refusal)
	str("stage", e.Stage)
	str("detail", e.Detail)
	list("denied", e.Denied)
	list("warned", e.Warned)
	list("shadowed", e.Shadowed)
	list("excepted", e.Excepted)
	list("changed", e.Changed)
	str("policy_revision", e.PolicyRevision)
	str("limit_source", e.LimitSource)
	if e.Degraded {
		attrs = append(attrs, slog.Bool("limit_degraded", true))
	}
	if e.Priced {
		attrs = append(attrs, slog.Float64("usd_per_hour", e.Hourly))
	}
	if e.UpstreamStatus != 0 {
		attrs = append(attrs, slog.Int("upstream_status", e.UpstreamStatus), slog.Duration("upstream_latency", e.UpstreamLatency))
	}
	attrs = append(attrs, slog.Int64("bytes_in", e.BytesIn), slog.Int64("bytes_out", e.BytesOut), slog.Duration("duration", took))
	str("revision", e.Revision)
	if e.Cause != nil {
		str("cause", e.Cause.Error())
	}
	logger.LogAttrs(ctx, level, "exchange", attrs...)
}
