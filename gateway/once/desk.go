package once

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
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/policies/spend/redisstore"
)

// Desk has intents in hand. It is safe for concurrent use, and does not own its client.
type Desk struct {
	// Gateway is this incarnation of this gateway.
	Gateway string

	client redis.Cmdable
	store  *redisstore.Intents
	prefix string
	logger *slog.Logger
	lease  lease
	ends   outbox
	memory memory
	alive  func() []string // nil if no other gateway can share the store
	// started is the time from which this gateway can have heard others.
	started time.Time

	mu   sync.Mutex // guards hand
	hand map[string]*held
}

// held is an intent in hand.
type held struct {
	wish   filter.Wish
	intent filter.Intent
	// caller ends when the caller has gone.
	caller context.Context //nolint:containedctx // it is what is asked about the caller, not a context of calls
	// noted is when the intent was noted, or before, by the monotonic clock.
	noted time.Time
}

// NewDesk returns a desk whose keys begin with prefix. Writes that need not delay a response run in spawn.
// It does not dial.
func NewDesk(client redis.Cmdable, prefix, gateway string, spawn func(func()), logger *slog.Logger) *Desk {
	d := &Desk{
		Gateway: gateway, client: client, store: redisstore.NewIntents(client, prefix), prefix: prefix, logger: logger, hand: make(map[string]*held),
		memory: memory{now: time.Now}, started: time.Now(),
	}
	d.ends = outbox{write: d.store.End, spawn: spawn}
	return d
}

// Store returns the store of intents, in which the ledger records the intents of reservations.
func (d *Desk) Store() *redisstore.Intents { return d.store }

// stranger stands for gateways that this one has not heard of yet. It never restores anything.
const stranger = "?"

// Follow sets the name under which this gateway restores intents that the store has lost, and what returns the names of the gateways that
// are alive; nil means that no other gateway can share the store. It is called before the desk is used.
func (d *Desk) Follow(name string, alive func() []string) {
	d.alive = alive
	d.store.SetPeers(name, d.memory.all, d.peers)
}

// peers returns the names of all gateways that a recovery waits for.
func (d *Desk) peers() []string {
	switch {
	case d.alive == nil:
		return nil
	case time.Since(d.started) < Death:
		return append(d.alive(), stranger)
	}
	return d.alive()
}

// Wish returns what equal requests have in common.
func (d *Desk) Wish(org, owner, print string) filter.Wish {
	return filter.Wish{Org: org, Owner: owner, Key: "w" + print, Answer: "a-", Like: "l-"}
}

// Keyed is Wish for requests with an Idempotency-Key.
func (d *Desk) Keyed(org, owner, print string) filter.Wish {
	return filter.Wish{Org: org, Owner: owner, Key: "wk" + print, Answer: "a" + print, Like: "l-"}
}

// Like returns the field of all intents whose resources look the same.
func (d *Desk) Like(_, looks string) string { return "l" + looks }

// stem is the prefix of an organisation's keys.
func (d *Desk) stem(org string) string { return d.prefix + "{" + org + "}:" }

// Note returns the note of an intent that goes with another step.
func (d *Desk) Note(w *filter.Wish, i *filter.Intent, past []string) *spend.IntentRecord {
	i.Gateway = d.Gateway
	return &spend.IntentRecord{Org: w.Org, Fingerprint: w.Key, Lookalike: w.Like, Response: w.Answer, Intent: i.ID, Row: i.Row(), Owner: w.Owner, Ignored: append(d.ends.of(w.Org, w.Key), past...)}
}

