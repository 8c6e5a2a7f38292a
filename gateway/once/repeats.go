package once

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/gateway/wire"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Deduplicator implements [filter.Intents]: a resource is made once. A request whose intent is equal to
// another one in flight is its repeat, unless the caller of the other one still waits. The answer
// to a repeat is not judged: an allowed call stays done, even if policies and
// budgets would refuse it later. It is immutable.
type Deduplicator struct {
	// Desk holds the intents of this gateway.
	Desk *Desk
	// Reader and Account read resources that may have been made.
	Reader  *filter.Reader
	Account *upstream.Account
	// Addresses rewrites found resources, as the stage does answers.
	Addresses filter.Addresses
	// Time is how long a request may look for a resource, 0 for not at all.
	Time time.Duration
	// Patience is how long a call may take, and Unresolved how much longer the gateway
	// looks for its resource.
	Patience, Unresolved time.Duration
}

// Enter begins the intent of a call, and answers the repeat of a request with an Idempotency-Key; "" is no key.
func (f *Deduplicator) Enter(ctx context.Context, ex *filter.Exchange, key string) error {
	row, _ := operation.Of(ex.Operation.ID)
	o := &filter.Once{Keyed: key != "", Print: f.fingerprint(ex), Intent: filter.Intent{ID: ulid.Make().String()}}
	o.Wish = f.Desk.Wish(ex.Caller.Org, ex.Caller.Key, filter.Digest(ex.Caller.Key, ex.Operation.ID, o.Print))
	var err error
	if o.Keyed {
		of := filter.Digest(ex.Caller.Key, ex.Operation.ID, key)
		if ex.Path.Nested && row.Verb != operation.VerbCreate { // a legacy request may take several actions
			of = filter.Digest(of, o.Print)
		}
		o.Wish = f.Desk.Keyed(ex.Caller.Org, ex.Caller.Key, of)
		err = f.keyed(ctx, ex, o)
	}
	if err == nil && (ex.Answer == nil || o.Noted) {
		ex.Once = o
	}
	return err
}

// keyed answers the repeat of a request with a key. Without an answer and an error,
// the call may be made: the one before has made nothing.
func (f *Deduplicator) keyed(ctx context.Context, ex *filter.Exchange, o *filter.Once) error {
	seen, err := f.Desk.Try(ctx, &o.Wish, &filter.Intent{}, nil)
	switch {
	case err != nil:
		return noKeys(err)
	case seen.Answer != nil && seen.Answer.Print != o.Print, len(seen.Intents) > 0 && seen.Intents[0].Print != o.Print:
		return problem.KeyReused.New("this Idempotency-Key was used for another request")
	case seen.Answer != nil:
		a := seen.Answer
		header := a.Header.Clone()
		header.Set(filter.HeaderReplayed, "true")
		ex.Reply(&filter.Answer{Status: a.Status, Header: header, Body: a.Body})
		return nil
	case len(seen.Intents) == 0:
		return nil
	}
	i := &seen.Intents[0]
	if !f.gone(ctx, ex, o, i, seen.Now) {
		return underWay("the request with this Idempotency-Key is under way")
	}
	if row, _ := operation.Of(ex.Operation.ID); row.Verb != operation.VerbCreate {
		return f.Desk.End(ctx, &o.Wish, i, &filter.End{Unlike: true}) // it makes nothing that there would be twice
	}
	if over, err := f.settle(ctx, ex, o, i, seen.Now); over || err != nil || ex.Answer != nil {
		return err
	}
	return underWay("it is not known yet what became of the request with this Idempotency-Key")
}

func noKeys(err error) error {
	return problem.IdempotencyUnavailable.New("it cannot be told at the moment whether this Idempotency-Key was used before").
		With("Retry-After", "1").Because(err)
}

func underWay(text string) error { return problem.InProgress.New(text).With("Retry-After", "2") }

