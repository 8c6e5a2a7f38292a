package filter

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Finder looks for what creates have made whose answer was lost.
type Finder struct {
	Reader *Reader
	// Time is how long a request may look, 0 for not at all.
	Time time.Duration
	// Patience is how long a call may take, and Unresolved how much longer it is looked
	// for what it may have made.
	Patience, Unresolved time.Duration
}

// over reports whether what a call may have made is looked for no longer.
func (f *Finder) over(age time.Duration) bool { return age > f.Patience+f.Unresolved }

// bound derives the context of what a request does to find out about a create. That
// of a legacy request ends with its time.
func (f *Finder) bound(ctx context.Context, ex *Exchange) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ex.nested && ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, f.Time)
}

// Find looks once for what a call made, age ago, and makes that the call's own. It is
// what was asked for and was not there before; nil means that there is nothing such.
func (f *Finder) Find(ctx context.Context, ex *Exchange, c *idempotency.Call, age time.Duration) (map[string]any, error) {
	row, _ := operation.Of(ex.Operation.ID)
	if !dated(row.Kind) && c.Known == nil && c.Resource == "" {
		return nil, nil // new ones cannot be told from old ones
	}
	items, err := f.list(ctx, ex, row.Kind)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		switch {
		case c.Resource != "" && it.ID != c.Resource, slices.Contains(c.Known, it.ID), dated(row.Kind) && it.Age < 0:
			continue
		case c.Resource == "" && !it.MadeBy(string(row.Kind), spend.About{Name: c.Name, Print: c.Print}, age):
			continue
		}
		mine, err := ex.Ports.Repeats.Claim(ctx, ex.Caller.Org, claimOf(&it.Found), c.ID)
		if err != nil {
			return nil, err
		}
		if mine {
			return it.Record, nil
		}
	}
	return nil, nil
}

// list lists the resources there are of a kind.
func (f *Finder) list(ctx context.Context, ex *Exchange, kind operation.Kind) ([]Listed, error) {
	ex.slot.Rest()
	defer ex.slot.Work()
	return f.Reader.resources(ctx, ex.Caller.Org, func(k operation.Kind) bool { return k == kind })
}

// dated reports whether resources of a kind say when they were made.
func dated(kind operation.Kind) bool {
	return kind == operation.KindPod || kind == operation.KindCluster || kind == operation.KindEndpoint
}

// noun is what people call a resource of a kind.
func noun(kind operation.Kind) string {
	if kind == operation.KindRegistry {
		return "container registry auth"
	}
	return strings.ReplaceAll(string(kind), "_", " ")
}

// claimOf names a resource for claims.
func claimOf(f *spend.Found) string { return string(f.Kind) + "/" + f.ID }

// ClaimFor makes a resource that of a hold's call; see [spend.Reconciler].
func ClaimFor(r Repeats) func(ctx context.Context, org string, f *spend.Found, hold string) (bool, error) {
	return func(ctx context.Context, org string, f *spend.Found, hold string) (bool, error) {
		return r.Claim(ctx, org, claimOf(f), hold)
	}
}

// pause is the wait between two looks.
type pause struct {
	length time.Duration
	// last says that the next look is the last.
	last bool
}

const (
	// firstPause comes before the first look; each one after that is twice as long.
	firstPause = 500 * time.Millisecond
	// lastLook is the time that is left for the last.
	lastLook = 500 * time.Millisecond
)

func newPause(ctx context.Context) *pause {
	end, ok := ctx.Deadline()
	return &pause{firstPause, ctx.Err() != nil || ok && time.Until(end) <= lastLook}
}

// next waits.
func (p *pause) next(ctx context.Context) {
	wait := p.length
	if end, ok := ctx.Deadline(); ok {
		if left := time.Until(end) - lastLook; left <= wait {
			wait, p.last = max(0, left), true
		}
	}
	p.length *= 2
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		p.last = true
	case <-timer.C:
	}
}

