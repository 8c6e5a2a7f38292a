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

// DefaultBudget is how long one legacy request may take: its clients give up after 30
// seconds.
const DefaultBudget = 25 * time.Second

// MaxParallel is how many v2 calls of one legacy request run at once.
const MaxParallel = 4

// maxWarnings and maxWarningLen bound one answer's warnings about losses.
const (
	maxWarnings   = 10
	maxWarningLen = 200
)

// ErrBudget is returned by Dialogue.Pause when the wait does not fit into the
// time left.
var ErrBudget = errors.New("the time budget of the request is spent")

// errNoAnswer stands for a Caller that returned neither answer nor error.
var errNoAnswer = fmt.Errorf("no answer: %w", ErrAmbiguous)

// Client is the conversation one legacy request has with v2. It passes calls
// on, repeats those that may be repeated, keeps the time budget, and notes the parts of
// the answer: the operations called, the warnings, the last headers.
//
// It implements Caller and may be used from several goroutines at once.
type Client struct {
	deps     Deps
	call     Caller
	account  string
	deadline time.Time

	mu       sync.Mutex // guards the fields below
	ops      []string
	warnings []string
	lost     []string // the fields of those warnings that are about v2
	header   http.Header
	memory   memory
}

// NewClient begins the conversation of one request. budget is the time it may
// take in all; zero means Budget.
func NewClient(deps Deps, call Caller, in *Incoming, budget time.Duration) *Client {
	deps = deps.WithDefaults()
	if budget <= 0 {
		budget = DefaultBudget
	}
	now := deps.Now()
	return &Client{deps: deps, call: call, account: in.Account, deadline: now.Add(budget)}
}

// Deps returns the dependencies, nil ones filled in.
func (d *Client) Deps() Deps { return d.deps }

// Account returns the account the conversation is about.
func (d *Client) Account() string { return d.account }

// Remaining returns the time left, negative when overdrawn.
func (d *Client) Remaining() time.Duration { return d.deadline.Sub(d.deps.Now()) }

// WithBudget derives a context that ends with the budget.
func (d *Client) WithBudget(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(d.Remaining(), 0))
}

// Call performs one v2 call and repeats nothing.
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

// RetryPolicy says how often a call may be sent again.
type RetryPolicy int

// The ways to repeat. All of them wait once for the Retry-After of a 429.
const (
	// NoRetry never repeats after a server fault: the call may have been carried
	// out.
	NoRetry RetryPolicy = iota
	// RetryAction repeats once after a server fault, for actions that are safe to
	// send twice.
	RetryAction
	// RetryChange repeats twice, for PATCH and DELETE.
	RetryChange
	// RetryRead repeats three times, for GET.
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

// backoff lists the waits before the repeats of a call that met a server fault.
var backoff = [...]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Send performs a v2 call and repeats it as far as repeat and the budget allow.
// The last answer or error is returned.
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

// Pause waits, unless the wait does not fit into the budget: then it returns
// ErrBudget at once.
func (d *Client) Pause(ctx context.Context, wait time.Duration) error {
	if wait >= d.Remaining() {
		return ErrBudget
	}
	return d.deps.Sleep(ctx, wait)
}

// Each runs f for 0 to n-1, at most FanOut at a time, and waits for all of
// them.
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

// WarnLost notes that v2 has no place for something of the request. The line becomes
// printable ASCII of at most 200 bytes; at most 10 different ones are kept.
func (d *Client) WarnLost(field, what string) {
	d.Warn(field, what)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lost) < maxWarnings && !slices.Contains(d.lost, field) {
		d.lost = append(d.lost, field)
	}
}

// WarnUnavailable warns that fields of the answer are null because v2 has nothing for them.
// One warning names as many as it has room for.
func (d *Client) WarnUnavailable(fields []string) {
	const what = "unknown to the v2 API, null"
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

// Warn warns as Warn does, but of effects of a policy, a fault or the caller:
// nothing is lost that v2 lacks.
func (d *Client) Warn(field, what string) {
	line := printable(field+": "+what, maxWarningLen)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.warnings) < maxWarnings && !slices.Contains(d.warnings, line) {
		d.warnings = append(d.warnings, line)
	}
}

// LostFields returns the fields that v2 has no place for, in order.
func (d *Client) LostFields() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lost)
}

// Warnings returns the warnings in order.
func (d *Client) Warnings() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.warnings)
}

// Operations returns the v2 operations called, in order of the first call of
// each.
func (d *Client) Operations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

// Header returns the headers of the last answer, never nil. It must not be
// changed.
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

// printable makes a line fit for a header: other bytes than printable ASCII
// become "?".
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), limit)]
}