// prepare fills in the intent of a call that passed the policy check.
func (f *Deduplicator) prepare(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Once
	ex.Hold()
	row, _ := operation.Of(ex.Operation.ID)
	o.Intent.Print = o.Print
	if row.Verb == operation.VerbCreate {
		after, _ := ex.Judged.Input.Resource.After.(map[string]any)
		o.Intent.Name, _ = after["name"].(string)
		o.Intent.Shape = spend.Describe(row.Kind, after)
	}
	if err := ctx.Err(); err != nil && !o.Keyed {
		return err // the request's time is over
	}
	if o.Keyed || ex.Path.Nested {
		o.Intent.Known = f.known(ctx, ex, row.Kind)
	}
	o.Wish.Like = f.Desk.Like(ex.Caller.Org, looks(row.Kind, o.Intent.Name, o.Intent.Shape))
	return nil
}

// looks names the features that identify a resource.
func looks(kind operation.Kind, name, shape string) string {
	return filter.Digest(string(kind), name, strings.ToLower(shape))
}

// note notes the intent of a call without a reservation, unless it turns out to be a
// repeat that is answered. Without the store, a call without a key goes on: as without
// a gateway, its repeat may make a second one.
func (f *Deduplicator) note(ctx context.Context, ex *filter.Exchange) error {
	if err := f.prepare(ctx, ex); err != nil {
		return err
	}
	o := ex.Once
	defer f.Desk.Come(ctx, &o.Wish, o.Intent.ID)()
	for {
		seen, err := f.Desk.Try(ctx, &o.Wish, &o.Intent, f.passed(o))
		switch {
		case err != nil:
			ex.Once = nil // the store may have noted it, and not have said so: nothing is made under it
			f.Desk.EndLate(&o.Wish, &o.Intent, &filter.End{Unlike: true})
			switch {
			case o.Keyed:
				return noKeys(err)
			case ctx.Err() != nil:
				return ctx.Err() // the caller has left before anything was sent
			}
			ex.Event.Cause = err
			return nil
		case len(seen.Intents) == 0 && seen.Answer == nil:
			f.begin(ctx, ex, seen.Now, seen.Sent)
			return nil
		}
		if err := f.join(ctx, ex, seen); err != nil || ex.Answer != nil {
			return err
		}
	}
}

// join answers a request that has found other intents of its wish. Without an answer and an
// error, it is no repeat of those.
func (f *Deduplicator) join(ctx context.Context, ex *filter.Exchange, seen filter.Seen) error {
	if ex.Once.Keyed {
		return f.keyed(ctx, ex, ex.Once)
	}
	return f.wait(ctx, ex, seen)
}

// others returns the intents of the wish; none if the store cannot be asked.
func (f *Deduplicator) others(ctx context.Context, ex *filter.Exchange) filter.Seen {
	seen, err := f.Desk.Try(ctx, &ex.Once.Wish, &filter.Intent{}, nil)
	if err != nil {
		return filter.Seen{}
	}
	return seen
}

// MayRepeat reports whether a call without a key that was not noted yet may be the repeat
// of another.
func (f *Deduplicator) MayRepeat(ctx context.Context, ex *filter.Exchange) bool {
	o := ex.Once
	return !o.Keyed && !o.Noted && len(f.others(ctx, ex).Intents) > 0
}

// Reserve notes the intent of a call in one step with its reservation, if it has one. A quote that is refused has noted nothing.
// Of a call for which the ledger fails, the intent is given up: the store may have noted it, and its ending is the
// reservation's Unsure.
func (f *Deduplicator) Reserve(ctx context.Context, ex *filter.Exchange) (q spend.Quote, repeated bool, err error) {
	o, held := ex.Once, ex.Money.Held
	if held == nil {
		err = f.note(ctx, ex)
		return q, ex.Answer != nil, err
	}
	if o.Intent.Print == "" {
		if err := f.prepare(ctx, ex); err != nil {
			return q, true, err
		}
	}
	defer f.Desk.Come(ctx, &o.Wish, o.Intent.ID)()
	for {
		r := held.Reservation
		r.Intent = f.Desk.Note(&o.Wish, &o.Intent, f.passed(o))
		q, err = ex.Ports.Ledger.Reserve(ctx, ex.Caller.Org, ex.Tenant.Budgets, r)
		switch {
		case err == nil:
			if q.Refused == nil {
				f.begin(ctx, ex, q.Now, q.Sent)
			}
			return q, false, nil
		case !errors.Is(err, spend.ErrRepeated):
			ex.Once = nil
			held.Unsure = f.Desk.Ending(&o.Wish, &o.Intent, &filter.End{Unlike: true})
			return q, false, err
		}
		seen, err := f.Desk.Try(ctx, &o.Wish, &filter.Intent{}, nil)
		if err != nil {
			return q, true, unknown(ex)
		}
		if err := f.join(ctx, ex, seen); err != nil || ex.Answer != nil {
			return q, true, err
		}
	}
}

