package idempotency

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
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Deduplicator implements [filter.Intents]: a resource is made once. A request whose intent is equal to
// another one in flight is its repeat, unless the caller of the other one still waits. The answer
// to a repeat is not judged: an allowed call stays done, even if policies and
// budgets would refuse it later. It is immutable.
type Deduplicator struct {
	// Tracker holds the intents of this gateway.
	Tracker *Tracker
	// Reader and Account read resources that may have been made.
	Reader  *filter.Reader
	Account *upstream.Account
	// Addresses rewrites found resources, as the stage does answers.
	Addresses filter.RewriteAddresses
	// LookupTimeout is how long a request may look for a resource, 0 for not at all.
	LookupTimeout time.Duration
	// CallTimeout is how long a call may take, and Unresolved how much longer the gateway
	// looks for its resource.
	CallTimeout, Unresolved time.Duration
}

// Enter begins the intent of a call, and answers the repeat of a request with an Idempotency-Key; "" is no key.
func (f *Deduplicator) Enter(ctx context.Context, ex *filter.Exchange, key string) error {
	row, _ := operation.Of(ex.Operation.ID)
	o := &filter.IdempotencyState{HasKey: key != "", Fingerprint: f.fingerprint(ex), Intent: filter.Intent{ID: ulid.Make().String()}}
	o.Keys = f.Tracker.Keys(ex.Caller.Org, ex.Caller.Key, filter.Digest(ex.Caller.Key, ex.Operation.ID, o.Fingerprint))
	var err error
	if o.HasKey {
		of := filter.Digest(ex.Caller.Key, ex.Operation.ID, key)
		if ex.Progress.Nested && row.Verb != operation.VerbCreate { // a legacy request may take several actions
			of = filter.Digest(of, o.Fingerprint)
		}
		o.Keys = f.Tracker.KeysFor(ex.Caller.Org, ex.Caller.Key, of)
		err = f.answerKeyed(ctx, ex, o)
	}
	if err == nil && (ex.Response == nil || o.Recorded) {
		ex.Idempotency = o
	}
	return err
}

// answerKeyed answers the repeat of a request with a key. Without an answer and an error,
// the call may be made: the one before has made nothing.
func (f *Deduplicator) answerKeyed(ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState) error {
	seen, err := f.Tracker.TryRecord(ctx, &o.Keys, &filter.Intent{}, nil)
	switch {
	case err != nil:
		return keysUnavailable(err)
	case seen.Response != nil && seen.Response.Fingerprint != o.Fingerprint, len(seen.Intents) > 0 && seen.Intents[0].Fingerprint != o.Fingerprint:
		return problem.KeyReused.New("this Idempotency-Key was used for another request")
	case seen.Response != nil:
		a := seen.Response
		header := a.Header.Clone()
		header.Set(filter.HeaderReplayed, "true")
		ex.Reply(&filter.Response{Status: a.Status, Header: header, Body: a.Body})
		return nil
	case len(seen.Intents) == 0:
		return nil
	}
	i := &seen.Intents[0]
	if !f.callerGone(ctx, ex, o, i, seen.Now) {
		return inProgress("the request with this Idempotency-Key is under way")
	}
	if row, _ := operation.Of(ex.Operation.ID); row.Verb != operation.VerbCreate {
		return f.Tracker.End(ctx, &o.Keys, i, &filter.IntentUpdate{Unindex: true}) // it makes nothing that there would be twice
	}
	if over, err := f.resolve(ctx, ex, o, i, seen.Now); over || err != nil || ex.Response != nil {
		return err
	}
	return inProgress("it is not known yet what became of the request with this Idempotency-Key")
}

func keysUnavailable(err error) error {
	return problem.IdempotencyUnavailable.New("it cannot be told at the moment whether this Idempotency-Key was used before").
		With("Retry-After", "1").Because(err)
}

func inProgress(text string) error { return problem.InProgress.New(text).With("Retry-After", "2") }

