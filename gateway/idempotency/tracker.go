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

// Tracker tracks the intents that this gateway is executing and coordinates them with other gateways through the store. To begin an intent,
// call Enter, then TryRecord or Note, then Track. To end it, call End, which waits for the store, or EndAsync, which does not. Ending and
// MarkEnded end an intent as part of another store operation. Tracker is safe for concurrent use. It does not own its client.
type Tracker struct {
	// Gateway identifies this gateway process. It changes when the process restarts.
	Gateway string

	client redis.Cmdable
	store  *redisstore.Intents
	prefix string
	logger *slog.Logger
	lease  lease
	outbox outbox
	memory memory
	alive  func() []string // nil if no other gateway can share the store
	// started is the earliest time when heartbeats of other gateways may have been received.
	started time.Time

	mu      sync.Mutex // guards tracked
	tracked map[string]*trackedIntent
}

// trackedIntent is an intent executed by this gateway.
type trackedIntent struct {
	wish   filter.DedupKeys
	intent filter.Intent
	// caller is canceled when the caller disconnects.
	caller context.Context //nolint:containedctx // used to detect a disconnect, not for calls
	// noted is a time not after the recording of the intent, by the monotonic clock. It is zero before recording.
	noted time.Time
}

// NewTracker returns a Tracker whose keys begin with prefix. gateway identifies this gateway process. spawn runs a function in a new
// goroutine; it is used for writes that need not delay a response. NewTracker does not connect to the store.
func NewTracker(client redis.Cmdable, prefix, gateway string, spawn func(func()), logger *slog.Logger) *Tracker {
	d := &Tracker{
		Gateway: gateway, client: client, store: redisstore.NewIntents(client, prefix), prefix: prefix, logger: logger,
		tracked: make(map[string]*trackedIntent),
		memory:  memory{now: time.Now}, started: time.Now(),
	}
	d.outbox = outbox{write: d.store.EndAll, spawn: spawn}
	return d
}

// Store returns the store of intents, where the ledger records the intents of its reservations.
func (d *Tracker) Store() *redisstore.Intents { return d.store }

// unknownPeer represents gateways whose heartbeats have not been received yet. It never completes a recovery.
const unknownPeer = "?"

// SetPeers sets the name under which this gateway restores lost intents, and a function that returns the names of all live gateways. Unlike
// Gateway, the name stays the same when the process restarts. alive must be nil if no other gateway can share the store. SetPeers must be
// called before the tracker is used.
func (d *Tracker) SetPeers(name string, alive func() []string) {
	d.alive = alive
	d.store.SetPeers(name, d.memory.all, d.peers)
}

// peers returns the names of the gateways that a recovery waits for.
func (d *Tracker) peers() []string {
	switch {
	case d.alive == nil:
		return nil
	case time.Since(d.started) < leaseDuration:
		return append(d.alive(), unknownPeer)
	}
	return d.alive()
}

// Keys returns the store keys that equal requests without an idempotency key share. digest is the digest of the caller, the operation and
// the fingerprint.
func (d *Tracker) Keys(org, owner, digest string) filter.DedupKeys {
	return filter.DedupKeys{Org: org, Owner: owner, Pending: "w" + digest, Response: "a-", Lookalikes: "l-"}
}

// KeysFor returns the store keys that requests with the same idempotency key share. digest is the digest of the caller, the operation and
// the idempotency key.
func (d *Tracker) KeysFor(org, owner, digest string) filter.DedupKeys {
	return filter.DedupKeys{Org: org, Owner: owner, Pending: "wk" + digest, Response: "a" + digest, Lookalikes: "l-"}
}

// orgPrefix returns the prefix of an organisation's keys.
func (d *Tracker) orgPrefix(org string) string { return d.prefix + "{" + org + "}:" }

