package translate

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// MaxCandidates bounds the attempts of one plan.
const MaxCandidates = 24

// lastLook is the time to look for a lost result after the budget has ended;
// with it a request still ends before its client's 30 seconds.
const lastLook = 3 * time.Second

// Candidate is one way to place what the caller asked for.
type Candidate struct {
	// Label names it in warnings and attempts, e.g. "NVIDIA L4".
	Label string
	// Request is the create call.
	Request *Request
}

// Plan is an ordered list of create calls of which at most one shall succeed.
type Plan struct {
	// Candidates in the order of trial; those after MaxCandidates are not tried.
	Candidates []Candidate
	// Find looks for the result of an attempt whose answer was lost. It returns
	// nil when there is none, and an error when it cannot tell; then the attempt
	// is not repeated. nil means such an attempt is never repeated.
	Find func(ctx context.Context, c *Candidate) (*Response, error)
	// Claim is told of every success and reports whether no request had it
	// before; nil ignores it.
	Claim func(ctx context.Context, r *Response) bool
	// Outlive is told that an attempt is still under way when the request's
	// time is up or its client gone. The function it returns is told what became
	// of it in the end, with a success or nil, also when that is right away: the
	// plan goes on then. nil, like a nil Deps.Late, means that attempts are
	// waited for, however long they take.
	Outlive func(ctx context.Context, c *Candidate) (settle func(ctx context.Context, r *Response))
}

// Verdict is how a plan ended.
type Verdict int

// The verdicts.
const (
	// Placed: Response is the success.
	Placed Verdict = iota
	// Stopped: Response is an answer no other candidate can change: 401, 402,
	// 404, 413, 422, a 429 beyond the budget, or another status below 500.
	Stopped
	// Broken: the platform failed; Response is its 5xx, or nil with Err set.
	Broken
	// Forbidden: every candidate was refused with 403; Response is the last.
	Forbidden
	// Shortage: nothing is free, or time ran out before all were tried, or
	// there was no candidate; Response is the last answer, nil when there was
	// none.
	Shortage
	// Refused: the last 400 is about the request; Response is it.
	Refused
	// Unfinished: the time is up while an attempt is under way; there is no
	// Response, and the function Plan.Outlive returned will be told of it.
	Unfinished
)

// Attempt is one answered candidate.
type Attempt struct {
	Label  string
	Status int // 0 when the answer was lost
	Detail string
}

// Outcome tells how a plan ended.
type Outcome struct {
	Verdict Verdict
	// Index is the candidate that was placed, -1 for none.
	Index int
	// Adopted tells that the success was found by looking, not answered.
	Adopted  bool
	Response *Response
	Err      error
	Attempts []Attempt
}

// RunCandidates tries the candidates in order until one is placed:
//
//	2xx          done
//	400          the next candidate; the same detail that is no shortage twice
//	             in a row is a rule violation and stops
//	403          the next candidate: a policy may allow it
//	429          waits Retry-After and repeats the same one
//	5xx, lost    looks whether it was carried out after all, then repeats the
//	             same one after 0.5, 1 and 2 s, then stops
//	other        stops
//
// A 402 stops too: no candidate is cheap enough for an empty account. Every
// attempt passes the gateway's chain, so policies and budgets are asked for each
// candidate by itself. Outcome is never nil.
func RunCandidates(ctx context.Context, d *Dialogue, p Plan) *Outcome {
	run := &candidateRun{d: d, plan: p, out: &Outcome{Verdict: Shortage, Index: -1}}
	for i := range p.Candidates[:min(len(p.Candidates), MaxCandidates)] {
		if d.Remaining() <= 0 || ctx.Err() != nil {
			run.out.Err = ctx.Err()
			return run.out
		}
		if run.try(ctx, i) {
			return run.out
		}
	}
	run.conclude()
	return run.out
}

// candidateRun is the state of one RunCandidates.
type candidateRun struct {
	d    *Dialogue
	plan Plan
	out  *Outcome
	// violation is the detail of the last answer when that was a 400 that is no
	// shortage.
	violation string
	lastBad   *Response // the last 400
	forbidden int       // how many were answered 403
}

// try settles one candidate and reports whether the plan has ended.
func (c *candidateRun) try(ctx context.Context, i int) (done bool) {
	candidate := &c.plan.Candidates[i]
	resp, err := c.settle(ctx, candidate)
	attempt := Attempt{Label: candidate.Label}
	if resp != nil {
		attempt.Status, attempt.Detail = resp.Status, resp.Detail()
	}
	c.out.Attempts = append(c.out.Attempts, attempt)
	c.out.Response, c.out.Err = resp, err
	switch {
	case errors.Is(err, errUnfinished):
		c.out.Verdict = Unfinished
		return true
	case broken(resp, err):
		c.out.Verdict = Broken
		return true
	case resp.OK():
		c.out.Verdict, c.out.Index = Placed, i
		if c.plan.Claim != nil {
			c.plan.Claim(ctx, resp)
		}
		return true
	case resp.Status == http.StatusForbidden:
		c.forbidden++
		c.violation = ""
		return false
	case resp.Status == http.StatusBadRequest:
		if !c.violates(resp) {
			return false
		}
		c.out.Verdict = Refused
		return true
	}
	c.out.Verdict = Stopped
	return true
}

