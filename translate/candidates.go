package translate

import (
	"context"
	"errors"
	"net/http"
)

// MaxCandidates is the maximum number of candidates that one RunCandidates call tries.
const MaxCandidates = 24

// Candidate is one possible placement of a requested pod.
type Candidate struct {
	// Label identifies the candidate in warnings and attempts, for example "NVIDIA L4".
	Label string
	// Request is the createPod call for this placement.
	Request *Request
}

// Verdict is the result of trying a list of candidates.
type Verdict int

// Possible verdicts.
const (
	// Placed means that a candidate succeeded; Outcome.Response is the success.
	Placed Verdict = iota
	// Stopped means that a retry is useless. Outcome.Response is a refusal that applies to every candidate: status 401, 402, 404, 413, 422, a
	// 429 whose wait exceeds the time budget, or another status below 500. Or it is the last 402 of a spend budget, and no candidate is left.
	Stopped
	// Broken means that the platform failed. Outcome.Response is its 5xx response, or Outcome.Err is set and Outcome.Response is nil.
	Broken
	// Forbidden means that every candidate got a 403; Outcome.Response is the last one.
	Forbidden
	// Shortage means that no capacity is available, that the time budget ran out, or that the list was empty. Outcome.Response is the last
	// response, or nil if there is none.
	Shortage
	// Refused means that the request itself is invalid; Outcome.Response is the last 400. It is unrelated to Response.Refused.
	Refused
	// Unfinished means that the result of an attempt is unknown. Outcome.Err is an UnfinishedError, and Outcome.Response
	// is nil.
	Unfinished
)

// Attempt records the result of one candidate.
type Attempt struct {
	Label  string
	Status int // 0 if no response arrived
	Detail string
	// Skipped reports whether a policy or a spend budget refused the candidate, which does not apply to the other candidates.
	Skipped bool
}

// Outcome is the result of RunCandidates.
type Outcome struct {
	Verdict Verdict
	// Index is the position of the placed candidate, or -1.
	Index    int
	Response *Response
	Err      error
	Attempts []Attempt
}

// RunCandidates tries up to MaxCandidates candidates in order until one succeeds. The response to each attempt determines
// the next step:
//
//	2xx          done
//	400          try the next candidate; stop if the same detail, other than a
//	             shortage, occurs twice in a row
//	403          try the next candidate, which a policy may allow
//	429          wait for Retry-After and retry the candidate
//	402          if from the gateway, try the next candidate, which may fit the budget
//	5xx          if from the platform, retry the candidate after 0.5, 1 and 2 s, then stop
//	unfinished   stop
//	other        stop
//
// After a 402 from the platform, RunCandidates stops, because every candidate costs money. It also stops after a 5xx from the gateway. Each
// attempt passes through the gateway's filter chain, so policies and budgets are checked for each candidate. RunCandidates never returns
// nil.
func RunCandidates(ctx context.Context, d *Client, candidates []Candidate) *Outcome {
	run := &candidateRun{client: d, out: &Outcome{Verdict: Shortage, Index: -1}}
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

// candidateRun is the state of one RunCandidates call.
type candidateRun struct {
	client *Client
	out    *Outcome
	// violation is the detail of the previous response, if its status was 400 and it did not report a shortage.
	violation string
	lastBad   *Response // the last 400
	forbidden int       // number of 403 responses
	over      *Response // the last budget refusal
}

// try runs one candidate and reports whether the run is over.
func (c *candidateRun) try(ctx context.Context, i int, candidate Candidate) (done bool) {
	resp, err := Create(ctx, c.client, candidate.Request)
	attempt := Attempt{Label: candidate.Label}
	if resp != nil {
		attempt.Status, attempt.Detail = resp.Status, resp.Detail()
		attempt.Skipped = resp.Status == http.StatusForbidden || resp.overBudget()
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
	case resp.overBudget():
		c.over = resp
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

// violates records a 400 and reports whether it repeats the previous violation.
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

// overBudget reports whether a spend budget of the gateway refused the call.
func (r *Response) overBudget() bool { return r.Status == http.StatusPaymentRequired && r.Refused }

// conclude sets the verdict after all candidates have failed. A budget refusal takes precedence over a shortage, because a client that
// retries after a shortage would repeat the refused call.
func (c *candidateRun) conclude() {
	switch {
	case c.lastBad != nil && !IsCapacity(c.lastBad.Detail()):
		c.out.Verdict, c.out.Response = Refused, c.lastBad
	case c.over != nil:
		c.out.Verdict, c.out.Response = Stopped, c.over
	case c.forbidden > 0 && c.forbidden == len(c.out.Attempts):
		c.out.Verdict = Forbidden
	case c.lastBad != nil:
		c.out.Response = c.lastBad
	}
}

// Create makes a call that creates a resource. It retries after a 429 and after a 5xx from the platform. Caller.Call returns a 5xx only
// after verifying that no resource was created.
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
		if err != nil || resp.Refused || resp.Status < http.StatusInternalServerError || faults == repeats || ctx.Err() != nil ||
			d.Pause(ctx, backoff[faults]) != nil {
			return resp, err
		}
	}
}
