package translate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// DefaultBudget is the maximum duration of one legacy request. Legacy clients give up after 30 seconds.
const DefaultBudget = 25 * time.Second

// MaxParallel is the maximum number of concurrent v2 calls of one legacy request.
const MaxParallel = 4

// Limits on the warnings of one response: their number, and the length of each in bytes.
const (
	maxWarnings   = 10
	maxWarningLen = 200
)

// ErrBudget is returned by Client.Pause if the wait exceeds the remaining time budget of the request, which has nothing to do with budgets
// of cost.
var ErrBudget = errors.New("the request exceeded its time budget")

// errNoAnswer is the error for a Caller that returned neither a response nor an error.
var errNoAnswer = fmt.Errorf("no response: %w", ErrAmbiguous)

// Client makes the v2 calls of one legacy request. It retries calls that may be retried, enforces the time budget, and
// collects the operations called, the warnings and the last response headers.
//
// A Client implements Caller and is safe for concurrent use.
type Client struct {
	deps     Deps
	call     Caller
	account  string
	deadline time.Time

	mu       sync.Mutex // guards the fields below
	ops      []string
	warnings []string
	lost     []string // fields of the warnings that are about v2
	header   http.Header
	memory   memory
}

// NewClient returns a client for one legacy request. budget is the total time for the request; zero means DefaultBudget.
func NewClient(deps Deps, call Caller, in *Incoming, budget time.Duration) *Client {
	deps = deps.WithDefaults()
	if budget <= 0 {
		budget = DefaultBudget
	}
	now := deps.Now()
	return &Client{deps: deps, call: call, account: in.Account, deadline: now.Add(budget)}
}

// Deps returns the dependencies, with defaults in place of nil.
func (d *Client) Deps() Deps { return d.deps }

// Account returns [Incoming].Account, the account of the request.
func (d *Client) Account() string { return d.account }

// Remaining returns the remaining time budget, negative once it is exceeded.
func (d *Client) Remaining() time.Duration { return d.deadline.Sub(d.deps.Now()) }

// WithBudget returns a context that is cancelled at the end of the time budget.
func (d *Client) WithBudget(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(d.Remaining(), 0))
}

// Call makes one v2 call without retries.
func (d *Client) Call(ctx context.Context, r *Request) (*Response, error) {
	d.note(r.Operation)
	if d.call == nil {
		return nil, errNoAnswer
	}
	resp, err := d.call.Call(ctx, r)
	if err == nil && resp == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, err
	}
	d.deps.Catalog.observe(r.Operation, resp.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.header = resp.Header
	return resp, nil
}

// RetryPolicy determines how often a failed call is retried.
type RetryPolicy int

// Retry policies. Each of them also waits once for the Retry-After of a 429.
const (
	// NoRetry does not retry after a server error, because the call may have been carried out.
	NoRetry RetryPolicy = iota
	// RetryAction retries once after a server error. It is for actions that may safely be sent twice.
	RetryAction
	// RetryChange retries twice, for PATCH and DELETE.
	RetryChange
	// RetryRead retries three times, for GET.
	RetryRead
)

func (r RetryPolicy) times() int {
	switch r {
	case RetryAction:
		return 1
	case RetryChange:
		return 2
	case RetryRead:
		return len(backoff)
	case NoRetry:
	}
	return 0
}

// backoff lists the delays before the retries after a server error.
var backoff = [...]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Send makes a v2 call and retries it within the policy and the time budget. It returns the last response or error.
func (d *Client) Send(ctx context.Context, r *Request, repeat RetryPolicy) (*Response, error) {
	waited := false
	for try := 0; ; {
		resp, err := d.Call(ctx, r)
		var wait time.Duration
		switch {
		case err == nil && resp.Status == http.StatusTooManyRequests && !waited:
			waited, wait = true, resp.RetryAfter()
		case broken(resp, err) && ctx.Err() == nil && try < repeat.times():
			wait = backoff[try]
			try++
		default:
			return resp, err
		}
		if d.Pause(ctx, wait) != nil {
			return resp, err
		}
	}
}

// Pause waits for the given duration. If the time budget is shorter than that, it returns ErrBudget immediately.
func (d *Client) Pause(ctx context.Context, wait time.Duration) error {
	if wait >= d.Remaining() {
		return ErrBudget
	}
	return d.deps.Sleep(ctx, wait)
}

// Each calls f for 0 to n-1, at most MaxParallel at a time, and waits for all calls to return.
func (d *Client) Each(ctx context.Context, n int, f func(ctx context.Context, i int)) {
	var group errgroup.Group
	group.SetLimit(MaxParallel)
	for i := range n {
		group.Go(func() error {
			f(ctx, i)
			return nil
		})
	}
	_ = group.Wait() // f returns no error
}

// WarnLost adds a warning that v2 has no equivalent for a field of the request. The warning becomes printable ASCII of at
// most 200 bytes; at most 10 different warnings are kept.
func (d *Client) WarnLost(field, what string) {
	d.Warn(field, what)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lost) < maxWarnings && !slices.Contains(d.lost, field) {
		d.lost = append(d.lost, field)
	}
}

// WarnUnavailable warns that fields of the response are null because v2 does not provide them. It combines as many fields
// into one warning as fit.
func (d *Client) WarnUnavailable(fields []string) {
	const what = "null because v2 does not provide a value"
	for len(fields) > 0 {
		n, length := 1, len(fields[0])
		for n < len(fields) && length+len(", ")+len(fields[n]) <= maxWarningLen-len(": "+what) {
			length += len(", ") + len(fields[n])
			n++
		}
		d.Warn(strings.Join(fields[:n], ", "), what)
		d.mu.Lock()
		d.lost = append(d.lost, fields[:min(n, max(maxWarnings-len(d.lost), 0))]...)
		d.mu.Unlock()
		fields = fields[n:]
	}
}

// Warn adds a warning about the effect of a policy, a failure or the request. Unlike WarnLost (for fields of the request) and
// WarnUnavailable (for fields of the response), it does not count the field as missing from v2.
func (d *Client) Warn(field, what string) {
	line := printable(field+": "+what, maxWarningLen)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.warnings) < maxWarnings && !slices.Contains(d.warnings, line) {
		d.warnings = append(d.warnings, line)
	}
}

// LostFields returns the fields that v2 has no equivalent for, in order of the warnings.
func (d *Client) LostFields() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lost)
}

// Warnings returns the warnings in the order in which they were added, without duplicates, for a header of the response.
func (d *Client) Warnings() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.warnings)
}

// Operations returns the names of the v2 operations called, in order of first use.
func (d *Client) Operations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

// Header returns the headers of the last response. It is never nil and must not be modified.
func (d *Client) Header() http.Header {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.header == nil {
		return http.Header{}
	}
	return d.header
}

func (d *Client) note(operation string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.ops, operation) {
		d.ops = append(d.ops, operation)
	}
}

// printable makes s fit for a header: it replaces characters outside printable ASCII with "?" and truncates the result to
// limit bytes.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), limit)]
}
