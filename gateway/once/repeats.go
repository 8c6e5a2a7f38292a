package once

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/once/intent"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// maxIdempotencyKey is the longest key, in bytes.
const maxIdempotencyKey = 255

// Repeats sees to it that a resource is made once. A request whose intent is equal to
// another one under way is its repeat, unless the caller of that still waits. The answer
// to a repeat is not judged: an allowed call stays done, even if policies and
// budgets would refuse it later. The intent itself is noted with its reservation.
type Repeats struct {
	Finder Finder
	// Addresses rewrites found resources, as Addresses does answers.
	Addresses filter.Addresses
}

// stageOnce is the name of the stage.
const stageOnce = "once"

// Name implements Filter.
func (*Repeats) Name() string { return stageOnce }

// Request answers a repeat of a request with a key. It refuses with 400 a key that is
// none, with 422 one that was used for another request, with 409 the repeat of a call
// that is under way, and with 503 a key while the store cannot be asked.
func (f *Repeats) Request(ctx context.Context, ex *filter.Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if !row.Once(ex.Body.Doc) {
		return nil
	}
	key, err := idempotencyKey(ex.In.Header[filter.HeaderIdempotencyKey])
	if err != nil {
		return err
	}
	if key == "" && row.Verb != operation.VerbCreate {
		return nil
	}
	o := &filter.Once{Keyed: key != "", Print: fingerprint(ex)}
	o.Wish = ex.Ports.Intents.Wish(ex.Caller.Org, ex.Caller.Key, filter.Digest(ex.Caller.Key, ex.Operation.ID, o.Print))
	if o.Keyed {
		of := filter.Digest(ex.Caller.Key, ex.Operation.ID, key)
		if ex.Path.Nested && row.Verb != operation.VerbCreate { // a legacy request may take several actions
			of = filter.Digest(of, o.Print)
		}
		o.Wish = ex.Ports.Intents.Keyed(ex.Caller.Org, ex.Caller.Key, of)
		err = f.keyed(ctx, ex, o)
	}
	if err == nil && (ex.Answer == nil || o.Noted) {
		ex.Once = o
	}
	return err
}

// keyed answers the repeat of a request with a key. Without an answer and an error,
// the call may be made: the one before has made nothing.
func (f *Repeats) keyed(ctx context.Context, ex *filter.Exchange, o *filter.Once) error {
	seen, err := ex.Ports.Intents.Try(ctx, &o.Wish, &intent.Intent{}, nil)
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
		return ex.Ports.Intents.End(ctx, &o.Wish, i, &intent.End{Unlike: true}) // it makes nothing that there would be twice
	}
	if over, err := f.settle(ctx, ex, o, i, seen.Now); over || err != nil || ex.Answer != nil {
		return err
	}
	return underWay("it is not known yet what became of the request with this Idempotency-Key")
}

func noKeys(err error) error {
	return problem.RepeatsUnavailable.New("it cannot be told at the moment whether this Idempotency-Key was used before").
		With("Retry-After", "1").Because(err)
}

func underWay(text string) error { return problem.UnderWay.New(text).With("Retry-After", "2") }

// Prepare fills in the intent of a call that passed the judge.
func (f *Repeats) Prepare(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Once
	if o == nil {
		return nil
	}
	ex.Hold()
	row, _ := operation.Of(ex.Operation.ID)
	o.Intent = intent.Intent{ID: ulid.Make().String(), Print: o.Print}
	if row.Verb == operation.VerbCreate {
		after, _ := ex.Judged.Input.Resource.After.(map[string]any)
		o.Intent.Name, _ = after["name"].(string)
		o.Intent.Shape = spend.Print(row.Kind, after)
	}
	if err := ctx.Err(); err != nil && !o.Keyed {
		return err // the request's time is over
	}
	if o.Keyed || ex.Path.Nested {
		o.Intent.Known = f.Finder.known(ctx, ex, row.Kind)
	}
	o.Wish.Like = ex.Ports.Intents.Like(ex.Caller.Org, looks(row.Kind, o.Intent.Name, o.Intent.Shape))
	return nil
}

// looks names the features that identify a resource.
func looks(kind operation.Kind, name, shape string) string {
	return filter.Digest(string(kind), name, strings.ToLower(shape))
}

