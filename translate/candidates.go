package translate

import (
	"context"
	"errors"
	"net/http"
)

// MaxCandidates bounds the attempts of one plan.
const MaxCandidates = 24

// Candidate is one way to place the requested pod.
type Candidate struct {
	// Label names it in warnings and attempts, e.g. "NVIDIA L4".
	Label string
	// Request is the create call.
	Request *Request
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
	// Unfinished: the outcome of an attempt is not known, and Err is an
	// UnfinishedError; there is no Response.
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
	Index    int
	Response *Response
	Err      error
	Attempts []Attempt
}

// RunCandidates tries the first MaxCandidates in order until one is placed:
//
//	2xx          done
//	400          the next candidate; the same detail that is no shortage twice
//	             in a row is a rule violation and stops
//	403          the next candidate: a policy may allow it
//	429          waits Retry-After and repeats the same one
//	402          the next candidate, if it was the gateway: it may fit the budget
//	5xx          if it was the platform, waits 0.5, 1 and 2 s and each time repeats the same one, then stops
//	unfinished   stops
//	other        stops
//
// A 402 of the platform stops: no candidate is cheap enough for an empty account. A
// 5xx of the gateway stops, too. Every attempt passes the gateway's chain, so policies and budgets are asked for each
// candidate by itself. Outcome is never nil.
func RunCandidates(ctx context.Context, d *Client, candidates []Candidate) *Outcome {
	run := &candidateRun{dialogue: d, out: &Outcome{Verdict: Shortage, Index: -1}}
	for i, candidate := range candidates[:min(len(candidates), MaxCandidates)] {
		if d.Remaining() <= 0 || ctx.Err() != nil {
			run.out.Err = ctx.Err()
			return run.out
		}
		if run.try(ctx, i, candidate) {
			return run.out
		}
	}
	run.conclude()
	return run.out
}

// candidateRun is the state of one RunCandidates.
type candidateRun struct {
	dialogue *Client
	out      *Outcome
	// violation is the detail of the last answer when that was a 400 that is no
	// shortage.
	violation string
	lastBad   *Response // the last 400
	forbidden int       // how many were answered 403
	over      *Response // the last refusal by a budget
	overs     int       // how many there were
}

// try settles one candidate and reports whether the plan has ended.
func (c *candidateRun) try(ctx context.Context, i int, candidate Candidate) (done bool) {
	resp, err := Create(ctx, c.dialogue, candidate.Request)
	attempt := Attempt{Label: candidate.Label}
	if resp != nil {
		attempt.Status, attempt.Detail = resp.Status, resp.Detail()
	}
	c.out.Attempts = append(c.out.Attempts, attempt)
	c.out.Response, c.out.Err = resp, err
	switch {
	case errors.As(err, new(*UnfinishedError)):
		c.out.Verdict = Unfinished
		return true
	case broken(resp, err):
		c.out.Verdict = Broken
		return true
	case resp.OK():
		c.out.Verdict, c.out.Index = Placed, i
		return true
	case resp.Status == http.StatusPaymentRequired && resp.Refused:
		c.over = resp
		c.overs++
		c.violation = ""
		return false
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
	case c.over != nil && c.overs+c.forbidden == len(c.out.Attempts):
		c.out.Verdict, c.out.Response = Stopped, c.over
	case c.forbidden > 0 && c.forbidden == len(c.out.Attempts):
		c.out.Verdict = Forbidden
	case c.lastBad != nil && !IsCapacity(c.lastBad.Detail()):
		c.out.Verdict, c.out.Response = Refused, c.lastBad
	case c.lastBad != nil:
		c.out.Response = c.lastBad
	}
}

// Create carries out one create. One that is limited, or that the platform fails, is sent again;
// the Caller has made sure then that nothing was made.
func Create(ctx context.Context, d *Client, r *Request) (*Response, error) {
	repeats := 1
	if r.Operation == "createPod" {
		repeats = len(backoff)
	}
	for faults := 0; ; faults++ {
		resp, err := d.Call(ctx, r)
		for err == nil && resp.Status == http.StatusTooManyRequests && d.Pause(ctx, resp.RetryAfter()) == nil {
			resp, err = d.Call(ctx, r)
		}
		if err != nil || resp.Refused || resp.Status < http.StatusInternalServerError || faults == repeats || ctx.Err() != nil || d.Pause(ctx, backoff[faults]) != nil {
			return resp, err
		}
	}
}