// Try notes an intent, unless there are others of its wish than those past or an answer.
// It returns what there is; without an id it only looks.
func (d *Desk) Try(ctx context.Context, w *filter.Wish, i *filter.Intent, past []string) (filter.Seen, error) {
	n := &spend.IntentRecord{Org: w.Org, Fingerprint: w.Key, Lookalike: w.Like, Response: w.Answer, Ignored: d.ends.of(w.Org, w.Key)}
	if i.ID != "" {
		n = d.Note(w, i, past)
	}
	found, err := d.store.Record(ctx, n)
	if err != nil {
		return filter.Seen{}, err
	}
	seen := filter.Seen{Now: found.Now, Sent: found.Sent}
	for id, raw := range found.Others {
		other, err := filter.DecodeIntent(id, raw)
		if err != nil {
			return filter.Seen{}, err
		}
		seen.Intents = append(seen.Intents, other)
	}
	slices.SortFunc(seen.Intents, func(a, b filter.Intent) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	if found.Response != "" {
		if err := json.Unmarshal([]byte(found.Response), &seen.Answer); err != nil {
			return filter.Seen{}, fmt.Errorf("the answer kept under a key: %w", err)
		}
	}
	return seen, nil
}

// Come takes a request in hand that is about to note an intent, until done: others pass
// over it while its caller waits, whether it is noted yet or not.
func (d *Desk) Come(caller context.Context, w *filter.Wish, id string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hand[id] = &held{wish: *w, caller: caller}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if h := d.hand[id]; h != nil && h.noted.IsZero() {
			delete(d.hand, id)
		}
	}
}