// Note notes the intent of a call without a reservation, unless it turns out to be a
// repeat that is answered. Without the store, a call without a key goes on: as without
// a gateway, its repeat may make a second one.
func (f *Repeats) Note(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Once
	if o == nil {
		return nil
	}
	defer ex.Ports.Intents.Come(ctx, &o.Wish, o.Intent.ID)()
	for {
		seen, err := ex.Ports.Intents.Try(ctx, &o.Wish, &o.Intent, passed(o, ex.Ports.Intents))
		switch {
		case err != nil:
			ex.Once = nil // the store may have noted it, and not have said so: nothing is made under it
			ex.Ports.Intents.EndLate(&o.Wish, &o.Intent, &intent.End{Unlike: true})
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
func (f *Repeats) join(ctx context.Context, ex *filter.Exchange, seen intent.Seen) error {
	if ex.Once.Keyed {
		return f.keyed(ctx, ex, ex.Once)
	}
	return f.wait(ctx, ex, seen)
}

// others returns the intents of the wish; none if the store cannot be asked.
func others(ctx context.Context, ex *filter.Exchange) intent.Seen {
	seen, err := ex.Ports.Intents.Try(ctx, &ex.Once.Wish, &intent.Intent{}, nil)
	if err != nil {
		return intent.Seen{}
	}
	return seen
}

// Repeats reports whether a call without a key that was not noted yet may be the repeat
// of another.
func (*Repeats) Repeats(ctx context.Context, ex *filter.Exchange) bool {
	o := ex.Once
	return o != nil && !o.Keyed && !o.Noted && len(others(ctx, ex).Intents) > 0
}

// NoteWith has a step write the intent together with something else, again until the
// store has it, or the request is answered as a repeat of another. The step gets no note
// without an intent; a quote that is refused has noted nothing.
func (f *Repeats) NoteWith(ctx context.Context, ex *filter.Exchange, step func(n *spend.Note) (*spend.Quote, error)) error {
	o := ex.Once
	if o == nil {
		_, _ = step(nil) // it keeps its error
		return nil
	}
	defer ex.Ports.Intents.Come(ctx, &o.Wish, o.Intent.ID)()
	for {
		quote, err := step(ex.Ports.Intents.Note(&o.Wish, &o.Intent, passed(o, ex.Ports.Intents)))
		if err == nil && quote.Refused == nil {
			f.begin(ctx, ex, quote.Now, quote.Sent)
		}
		if !errors.Is(err, spend.ErrRepeated) {
			return nil
		}
		seen, err := ex.Ports.Intents.Try(ctx, &o.Wish, &intent.Intent{}, nil)
		if err != nil {
			return unknown(ex)
		}
		if err := f.join(ctx, ex, seen); err != nil || ex.Answer != nil {
			return err
		}
	}
}

// EndWith has the intent end together with something else that is written; the entry is
// nil without an intent. That of a request with a key ends when its answer is kept.
func (*Repeats) EndWith(ctx context.Context, ex *filter.Exchange, write func(e *spend.Ending) error) error {
	o := ex.Once
	if o == nil || !o.Noted || o.Keyed {
		return write(nil)
	}
	e := goesOn(ctx, ex)
	err := write(ex.Ports.Intents.Ending(&o.Wish, &o.Intent, e))
	if err == nil {
		ex.Ports.Intents.Ended(&o.Intent, e)
	} else {
		ex.Ports.Intents.EndLate(&o.Wish, &o.Intent, e)
	}
	return err
}

// begin takes the intent in hand, which was noted at a time by the store's clock, and
// not before another by this gateway's.
func (*Repeats) begin(ctx context.Context, ex *filter.Exchange, noted, at time.Time) {
	o := ex.Once
	o.Noted, o.Intent.Began = true, noted
	o.Intent = o.Intent.Stored()
	ex.Ports.Intents.Begin(ctx, &o.Wish, o.Intent, at)
}

// Drop has the exchange go on without its intent, which the store may have noted
// although it did not say so. It returns the ending of that, nil without an intent.
func (*Repeats) Drop(ex *filter.Exchange) *spend.Ending {
	o := ex.Once
	if ex.Once = nil; o == nil {
		return nil
	}
	return ex.Ports.Intents.Ending(&o.Wish, &o.Intent, &intent.End{Unlike: true})
}

// errHeldUp is why a call is not made.
var errHeldUp = errors.New("the gateway stood still, and may have been taken for dead")

// Response has the intent end. A call refused before it was noted may be a repeat:
// an allowed call stays done.
func (f *Repeats) Response(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Once
	if o == nil {
		return nil
	}
	if refused := ex.Event.Refusal; !o.Noted && !o.Keyed && refused != "" && refused != string(problem.OutcomeUnknown) {
		if seen := others(ctx, ex); len(seen.Intents) > 0 {
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
func (*Repeats) keep(ctx context.Context, ex *filter.Exchange) {
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
	ex.Failed(ex.Ports.Intents.End(ctx, &o.Wish, &o.Intent, e))
}

// end tells the store how the intent ends: behind the answer, if that is all there is
// to say.
func (*Repeats) end(ctx context.Context, ex *filter.Exchange) {
	o := ex.Once
	e := goesOn(ctx, ex)
	if e.Next == nil {
		ex.Ports.Intents.EndLate(&o.Wish, &o.Intent, e)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.Failed(ex.Ports.Intents.End(ctx, &o.Wish, &o.Intent, e))
}

// goesOn is how the intent goes on, by how its call has ended and whether its caller
// waits for the answer.
func goesOn(ctx context.Context, ex *filter.Exchange) *intent.End {
	o := ex.Once
	next := o.Intent
	switch o.End {
	case intent.OutcomeUnknown:
		next.Open = true
		return &intent.End{Next: &next}
	case intent.OutcomeMade:
		row, _ := operation.Of(ex.Operation.ID)
		e := &intent.End{Unlike: true}
		if row.Verb == operation.VerbCreate {
			e.Resource = claimOf(row.Kind, o.Intent.Resource)
			next.Left = left(ctx)
			if next.Left || ex.Path.Nested || o.Keyed { // its caller has yet to be told
				e.Next = &next
			}
		}
		return e
	case intent.OutcomeNone, intent.OutcomeRefused, intent.OutcomeFailed:
	}
	return &intent.End{Unlike: true}
}

// Told has the intent of a legacy request's call end with that request, whose caller was
// told if it is still there.
func (f *Repeats) Told(ctx context.Context, ex *filter.Exchange) {
	switch o := ex.Once; {
	case left(ctx):
		f.Untold(ctx, ex)
	case o != nil && o.End == intent.OutcomeMade && !o.Keyed:
		ex.Ports.Intents.EndLate(&o.Wish, &o.Intent, &intent.End{})
	}
}

// Untold leaves the intent of a legacy request's call to a repeat.
func (*Repeats) Untold(ctx context.Context, ex *filter.Exchange) {
	o := ex.Once
	if o == nil || o.End != intent.OutcomeMade || o.Keyed {
		return
	}
	next := o.Intent
	next.Left = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	ex.Failed(ex.Ports.Intents.End(ctx, &o.Wish, &o.Intent, &intent.End{Next: &next}))
}

// Notes implements Noter.
func (*Repeats) Notes(ex *filter.Exchange, _ string) []string {
	if ex.Adopted == "" || ex.Sent != filter.NotSent {
		return nil
	}
	return []string{ex.Adopted + " was made by an earlier request whose answer was lost"}
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
func kept(a *filter.Answer, print string) *intent.Answer {
	if len(a.Body) > intent.MaxAnswer {
		return nil
	}
	h := make(http.Header)
	for _, name := range []string{"Content-Type", filter.HeaderCost, filter.HeaderBudget, filter.HeaderWarning, filter.HeaderMutation} {
		if v := a.Header[name]; v != nil {
			h[name] = v
		}
	}
	return &intent.Answer{Print: print, Status: a.Status, Header: h, Body: a.Body}
}

// idempotencyKey reads the key, "" if there is none. The draft has it a string of
// RFC 9651; as clients send it, quotation marks may be missing.
func idempotencyKey(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", problem.BadRequest.New("more than one " + filter.HeaderIdempotencyKey)
	}
	key := strings.TrimSpace(values[0])
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok {
			return "", problem.BadRequest.New("the " + filter.HeaderIdempotencyKey + " is not a string of RFC 9651")
		}
		key = text
	} else if strings.ContainsAny(key, "\", \t;") {
		return "", problem.BadRequest.New("the " + filter.HeaderIdempotencyKey + " is not a string of RFC 9651")
	}
	if key == "" || len(key) > maxIdempotencyKey {
		return "", problem.BadRequest.Newf("the %s must have 1 to %d bytes", filter.HeaderIdempotencyKey, maxIdempotencyKey)
	}
	return key, nil
}

// fingerprint is the same for requests of an operation that ask for the same.
func fingerprint(ex *filter.Exchange) string {
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
