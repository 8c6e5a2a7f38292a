package engines

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
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/record"
	"github.com/tollgate-dev/tollgate/policies/replay"
	"github.com/tollgate-dev/tollgate/policies/sandbox"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// Drafts tries changes of policies that are not in force, on calls that were recorded. It implements admin.Drafts.
type Drafts struct {
	engine func() *policies.Engine
	log    func(ctx context.Context, w io.Writer, org string, since time.Time) error
	one    *semaphore.Weighted
}

// NewDrafts returns Drafts over the engine in force and the decision log of this gateway; see [admin.Decisions].
func NewDrafts(engine func() *policies.Engine, log func(ctx context.Context, w io.Writer, org string, since time.Time) error) Drafts {
	return Drafts{engine, log, semaphore.NewWeighted(1)}
}

// Replayed is the zero report of a replay, for the description of the API.
func Replayed() any { return replay.Report{} }

const (
	// maxRego bounds a draft, in bytes: compiling cannot be ended.
	maxRego = 64 << 10
	// replayTime bounds a replay, and replayMemory by how much the heap may become larger meanwhile.
	replayTime, replayMemory = time.Minute, 256 << 20
	// callTime bounds the decision on one call of a replay.
	callTime = time.Second
	// findTime bounds how long a decision is looked for in the log.
	findTime = 10 * time.Second
)

// Replay implements admin.Drafts.
func (r Drafts) Replay(ctx context.Context, org string, since time.Time, examples int, d admin.Draft) (any, error) {
	draft, err := r.begin(org, &d)
	if err != nil {
		return nil, err
	}
	defer r.one.Release(1)
	ctx, cancel := context.WithTimeoutCause(ctx, replayTime, errLong)
	defer cancel()
	ctx, stop := sandbox.WithinMemory(ctx, replayMemory)
	defer stop()
	limits := section.DefaultLimits()
	limits.Deadline, limits.Remember, limits.Concurrency = callTime, 0, 1
	engine, err := r.engine().Draft(ctx, org, draft, limits)
	if err != nil {
		return nil, refused(err)
	}
	events, written := io.Pipe()
	go func() { _ = written.CloseWithError(r.log(ctx, written, org, since)) }() // the reader has the error
	report, err := replay.Run(ctx, events, engine, replay.Options{Org: org, Examples: cmp.Or(examples, -1)})
	_ = events.Close() // which ends the writer
	return report, refused(err)
}

var errLong = fmt.Errorf("it took longer than %s: replay a shorter time", replayTime)

// Try implements admin.Drafts.
func (r Drafts) Try(ctx context.Context, org string, t admin.Trial) (*admin.Tried, error) {
	draft, err := r.begin(org, &t.Draft)
	if err != nil {
		return nil, err
	}
	defer r.one.Release(1)
	if t.Decision != "" {
		if t.Input, t.Masked, err = r.recorded(ctx, org, t.Decision); err != nil {
			return nil, err
		}
	}
	call, err := record.Read(t.Input, t.Masked)
	if err != nil {
		return nil, admin.BadRequestError{Reason: "input: " + err.Error()}
	}
	if call.Input.Caller.Org != org {
		return nil, admin.BadRequestError{Reason: "input: caller.org is another organisation"}
	}
	tried, err := r.engine().Try(ctx, org, draft, call)
	if err != nil {
		return nil, refused(err)
	}
	out := &admin.Tried{
		Policies: tried.Policies, Said: []admin.Said{}, Prints: tried.Prints, Covered: tried.Covered, Missed: tried.Missed,
		Input: t.Input, Masked: t.Masked,
	}
	for _, list := range []struct {
		verdict string
		said    []policies.Violation
	}{{"denies", tried.Decision.Deny}, {"warns", tried.Decision.Warn}, {"would deny", tried.Decision.Shadow}} {
		for _, v := range list.said {
			out.Said = append(out.Said, admin.Said{Policy: v.Policy, Verdict: list.verdict, Message: v.Message, Field: v.Pointer})
		}
	}
	for _, m := range tried.Decision.Mutate {
		out.Said = append(out.Said, admin.Said{Policy: m.Policy, Verdict: "changes", Message: m.Message, Field: m.Pointer})
	}
	for _, o := range tried.Open {
		out.Open = append(out.Open, admin.Unjudged{Policy: o.Policy, Hidden: o.Hidden})
	}
	return out, nil
}

// begin reads a draft, and takes the one place for trials, which the caller releases.
func (r Drafts) begin(org string, d *admin.Draft) (policies.Draft, error) {
	draft := policies.Draft{Rego: d.Rego}
	if d.Rego == "" && d.Policies == "" {
		return draft, admin.BadRequestError{Reason: "give rego, policies, or both"}
	}
	if len(d.Rego)+len(d.Policies) > maxRego {
		return draft, admin.BadRequestError{Reason: fmt.Sprintf("the draft is longer than %d bytes", maxRego)}
	}
	if d.Policies != "" {
		var given struct {
			Policies []policies.Entry `yaml:"policies"`
		}
		if err := strictyaml.Decode("policies", []byte(d.Policies), &given); err != nil {
			return draft, admin.BadRequestError{Reason: err.Error()}
		}
		draft.Entries = given.Policies
	}
	if _, known := r.engine().Revision(org); !known {
		return draft, row.RefusedError{Status: http.StatusConflict, Reason: "the policies of the organisation are not there yet"}
	}
	if !r.one.TryAcquire(1) {
		return draft, row.RefusedError{Status: http.StatusServiceUnavailable, Reason: "another draft is tried at this gateway: ask again in a moment"}
	}
	return draft, nil
}

// refused words the end of a trial for its asker.
func refused(err error) error {
	fault, isFault := errors.AsType[*section.Error](err)
	refusal, isRefused := errors.AsType[row.RefusedError](err)
	switch {
	case err == nil:
		return nil
	case isFault && fault != nil, errors.Is(err, policies.ErrInput):
		return admin.BadRequestError{Reason: err.Error()}
	case isRefused:
		return refusal
	case errors.Is(err, admin.ErrNoOrg):
		return err
	}
	return row.RefusedError{Status: http.StatusUnprocessableEntity, Reason: err.Error()}
}

// errFound ends the reading of a log.
var errFound = errors.New("found")

// recorded returns the input of a decision in this gateway's log, and its masked members.
func (r Drafts) recorded(ctx context.Context, org, id string) (input map[string]any, masked []string, err error) {
	made, err := ulid.ParseStrict(id)
	if err != nil {
		return nil, nil, admin.BadRequestError{Reason: "decision: not an id"}
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	f := &finder{id: id}
	err = r.log(ctx, f, org, ulid.Time(made.Time()).Add(-time.Minute))
	switch {
	case errors.Is(err, errFound):
		return replay.InputOf(f.line)
	case err == nil:
		return nil, nil, row.RefusedError{Status: http.StatusNotFound, Reason: "the decision log of this gateway does not have the decision"}
	}
	return nil, nil, refused(err)
}

// finder looks for the event of a decision, an event a write.
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
