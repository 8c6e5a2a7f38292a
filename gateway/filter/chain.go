package filter

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Filter is one stage of the chain. Name returns the name of the stage, which appears in events and explanations. Request checks or
// completes the exchange. To refuse the request, it returns an error; to respond, it sets ex.Response. Both end the request phase. Filters
// are shared by all exchanges and must not store the state of an exchange. See [ResponseFilter] for the response phase.
type Filter interface {
	Name() string
	Request(ctx context.Context, ex *Exchange) error
}

// ResponseFilter is a Filter with a response phase. The Response methods are called in reverse order, for every filter whose Request was
// called. If Response returns an error, the problem for the error replaces the response.
type ResponseFilter interface {
	Filter
	Response(ctx context.Context, ex *Exchange) error
}

// Explainer is a Filter that explains its findings to operators.
type Explainer interface {
	Filter
	// Notes returns sentences about what the given stage found in an exchange. It may be called long after the exchange has ended, with the
	// result of [Exchange.Snapshot] and under another configuration, so it must not depend on bodies or headers.
	Notes(ex *Exchange, stage string) []string
}

// Chain runs filters over exchanges. A server calls RunHeaders, RunBody, Dispatch and RunResponse in this order, or calls [Pipeline.Run].
// If RunHeaders or RunBody returns false, the server calls RunResponse next. Chain is immutable and safe for concurrent use.
type Chain struct {
	// Headers are the stages that need only the request headers. Body are the stages that need the body. Call are the stages that check one
	// v2 call.
	Headers, Body, Call []Filter
	// Help is the contact information added to refusals.
	Help Help

	resolve   sync.Once // sets responses
	responses [parts][]ResponseFilter
}

// Indexes of the parts of a chain.
const (
	partHeaders = iota
	partBody
	partCall
	parts
)

func (c *Chain) part(i int) []Filter { return [parts][]Filter{c.Headers, c.Body, c.Call}[i] }

// RunHeaders runs the stages of Headers and reports whether the request may proceed. If it returns false, ex.Response is set.
func (c *Chain) RunHeaders(ctx context.Context, ex *Exchange) bool {
	return c.run(ctx, ex, partHeaders)
}

// RunBody runs the stages of Body and, for a v2 request, the stages of Call. It returns true if the request is to be dispatched, in which
// case ex.Out is complete. Otherwise ex.Response is set.
func (c *Chain) RunBody(ctx context.Context, ex *Exchange) bool {
	return c.run(ctx, ex, partBody) && c.run(ctx, ex, partCall)
}

func (c *Chain) run(ctx context.Context, ex *Exchange, part int) (ok bool) {
	if part == partCall {
		ex.Progress.callStart = len(ex.Progress.stages) + 1
	}
	for _, f := range c.part(part) {
		ex.Progress.entered[part]++
		ex.enterStage(f.Name())
		if err := guard(ctx, ex, f.Name(), f.Request); err != nil {
			c.refuse(ex, ex.Stage(), err)
			return false
		}
		if ex.Response != nil {
			return false
		}
	}
	return true
}

// Names of stages that other packages refer to.
const (
	StageAssignIDs     = "assign ids"
	StageAnswerLocally = "answer locally"
	StageDryRun        = "dry run"
	// StageDispatch is the name of the stage that sends the call to the platform. The stage is not a filter, because
	// Envoy sends the call if it is in front of the gateway.
	StageDispatch = "dispatch"
)

// Dispatch sends the call of an exchange to the platform. It must be called only after RunBody has returned true. When Dispatch returns,
// ex.Response is set. The caller must call done after sending the response.
func (c *Chain) Dispatch(ctx context.Context, ex *Exchange) (done func()) {
	done, err := ex.Ports.Sender.Send(ctx, ex)
	if err != nil {
		c.Fail(ex, StageDispatch, err)
		return func() {}
	}
	return done
}

// Fail sets the response to the problem for an error that occurred outside the filters. The problem is encoded in the caller's dialect, and
// stage is recorded as the stage that failed. RunResponse must be called next.
func (c *Chain) Fail(ex *Exchange, stage string, err error) {
	if !slices.Contains(ex.Progress.stages, stage) {
		ex.enterStage(stage)
	}
	c.refuse(ex, stage, err)
}

