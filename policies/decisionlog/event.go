package decisionlog

import (
	"encoding/json"
	"time"

	"github.com/tollgate-dev/tollgate/policies"
)

// Event describes one decision.
type Event struct {
	// DecisionID identifies the decision. Every response contains it.
	DecisionID string
	// RequestID, TraceID and SpanID correlate the decision with other records.
	RequestID, TraceID, SpanID string
	// RequestedBy is the address of the caller.
	RequestedBy string
	// Org is the ID of the organisation.
	Org string
	// Size is the length in bytes of the body in Input as it was sent.
	Size int64
	// Input is the evaluated input. It must not be modified afterwards.
	Input *policies.Input
	// Decision is the decision, or nil if Err is set.
	Decision *policies.Decision
	// Err is the reason why no decision was made.
	Err error
	// Duration is how long the decision took.
	Duration time.Duration
}

// plain reports whether the call was allowed without any violation, exception or change.
func (e *Event) plain() bool {
	d := e.Decision
	return e.Err == nil && d != nil &&
		len(d.Deny)+len(d.Warn)+len(d.Shadow)+len(d.Excepted)+len(d.Mutate) == 0
}

// entry is an event in the format of OPA's decision log.
type entry struct {
	Labels      map[string]string `json:"labels,omitempty"`
	DecisionID  string            `json:"decision_id"`
	TraceID     string            `json:"trace_id,omitempty"`
	SpanID      string            `json:"span_id,omitempty"`
	Bundles     map[string]source `json:"bundles,omitempty"`
	Path        string            `json:"path"`
	Input       any               `json:"input,omitempty"`
	Result      any               `json:"result,omitempty"`
	Masked      []string          `json:"masked,omitempty"`
	Error       any               `json:"error,omitempty"`
	RequestedBy string            `json:"requested_by,omitempty"`
	Timestamp   string            `json:"timestamp"`
	Metrics     map[string]int64  `json:"metrics,omitempty"`
	Custom      map[string]string `json:"custom,omitempty"`
}

// source identifies the evaluated policies, in place of OPA's bundles.
type source struct {
	Revision string `json:"revision"`
}

// entryPath is the path of the query in OPA's format.
const entryPath = "tollgate/entrypoint/decision"

// encode encodes an event and masks secrets.
func (l *Log) encode(e *Event) ([]byte, error) {
	rules := l.rules.Load()
	out := entry{
		Labels: rules.cfg.Labels, DecisionID: e.DecisionID, TraceID: e.TraceID, SpanID: e.SpanID,
		Path: entryPath, RequestedBy: e.RequestedBy,
		Metrics: map[string]int64{"timer_decision_ns": e.Duration.Nanoseconds()},
	}
	if e.Org != "" || e.RequestID != "" {
		out.Custom = map[string]string{"org": e.Org, "request_id": e.RequestID}
	}
	if e.Decision != nil {
		out.Bundles = map[string]source{e.Org: {Revision: e.Decision.Revision}}
		out.Result = result(e.Decision)
	}
	if e.Err != nil {
		out.Error = map[string]string{"code": "policy_error", "message": e.Err.Error()}
	}
	if e.Input != nil {
		out.Timestamp = e.Input.Time.UTC().Format(time.RFC3339Nano)
		doc, err := e.Input.Decoded()
		if err == nil {
			out.Input = doc
		} else if out.Error == nil {
			out.Error = map[string]string{"code": "input_error", "message": err.Error()}
		}
	}
	whole := any(map[string]any{"input": out.Input, "result": out.Result})
	for _, path := range rules.masks {
		whole = mask(whole, path, "", &out.Masked)
	}
	if m, ok := whole.(map[string]any); ok {
		out.Input, out.Result = m["input"], m["result"]
	}
	return json.Marshal(out)
}

// result returns a decision as decoded JSON, so that it can be masked.
func result(d *policies.Decision) map[string]any {
	r := map[string]any{"allowed": len(d.Deny) == 0}
	for name, list := range map[string][]policies.Violation{"deny": d.Deny, "warn": d.Warn, "shadow": d.Shadow} {
		if len(list) == 0 {
			continue
		}
		items := make([]any, len(list))
		for i, v := range list {
			items[i] = violation(v)
		}
		r[name] = items
	}
	if len(d.Excepted) > 0 {
		items := make([]any, len(d.Excepted))
		for i, x := range d.Excepted {
			item := violation(x.Violation)
			item["exception"], item["granted_by"], item["reason"] = x.Exception, x.GrantedBy, x.Reason
			item["until"] = x.Until.UTC().Format(time.RFC3339)
			items[i] = item
		}
		r["excepted"] = items
	}
	if len(d.Mutate) > 0 {
		items := make([]any, len(d.Mutate))
		for i, m := range d.Mutate {
			items[i] = map[string]any{"policy": m.Policy, "op": string(m.Op), "pointer": m.Pointer, "value": m.Value}
		}
		r["mutate"] = items
	}
	return r
}

func violation(v policies.Violation) map[string]any {
	m := map[string]any{"policy": v.Policy, "message": v.Message}
	if v.Pointer != "" {
		m["pointer"] = v.Pointer
	}
	return m
}
