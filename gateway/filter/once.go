package filter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/once/intent"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Headers of idempotent calls (draft-ietf-httpapi-idempotency-key-header-07): the key
// of a request, and the mark of an answer that was given before.
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderReplayed       = "Idempotent-Replayed"
)

// maxIdempotencyKey is the longest key, in bytes.
const maxIdempotencyKey = 255

// once is the state of a call that must not be made twice.
type once struct {
	wish intent.Wish
	// print is the fingerprint of the request.
	print string
	// keyed says that the caller sent a key.
	keyed bool
	// intent is the call's own; it has an id once it is about to be noted.
	intent intent.Intent
	// past are other intents of the wish whose callers wait, too: this is another.
	past []string
	// came is when the request was known to be one that may be a repeat, and asked the same
	// by the store's clock, once that is known.
	came, asked time.Time
	// until is when a wait for other intents ends.
	until time.Time
	// noted says that the intent is in the store.
	noted bool
	// end is how the platform's answer ended the call.
	end end
}

// Once sees to it that a resource is made once. A request whose intent is equal to
// another one under way is its repeat, unless the caller of that still waits. The answer
// to a repeat is not judged: an allowed call stays done, even if policies and
// budgets would refuse it later. The intent itself is noted with its reservation.
type Once struct {
	Finder Finder
	// Addresses rewrites found resources, as Addresses does answers.
	Addresses Addresses
}

// stageOnce is the name of the stage.
const stageOnce = "once"

// Name implements Filter.
func (*Once) Name() string { return stageOnce }

// Request answers a repeat of a request with a key. It refuses with 400 a key that is
// none, with 422 one that was used for another request, with 409 the repeat of a call
// that is under way, and with 503 a key while the store cannot be asked.
func (f *Once) Request(ctx context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if !row.Once(ex.Body.Doc) {
		return nil
	}
	var key string
	var err error
	if !ex.Path.Nested { // the old dialects have no such header
		if key, err = idempotencyKey(ex.In.Header[HeaderIdempotencyKey]); err != nil {
			return err
		}
	}
	if key == "" && row.Verb != operation.VerbCreate {
		return nil
	}
	o := &once{keyed: key != "", print: fingerprint(ex), came: time.Now()}
	o.wish = ex.Ports.Intents.Wish(ex.Caller.Org, ex.Caller.Key, digest(ex.Caller.Key, ex.Operation.ID, o.print))
	if o.keyed {
		o.wish = ex.Ports.Intents.Keyed(ex.Caller.Org, ex.Caller.Key, digest(ex.Caller.Key, ex.Operation.ID, key))
		err = f.keyed(ctx, ex, o)
	}
	if err == nil && (ex.Answer == nil || o.noted) {
		ex.Once = o
	}
	return err
}