// settleWith writes the settlement of a call together with the end of its intent. The intent of a request with a key
// ends when its answer is kept.
func (f *Deduplicator) settleWith(ctx context.Context, ex *filter.Exchange, s *spend.Settlement) error {
	o := ex.Once
	if !o.Noted || o.Keyed {
		return ex.Settle(ctx, s)
	}
	e := goesOn(ctx, ex)
	s.Intent = f.Desk.Ending(&o.Wish, &o.Intent, e)
	err := ex.Settle(ctx, s)
	if err == nil {
		f.Desk.Ended(&o.Intent, e)
	} else {
		f.Desk.EndLate(&o.Wish, &o.Intent, e)
	}
	return err
}

// begin takes the intent in hand, which was noted at a time by the store's clock, and
// not before another by this gateway's.
func (f *Deduplicator) begin(ctx context.Context, ex *filter.Exchange, noted, at time.Time) {
	o := ex.Once
	o.Noted, o.Intent.Began = true, noted
	o.Intent = o.Intent.Stored()
	f.Desk.Begin(ctx, &o.Wish, o.Intent, at)
}

// errHeldUp is why a call is not made.
var errHeldUp = errors.New("the gateway stood still, and may have been taken for dead")

// End ends the intent of a call on the way out, in one step with its settlement; nil is for a call that has none or whose settlement was
// written. A call refused before it was noted may be a repeat: an allowed call stays done.
func (f *Deduplicator) End(ctx context.Context, ex *filter.Exchange, s *spend.Settlement) error {
	o := ex.Once
	if s != nil {
		return f.settleWith(ctx, ex, s)
	}
	if refused := ex.Event.Refusal; !o.Noted && !o.Keyed && refused != "" && refused != string(problem.OutcomeUnknown) {
		if seen := f.others(ctx, ex); len(seen.Intents) > 0 {
			if err := f.wait(ctx, ex, seen); err != nil {
				return err
			}
		}
	}
	switch {
	case !o.Noted:
	case o.Keyed:
		f.keep(ctx, ex)
	case ex.Money.Held == nil:
		f.end(ctx, ex)
	}
	return nil
}

