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
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
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

// Explainer is a Filter with something to tell operators.
type Explainer interface {
	Filter
	// Notes returns the filter's findings about an exchange in one of its
	// stages. It is called for exchanges that have ended, perhaps long ago and under
	// another configuration: bodies and headers are gone from those, so it depends on
	// neither.
	Notes(ex *Exchange, stage string) []string
}

// Chain runs filters over exchanges. It is immutable and safe for concurrent
// use.
type Chain struct {
	// Headers holds the stages that need headers only, Content those that need
	// the body, Call those that judge one v2 call.
	Headers, Body, Call []Filter
	// Help is added to refusals.
	Help Help
}

// The parts of a chain.
const (
	partHeaders = iota
	partBody
	partCall
	parts
)

func (c *Chain) part(i int) []Filter { return [parts][]Filter{c.Headers, c.Body, c.Call}[i] }

// RunHeaders runs the head part and reports whether the request may go on.
func (c *Chain) RunHeaders(ctx context.Context, ex *Exchange) bool {
	return c.run(ctx, ex, partHeaders)
}

// RunBody runs the content part and, for a v2 request, the call part. It
// reports whether the request is to be dispatched: Out is complete then. When
// it returns false, ex.Answer is set.
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

// StageDispatch names the stage in which the platform is asked. No filter has
// it: in the Envoy door it is Envoy that asks.
const StageDispatch = "dispatch"

// Dispatch sends an exchange that passed the call part. When it returns,
// ex.Answer is set; done releases its stream and must be called in the
// end.
func (c *Chain) Dispatch(ctx context.Context, ex *Exchange) (done func()) {
	done, err := ex.Ports.Sender.Send(ctx, ex)
	if err != nil {
		c.Fail(ex, StageDispatch, err)
		return func() {}
	}
	return done
}

// Fail makes a fault of the door, or of the platform, the exchange's answer, in
// the caller's dialect.
func (c *Chain) Fail(ex *Exchange, stage string, err error) {
	if !slices.Contains(ex.Progress.stages, stage) {
		ex.enterStage(stage)
	}
	c.refuse(ex, stage, err)
}

// RunResponse runs the response phase: backwards over the filters entered.
// Afterwards ex.Answer is the answer that the door writes.
func (c *Chain) RunResponse(ctx context.Context, ex *Exchange) {
	for part := partCall; part >= partHeaders; part-- {
		for _, entered := range slices.Backward(c.part(part)[:ex.Progress.entered[part]]) {
			f, ok := entered.(ResponseFilter)
			if !ok {
				continue
			}
			if err := guard(ctx, ex, f.Name(), f.Response); err != nil {
				if ex.Response != nil && ex.Response.Stream != nil {
					_ = ex.Response.Stream.Close() // the answer is replaced
				}
				c.refuse(ex, f.Name(), err)
			}
		}
		ex.Progress.entered[part] = 0
	}
	c.Help.onLegacy(ex)
	ex.Event.Complete(ex.Response.Status, len(ex.Response.Body))
	if o := ex.Ports.Observer; o != nil && !ex.Progress.Nested {
		o.Ended(ex)
	}
}

// Explainers returns the filters that have something to tell.
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

// Explainers are those of a chain, by stage.
type Explainers map[string]Explainer

// Notes returns the filters' findings about an exchange in a stage.
func (l Explainers) Notes(ex *Exchange, stage string) []string {
	if stage != StageDispatch {
		if n := l[stage]; n != nil {
			return n.Notes(ex, stage)
		}
		return nil
	}
	var notes []string
	if ex.Event.UpstreamStatus != 0 {
		notes = append(notes, fmt.Sprintf("the platform answered %d", ex.Event.UpstreamStatus))
	}
	if ex.Adopted != "" {
		notes = append(notes, ex.Adopted+" was made all the same and found afterwards")
	}
	return notes
}

// refuse turns err into the exchange's answer.
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

// render writes a problem in the dialect of an exchange.
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
	body, err := strictjson.DecodeLenient(p.JSON())
	if err != nil { // an encoded problem can be read
		panic(fmt.Sprintf("filter: decode a problem: %v", err))
	}
	a := responseOf(d.Refuse(&translate.Response{Status: p.Status, Header: p.Header, Body: body, Refused: true, Kind: string(p.Kind)}))
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

// responseOf turns a translator's answer into the door's.
func responseOf(out *translate.Outgoing) *Response {
	a := &Response{Status: out.Status, Header: out.Header.Clone(), Body: out.Body, Failed: out.Failed}
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
	case problem.UpstreamFailed, problem.UpstreamTimeout, problem.UpstreamRefused, problem.OutcomeUnknown:
		return telemetry.OutcomeUpstream
	default:
		return telemetry.OutcomeRefused
	}
}
