package idempotency

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/wire"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
)

// Tracker has intents in hand. It is safe for concurrent use, and does not own its client.
type Tracker struct {
	// Gateway is this incarnation of this gateway.
	Gateway string

	client redis.Cmdable
	store  *redisstore.Intents
	prefix string
	logger *slog.Logger
	lease  lease
	outbox outbox
	memory memory
	alive  func() []string // nil if no other gateway can share the store
	// started is the time from which this gateway can have heard others.
	started time.Time

	mu      sync.Mutex // guards hand
	tracked map[string]*trackedIntent
}

// trackedIntent is an intent in hand.
type trackedIntent struct {
	wish   filter.DedupKeys
	intent filter.Intent
	// caller ends when the caller has gone.
	caller context.Context //nolint:containedctx // it is what is asked about the caller, not a context of calls
	// noted is when the intent was noted, or before, by the monotonic clock.
	noted time.Time
}

// NewTracker returns a desk whose keys begin with prefix. Writes that need not delay a response run in spawn.
// It does not dial.
func NewTracker(client redis.Cmdable, prefix, gateway string, spawn func(func()), logger *slog.Logger) *Tracker {
	d := &Tracker{
		Gateway: gateway, client: client, store: redisstore.NewIntents(client, prefix), prefix: prefix, logger: logger, tracked: make(map[string]*trackedIntent),
		memory: memory{now: time.Now}, started: time.Now(),
	}
	d.outbox = outbox{write: d.store.End, spawn: spawn}
	return d
}

// Store returns the store of intents, in which the ledger records the intents of reservations.
func (d *Tracker) Store() *redisstore.Intents { return d.store }

// unknownPeer stands for gateways that this one has not heard of yet. It never restores anything.
const unknownPeer = "?"

// SetPeers sets the name under which this gateway restores intents that the store has lost, and what returns the names of the gateways that
// are alive; nil means that no other gateway can share the store. It is called before the desk is used.
func (d *Tracker) SetPeers(name string, alive func() []string) {
	d.alive = alive
	d.store.SetPeers(name, d.memory.all, d.peers)
}

// peers returns the names of all gateways that a recovery waits for.
func (d *Tracker) peers() []string {
	switch {
	case d.alive == nil:
		return nil
	case time.Since(d.started) < LeaseDuration:
		return append(d.alive(), unknownPeer)
	}
	return d.alive()
}

// Keys returns what equal requests have in common.
func (d *Tracker) Keys(org, owner, print string) filter.DedupKeys {
	return filter.DedupKeys{Org: org, Owner: owner, Pending: "w" + print, Response: "a-", Lookalikes: "l-"}
}

// KeysFor is Wish for requests with an Idempotency-Key.
func (d *Tracker) KeysFor(org, owner, print string) filter.DedupKeys {
	return filter.DedupKeys{Org: org, Owner: owner, Pending: "wk" + print, Response: "a" + print, Lookalikes: "l-"}
}

// LookalikeKey returns the field of all intents whose resources look the same.
func (d *Tracker) LookalikeKey(_, looks string) string { return "l" + looks }

// orgPrefix is the prefix of an organisation's keys.
func (d *Tracker) orgPrefix(org string) string { return d.prefix + "{" + org + "}:" }

// Note returns the note of an intent that goes with another step.
func (d *Tracker) Note(w *filter.DedupKeys, i *filter.Intent, past []string) *ledger.IntentRecord {
	i.Gateway = d.Gateway
	return &ledger.IntentRecord{Org: w.Org, Fingerprint: w.Pending, Lookalike: w.Lookalikes, Response: w.Response, Intent: i.ID, Row: i.Encode(), Owner: w.Owner, Ignored: append(d.outbox.endedIntents(w.Org, w.Pending), past...)}
}

