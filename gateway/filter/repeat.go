package filter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Headers of idempotent calls (draft-ietf-httpapi-idempotency-key-header-07): the key
// of a request, and the mark of an answer that was given before.
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderReplayed       = "Idempotent-Replayed"
)

// maxIdempotencyKey is the longest key, in bytes.
const maxIdempotencyKey = 255

// once is what is known of a call that must not be made twice.
type once struct {
	// id names the record of all its repeats, print what they ask for.
	id, print string
	// keyed says that the caller sent a key. Otherwise a create is remembered only when
	// its caller was not told what became of it.
	keyed bool
	// asked says that the store was asked for the record: of a create without a key,
	// the ledger asks for it when it reserves.
	asked bool
	// entry is the record as it was read last.
	entry idempotency.Entry
	call  idempotency.Call
	// since is when the call began, by this gateway's clock.
	since time.Time
	// begun says that the call passed the judge, unknown that its end is not known.
	begun, unknown bool
	// stay ends the watch on a caller that may leave, and reports whether it has not.
	stay func() bool
}

// Repeat answers the repeat of a call that must not be made twice: with the first
// answer, or with what the first call has made. It stands before the judge, because
// what was allowed stays done whatever policies and budgets say later.
type Repeat struct {
	Finder Finder
	// Addresses rewrites what was found, as Addresses does answers.
	Addresses Addresses
}

// stageRepeat is the name of the stage.
const stageRepeat = "repeat"

// Name implements Filter.
func (*Repeat) Name() string { return stageRepeat }

// Request answers a repeat. It refuses with 400 a key that is none, with 422 one that
// was used for another request, with 409 the repeat of a call that is under way, and
// with 503 a key while the store cannot be asked.
func (f *Repeat) Request(ctx context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if !row.Once(ex.Doc) {
		return nil
	}
	var key string
	var err error
	if !ex.nested { // the old dialects have no such header
		if key, err = idempotencyKey(ex.In.Header[HeaderIdempotencyKey]); err != nil {
			return err
		}
	}
	if key == "" && row.Verb != operation.VerbCreate {
		return nil
	}
	o := &once{keyed: key != "", print: fingerprint(ex)}
	if o.id = "same/" + digest(ex.Caller.Key, ex.Operation.ID, o.print); o.keyed {
		o.id = "key/" + digest(ex.Caller.Key, ex.Operation.ID, key)
	}
	if !o.keyed && reserved(ex, row, row.Verb) {
		ex.once = o
		return nil
	}
	if err = o.ask(ctx, ex); err != nil {
		if o.keyed {
			return problem.RepeatsUnavailable.New("it cannot be told at the moment whether this Idempotency-Key was used before").
				With("Retry-After", "1").Because(err)
		}
		ex.Event.Cause = err
		return nil
	}
	if o.entry.Record != nil {
		if o.keyed {
			err = f.keyed(ctx, ex, o)
		} else {
			err = f.unkeyed(ctx, ex, o)
		}
	}
	if err == nil && ex.Answer == nil {
		ex.once = o
	}
	return err
}

// ask reads the record. Without a key there is hardly ever one.
func (o *once) ask(ctx context.Context, ex *Exchange) (err error) {
	get := ex.Ports.Repeats.Look
	if o.keyed {
		get = ex.Ports.Repeats.Get
	}
	o.entry, err = get(ctx, ex.Caller.Org, o.id)
	o.asked = err == nil
	return err
}

// keyed answers the repeat of a request with a key. Without an answer and an error,
// the call may be made again: the one before has made nothing.
func (f *Repeat) keyed(ctx context.Context, ex *Exchange, o *once) error {
	r := o.entry.Record
	if r.Print != o.print {
		return problem.KeyReused.New("this Idempotency-Key was used for another request")
	}
	if a := r.Answer; a != nil {
		ex.Answer = &Answer{Status: a.Status, Header: a.Header.Clone(), Body: a.Body}
		ex.Answer.Header.Set(HeaderReplayed, "true")
		return nil
	}
	if len(r.Calls) == 0 {
		return nil
	}
	c := &r.Calls[0]
	age := c.Age(o.entry.Now)
	if !f.ended(c, o.entry.Now) {
		return underWay("the request with this Idempotency-Key is under way")
	}
	if row, _ := operation.Of(ex.Operation.ID); row.Verb != operation.VerbCreate {
		return nil // it makes nothing that there would be twice
	}
	found, err := f.Finder.Find(ctx, ex, c, age)
	switch {
	case found != nil:
		if err := f.give(ctx, ex, found); err != nil {
			return err
		}
		if _, err := o.save(ctx, ex, func(r *idempotency.Record) bool {
			r.Calls, r.Answer = nil, kept(ex.Answer)
			return r.Answer != nil
		}); err != nil {
			ex.Event.Cause = err // the next repeat finds it as this one did
		}
		return nil
	case err == nil && f.Finder.over(age):
		return nil
	}
	ex.Event.Cause = err
	return underWay("it is not known yet what became of the request with this Idempotency-Key")
}

func underWay(text string) error { return problem.UnderWay.New(text).With("Retry-After", "2") }