// keyed answers the repeat of a request with a key. Without an answer and an error,
// the call may be made: the one before has made nothing.
func (f *Once) keyed(ctx context.Context, ex *Exchange, o *once) error {
	seen, err := ex.Ports.Intents.Try(ctx, &o.wish, &intent.Intent{}, nil)
	switch {
	case err != nil:
		return noKeys(err)
	case seen.Answer != nil && seen.Answer.Print != o.print, len(seen.Intents) > 0 && seen.Intents[0].Print != o.print:
		return problem.KeyReused.New("this Idempotency-Key was used for another request")
	case seen.Answer != nil:
		a := seen.Answer
		ex.Answer = &Answer{Status: a.Status, Header: a.Header.Clone(), Body: a.Body}
		ex.Answer.Header.Set(HeaderReplayed, "true")
		return nil
	case len(seen.Intents) == 0:
		return nil
	}
	o.asked = seen.Now
	i := &seen.Intents[0]
	if !f.gone(ctx, ex, o, i, seen.Now) {
		return underWay("the request with this Idempotency-Key is under way")
	}
	if row, _ := operation.Of(ex.Operation.ID); row.Verb != operation.VerbCreate {
		return ex.Ports.Intents.End(ctx, &o.wish, i, &intent.End{Unlike: true}) // it makes nothing that there would be twice
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

// prepare fills in the intent of a call that passed the judge.
func (f *Once) prepare(ctx context.Context, ex *Exchange) error {
	o := ex.Once
	ex.Out.Whole = true
	row, _ := operation.Of(ex.Operation.ID)
	o.intent = intent.Intent{ID: ulid.Make().String(), Print: o.print}
	if row.Verb == operation.VerbCreate {
		after, _ := ex.Judged.Input.Resource.After.(map[string]any)
		o.intent.Name, _ = after["name"].(string)
		o.intent.Shape = spend.Print(row.Kind, after)
	}
	if err := ctx.Err(); err != nil && !o.keyed {
		return err // the request's time is over
	}
	if o.keyed || ex.Path.Nested {
		o.intent.Known = f.Finder.known(ctx, ex, row.Kind)
	}
	o.wish.Like = ex.Ports.Intents.Like(ex.Caller.Org, looks(row.Kind, o.intent.Name, o.intent.Shape))
	return nil
}

// looks names the features that identify a resource.
func looks(kind operation.Kind, name, shape string) string {
	return digest(string(kind), name, strings.ToLower(shape))
}

// note notes the intent of a call without a reservation, unless it turns out to be a
// repeat that is answered. Without the store, a call without a key goes on: as without
// a gateway, its repeat may make a second one.
func (f *Once) note(ctx context.Context, ex *Exchange) error {
	o := ex.Once
	defer ex.Ports.Intents.Come(ctx, &o.wish, o.intent.ID)()
	for {
		at := time.Now()
		seen, err := ex.Ports.Intents.Try(ctx, &o.wish, &o.intent, o.passed(ex.Ports.Intents))
		switch {
		case err != nil:
			ex.Once = nil // the store may have noted it, and not have said so: nothing is made under it
			ex.Ports.Intents.EndLate(&o.wish, &o.intent, &intent.End{Unlike: true})
			if o.keyed {
				return noKeys(err)
			}
			ex.Event.Cause = err
			return nil
		case len(seen.Intents) == 0 && seen.Answer == nil:
			f.begin(ctx, ex, seen.Now, at)
			return nil
		}
		if err := f.join(ctx, ex, seen); err != nil || ex.Answer != nil {
			return err
		}
	}
}

// join answers a request that has found other intents of its wish. Without an answer and an
// error, it is no repeat of those.
func (f *Once) join(ctx context.Context, ex *Exchange, seen intent.Seen) error {
	if ex.Once.keyed {
		return f.keyed(ctx, ex, ex.Once)
	}
	return f.wait(ctx, ex, seen)
}

// others returns the intents of the wish; none if the store cannot be asked.
func (ex *Exchange) others(ctx context.Context) intent.Seen {
	seen, err := ex.Ports.Intents.Try(ctx, &ex.Once.wish, &intent.Intent{}, nil)
	if err != nil {
		return intent.Seen{}
	}
	return seen
}

// repeats reports whether a call without a key that was not noted yet may be the repeat
// of another.
func (ex *Exchange) repeats(ctx context.Context) bool {
	o := ex.Once
	return o != nil && !o.keyed && !o.noted && len(ex.others(ctx).Intents) > 0
}

// begin takes the intent in hand, which was noted at a time by the store's clock, and
// not before another by this gateway's.
func (*Once) begin(ctx context.Context, ex *Exchange, noted, at time.Time) {
	o := ex.Once
	o.noted, o.intent.Began = true, noted
	o.intent = o.intent.Stored()
	ex.Ports.Intents.Begin(ctx, &o.wish, o.intent, at)
}

// unnoted has the exchange go on without its intent, which the store may have noted
// although it did not say so. It returns the ending of that, nil without an intent.
func (ex *Exchange) unnoted() *spend.Ending {
	o := ex.Once
	if ex.Once = nil; o == nil {
		return nil
	}
	return ex.Ports.Intents.Ending(&o.wish, &o.intent, &intent.End{Unlike: true})
}

// errHeldUp is why a call is not made.
var errHeldUp = errors.New("the gateway stood still, and may have been taken for dead")

// Response has the intent end. A call refused before it was noted may be a repeat:
// an allowed call stays done.
func (f *Once) Response(ctx context.Context, ex *Exchange) error {
	o := ex.Once
	if o == nil {
		return nil
	}
	if refused := ex.Event.Refusal; !o.noted && !o.keyed && refused != "" && refused != string(problem.OutcomeUnknown) {
		if seen := ex.others(ctx); len(seen.Intents) > 0 {
			if err := f.wait(ctx, ex, seen); err != nil {
				return err
			}
		}
	}
	switch {
	case !o.noted:
	case o.keyed:
		f.keep(ctx, ex)
	case ex.Money.Held == nil:
		f.end(ctx, ex)
	}
	return nil
}

// keep writes the answer to a request with a key. A call that the gateway refused, or that
// the platform has certainly not begun, is forgotten, so that it can be tried again.
func (*Once) keep(ctx context.Context, ex *Exchange) {
	o := ex.Once
	e := o.goesOn(ctx, ex)
	if settled(ex) {
		if e.Answer = kept(ex.Answer, o.print); e.Answer != nil {
			e.Next = nil
		} else if e.Next != nil {
			e.Next.Left = true // it is too long: the resource is kept
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := ex.Ports.Intents.End(ctx, &o.wish, &o.intent, e); err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
}

// end tells the store how the intent ends: behind the answer, if that is all there is
// to say.
func (*Once) end(ctx context.Context, ex *Exchange) {
	o := ex.Once
	e := o.goesOn(ctx, ex)
	if e.Next == nil {
		ex.Ports.Intents.EndLate(&o.wish, &o.intent, e)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := ex.Ports.Intents.End(ctx, &o.wish, &o.intent, e); err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
}

// goesOn is how the intent goes on, by how its call has ended and whether its caller
// waits for the answer.
func (o *once) goesOn(ctx context.Context, ex *Exchange) *intent.End {
	next := o.intent
	switch o.end {
	case endUnknown:
		next.Open = true
		return &intent.End{Next: &next}
	case endMade:
		row, _ := operation.Of(ex.Operation.ID)
		e := &intent.End{Unlike: true}
		if row.Verb == operation.VerbCreate {
			e.Resource = claimOf(row.Kind, o.intent.Resource)
			next.Left = ctx.Err() != nil
			if next.Left || ex.Path.Nested || o.keyed { // its caller has yet to be told
				e.Next = &next
			}
		}
		return e
	case endNone, endRefused, endFailed:
	}
	return &intent.End{Unlike: true}
}

// told has the intent of a legacy request's call end with that request, if its caller
// was told, and otherwise leaves it to a repeat.
func (ex *Exchange) told(ctx context.Context, answered bool) {
	o := ex.Once
	if o == nil || o.end != endMade || o.keyed {
		return
	}
	if answered && ctx.Err() == nil {
		ex.Ports.Intents.EndLate(&o.wish, &o.intent, &intent.End{})
		return
	}
	next := o.intent
	next.Left = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := ex.Ports.Intents.End(ctx, &o.wish, &o.intent, &intent.End{Next: &next}); err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
}

// Notes implements Noter.
func (*Once) Notes(ex *Exchange, _ string) []string {
	if ex.Adopted == "" || ex.Sent != NotSent {
		return nil
	}
	return []string{ex.Adopted + " was made by an earlier request whose answer was lost"}
}

// settled reports whether the platform has decided about a call: an answer that says
// to come again decides nothing.
func settled(ex *Exchange) bool {
	switch s := ex.Answer.Status; {
	case ex.Adopted != "":
		return true
	case ex.Sent != Answered || !ex.Answer.Relayed || s >= http.StatusInternalServerError:
		return false
	default:
		return s != http.StatusRequestTimeout && s != http.StatusTooEarly && s != http.StatusTooManyRequests
	}
}

// kept is an answer as it is kept, nil if it is too long.
func kept(a *Answer, print string) *intent.Answer {
	if len(a.Body) > intent.MaxAnswer {
		return nil
	}
	h := make(http.Header)
	for _, name := range []string{"Content-Type", HeaderCost, HeaderBudget, HeaderWarning, HeaderMutation} {
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
		return "", problem.BadRequest.New("more than one " + HeaderIdempotencyKey)
	}
	key := strings.TrimSpace(values[0])
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok {
			return "", problem.BadRequest.New("the " + HeaderIdempotencyKey + " is not a string of RFC 9651")
		}
		key = text
	} else if strings.ContainsAny(key, "\", \t;") {
		return "", problem.BadRequest.New("the " + HeaderIdempotencyKey + " is not a string of RFC 9651")
	}
	if key == "" || len(key) > maxIdempotencyKey {
		return "", problem.BadRequest.Newf("the %s must have 1 to %d bytes", HeaderIdempotencyKey, maxIdempotencyKey)
	}
	return key, nil
}

// fingerprint is the same for requests of an operation that ask for the same.
func fingerprint(ex *Exchange) string {
	if ex.Translation.Wish != "" {
		return digest(ex.Event.Dialect, ex.Translation.Wish, string(ex.Body.Labels))
	}
	body, err := strictjson.Append(ex.room(), ex.Body.Doc)
	if err != nil { // of a decoded body
		panic(err)
	}
	return digest(expand(ex.Operation.Path, ex.Params), encodeQuery(ex.Query), string(body), string(ex.Body.Labels))
}

func digest(parts ...string) string {
	text := make([]byte, 0, 512)
	for _, p := range parts {
		text = append(strconv.AppendInt(text, int64(len(p)), 10), ' ')
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