// TryRecord notes an intent, unless there are others of its wish than those past or an answer.
// It returns what there is; without an id it only looks.
func (d *Tracker) TryRecord(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, past []string) (filter.Pending, error) {
	n := &ledger.IntentRecord{Org: w.Org, Fingerprint: w.Pending, Lookalike: w.Lookalikes, Response: w.Response, Ignored: d.outbox.endedIntents(w.Org, w.Pending)}
	if i.ID != "" {
		n = d.Note(w, i, past)
	}
	found, err := d.store.Record(ctx, n)
	if err != nil {
		return filter.Pending{}, err
	}
	seen := filter.Pending{Now: found.Now, QueriedAt: found.Sent}
	for id, raw := range found.Others {
		other, err := filter.DecodeIntent(id, raw)
		if err != nil {
			return filter.Pending{}, err
		}
		seen.Intents = append(seen.Intents, other)
	}
	slices.SortFunc(seen.Intents, func(a, b filter.Intent) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	if found.Response != "" {
		if err := json.Unmarshal([]byte(found.Response), &seen.Response); err != nil {
			return filter.Pending{}, fmt.Errorf("the answer kept under a key: %w", err)
		}
	}
	return seen, nil
}

// Enter takes a request in hand that is about to note an intent, until done: others pass
// over it while its caller waits, whether it is noted yet or not.
func (d *Tracker) Enter(caller context.Context, w *filter.DedupKeys, id string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracked[id] = &trackedIntent{wish: *w, caller: caller}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if h := d.tracked[id]; h != nil && h.noted.IsZero() {
			delete(d.tracked, id)
		}
	}
}