// Note returns a message that records an intent as part of another store operation, such as a reservation. Intents listed in separate do
// not prevent the recording; see TryRecord.
func (d *Tracker) Note(w *filter.DedupKeys, i *filter.Intent, separate []string) *ledger.IntentRecord {
	i.Gateway = d.Gateway
	return &ledger.IntentRecord{
		Org: w.Org, Fingerprint: w.Pending, Lookalike: w.Lookalikes, Response: w.Response, Intent: i.ID,
		Row: i.Encode(), Owner: w.Owner, Ignored: append(d.outbox.endedIntents(w.Org, w.Pending), separate...),
	}
}

// TryRecord records an intent if the store has no response and no other intents under its keys. It ignores the intents listed in separate,
// whose requests are known to be separate from this one. It returns the response and the other intents found under these keys. If the
// intent has no ID, TryRecord only reads.
func (d *Tracker) TryRecord(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, separate []string) (filter.Pending, error) {
	n := &ledger.IntentRecord{
		Org: w.Org, Fingerprint: w.Pending, Lookalike: w.Lookalikes, Response: w.Response,
		Ignored: d.outbox.endedIntents(w.Org, w.Pending),
	}
	if i.ID != "" {
		n = d.Note(w, i, separate)
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
			return filter.Pending{}, fmt.Errorf("stored response: %w", err)
		}
	}
	return seen, nil
}

// Enter registers a request that is about to record the intent with the given ID. While its caller is connected, identical requests on this
// gateway are treated as separate requests, not as repeats. The caller of Enter calls done, which ends the registration unless Track has
// been called.
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

// Waiting returns the intents under the given keys whose callers are connected to this gateway.
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

// Track registers a recorded intent. noted is the time, by this gateway's clock, at which the recording was started. caller is canceled
// when the caller disconnects.
func (d *Tracker) Track(caller context.Context, w *filter.DedupKeys, i filter.Intent, noted time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracked[i.ID] = &trackedIntent{wish: *w, intent: i, caller: caller, noted: noted}
	d.memory.begin(w, &i)
}

// MaySend reports whether the call of an intent may be sent. It returns false if this gateway's lease may have expired since the intent was
// recorded: another gateway may then have declared this gateway dead and sent the call of a repeat.
func (d *Tracker) MaySend(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.tracked[id]
	return h == nil || elapsed(h.noted, time.Now()) <= leaseDuration/2 || d.lease.held(h.noted, time.Now())
}