// prepare fills in the intent of a call that passed the policy check.
func (f *Deduplicator) prepare(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Idempotency
	ex.BufferResponse()
	row, _ := operation.Of(ex.Operation.ID)
	o.Intent.Fingerprint = o.Fingerprint
	if row.Verb == operation.VerbCreate {
		after, _ := ex.Evaluation.Input.Resource.After.(map[string]any)
		o.Intent.Name, _ = after["name"].(string)
		o.Intent.Shape = ledger.Describe(row.Kind, after)
	}
	if err := ctx.Err(); err != nil && !o.HasKey {
		return err // the request's time is over
	}
	if o.HasKey || ex.Progress.Nested {
		o.Intent.Preexisting = f.existing(ctx, ex, row.Kind)
	}
	o.Keys.Lookalikes = f.Tracker.LookalikeKey(ex.Caller.Org, lookalikeDigest(row.Kind, o.Intent.Name, o.Intent.Shape))
	return nil
}

// lookalikeDigest names the features that identify a resource.
func lookalikeDigest(kind operation.Kind, name, shape string) string {
	return filter.Digest(string(kind), name, strings.ToLower(shape))
}

// record notes the intent of a call without a reservation, unless it turns out to be a
// repeat that is answered. Without the store, a call without a key goes on: as without
// a gateway, its repeat may make a second one.
func (f *Deduplicator) record(ctx context.Context, ex *filter.Exchange) error {
	if err := f.prepare(ctx, ex); err != nil {
		return err
	}
	o := ex.Idempotency
	defer f.Tracker.Enter(ctx, &o.Keys, o.Intent.ID)()
	for {
		seen, err := f.Tracker.TryRecord(ctx, &o.Keys, &o.Intent, f.separate(o))
		switch {
		case err != nil:
			ex.Idempotency = nil // the store may have noted it, and not have said so: nothing is made under it
			f.Tracker.EndAsync(&o.Keys, &o.Intent, &filter.IntentUpdate{Unindex: true})
			switch {
			case o.HasKey:
				return keysUnavailable(err)
			case ctx.Err() != nil:
				return ctx.Err() // the caller has left before anything was sent
			}
			ex.Event.Cause = err
			return nil
		case len(seen.Intents) == 0 && seen.Response == nil:
			f.begin(ctx, ex, seen.Now, seen.QueriedAt)
			return nil
		}
		if err := f.join(ctx, ex, seen); err != nil || ex.Response != nil {
			return err
		}
	}
}

// join answers a request that has found other intents of its wish. Without an answer and an
// error, it is no repeat of those.
func (f *Deduplicator) join(ctx context.Context, ex *filter.Exchange, seen filter.Pending) error {
	if ex.Idempotency.HasKey {
		return f.answerKeyed(ctx, ex, ex.Idempotency)
	}
	return f.wait(ctx, ex, seen)
}

// others returns the intents of the wish; none if the store cannot be asked.
func (f *Deduplicator) others(ctx context.Context, ex *filter.Exchange) filter.Pending {
	seen, err := f.Tracker.TryRecord(ctx, &ex.Idempotency.Keys, &filter.Intent{}, nil)
	if err != nil {
		return filter.Pending{}
	}
	return seen
}

// MayRepeat reports whether a call without a key that was not noted yet may be the repeat
// of another.
func (f *Deduplicator) MayRepeat(ctx context.Context, ex *filter.Exchange) bool {
	o := ex.Idempotency
	return !o.HasKey && !o.Recorded && len(f.others(ctx, ex).Intents) > 0
}