// Waiting lists the intents of a wish in hand whose callers wait.
func (d *Tracker) Waiting(w *filter.DedupKeys) (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, h := range d.tracked {
		if h.wish.Org == w.Org && h.wish.Pending == w.Pending && !wire.ClientGone(h.caller) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Track takes an intent in hand, as it is stored, that was noted not before a time, for a
// caller that has gone when the context ends.
func (d *Tracker) Track(caller context.Context, w *filter.DedupKeys, i filter.Intent, noted time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracked[i.ID] = &trackedIntent{wish: *w, intent: i, caller: caller, noted: noted}
	d.memory.begin(w, &i)
}

// MaySend reports whether the call of an intent may be made: no other gateway can have
// taken this one for dead since it was noted.
func (d *Tracker) MaySend(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.tracked[id]
	return h == nil || elapsed(h.noted, time.Now()) <= LeaseDuration/2 || d.lease.held(h.noted, time.Now())
}

// CallerStatus returns the known state of another intent's caller. The gateway that has it in hand is
// asked, since a time by the store's clock, unless that is zero.
func (d *Tracker) CallerStatus(ctx context.Context, org string, i *filter.Intent, asked time.Time) filter.CallerStatus {
	if i.Abandoned || i.Unresolved {
		return filter.CallerGone
	}
	if i.Gateway != d.Gateway {
		switch {
		case !asked.IsZero() && d.queryCaller(ctx, org, i.ID, asked):
			return filter.CallerConnected
		case d.dead(ctx, i.Gateway):
			return filter.CallerGone
		}
		return filter.CallerUnknown
	}
	d.mu.Lock()
	h := d.tracked[i.ID]
	d.mu.Unlock()
	switch {
	case h != nil && !wire.ClientGone(h.caller):
		return filter.CallerConnected
	case h != nil, d.outbox.has(i.ID):
		return filter.CallerUnknown // it will say what it made
	default:
		return filter.CallerGone
	}
}

// Abandoned reports whether the gateway of an intent has been dead for a minute: what its call created is listed by then.
func (d *Tracker) Abandoned(ctx context.Context, i *filter.Intent) bool {
	if i.Unresolved || i.Gateway == d.Gateway {
		return false
	}
	silent, dead := d.Dead(ctx, i.Gateway)
	return dead && silent >= propagationDelay
}

// Adopt makes what an intent has made this request's, whose caller has gone when the
// context ends. It reports whether no other request has taken it.
func (d *Tracker) Adopt(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, resource string) (filter.Intent, bool, error) {
	mine := *i
	mine.Gateway, mine.Abandoned, mine.Unresolved, mine.Resource = d.Gateway, false, false, resource
	mine.Adoptions++
	mine = mine.Restored()
	letGo := d.reserveLocally(&trackedIntent{wish: *w, intent: mine, caller: ctx, noted: time.Now()})
	if letGo == nil {
		return filter.Intent{}, false, nil
	}
	n, err := d.store.End(ctx, []ledger.IntentUpdate{*d.ending(w, i, &filter.IntentUpdate{Next: &mine, Unindex: true})})
	if err != nil || n == 0 {
		letGo()
		return filter.Intent{}, false, err
	}
	d.memory.begin(w, &mine)
	return mine, true, nil
}

// reserveLocally takes in hand a resource that the store is about to be told of, so that no other request
// finds it in nobody's; nil if another has it or reaches for it.
func (d *Tracker) reserveLocally(mine *trackedIntent) (letGo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := mine.intent.ID
	if h := d.tracked[id]; h != nil && h.intent.Adoptions >= mine.intent.Adoptions {
		return nil
	}
	d.tracked[id] = mine
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.tracked[id] == mine {
			delete(d.tracked, id)
		}
	}
}

// Claim reports whether a resource was made by an intent.
func (d *Tracker) Claim(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, resource string) (bool, error) {
	return d.store.Claim(ctx, &ledger.Claim{Org: w.Org, Created: "m" + resource, Lookalike: w.Lookalikes, Intent: i.ID, Owner: w.Owner, Named: i.Name != ""})
}

// Ending is the message to the store about the end of an intent. The intent is remembered as ended from then on.
func (d *Tracker) Ending(w *filter.DedupKeys, i *filter.Intent, e *filter.IntentUpdate) *ledger.IntentUpdate {
	out := d.ending(w, i, e)
	taken := i.Adoptions
	if e.Next != nil {
		taken = e.Next.Adoptions
	}
	d.memory.end(out, w.Owner, taken)
	return out
}

func (*Tracker) ending(w *filter.DedupKeys, i *filter.Intent, e *filter.IntentUpdate) *ledger.IntentUpdate {
	out := &ledger.IntentUpdate{
		Org: w.Org, Created: "m" + cmp.Or(e.Resource, "-"), Fingerprint: w.Pending, Lookalike: w.Lookalikes, Response: w.Response, Intent: i.ID, OldRow: i.Raw(),
		SetCreated: e.Resource != "", UnsetLookalike: e.Unindex,
	}
	if e.Next != nil {
		out.Row = e.Next.Restored().Raw()
	}
	if e.Response != nil {
		text, err := json.Marshal(e.Response)
		if err != nil { // textBytes and numbers always encode
			panic(err)
		}
		out.Text = string(text)
	}
	return out
}

// End tells the store how an intent ends, and lets go of it unless it goes on in this
// request's hand.
func (d *Tracker) End(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, e *filter.IntentUpdate) error {
	if _, err := d.store.End(ctx, []ledger.IntentUpdate{*d.Ending(w, d.current(i), e)}); err != nil {
		d.EndAsync(w, i, e)
		return err
	}
	d.MarkEnded(i, e)
	return nil
}

// EndAsync is End behind the answer.
func (d *Tracker) EndAsync(w *filter.DedupKeys, i *filter.Intent, e *filter.IntentUpdate) {
	if !d.outbox.add(w.Org, d.Ending(w, d.current(i), e)) {
		d.logger.Warn("too many ends of creates are to be noted: repeats of them are looked for in vain", "org", w.Org, "intent", i.ID)
	}
	d.MarkEnded(i, e)
}

// MarkEnded notes that the store was told of an end with something else.
func (d *Tracker) MarkEnded(i *filter.Intent, e *filter.IntentUpdate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.tracked[i.ID]
	switch {
	case h == nil || h.intent.Adoptions != i.Adoptions: // another request has taken it
	case e.Next == nil || e.Next.Abandoned || e.Next.Unresolved:
		delete(d.tracked, i.ID)
	default:
		h.intent = e.Next.Restored()
	}
}

// current is an intent as the store has it now, unless another request has taken it.
func (d *Tracker) current(i *filter.Intent) *filter.Intent {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.tracked[i.ID]; h != nil && h.intent.Adoptions == i.Adoptions {
		out := h.intent
		return &out
	}
	return i
}