// Once notes a call that must not be made twice before it is made. It stands behind
// the judge, which knows what the call leads to, and before what is reserved for it.
type Once struct {
	Finder Finder
}

// Name implements Filter.
func (*Once) Name() string { return "once" }

// Request refuses with 409 a call whose repeat has come first.
func (f *Once) Request(ctx context.Context, ex *Exchange) error {
	o := ex.once
	if o == nil {
		return nil
	}
	ex.Out.Whole = true
	row, _ := operation.Of(ex.Operation.ID)
	o.call = idempotency.Call{ID: ulid.Make().String()}
	if row.Verb == operation.VerbCreate {
		after, _ := ex.Input.Resource.After.(map[string]any)
		o.call.Name, _ = after["name"].(string)
		o.call.Print = spend.Print(row.Kind, after)
	}
	if err := ctx.Err(); err != nil && !o.keyed {
		return err // the request's time is over
	}
	if o.keyed || ex.nested {
		o.call.Known = f.known(ctx, ex, row.Kind)
	}
	if !o.asked {
		return nil // it begins when the ledger has been asked
	}
	o.begin(ctx, ex, o.entry.Now)
	if !o.keyed {
		return nil
	}
	next := &idempotency.Record{Print: o.print, Calls: []idempotency.Call{o.call}}
	e, first, err := ex.Ports.Repeats.Swap(ctx, ex.Caller.Org, o.id, o.entry, next, idempotency.Keep)
	switch {
	case err != nil:
		o.begun = false
		return problem.RepeatsUnavailable.New("the Idempotency-Key cannot be remembered at the moment").With("Retry-After", "1").Because(err)
	case !first:
		o.begun = false
		return underWay("the request with this Idempotency-Key is under way")
	}
	o.entry = e
	return nil
}

// begin notes that the call is about to be made, by the store's clock unless that is
// not known yet.
func (o *once) begin(ctx context.Context, ex *Exchange, now time.Time) {
	if o.begun, o.since = true, time.Now(); !now.IsZero() {
		o.call.Began = now.UnixMilli()
	}
	if !o.keyed {
		o.watch(ctx, ex)
	}
}

// known lists the resources there are of a kind that do not say when they were made,
// nil if they do or cannot be listed.
func (f *Once) known(ctx context.Context, ex *Exchange, kind operation.Kind) []string {
	if dated(kind) {
		return nil
	}
	items, err := f.Finder.list(ctx, ex, kind)
	if err != nil {
		return nil
	}
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.ID
	}
	return ids
}

// watch notes a create whose caller leaves while it is under way.
func (o *once) watch(ctx context.Context, ex *Exchange) {
	if ex.left == nil {
		ex.left = make(chan struct{})
	}
	left := *o // the exchange goes on beside
	o.stay = context.AfterFunc(ctx, func() {
		defer close(ex.left)
		_, _ = left.save(ctx, ex, func(r *idempotency.Record) bool {
			r.Calls = append(r.Calls, left.call)
			return true
		}) // advisory, as all that is remembered of a request without a key
	})
}

// left reports whether the caller has left and that was noted. It ends the watch.
func (o *once) left(ex *Exchange) bool {
	if o.stay == nil || o.stay() {
		return false
	}
	<-ex.left
	return true
}

// Lookup finds out what became of a create whose answer was lost: it looks for the
// resource at growing distances while the request's time lasts. What it finds is the
// call's answer. It sees the platform's answers as they came.
type Lookup struct {
	Finder Finder
	Now    func() time.Time
}

// Name implements Filter.
func (*Lookup) Name() string { return "lookup" }

// Request implements Filter; there is nothing to do on the way in.
func (*Lookup) Request(context.Context, *Exchange) error { return nil }