// violates notes a 400 and reports whether it repeats the violation before it.
func (c *candidateRun) violates(resp *Response) bool {
	c.lastBad = resp
	detail := resp.Detail()
	if IsCapacity(detail) {
		c.violation = ""
		return false
	}
	again := detail != "" && detail == c.violation
	c.violation = detail
	return again
}

// conclude decides the verdict when every candidate was tried in vain.
func (c *candidateRun) conclude() {
	switch {
	case c.forbidden > 0 && c.forbidden == len(c.out.Attempts):
		c.out.Verdict = Forbidden
	case c.lastBad != nil && !IsCapacity(c.lastBad.Detail()):
		c.out.Verdict, c.out.Response = Refused, c.lastBad
	case c.lastBad != nil:
		c.out.Response = c.lastBad
	}
}

// settle sends one candidate until there is an answer that says something about
// it.
func (c *candidateRun) settle(ctx context.Context, candidate *Candidate) (*Response, error) {
	for faults := 0; ; {
		resp, err := c.call(ctx, candidate)
		switch {
		case errors.Is(err, errUnfinished):
			return nil, err
		case err == nil && resp.Status == http.StatusTooManyRequests:
			if c.d.Pause(ctx, resp.RetryAfter()) != nil {
				return resp, nil //nolint:nilerr // no time left to wait: the 429 is the answer
			}
			continue
		case !c.unclear(resp, err):
			return resp, err
		}
		found, mayRepeat := c.recover(ctx, candidate, faults)
		if found != nil {
			c.out.Adopted = true
			c.d.Adopt(candidate.Request, Text(found.Body, "id"))
			return found, nil
		}
		faults++
		if !mayRepeat || resp.OK() || faults > len(backoff) {
			return unreadable(resp, err)
		}
	}
}

// errUnfinished tells that an attempt outlives the request.
var errUnfinished = errors.New("the create is still under way")

// lateTime bounds what is done for an attempt that outlives its request. The
// platform's answer is bounded by the Caller.
const lateTime = 5 * time.Minute

// late is how an attempt ended.
type late struct {
	resp *Response
	err  error
}

// call sends one candidate. When the request's time ends first, the attempt goes
// on without it: it cannot be taken back, and a client that is left waiting
// repeats what is being done already. Exactly one side takes the attempt's end,
// the request or the function Outlive returned.
func (c *candidateRun) call(ctx context.Context, candidate *Candidate) (*Response, error) {
	deps := c.d.Deps()
	if c.plan.Outlive == nil || deps.Late == nil || ctx.Err() != nil {
		return c.d.Call(ctx, candidate.Request)
	}
	alone := context.WithoutCancel(ctx)
	ended, outlived := make(chan late, 1), make(chan func(context.Context, *Response), 1)
	deps.Late(func() {
		ctx, cancel := context.WithTimeout(alone, lateTime)
		defer cancel()
		resp, err := c.d.Call(ctx, candidate.Request)
		ended <- late{resp, err}
		if settle := <-outlived; settle != nil {
			settle(alone, c.outcome(alone, candidate, resp, err))
		}
	})
	select {
	case end := <-ended:
		outlived <- nil
		return end.resp, end.err
	case <-ctx.Done():
	}
	settle := c.plan.Outlive(alone, candidate)
	select {
	case end := <-ended: // in the very last moment
		outlived <- nil
		settle(alone, nil)
		return end.resp, end.err
	default:
		outlived <- settle
		return nil, errUnfinished
	}
}

// outcome is the success an attempt that outlived its request ended with, nil
// for none. One without an answer is looked for.
func (c *candidateRun) outcome(ctx context.Context, candidate *Candidate, resp *Response, err error) *Response {
	if !c.unclear(resp, err) {
		if !resp.OK() || c.plan.Claim != nil && !c.plan.Claim(ctx, resp) {
			return nil
		}
		return resp
	}
	if c.plan.Find == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	found, err := c.plan.Find(ctx, candidate)
	if err != nil {
		c.d.Deps().Logger.WarnContext(ctx, "what became of a create is not known", "operation", candidate.Request.Operation, "error", err)
	}
	return found
}

// unclear reports an answer after which the resource may or may not exist: a
// server fault, silence, or a success without an id to go by.
func (c *candidateRun) unclear(resp *Response, err error) bool {
	return broken(resp, err) || resp.OK() && Text(resp.Body, "id") == ""
}

// unreadable turns a success that cannot be used into the fault it is.
func unreadable(resp *Response, err error) (*Response, error) {
	if resp.OK() {
		return nil, errNoAnswer
	}
	return resp, err
}

// recover waits and looks whether the attempt was carried out. mayRepeat is
// true when it certainly was not.
func (c *candidateRun) recover(ctx context.Context, candidate *Candidate, faults int) (found *Response, mayRepeat bool) {
	if errors.Is(ctx.Err(), context.Canceled) || c.plan.Find == nil {
		return nil, false
	}
	pause := backoff[min(faults, len(backoff)-1)]
	mayRepeat = ctx.Err() == nil && faults < len(backoff) && c.d.Pause(ctx, pause) == nil
	if ctx.Err() != nil || c.d.Remaining() < lastLook {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastLook)
		defer cancel()
	}
	found, err := c.plan.Find(ctx, candidate)
	return found, mayRepeat && err == nil
}