// Beside lists the intents of a wish in hand whose callers wait.
func (d *Desk) Beside(w *filter.Wish) (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, h := range d.hand {
		if h.wish.Org == w.Org && h.wish.Key == w.Key && !wire.Left(h.caller) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Begin takes an intent in hand, as it is stored, that was noted not before a time, for a
// caller that has gone when the context ends.
func (d *Desk) Begin(caller context.Context, w *filter.Wish, i filter.Intent, noted time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hand[i.ID] = &held{wish: *w, intent: i, caller: caller, noted: noted}
	d.memory.begin(w, &i)
}

// MaySend reports whether the call of an intent may be made: no other gateway can have
// taken this one for dead since it was noted.
func (d *Desk) MaySend(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.hand[id]
	return h == nil || apart(h.noted, time.Now()) <= Death/2 || d.lease.held(h.noted, time.Now())
}

// Fate returns the known state of another intent's caller. The gateway that has it in hand is
// asked, since a time by the store's clock, unless that is zero.
func (d *Desk) Fate(ctx context.Context, org string, i *filter.Intent, asked time.Time) filter.Fate {
	if i.Left || i.Open {
		return filter.Gone
	}
	if i.Gateway != d.Gateway {
		switch {
		case !asked.IsZero() && d.ask(ctx, org, i.ID, asked):
			return filter.There
		case d.dead(ctx, i.Gateway):
			return filter.Gone
		}
		return filter.Unsaid
	}
	d.mu.Lock()
	h := d.hand[i.ID]
	d.mu.Unlock()
	switch {
	case h != nil && !wire.Left(h.caller):
		return filter.There
	case h != nil, d.ends.has(i.ID):
		return filter.Unsaid // it will say what it made
	default:
		return filter.Gone
	}
}

// Abandoned reports whether the gateway of an intent has been dead for a minute: what its call created is listed by then.
func (d *Desk) Abandoned(ctx context.Context, i *filter.Intent) bool {
	if i.Open || i.Gateway == d.Gateway {
		return false
	}
	silent, dead := d.Dead(ctx, i.Gateway)
	return dead && silent >= fresh
}

// Take makes what an intent has made this request's, whose caller has gone when the
// context ends. It reports whether no other request has taken it.
func (d *Desk) Take(ctx context.Context, w *filter.Wish, i *filter.Intent, resource string) (filter.Intent, bool, error) {
	mine := *i
	mine.Gateway, mine.Left, mine.Open, mine.Resource = d.Gateway, false, false, resource
	mine.Taken++
	mine = mine.Stored()
	letGo := d.reach(&held{wish: *w, intent: mine, caller: ctx, noted: time.Now()})
	if letGo == nil {
		return filter.Intent{}, false, nil
	}
	n, err := d.store.End(ctx, []spend.IntentUpdate{*d.ending(w, i, &filter.End{Next: &mine, Unlike: true})})
	if err != nil || n == 0 {
		letGo()
		return filter.Intent{}, false, err
	}
	d.memory.begin(w, &mine)
	return mine, true, nil
}

// reach takes in hand a resource that the store is about to be told of, so that no other request
// finds it in nobody's; nil if another has it or reaches for it.
func (d *Desk) reach(mine *held) (letGo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := mine.intent.ID
	if h := d.hand[id]; h != nil && h.intent.Taken >= mine.intent.Taken {
		return nil
	}
	d.hand[id] = mine
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.hand[id] == mine {
			delete(d.hand, id)
		}
	}
}

// Claim reports whether a resource was made by an intent.
func (d *Desk) Claim(ctx context.Context, w *filter.Wish, i *filter.Intent, resource string) (bool, error) {
	return d.store.Claim(ctx, &spend.Claim{Org: w.Org, Created: "m" + resource, Lookalike: w.Like, Intent: i.ID, Owner: w.Owner, Named: i.Name != ""})
}

// Ending is the message to the store about the end of an intent. The intent is remembered as ended from then on.
func (d *Desk) Ending(w *filter.Wish, i *filter.Intent, e *filter.End) *spend.IntentUpdate {
	out := d.ending(w, i, e)
	taken := i.Taken
	if e.Next != nil {
		taken = e.Next.Taken
	}
	d.memory.end(out, w.Owner, taken)
	return out
}

func (*Desk) ending(w *filter.Wish, i *filter.Intent, e *filter.End) *spend.IntentUpdate {
	out := &spend.IntentUpdate{
		Org: w.Org, Created: "m" + cmp.Or(e.Resource, "-"), Fingerprint: w.Key, Lookalike: w.Like, Response: w.Answer, Intent: i.ID, OldRow: i.Raw(),
		SetCreated: e.Resource != "", UnsetLookalike: e.Unlike,
	}
	if e.Next != nil {
		out.Row = e.Next.Stored().Raw()
	}
	if e.Answer != nil {
		text, err := json.Marshal(e.Answer)
		if err != nil { // texts and numbers always encode
			panic(err)
		}
		out.Text = string(text)
	}
	return out
}

// End tells the store how an intent ends, and lets go of it unless it goes on in this
// request's hand.
func (d *Desk) End(ctx context.Context, w *filter.Wish, i *filter.Intent, e *filter.End) error {
	if _, err := d.store.End(ctx, []spend.IntentUpdate{*d.Ending(w, d.now(i), e)}); err != nil {
		d.EndLate(w, i, e)
		return err
	}
	d.Ended(i, e)
	return nil
}

// EndLate is End behind the answer.
func (d *Desk) EndLate(w *filter.Wish, i *filter.Intent, e *filter.End) {
	if !d.ends.add(w.Org, d.Ending(w, d.now(i), e)) {
		d.logger.Warn("too many ends of creates are to be noted: repeats of them are looked for in vain", "org", w.Org, "intent", i.ID)
	}
	d.Ended(i, e)
}

// Ended notes that the store was told of an end with something else.
func (d *Desk) Ended(i *filter.Intent, e *filter.End) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.hand[i.ID]
	switch {
	case h == nil || h.intent.Taken != i.Taken: // another request has taken it
	case e.Next == nil || e.Next.Left || e.Next.Open:
		delete(d.hand, i.ID)
	default:
		h.intent = e.Next.Stored()
	}
}

// now is an intent as the store has it now, unless another request has taken it.
func (d *Desk) now(i *filter.Intent) *filter.Intent {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.hand[i.ID]; h != nil && h.intent.Taken == i.Taken {
		out := h.intent
		return &out
	}
	return i
}
