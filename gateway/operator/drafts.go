package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/isolate/jobs"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

// Drafts evaluates drafts of policies for recorded calls, in child processes. A draft never takes effect.
type Drafts struct {
	// Engines holds the policies in force and runs the child processes. If its Isolate is nil, drafts are evaluated in this process without
	// limits.
	Engines *EngineFactory
	// Decisions has the decision log of this gateway.
	Decisions *decisions.Decisions
}

const (
	// maxRego is the size of the largest draft, in bytes.
	maxRego = 64 << 10
	// findTime limits the search for a decision in the log.
	findTime = 10 * time.Second
)

// replay evaluates a draft for the calls in this gateway's decision log and reports the differences.
func (r Drafts) replay(ctx context.Context, _ adminapi.Principal, p replaying) (*replay.Report, error) {
	var d Draft
	if err := readBody(p.Draft, &d); err != nil {
		return nil, err
	}
	org, since := string(p.Org), time.Time(p.Since)
	src, draft, err := r.begin(org, &d)
	if err != nil {
		return nil, err
	}
	report, err := jobs.Replay(ctx, r.Engines.Isolate,
		&jobs.ReplayRequest{Source: src, Draft: draft, Options: replay.Options{Org: org, Examples: cmp.Or(p.Examples, -1)}},
		func(ctx context.Context, w io.Writer) error { return r.Decisions.WriteLog(ctx, w, org, since) })
	if err != nil {
		return nil, refused(err, fmt.Sprintf("replay exceeds %s: select a shorter period", jobs.ReplayTime))
	}
	return report, nil
}

// try evaluates the policies changed by a draft for one call.
func (r Drafts) try(ctx context.Context, _ adminapi.Principal, p trying) (*TrialResult, error) {
	var t Trial
	if err := readBody(p.Trial, &t); err != nil {
		return nil, err
	}
	if t.Decision == "" && t.Input == nil {
		return nil, adminapi.BadRequestError{Reason: "decision or input is required"}
	}
	org := string(p.Org)
	src, draft, err := r.begin(org, &t.Draft)
	if err != nil {
		return nil, err
	}
	if t.Decision != "" {
		if t.Input, t.Masked, err = r.recorded(ctx, org, t.Decision); err != nil {
			return nil, err
		}
	}
	call, err := policyinput.ParseRecorded(t.Input, t.Masked)
	if err != nil {
		return nil, adminapi.BadRequestError{Reason: "input: " + err.Error()}
	}
	if call.Input.Caller.Org != org {
		return nil, adminapi.BadRequestError{Reason: "input: caller.org does not match the organisation"}
	}
	tried, err := jobs.Try(ctx, r.Engines.Isolate, &jobs.Trial{Source: src, Draft: draft, Input: t.Input, Masked: t.Masked})
	if err != nil {
		return nil, refused(err, fmt.Sprintf("draft evaluation exceeds %s: simplify the draft", jobs.TryTime))
	}
	out := &TrialResult{
		Policies: tried.Policies, Results: []PolicyResult{}, Output: tried.Output, Covered: tried.Covered, Missed: tried.Missed,
		Input: t.Input, Masked: t.Masked,
	}
	for _, p := range explain.ResultsOf(&tried.Decision) {
		out.Results = append(out.Results, PolicyResult{p.Policy, p.Verdict, p.Message, p.Field})
	}
	for _, o := range tried.Undetermined {
		out.Undetermined = append(out.Undetermined, UndeterminedPolicy{Policy: o.Policy, Hidden: o.Hidden})
	}
	return out, nil
}

// begin reads a draft and the policies in force that it changes.
func (r Drafts) begin(org string, d *Draft) (*policies.Source, policies.Draft, error) {
	draft := policies.Draft{Rego: d.Rego}
	if d.Rego == "" && d.Policies == "" {
		return nil, draft, adminapi.BadRequestError{Reason: "rego, policies, or both are required"}
	}
	if len(d.Rego)+len(d.Policies) > maxRego {
		return nil, draft, adminapi.BadRequestError{Reason: fmt.Sprintf("draft exceeds %d bytes", maxRego)}
	}
	if d.Policies != "" {
		var err error
		if draft.Entries, err = compiler.ParseEntries(d.Policies); err != nil {
			return nil, draft, adminapi.BadRequestError{Reason: err.Error()}
		}
	}
	src, err := r.Engines.InForce.Load().Source(org)
	if err != nil {
		return nil, draft, adminapi.RefusedError{Status: http.StatusConflict, Reason: "policies of the organisation are not loaded yet"}
	}
	return src, draft, nil
}

// refused converts the error of a trial into a response. late is the reason for a trial that exceeds its time limit.
func refused(err error, late string) error {
	fault, isFault := errors.AsType[*policies.Error](err)
	refusal, isRefused := errors.AsType[adminapi.RefusedError](err)
	reason := err.Error()
	switch {
	case isFault && fault != nil, errors.Is(err, policies.ErrInput):
		return adminapi.BadRequestError{Reason: reason}
	case isRefused:
		return refusal
	case errors.Is(err, isolate.ErrBusy):
		return adminapi.RefusedError{
			Status: http.StatusServiceUnavailable,
			Reason: "gateway is evaluating other drafts: try again in a few seconds",
		}
	case errors.Is(err, isolate.ErrDeadline):
		reason = late
	case errors.Is(err, isolate.ErrMemory):
		reason = fmt.Sprintf("draft evaluation exceeds %d MiB of memory", isolate.DefaultMemory>>20)
	}
	return adminapi.RefusedError{Status: http.StatusUnprocessableEntity, Reason: reason}
}

// errFound stops reading a log.
var errFound = errors.New("found")

// recorded returns the input of a decision in this gateway's log and its masked members.
func (r Drafts) recorded(ctx context.Context, org, id string) (input map[string]any, masked []string, err error) {
	made, err := ulid.ParseStrict(id)
	if err != nil {
		return nil, nil, adminapi.BadRequestError{Reason: "decision: invalid id"}
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	f := &finder{id: id}
	err = r.Decisions.WriteLog(ctx, f, org, ulid.Time(made.Time()).Add(-time.Minute))
	switch {
	case errors.Is(err, errFound):
		return replay.ParseInput(f.line)
	case err == nil:
		return nil, nil, adminapi.RefusedError{Status: http.StatusNotFound, Reason: "decision not found in the decision log of this gateway"}
	}
	return nil, nil, refused(err, err.Error())
}

// finder finds the event of a decision; each write is one event.
type finder struct {
	id   string
	line []byte
}

// Write implements io.Writer.
func (f *finder) Write(line []byte) (int, error) {
	var e struct {
		ID string `json:"decision_id"`
	}
	if json.Unmarshal(line, &e) == nil && e.ID == f.id {
		f.line = append(f.line, line...)
		return 0, errFound
	}
	return len(line), nil
}