// keep writes the answer to a request with a key. A call that the gateway refused, or that
// the platform has certainly not begun, is forgotten, so that it can be tried again. So is each
// call of a legacy request that made nothing: the request goes on to its next candidate.
func (f *Deduplicator) keep(ctx context.Context, ex *filter.Exchange) {
	o := ex.Once
	e := goesOn(ctx, ex)
	if settled(ex) && (!ex.Path.Nested || ex.Answer.Status < http.StatusMultipleChoices) {
		if e.Answer = kept(ex.Answer, o.Print); e.Answer != nil {
			e.Next = nil
		} else if e.Next != nil {
			e.Next.Left = true // it is too long: the resource is kept
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.Failed(f.Desk.End(ctx, &o.Wish, &o.Intent, e))
}

// end tells the store how the intent ends: behind the answer, if that is all there is
// to say, and not at all if Deliver is about to.
func (f *Deduplicator) end(ctx context.Context, ex *filter.Exchange) {
	o := ex.Once
	e := goesOn(ctx, ex)
	switch {
	case e.Next == nil:
		f.Desk.EndLate(&o.Wish, &o.Intent, e)
		return
	case !ex.Path.Nested && !e.Next.Left && !e.Next.Open:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.Failed(f.Desk.End(ctx, &o.Wish, &o.Intent, e))
}

// goesOn is how the intent goes on, by how its call has ended and whether its caller
// waits for the answer.
func goesOn(ctx context.Context, ex *filter.Exchange) *filter.End {
	o := ex.Once
	next := o.Intent
	switch o.End {
	case filter.OutcomeUnknown:
		next.Open = true
		return &filter.End{Next: &next}
	case filter.OutcomeMade:
		row, _ := operation.Of(ex.Operation.ID)
		e := &filter.End{Unlike: true}
		if row.Verb == operation.VerbCreate {
			e.Resource = claimOf(row.Kind, o.Intent.Resource)
			next.Left = wire.Left(ctx)
			if next.Left || o.Keyed || ex.AwaitsDelivery() {
				e.Next = &next
			}
		}
		return e
	case filter.OutcomeNone, filter.OutcomeRefused, filter.OutcomeFailed:
	}
	return &filter.End{Unlike: true}
}

// Deliver ends the intent of a call that awaits delivery. If its answer was not delivered, or its caller has left, the
// resource is left to a repeat.
func (f *Deduplicator) Deliver(ctx context.Context, ex *filter.Exchange, d filter.Delivery) {
	o := ex.Once
	if o.End != filter.OutcomeMade || o.Keyed {
		return
	}
	row, _ := operation.Of(ex.Operation.ID)
	e := &filter.End{Unlike: true, Resource: claimOf(row.Kind, o.Intent.Resource)}
	if d == filter.Undelivered || wire.Left(ctx) {
		next := o.Intent
		next.Left, e.Next = true, &next
	}
	f.Desk.EndLate(&o.Wish, &o.Intent, e)
}

// settled reports whether the platform has decided about a call: an answer that says
// to come again decides nothing.
func settled(ex *filter.Exchange) bool {
	switch s := ex.Answer.Status; {
	case ex.Adopted != "":
		return true
	case ex.Sent != filter.Answered || !ex.Answer.Relayed || s >= http.StatusInternalServerError:
		return false
	default:
		return s != http.StatusRequestTimeout && s != http.StatusTooEarly && s != http.StatusTooManyRequests
	}
}

// kept is an answer as it is kept, nil if it is too long.
func kept(a *filter.Answer, print string) *filter.KnownAnswer {
	if len(a.Body) > filter.MaxAnswer {
		return nil
	}
	h := make(http.Header)
	for _, name := range []string{"Content-Type", filter.HeaderCost, filter.HeaderBudget, filter.HeaderWarning, filter.HeaderMutation} {
		if v := a.Header[name]; v != nil {
			h[name] = v
		}
	}
	return &filter.KnownAnswer{Print: print, Status: a.Status, Header: h, Body: a.Body}
}

// fingerprint is the same for requests of an operation that ask for the same. Fingerprints are in the store, where a short secret
// could be found by trial: those of requests with credentials are keyed with the organisation's platform key. With a new platform
// key, a request with the same Idempotency-Key or the same unknown outcome as before is another request.
func (f *Deduplicator) fingerprint(ex *filter.Exchange) string {
	print := plainFingerprint(ex)
	switch row, _ := operation.Of(ex.Operation.ID); row.Kind { //nolint:exhaustive // bodies of the others have no member for a credential
	case operation.KindSecret, operation.KindRegistry:
		mac := hmac.New(sha256.New, []byte(f.Account.Upstream.Credential(ex.Caller.Org).Reveal()))
		_, _ = io.WriteString(mac, print)
		return hex.EncodeToString(mac.Sum(nil)[:len(print)/2])
	}
	return print
}

func plainFingerprint(ex *filter.Exchange) string {
	if ex.Translation.Wish != "" {
		return filter.Digest(ex.Event.Dialect, ex.Translation.Wish, string(ex.Body.Labels))
	}
	body, err := ex.Encode()
	if err != nil { // of a decoded body
		panic(err)
	}
	path, query := ex.Place()
	return filter.Digest(path, query, string(body), string(ex.Body.Labels))
}
