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

// Deduplicator implements [filter.Intents]: it ensures that a resource is created only once. If a request equals another request in
// progress and the caller of the other request has disconnected, the request is a repeat. If that caller is still connected, the requests
// are separate: two connected clients with equal bodies want two resources, but a client that disconnects and retries wants one. A repeat
// receives the result of the earlier call without a new evaluation of the policies, even if policies or budgets would refuse the call now.
// A Deduplicator is immutable.
type Deduplicator struct {
	// Tracker tracks the intents of this gateway.
	Tracker *Tracker
	// Reader and Account read resources that may have been created.
	Reader  *filter.Reader
	Account *upstream.Account
	// Addresses rewrites the URLs of found resources.
	Addresses filter.RewriteAddresses
	// LookupTimeout is the maximum duration of the search for the resource of a call whose response was lost. 0 disables the search.
	LookupTimeout time.Duration
	// CallTimeout is the maximum duration of a call, and Unresolved the additional time for finding its resource. After both, a call whose
	// resource has not been found counts as a call that created nothing, and an equal request counts as a new request. Unresolved must equal
	// money.Reserve.Unresolved.
	CallTimeout, Unresolved time.Duration
}

// Enter implements filter.Intents.
func (f *Deduplicator) Enter(ctx context.Context, ex *filter.Exchange, key string) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	o := &filter.IdempotencyState{HasKey: key != "", Fingerprint: f.fingerprint(ex), Intent: filter.Intent{ID: ulid.Make().String()}}
	o.Keys = f.Tracker.Keys(ex.Caller.Org, ex.Caller.Key, filter.Digest(ex.Caller.Key, ex.Operation.ID, o.Fingerprint))
	var err error
	if o.HasKey {
		of := filter.Digest(ex.Caller.Key, ex.Operation.ID, key)
		if ex.Progress.Nested && row.Verb != operation.VerbCreate { // a legacy request may cause several actions
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

// answerKeyed responds to a repeated request with an idempotency key. If it returns nil without setting a response, the call may be sent:
// no earlier call exists, or the earlier call created nothing.
func (f *Deduplicator) answerKeyed(ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState) error {
	seen, err := f.Tracker.TryRecord(ctx, &o.Keys, &filter.Intent{}, nil)
	switch {
	case err != nil:
		return keysUnavailable(err)
	case seen.Response != nil && seen.Response.Fingerprint != o.Fingerprint, len(seen.Intents) > 0 &&
		seen.Intents[0].Fingerprint != o.Fingerprint:
		return problem.KeyReused.New("the Idempotency-Key was already used for a different request")
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
		return inProgress("the request with this Idempotency-Key is still in progress")
	}
	if row, _ := operation.Lookup(ex.Operation.ID); row.Verb != operation.VerbCreate {
		return f.Tracker.End(ctx, &o.Keys, i, &filter.IntentUpdate{Unindex: true}) // other calls create nothing that could exist twice
	}
	if over, err := f.resolve(ctx, ex, o, i, seen.Now); over || err != nil || ex.Response != nil {
		return err
	}
	return inProgress("the outcome of the request with this Idempotency-Key is not known yet")
}

func keysUnavailable(err error) error {
	return problem.IdempotencyUnavailable.New("the Idempotency-Key cannot be checked right now; try again later").
		With("Retry-After", "1").Because(err)
}

func inProgress(text string) error { return problem.InProgress.New(text).With("Retry-After", "2") }

// prepare completes the intent of a call that has passed the policies. It returns 503 if the platform's list of existing resources is
// required and cannot be read.
func (f *Deduplicator) prepare(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Idempotency
	ex.BufferResponse()
	row, _ := operation.Lookup(ex.Operation.ID)
	o.Intent.Fingerprint = o.Fingerprint
	if row.Verb == operation.VerbCreate {
		after, _ := ex.Evaluation.Input.Resource.After.(map[string]any)
		o.Intent.Name, _ = after["name"].(string)
		o.Intent.Shape = ledger.Describe(row.Kind, after)
	}
	if err := ctx.Err(); err != nil && !o.HasKey {
		return err // the deadline of the request has passed
	}
	var err error
	if o.Intent.Preexisting, err = f.existing(ctx, ex, row.Kind); err != nil {
		return err
	}
	o.Keys.Lookalikes = lookalikeKey(row.Kind, o.Intent.Name, o.Intent.Shape)
	return nil
}

// lookalikeKey returns the store key shared by all intents for resources of the same kind, name and shape.
func lookalikeKey(kind operation.Kind, name, shape string) string {
	return "l" + filter.Digest(string(kind), name, strings.ToLower(shape))
}

// record records the intent of a call without a reservation, unless the call is a repeat. If the store is down, a call without an
// idempotency key proceeds, so a repeat may create a second resource, as it would without a gateway.
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
			ex.Idempotency = nil // the store may have recorded the intent without confirming it; it is not used
			f.Tracker.EndAsync(&o.Keys, &o.Intent, &filter.IntentUpdate{Unindex: true})
			switch {
			case o.HasKey:
				return keysUnavailable(err)
			case ctx.Err() != nil:
				return ctx.Err() // the caller disconnected before anything was sent
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

// join handles a request that has found other intents under its keys. If it returns nil without setting a response, the request is not a
// repeat.
func (f *Deduplicator) join(ctx context.Context, ex *filter.Exchange, seen filter.Pending) error {
	if ex.Idempotency.HasKey {
		return f.answerKeyed(ctx, ex, ex.Idempotency)
	}
	return f.wait(ctx, ex, seen)
}

// others returns the intents under the request's keys. It is empty if the store is down.
func (f *Deduplicator) others(ctx context.Context, ex *filter.Exchange) filter.Pending {
	seen, err := f.Tracker.TryRecord(ctx, &ex.Idempotency.Keys, &filter.Intent{}, nil)
	if err != nil {
		return filter.Pending{}
	}
	return seen
}

// MayRepeat reports whether a call without an idempotency key, whose intent is not recorded yet, may be a repeat.
func (f *Deduplicator) MayRepeat(ctx context.Context, ex *filter.Exchange) bool {
	o := ex.Idempotency
	return !o.HasKey && !o.Recorded && len(f.others(ctx, ex).Intents) > 0
}

// Reserve records the intent of a call. If the call has a reservation, Reserve makes the reservation in the same atomic step, and records
// no intent if the ledger refuses the reservation. If the ledger returns an error, the store may nevertheless have recorded the intent. In
// this case, the call proceeds without an intent, and the Revocation of the reservation contains the update that ends the recorded intent.
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

// settleWith writes the settlement of a call together with the end of its intent. For a request with an idempotency key, the intent ends
// later, when the response is stored.
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

// begin tracks the recorded intent. noted is the time when the intent was recorded, by the store's clock. at is a time not after the
// recording, by this gateway's clock.
func (f *Deduplicator) begin(ctx context.Context, ex *filter.Exchange, noted, at time.Time) {
	o := ex.Idempotency
	o.Recorded, o.Intent.Began = true, noted
	o.Intent = o.Intent.Restored()
	f.Tracker.Track(ctx, &o.Keys, o.Intent, at)
}

// End ends the intent of a call, atomically with its settlement if s is not nil. If the call was refused before its intent was recorded,
// but repeats an earlier call that was allowed, End responds with the resource of the earlier call instead of the refusal.
func (f *Deduplicator) End(ctx context.Context, ex *filter.Exchange, s *ledger.Settlement, d filter.Delivery) error {
	o := ex.Idempotency
	switch {
	case s != nil:
		return f.settleWith(ctx, ex, s)
	case d != filter.DeliveryPending:
		f.endDelivered(ctx, ex, d)
		return nil
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

// storeResponse stores the response to a request with an idempotency key. If the gateway refused the call, or the platform certainly has
// not started it, the intent is deleted so that the request can be retried. If a call of a legacy request created nothing, its intent is
// deleted too, because the request may continue with another call.
func (f *Deduplicator) storeResponse(ctx context.Context, ex *filter.Exchange) {
	o := ex.Idempotency
	e := nextState(ctx, ex)
	if decided(ex) && (!ex.Progress.Nested || ex.Response.Status < http.StatusMultipleChoices) {
		if e.Response = storedResponse(ex.Response, o.Fingerprint); e.Response != nil {
			e.Next = nil
		} else if e.Next != nil {
			e.Next.Abandoned = true // too long: only the resource is kept
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.RecordFailure(f.Tracker.End(ctx, &o.Keys, &o.Intent, e))
}

// end writes the new state of an intent. If the intent has ended, the write is asynchronous. If endDelivered will end the intent, end writes
// nothing.
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

// nextState returns the new state of the intent, depending on the outcome of the call and on whether the caller is still connected.
func nextState(ctx context.Context, ex *filter.Exchange) *filter.IntentUpdate {
	o := ex.Idempotency
	next := o.Intent
	switch o.Outcome {
	case filter.OutcomeUnknown:
		next.Unresolved = true
		return &filter.IntentUpdate{Next: &next}
	case filter.OutcomeCreated:
		row, _ := operation.Lookup(ex.Operation.ID)
		e := &filter.IntentUpdate{Unindex: true}
		if row.Verb == operation.VerbCreate {
			e.Resource = claimName(row.Kind, o.Intent.Resource)
			next.Abandoned, e.Next = wire.ClientGone(ctx), &next
		}
		return e
	case filter.OutcomeNotSent, filter.OutcomeRefused, filter.OutcomeFailed:
	}
	return &filter.IntentUpdate{Unindex: true}
}

// endDelivered ends the intent of a call whose response has been sent. If the response did not arrive or the caller has disconnected, the
// intent becomes abandoned, so that a repeat of the request can adopt the resource.
func (f *Deduplicator) endDelivered(ctx context.Context, ex *filter.Exchange, d filter.Delivery) {
	o := ex.Idempotency
	if o.Outcome != filter.OutcomeCreated || o.HasKey {
		return
	}
	row, _ := operation.Lookup(ex.Operation.ID)
	e := &filter.IntentUpdate{Unindex: true, Resource: claimName(row.Kind, o.Intent.Resource)}
	if d == filter.Undelivered || wire.ClientGone(ctx) {
		next := o.Intent
		next.Abandoned, e.Next = true, &next
	}
	f.Tracker.EndAsync(&o.Keys, &o.Intent, e)
}

// decided reports whether the platform has made a final decision about a call. A response that asks for a retry is not final.
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

// storedResponse returns the part of a response that is stored for repeats, or nil if the body is too long.
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

// fingerprint returns the fingerprint of a request; equal requests have equal fingerprints. Fingerprints are stored, and short secrets
// could be guessed from them. Fingerprints of requests with credentials are therefore keyed with the platform key. After a change of the
// platform key, a repeat of such a request is no longer recognised. It is refused with 422 if it has the same idempotency key, and is a new
// request otherwise.
func (f *Deduplicator) fingerprint(ex *filter.Exchange) string {
	print := plainFingerprint(ex)
	switch row, _ := operation.Lookup(ex.Operation.ID); row.Kind { //nolint:exhaustive // bodies of other kinds contain no credentials
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
	if err != nil { // cannot fail: the body was decoded from JSON
		panic(err)
	}
	path, query := ex.PathAndQuery()
	return filter.Digest(path, query, string(body), string(ex.Body.Labels))
}