// Response replaces an answer that says nothing of a create: by what was made, or by
// 504.
func (f *Lookup) Response(ctx context.Context, ex *Exchange) error {
	o := ex.once
	row, _ := operation.Of(ex.Operation.ID)
	if o == nil || !o.begun || row.Verb != operation.VerbCreate {
		return nil
	}
	looks := -1
	switch ex.end() {
	case endNone, endRefused:
		return nil
	case endMade:
		f.made(ctx, ex, o, row.Kind)
		return nil
	case endFailed:
		looks = 1
	case endUnknown:
	}
	found, err := f.await(ctx, ex, o, looks)
	switch {
	case found != nil:
		o.call.Resource, _ = found["id"].(string)
		return ex.adopt(found)
	case err == nil && looks == 1:
		return nil // the platform says that it failed, and nothing is there
	}
	o.unknown = true
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
	return unknown(ex, o)
}

// made notes what a create has made. What the repeat of another call was given
// already, taken for what that had made, is not given to one of this.
func (*Lookup) made(ctx context.Context, ex *Exchange, o *once, kind operation.Kind) {
	id, _ := recordIn(ex.Answer)["id"].(string)
	claim := claimOf(&spend.Found{Kind: kind, ID: id})
	if !o.keyed && ctx.Err() == nil { // nothing of the call is kept: its caller has the answer
		if ex.held != nil {
			ex.held.claim = claim
		} else {
			ex.Ports.Repeats.Note(ex.Caller.Org, claim, o.call.ID)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	mine, err := ex.Ports.Repeats.Claim(ctx, ex.Caller.Org, claim, o.call.ID)
	if mine || err != nil {
		o.call.Resource = id
	}
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err // a twin might be taken for it
	}
}

// await looks for what a create has made, as often as looks says, or while the
// request's time lasts.
func (f *Lookup) await(ctx context.Context, ex *Exchange, o *once, looks int) (found map[string]any, err error) {
	if f.Finder.Time == 0 && !ex.nested {
		return nil, nil
	}
	ctx, cancel := f.Finder.bound(ctx, ex)
	defer cancel()
	ex.slot.Rest()
	defer ex.slot.Work()
	for wait := newPause(ctx); looks != 0; looks-- {
		wait.next(ctx)
		found, err = f.Finder.Find(ctx, ex, &o.call, f.Now().Sub(ex.In.Received))
		if found != nil || wait.last {
			break
		}
	}
	return found, err
}

// end is what the platform's answer says of a create.
type end uint8

const (
	// endNone means that the platform has seen nothing of it.
	endNone end = iota
	// endMade and endRefused mean that it has made the resource, or refused to.
	endMade
	endRefused
	// endFailed means that it says it failed, by a problem document.
	endFailed
	// endUnknown is everything else.
	endUnknown
)

// end reads the platform's answer to a create, before any stage has rewritten it.
func (ex *Exchange) end() end {
	switch ex.Sent {
	case NotSent:
		return endNone
	case SentOut:
		return endUnknown
	case Answered:
	}
	status := ex.Answer.Status
	switch id, _ := recordIn(ex.Answer)["id"].(string); {
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return endRefused
	case status >= http.StatusOK && status < http.StatusMultipleChoices && id != "":
		return endMade
	case status == http.StatusInternalServerError || status == http.StatusServiceUnavailable:
		media, _, _ := mime.ParseMediaType(ex.Answer.Header.Get("Content-Type"))
		if media == problem.ContentType && recordIn(ex.Answer) != nil {
			return endFailed
		}
	}
	return endUnknown
}

// adopt makes a resource that was found the answer to its create.
func (ex *Exchange) adopt(found map[string]any) error {
	body, err := strictjson.Append(nil, found)
	if err != nil {
		return fmt.Errorf("encode what was found: %w", err)
	}
	ex.Adopted, _ = found["id"].(string)
	ex.Answer = &Answer{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Relayed: true}
	ex.Faults = nil
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = "", "", "", ""
	return nil
}
