package filter

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/translate"
)

// Filter is one stage. Request judges or completes the exchange; returning an
// error refuses it, setting ex.Answer answers it, and either ends the request
// phase. Filters are shared by all exchanges and keep no state of one.
type Filter interface {
	Name() string
	Request(ctx context.Context, ex *Exchange) error
}

// ResponseFilter is a Filter with something to do on the way out. Response
// runs for every filter whose Request was entered, last first. An error
// replaces the answer.
type ResponseFilter interface {
	Filter
	Response(ctx context.Context, ex *Exchange) error
}

// Dialect writes refusals in the shape callers of a legacy interface expect.
type Dialect interface {
	Refuse(p translate.Problem) *translate.Outgoing
}

// Chain runs filters over exchanges. It is immutable and safe for concurrent
// use.
type Chain struct {
	// Head holds the stages that need headers only, Content those that need
	// the body, Call those that judge one v2 call.
	Head, Content, Call []Filter
	// Dialects holds the legacy dialects by name.
	Dialects map[route.Dialect]Dialect
}

// RunHead runs the head part and reports whether the request may go on.
func (c *Chain) RunHead(ctx context.Context, ex *Exchange) bool {
	return c.run(ctx, ex, c.Head)
}

// RunContent runs the content part and, for a v2 request, the call part. It
// reports whether the request is to be dispatched: Out is complete then. When
// it returns false, ex.Answer is set.
func (c *Chain) RunContent(ctx context.Context, ex *Exchange) bool {
	return c.run(ctx, ex, c.Content) && c.run(ctx, ex, c.Call)
}

func (c *Chain) run(ctx context.Context, ex *Exchange, filters []Filter) (ok bool) {
	for _, f := range filters {
		ex.stages = append(ex.stages, f)
		if err := guard(ctx, ex, f.Name(), f.Request); err != nil {
			c.refuse(ex, f.Name(), err)
			return false
		}
		if ex.Answer != nil {
			return false
		}
	}
	return true
}

// Fail makes a fault of the door or of the platform the exchange's answer, in
// the caller's dialect.
func (c *Chain) Fail(ex *Exchange, stage string, err error) { c.refuse(ex, stage, err) }

// RunResponse runs the response phase: backwards over the filters entered.
// Afterwards ex.Answer is what the door writes.
func (c *Chain) RunResponse(ctx context.Context, ex *Exchange) {
	for _, stage := range slices.Backward(ex.stages) {
		f, ok := stage.(ResponseFilter)
		if !ok {
			continue
		}
		if err := guard(ctx, ex, f.Name(), f.Response); err != nil {
			if ex.Answer != nil && ex.Answer.Stream != nil {
				_ = ex.Answer.Stream.Close() // the answer is replaced
			}
			c.refuse(ex, f.Name(), err)
		}
	}
	ex.stages = ex.stages[:0]
	e := ex.Event
	e.Status = ex.Answer.Status
	e.BytesOut = int64(len(ex.Answer.Body))
	if e.Outcome == "" {
		e.Outcome = telemetry.OutcomeOK
		if e.Status >= http.StatusBadRequest {
			e.Outcome = telemetry.OutcomeUpstream
		}
	}
}

// refuse turns err into the exchange's answer.
func (c *Chain) refuse(ex *Exchange, stage string, err error) {
	p := problemOf(err)
	p.Decision = ex.DecisionID
	e := ex.Event
	e.Refusal, e.Stage, e.Detail = string(p.Kind), stage, p.Detail
	e.Outcome = outcomeOf(p.Kind)
	e.Cause = p.Unwrap()
	ex.Answer = c.render(ex.Dialect, p)
}

// render writes a problem in a dialect.
func (c *Chain) render(dialect route.Dialect, p *problem.Problem) *Answer {
	d, ok := c.Dialects[dialect]
	if !ok {
		a := &Answer{Status: p.Status, Header: p.Header.Clone(), Body: p.JSON()}
		if a.Header == nil {
			a.Header = make(http.Header, 4)
		}
		a.Header.Set("Content-Type", problem.ContentType)
		return a
	}
	a := answerOf(d.Refuse(translate.Problem{
		Status: p.Status, Title: p.Title, Detail: p.Detail, Errors: p.Errors, Decision: p.Decision,
	}))
	maps.Copy(a.Header, p.Header)
	return a
}

// answerOf turns a translator's answer into the door's.
func answerOf(out *translate.Outgoing) *Answer {
	a := &Answer{Status: out.Status, Header: out.Header.Clone(), Body: out.Body}
	if a.Header == nil {
		a.Header = make(http.Header, 8)
	}
	if out.ContentType != "" {
		a.Header.Set("Content-Type", out.ContentType)
	}
	return a
}

// guard runs one phase of a filter and turns a panic into an error, so that a
// fault of ours costs one request and not the process.
func guard(ctx context.Context, ex *Exchange, name string, phase func(context.Context, *Exchange) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic in %s: %v\n%s", name, v, debug.Stack())
		}
	}()
	return phase(ctx, ex)
}

func outcomeOf(k problem.Kind) telemetry.Outcome {
	switch k {
	case problem.Internal:
		return telemetry.OutcomeFault
	case problem.UpstreamFailed, problem.UpstreamTimeout, problem.UpstreamRefused:
		return telemetry.OutcomeUpstream
	default:
		return telemetry.OutcomeRefused
	}
}
