package translate

import (
	"cmp"
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

// Limits on the warnings of one response: maxWarnings is their number, maxWarningLen the length of each in bytes.
const (
	maxWarnings   = 10
	maxWarningLen = 200
)

// ErrBudget is returned by Client.Pause if the wait exceeds the remaining time budget of the request. A time budget is unrelated to the
// budgets that limit cost.
var ErrBudget = errors.New("the request exceeded its time budget")

// errNoAnswer is returned if the Client has no Caller.
var errNoAnswer = fmt.Errorf("no response: %w", ErrAmbiguous)

// Client makes the v2 calls of one legacy request. It retries calls that may be retried, enforces the time budget, and
// collects the operations called, the warnings and the last response headers.
//
// A Client implements Caller and is safe for concurrent use.
type Client struct {
	deps     Deps
	call     Caller
	account  string
	caller   string // [Incoming].Caller
	deadline time.Time

	mu       sync.Mutex // guards the fields below
	ops      []string
	warnings []string
	lost     []string // fields of the warnings that are about v2
	header   http.Header
	memory   memory
}

// NewClient returns a client for one legacy request. budget is the maximum duration of the request; zero means DefaultBudget.
func NewClient(deps Deps, call Caller, in *Incoming, budget time.Duration) *Client {
	deps = deps.WithDefaults()
	if budget <= 0 {
		budget = DefaultBudget
	}
	now := deps.Now()
	return &Client{deps: deps, call: call, account: in.Account, caller: in.Caller, deadline: now.Add(budget)}
}

// Deps returns the dependencies. Defaults replace nil fields.
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
	if err != nil {
		return nil, err
	}
	d.deps.Catalog.observe(r.Operation, resp.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.header = resp.Header
	return resp, nil
}

// RetryPolicy is the number of retries after server errors.
type RetryPolicy int

// Retry policies. After a 429, each of them waits for Retry-After and retries once.
const (
	// NoRetry does not retry after a server error, because the platform may have carried out the call.
	NoRetry RetryPolicy = 0
	// RetryAction retries once after a server error. It is for actions that are safe to repeat.
	RetryAction RetryPolicy = 1
	// RetryChange retries twice after a server error. It is for PATCH and DELETE.
	RetryChange RetryPolicy = 2
	// RetryRead retries three times after a server error. It is for GET.
	RetryRead RetryPolicy = 3
)

// backoff lists the delays before the retries after a server error.
var backoff = [...]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Send makes a v2 call. It retries the call as far as the policy and the time budget allow, and returns the last response or error.
func (d *Client) Send(ctx context.Context, r *Request, repeat RetryPolicy) (*Response, error) {
	waited := false
	for try := 0; ; {
		resp, err := d.Call(ctx, r)
		var wait time.Duration
		switch {
		case err == nil && resp.Status == http.StatusTooManyRequests && !waited:
			waited, wait = true, resp.RetryAfter()
		case broken(resp, err) && ctx.Err() == nil && try < int(repeat):
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

// Pause waits for the given duration. If less than that is left of the time budget, it returns ErrBudget immediately.
func (d *Client) Pause(ctx context.Context, wait time.Duration) error {
	if wait >= d.Remaining() {
		return ErrBudget
	}
	return d.deps.Sleep(ctx, wait)
}

// Each calls f with the indexes 0 to n-1, at most MaxParallel at a time, and waits for all calls to return.
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

// WarnLost adds a warning about a field of the request without an equivalent in v2. The warning is reduced to printable ASCII of at most
// 200 bytes. At most 10 different warnings are kept.
func (d *Client) WarnLost(field, what string) {
	d.Warn(field, what)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lost) < maxWarnings && !slices.Contains(d.lost, field) {
		d.lost = append(d.lost, field)
	}
}

// WarnUnavailable adds warnings that the given fields of the response are null because v2 does not provide their values. Each warning lists
// as many fields as its maximum length permits.
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

// Warn adds a warning about a field of the request or the response. Unlike WarnLost and WarnUnavailable, it does not count the field as
// missing from v2.
func (d *Client) Warn(field, what string) {
	line := printable(field+": "+what, maxWarningLen)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.warnings) < maxWarnings && !slices.Contains(d.warnings, line) {
		d.warnings = append(d.warnings, line)
	}
}

// Report describes the v2 calls in out: it sets V2, Warnings and LostFields, and adds headers with the operations, the warnings, and the
// rate limits of the last response. If no call was made, the header with the operations contains replacement, unless it is "".
func (d *Client) Report(out *Outgoing, replacement string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out.V2, out.Warnings, out.LostFields = slices.Clone(d.ops), slices.Clone(d.warnings), slices.Clone(d.lost)
	if used := cmp.Or(strings.Join(d.ops, ", "), replacement); used != "" {
		out.Header.Set("X-Tollgate-V2-Operation", used)
	}
	for _, line := range d.warnings {
		out.Header.Add("X-Legacy-Warning", line)
	}
	for _, name := range [...]string{"RateLimit", "RateLimit-Policy", "X-Request-Id"} {
		if values := d.header.Values(name); len(values) > 0 {
			out.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// Header returns the headers of the last response, or nil. They must not be modified.
func (d *Client) Header() http.Header {
	d.mu.Lock()
	defer d.mu.Unlock()
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