// CallerStatus reports whether the caller of another intent is still connected. If queriedAt is zero, it uses only what this gateway knows
// and the lease of the gateway that executes the intent. Otherwise it also asks the executing gateway, and accepts replies to queries made
// at or after queriedAt, by the store's clock.
func (d *Tracker) CallerStatus(ctx context.Context, org string, i *filter.Intent, queriedAt time.Time) filter.CallerStatus {
	if i.Abandoned || i.Unresolved {
		return filter.CallerGone
	}
	if i.Gateway != d.Gateway {
		if !queriedAt.IsZero() && d.queryCaller(ctx, org, i.ID, queriedAt) {
			return filter.CallerConnected
		}
		if _, dead := d.Dead(ctx, i.Gateway); dead {
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
		return filter.CallerUnknown // its outcome will be written soon
	default:
		return filter.CallerGone
	}
}

// GatewayGone reports whether the gateway that recorded an intent has been dead for at least a minute. After that minute, the platform's
// lists contain the resource if the call created one.
func (d *Tracker) GatewayGone(ctx context.Context, i *filter.Intent) bool {
	if i.Unresolved || i.Gateway == d.Gateway {
		return false
	}
	silent, dead := d.Dead(ctx, i.Gateway)
	return dead && silent >= propagationDelay
}

// Adopt transfers the resource of an abandoned intent to this request, and returns the intent in its new state. ctx must be canceled when
// the caller of this request disconnects. The second result is false if another request has adopted the resource.
func (d *Tracker) Adopt(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, resource string) (filter.Intent, bool, error) {
	mine := *i
	mine.Gateway, mine.Abandoned, mine.Unresolved, mine.Resource = d.Gateway, false, false, resource
	mine.Adoptions++
	mine = mine.Restored()
	letGo := d.reserveLocally(&trackedIntent{wish: *w, intent: mine, caller: ctx, noted: time.Now()})
	if letGo == nil {
		return filter.Intent{}, false, nil
	}
	replaced, err := d.store.End(ctx, d.ending(w, i, &filter.IntentUpdate{Next: &mine, Unindex: true}))
	if err != nil || !replaced {
		letGo()
		return filter.Intent{}, false, err
	}
	d.memory.begin(w, &mine)
	return mine, true, nil
}

// reserveLocally registers an adoption before it is written to the store, so that no other request on this gateway sees the resource as
// unowned. It returns nil if another request has adopted the resource or is doing so.
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

// Claim assigns a resource to the given intent, unless another intent already has the resource or may have created it. It reports whether
// the given intent now has the resource.
func (d *Tracker) Claim(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, resource string) (bool, error) {
	return d.store.Claim(ctx, &ledger.Claim{
		Org: w.Org, Created: "m" + resource, Lookalike: w.Lookalikes, Intent: i.ID,
		Owner: w.Owner, Named: i.Name != "",
	})
}

// Ending returns the message that ends or updates an intent as part of another store operation, such as a settlement. The caller must call
// MarkEnded after the message has been written, or EndAsync if the write failed.
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
		Org: w.Org, Created: "m" + cmp.Or(e.Resource, "-"), Fingerprint: w.Pending, Lookalike: w.Lookalikes, Response: w.Response,
		Intent: i.ID, OldRow: i.Raw(),
		SetCreated: e.Resource != "", UnsetLookalike: e.Unindex,
	}
	if e.Next != nil {
		out.Row = e.Next.Restored().Raw()
	}
	if e.Response != nil {
		text, err := json.Marshal(e.Response)
		if err != nil { // cannot fail: strings and numbers
			panic(err)
		}
		out.Text = string(text)
	}
	return out
}

// End writes the new state of an intent to the store. If the write fails, End calls EndAsync, which retries the write in the background,
// and returns the error. In both cases, the tracker stops tracking the intent, unless the request continues to own the intent.
func (d *Tracker) End(ctx context.Context, w *filter.DedupKeys, i *filter.Intent, e *filter.IntentUpdate) error {
	if _, err := d.store.End(ctx, d.Ending(w, d.current(i), e)); err != nil {
		d.EndAsync(w, i, e)
		return err
	}
	d.MarkEnded(i, e)
	return nil
}

// EndAsync queues the new state of an intent. The write runs in the background and is retried until the store accepts it.
func (d *Tracker) EndAsync(w *filter.DedupKeys, i *filter.Intent, e *filter.IntentUpdate) {
	if !d.outbox.add(d.Ending(w, d.current(i), e)) {
		d.logger.Warn("outcome queue is full, dropping the outcome of a call; a retry of the request might not find the created resource",
			"org", w.Org, "intent", i.ID)
	}
	d.MarkEnded(i, e)
}

// MarkEnded updates the tracker after another store operation has written the end of an intent.
func (d *Tracker) MarkEnded(i *filter.Intent, e *filter.IntentUpdate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.tracked[i.ID]
	switch {
	case h == nil || h.intent.Adoptions != i.Adoptions: // adopted by another request
	case e.Next == nil || e.Next.Abandoned || e.Next.Unresolved:
		delete(d.tracked, i.ID)
	default:
		h.intent = e.Next.Restored()
	}
}

// current returns the intent as it is stored now, or i itself if another request has adopted it.
func (d *Tracker) current(i *filter.Intent) *filter.Intent {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.tracked[i.ID]; h != nil && h.intent.Adoptions == i.Adoptions {
		out := h.intent
		return &out
	}
	return i
}