// Reserve notes the intent of a call in one step with its reservation, if it has one. A quote that is refused has noted nothing.
// Of a call for which the ledger fails, the intent is given up: the store may have noted it, and its ending is the
// reservation's Unsure.
func (f *Deduplicator) Reserve(ctx context.Context, ex *filter.Exchange) (q ledger.Quote, repeated bool, err error) {
	o, held := ex.Idempotency, ex.Cost.Reservation
	if held == nil {
		err = f.record(ctx, ex)
		return q, ex.Response != nil, err
	}
	if o.Intent.Fingerprint == "" {
		if err := f.prepare(ctx, ex); err != nil {
			return q, true, err
		}
	}
	defer f.Tracker.Enter(ctx, &o.Keys, o.Intent.ID)()
	for {
		r := held.Reservation
		r.Intent = f.Tracker.Note(&o.Keys, &o.Intent, f.separate(o))
		q, err = ex.Ports.Ledger.Reserve(ctx, ex.Caller.Org, ex.Tenant.Budgets, r)
		switch {
		case err == nil:
			if q.Refused == nil {
				f.begin(ctx, ex, q.Now, q.Sent)
			}
			return q, false, nil
		case !errors.Is(err, ledger.ErrRepeated):
			ex.Idempotency = nil
			held.Revocation = f.Tracker.Ending(&o.Keys, &o.Intent, &filter.IntentUpdate{Unindex: true})
			return q, false, err
		}
		seen, err := f.Tracker.TryRecord(ctx, &o.Keys, &filter.Intent{}, nil)
		if err != nil {
			return q, true, outcomeUnknown(ex)
		}
		if err := f.join(ctx, ex, seen); err != nil || ex.Response != nil {
			return q, true, err
		}
	}
}

// settleWith writes the settlement of a call together with the end of its intent. The intent of a request with a key
// ends when its answer is kept.
func (f *Deduplicator) settleWith(ctx context.Context, ex *filter.Exchange, s *ledger.Settlement) error {
	o := ex.Idempotency
	if !o.Recorded || o.HasKey {
		return ex.Settle(ctx, s)
	}
	e := nextState(ctx, ex)
	s.Intent = f.Tracker.Ending(&o.Keys, &o.Intent, e)
	err := ex.Settle(ctx, s)
	if err == nil {
		f.Tracker.MarkEnded(&o.Intent, e)
	} else {
		f.Tracker.EndAsync(&o.Keys, &o.Intent, e)
	}
	return err
}

// begin takes the intent in hand, which was noted at a time by the store's clock, and
// not before another by this gateway's.
func (f *Deduplicator) begin(ctx context.Context, ex *filter.Exchange, noted, at time.Time) {
	o := ex.Idempotency
	o.Recorded, o.Intent.Began = true, noted
	o.Intent = o.Intent.Restored()
	f.Tracker.Track(ctx, &o.Keys, o.Intent, at)
}

// errPaused is why a call is not made.
var errPaused = errors.New("the gateway stood still, and may have been taken for dead")

// End ends the intent of a call on the way out, in one step with its settlement; nil is for a call that has none or whose settlement was
// written. A call refused before it was noted may be a repeat: an allowed call stays done.
func (f *Deduplicator) End(ctx context.Context, ex *filter.Exchange, s *ledger.Settlement) error {
	o := ex.Idempotency
	if s != nil {
		return f.settleWith(ctx, ex, s)
	}
	if refused := ex.Event.Refusal; !o.Recorded && !o.HasKey && refused != "" && refused != string(problem.OutcomeUnknown) {
		if seen := f.others(ctx, ex); len(seen.Intents) > 0 {
			if err := f.wait(ctx, ex, seen); err != nil {
				return err
			}
		}
	}
	switch {
	case !o.Recorded:
	case o.HasKey:
		f.storeResponse(ctx, ex)
	case ex.Cost.Reservation == nil:
		f.end(ctx, ex)
	}
	return nil
}