// RunResponse runs the response phase: the Response methods of all filters whose Request was called, in reverse order. Afterwards
// ex.Response is final.
func (c *Chain) RunResponse(ctx context.Context, ex *Exchange) {
	c.resolve.Do(c.resolveResponses)
	for part := partCall; part >= partHeaders; part-- {
		for _, f := range slices.Backward(c.responses[part][:ex.Progress.entered[part]]) {
			if f == nil {
				continue
			}
			if err := guard(ctx, ex, f.Name(), f.Response); err != nil {
				if ex.Response != nil && ex.Response.Stream != nil {
					_ = ex.Response.Stream.Close() // replaced by the refusal
				}
				c.refuse(ex, f.Name(), err)
			}
		}
		ex.Progress.entered[part] = 0
	}
	c.Help.onLegacy(ex)
	ex.Progress.clock.stop()
	ex.Event.Complete(ex.Response.Status, len(ex.Response.Body))
	if o := ex.Ports.Observer; o != nil && !ex.Progress.Nested {
		o.Ended(ex)
	}
}

// resolveResponses sets responses to the filters of each part, with nil for a filter without a response phase.
func (c *Chain) resolveResponses() {
	for part := range parts {
		filters := c.part(part)
		c.responses[part] = make([]ResponseFilter, len(filters))
		for i, f := range filters {
			c.responses[part][i], _ = f.(ResponseFilter)
		}
	}
}

// Explainers returns the filters of the chain that implement Explainer.
func (c *Chain) Explainers() Explainers {
	all := make(Explainers)
	for part := range parts {
		for _, f := range c.part(part) {
			n, ok := f.(Explainer)
			if !ok {
				continue
			}
			stages := []string{n.Name()}
			if _, ok := f.(*EvaluatePolicies); ok {
				stages = []string{stageValidate, stageResolve, stageEvaluate}
			}
			for _, stage := range stages {
				all[stage] = n
			}
		}
	}
	return all
}

// Explainers maps the names of stages to their filters.
type Explainers map[string]Explainer

// Notes returns sentences about what a stage found in an exchange.
func (l Explainers) Notes(ex *Exchange, stage string) []string {
	if stage != StageDispatch {
		if n := l[stage]; n != nil {
			return n.Notes(ex, stage)
		}
		return nil
	}
	var notes []string
	if ex.Event.UpstreamStatus != 0 {
		notes = append(notes, fmt.Sprintf("the platform returned status %d", ex.Event.UpstreamStatus))
	}
	if ex.Adopted != "" {
		notes = append(notes, ex.Adopted+" was found after the response to the call was lost")
	}
	return notes
}

// refuse sets the response of an exchange to the problem for err.
func (c *Chain) refuse(ex *Exchange, stage string, err error) {
	p := problemOf(err)
	p.Decision = ex.DecisionID
	e := ex.Event
	e.Refusal, e.Stage, e.Detail = string(p.Kind), stage, p.Detail
	e.Outcome = outcomeOf(p.Kind)
	if p.Approval != nil {
		e.Approval = p.Approval.ID
	}
	e.Cause = p.Unwrap()
	ex.Faults = p.Errors
	c.Help.onProblem(ex, p)
	ex.Response = ex.render(p)
}

// render returns a problem as a response in the dialect of the exchange.
func (ex *Exchange) render(p *problem.Problem) *Response {
	d, ok := ex.Ports.Translators[ex.Dialect]
	if !ok {
		body, contentType := write(ex.Dialect, p)
		a := &Response{Status: p.Status, Header: p.Header.Clone(), Body: body}
		if a.Header == nil {
			a.Header = make(http.Header, 4)
		}
		a.Header.Set("Content-Type", contentType)
		return a
	}
	a := d.Refuse(p)
	maps.Copy(a.Header, p.Header)
	return a
}

// write encodes a problem for a dialect that is not translated.
func write(d route.Dialect, p *problem.Problem) (body []byte, contentType string) {
	switch d {
	case route.Run:
		return p.RunJSON(), problem.RunContentType
	case route.Chat:
		return p.ChatJSON(), problem.RunContentType
	default:
		return p.JSON(), problem.ContentType
	}
}

// guard calls one phase of a filter and converts a panic into an error, so that a bug fails one request instead of the process.
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
	case problem.UpstreamFailed, problem.UpstreamTimeout, problem.UpstreamRefused, problem.OutcomeUnknown:
		return telemetry.OutcomeUpstream
	default:
		return telemetry.OutcomeRefused
	}
}