// unkeyed gives the repeat of a create without a key what an earlier one has made
// whose caller was not told. It waits for that while the request's time lasts.
func (f *Repeat) unkeyed(ctx context.Context, ex *Exchange, o *once) error {
	ctx, cancel := f.Finder.bound(ctx, ex)
	defer cancel()
	for wait := newPause(ctx); o.entry.Record != nil && len(o.entry.Record.Calls) > 0; {
		i := slices.IndexFunc(o.entry.Record.Calls, func(c idempotency.Call) bool { return f.ended(&c, o.entry.Now) })
		if i >= 0 {
			c := o.entry.Record.Calls[i]
			age := c.Age(o.entry.Now)
			found, err := f.Finder.Find(ctx, ex, &c, age)
			if found != nil || err == nil && (c.Resource != "" || f.Finder.over(age)) {
				// It is given to one repeat only; without anything found, nothing was made.
				mine, err := o.save(ctx, ex, func(r *idempotency.Record) bool { return r.Drop(c.ID) })
				switch {
				case err != nil:
					return unknown(ex, o)
				case mine && found != nil:
					return f.give(ctx, ex, found)
				}
				continue
			}
		}
		if wait.last {
			return unknown(ex, o)
		}
		wait.next(ctx)
		if o.ask(ctx, ex) != nil {
			return unknown(ex, o)
		}
	}
	return nil
}

// join answers a create for which the ledger has found that it may be a repeat.
// Without an answer and an error, it is none.
func (f *Repeat) join(ctx context.Context, ex *Exchange) error {
	o := ex.once
	if o.ask(ctx, ex) != nil {
		return unknown(ex, o)
	}
	return f.unkeyed(ctx, ex, o)
}

// ended reports whether a call is no longer under way, at least not with anyone who
// would tell.
func (f *Repeat) ended(c *idempotency.Call, now time.Time) bool {
	return c.Open || c.Resource != "" || c.Age(now) > f.Finder.Patience
}

// unknown refuses with 504 what may have been done.
func unknown(ex *Exchange, o *once) error {
	again := "Send the same request again to get it."
	if o.keyed {
		again = "Send the same request again with the same " + HeaderIdempotencyKey + " to get it."
	}
	row, _ := operation.Of(ex.Operation.ID)
	return problem.OutcomeUnknown.Newf("The platform has not said what became of the %s: it may have been created. %s", noun(row.Kind), again).
		With("Retry-After", "5").Because(ex.Event.Cause)
}

// give answers with what an earlier call has made.
func (f *Repeat) give(ctx context.Context, ex *Exchange, found map[string]any) error {
	if err := ex.adopt(found); err != nil {
		return err
	}
	ex.Answer.Header.Set(HeaderReplayed, "true")
	return f.Addresses.Response(ctx, ex)
}

// Response keeps the answer to a request with a key, and that it is not known what
// became of a create. What the gateway refused, and what the platform has certainly
// not begun, is forgotten, so that it can be tried again.
func (f *Repeat) Response(ctx context.Context, ex *Exchange) error {
	o := ex.once
	switch {
	case o == nil:
		return nil
	case !o.asked && ex.Event.Refusal != "":
		// Refused before the ledger was asked: what was allowed stays done.
		if err := o.ask(ctx, ex); err != nil {
			return nil //nolint:nilerr // the refusal stands
		}
		return f.unkeyed(ctx, ex, o)
	case !o.begun:
		return nil
	}
	noted := o.left(ex)
	if !o.keyed && !o.unknown && !noted {
		return nil
	}
	_, err := o.save(ctx, ex, func(r *idempotency.Record) bool {
		r.Drop(o.call.ID)
		c := o.call
		switch {
		case o.unknown:
			c.Open = true
			r.Calls = append(r.Calls, c)
		case o.keyed && settled(ex):
			r.Answer = kept(ex.Answer)
			if r.Answer == nil {
				r.Calls = append(r.Calls, c)
			}
		case noted && c.Resource != "":
			r.Calls = append(r.Calls, c)
		}
		return true
	})
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err // with a key, it stays under way, and is looked for in the end
	}
	return nil
}

// Notes implements Noter.
func (*Repeat) Notes(ex *Exchange, _ string) []string {
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
func kept(a *Answer) *idempotency.Answer {
	if len(a.Body) > idempotency.MaxAnswer {
		return nil
	}
	h := make(http.Header)
	for _, name := range []string{"Content-Type", HeaderCost, HeaderBudget, HeaderWarning, HeaderMutation} {
		if v := a.Header[name]; v != nil {
			h[name] = v
		}
	}
	return &idempotency.Answer{Status: a.Status, Header: h, Body: a.Body}
}

// save changes the record, until nothing has come between. change reports whether
// there is anything to write.
func (o *once) save(ctx context.Context, ex *Exchange, change func(r *idempotency.Record) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := o.date(ctx, ex); err != nil {
		return false, err
	}
	for {
		next := &idempotency.Record{Print: o.print}
		if o.entry.Record != nil {
			*next = *o.entry.Record
			next.Calls = slices.Clone(next.Calls)
		}
		if !change(next) {
			return false, nil
		}
		if len(next.Calls) == 0 && next.Answer == nil {
			next = nil
		}
		e, swapped, err := ex.Ports.Repeats.Swap(ctx, ex.Caller.Org, o.id, o.entry, next, idempotency.Keep)
		if err != nil {
			return false, err
		}
		if o.entry = e; swapped {
			return true, nil
		}
	}
}

// date has the call begin by the store's clock, if that was not asked before.
func (o *once) date(ctx context.Context, ex *Exchange) (err error) {
	if !o.begun || o.call.Began != 0 {
		return nil
	}
	if o.entry, err = ex.Ports.Repeats.Get(ctx, ex.Caller.Org, o.id); err == nil {
		o.call.Began = o.entry.Now.Add(-time.Since(o.since)).UnixMilli()
	}
	return err
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
	if ex.wish != "" {
		return digest(ex.Event.Dialect, ex.wish)
	}
	body, err := strictjson.Append(ex.room(), ex.Doc)
	if err != nil { // of a decoded body
		panic(err)
	}
	return digest(expand(ex.Operation.Path, ex.Params), encodeQuery(ex.Query), string(body))
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