// storeResponse writes the answer to a request with a key. A call that the gateway refused, or that
// the platform has certainly not begun, is forgotten, so that it can be tried again. So is each
// call of a legacy request that made nothing: the request goes on to its next candidate.
func (f *Deduplicator) storeResponse(ctx context.Context, ex *filter.Exchange) {
	o := ex.Idempotency
	e := nextState(ctx, ex)
	if decided(ex) && (!ex.Progress.Nested || ex.Response.Status < http.StatusMultipleChoices) {
		if e.Response = storedResponse(ex.Response, o.Fingerprint); e.Response != nil {
			e.Next = nil
		} else if e.Next != nil {
			e.Next.Abandoned = true // it is too long: the resource is kept
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.RecordFailure(f.Tracker.End(ctx, &o.Keys, &o.Intent, e))
}

// queuedEnd tells the store how the intent ends: behind the answer, if that is all there is
// to say, and not at all if Deliver is about to.
func (f *Deduplicator) end(ctx context.Context, ex *filter.Exchange) {
	o := ex.Idempotency
	e := nextState(ctx, ex)
	switch {
	case e.Next == nil:
		f.Tracker.EndAsync(&o.Keys, &o.Intent, e)
		return
	case !ex.Progress.Nested && !e.Next.Abandoned && !e.Next.Unresolved:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.RecordFailure(f.Tracker.End(ctx, &o.Keys, &o.Intent, e))
}

// nextState is how the intent goes on, by how its call has ended and whether its caller
// waits for the answer.
func nextState(ctx context.Context, ex *filter.Exchange) *filter.IntentUpdate {
	o := ex.Idempotency
	next := o.Intent
	switch o.Outcome {
	case filter.OutcomeUnknown:
		next.Unresolved = true
		return &filter.IntentUpdate{Next: &next}
	case filter.OutcomeCreated:
		row, _ := operation.Of(ex.Operation.ID)
		e := &filter.IntentUpdate{Unindex: true}
		if row.Verb == operation.VerbCreate {
			e.Resource = claimName(row.Kind, o.Intent.Resource)
			next.Abandoned = wire.ClientGone(ctx)
			if next.Abandoned || o.HasKey || ex.AwaitsDelivery() {
				e.Next = &next
			}
		}
		return e
	case filter.OutcomeNotSent, filter.OutcomeRefused, filter.OutcomeFailed:
	}
	return &filter.IntentUpdate{Unindex: true}
}

// Deliver ends the intent of a call that awaits delivery. If its answer was not delivered, or its caller has left, the
// resource is left to a repeat.
func (f *Deduplicator) Deliver(ctx context.Context, ex *filter.Exchange, d filter.Delivery) {
	o := ex.Idempotency
	if o.Outcome != filter.OutcomeCreated || o.HasKey {
		return
	}
	row, _ := operation.Of(ex.Operation.ID)
	e := &filter.IntentUpdate{Unindex: true, Resource: claimName(row.Kind, o.Intent.Resource)}
	if d == filter.Undelivered || wire.ClientGone(ctx) {
		next := o.Intent
		next.Abandoned, e.Next = true, &next
	}
	f.Tracker.EndAsync(&o.Keys, &o.Intent, e)
}

// decided reports whether the platform has decided about a call: an answer that says
// to come again decides nothing.
func decided(ex *filter.Exchange) bool {
	switch s := ex.Response.Status; {
	case ex.Adopted != "":
		return true
	case ex.Sent != filter.Answered || !ex.Response.Relayed || s >= http.StatusInternalServerError:
		return false
	default:
		return s != http.StatusRequestTimeout && s != http.StatusTooEarly && s != http.StatusTooManyRequests
	}
}

// storedResponse is an answer as it is kept, nil if it is too long.
func storedResponse(a *filter.Response, print string) *filter.StoredResponse {
	if len(a.Body) > filter.MaxStoredBody {
		return nil
	}
	h := make(http.Header)
	for _, name := range []string{"Content-Type", filter.HeaderCost, filter.HeaderBudget, filter.HeaderWarning, filter.HeaderMutation} {
		if v := a.Header[name]; v != nil {
			h[name] = v
		}
	}
	return &filter.StoredResponse{Fingerprint: print, Status: a.Status, Header: h, Body: a.Body}
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
	if ex.Translation.Fingerprint != "" {
		return filter.Digest(ex.Event.Dialect, ex.Translation.Fingerprint, string(ex.Body.Labels))
	}
	body, err := ex.Encode()
	if err != nil { // endedIntents a decoded body
		panic(err)
	}
	path, query := ex.PathAndQuery()
	return filter.Digest(path, query, string(body), string(ex.Body.Labels))
}
