package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Intents stores the intents of organisations, which are records of pending requests, in Redis. Each method is atomic and safe to repeat.
// Intents is safe for concurrent use and does not close its client.
//
// Redis may lose intents. Each gateway knows the epoch of an organisation's intents and the number of its own writes, so that the next call
// detects the loss. The intents are then incomplete until every gateway has restored the intents that it remembers. Calls that look for
// intents wait until then.
type Intents struct {
	client                                     redis.Cmdable
	prefix, writer                             string
	update, claim, forget, recovery, restoring *redis.Script // update executes calls
	calls                                      *callGroup
	name                                       string // name of this gateway
	remembered                                 func(org string) []ledger.RestoredIntent
	peers                                      func() []string

	answered atomic.Int64 // epoch of the latest announcement that was handled

	mu   sync.Mutex // guards orgs
	orgs map[string]*intents
}

// intents is the known state of an organisation's intents.
type intents struct {
	keys []string
	// epoch is the epoch for which this gateway has restored its intents, and writes the number of its writes in it.
	epoch, writes int64
	wrote         time.Time
	recovering    sync.Mutex // held by the call that recovers the intents
}

// NewIntents returns a store of intents with the given key prefix. It does not connect.
func NewIntents(client redis.Cmdable, prefix string) *Intents {
	script := func(name string) *redis.Script {
		return redis.NewScript(source("clock", "intent", "noting", "finishing", name))
	}
	s := &Intents{
		client: client, prefix: prefix, writer: newWriter(), update: script("update"), claim: script("claim"),
		forget: script("forget"), recovery: script("recover"), restoring: script("remember"), orgs: make(map[string]*intents),
	}
	s.calls = newCallGroup(client, s.together)
	return s
}

// SetPeers sets the name of this gateway and two functions. remembered returns the intents of an organisation that this gateway remembers,
// and peers returns the names of the gateways that a recovery waits for. SetPeers must be called before the store is used.
func (s *Intents) SetPeers(name string, remembered func(org string) []ledger.RestoredIntent, peers func() []string) {
	s.name, s.remembered, s.peers = name, remembered, peers
}

// of returns the known state of an organisation's intents. The caller holds mu.
func (s *Intents) of(org string) *intents {
	o := s.orgs[org]
	if o == nil {
		stem := s.prefix + "{" + org + "}:"
		o = &intents{keys: []string{stem + "intents", stem + "recent"}}
		s.orgs[org] = o
	}
	return o
}

// opening returns the keys and the first arguments of a script for an organisation's intents; see openIntents in intent.lua.
func (s *Intents) opening(org string) (keys []string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(org)
	if time.Since(o.wrote) > writesKept {
		o.writes = 0
	}
	return o.keys, []any{s.writer, integers(o.epoch, o.writes)}
}

// saw records the number of this gateway's writes in an epoch.
func (s *Intents) saw(org string, epoch, writes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.of(org); epoch == o.epoch && writes > o.writes {
		o.writes, o.wrote = writes, time.Now()
	}
}

// RecordResult is the result of [Intents.Record].
type RecordResult struct {
	// Now is the store's clock. Sent is the time when the request was sent to the store, by this gateway's clock.
	Now, Sent time.Time
	// Response is the stored response, or "".
	Response string
	// Others are the rows of other intents with the same fingerprint, by ID.
	Others map[string]string
}

// Record records an intent. It records nothing if the fingerprint has a response or another intent that is not ignored.
func (s *Intents) Record(ctx context.Context, n *ledger.IntentRecord) (RecordResult, error) {
	c := call{texts: append(append([]string{"note", n.Response}, noteArgs(n)...), strings.Join(n.Ignored, " "))}
	r, err := s.calls.do(ctx, n.Org, c)
	for ; err == nil && r.status == 0; r, err = s.calls.do(ctx, n.Org, c) {
		if err := s.Recover(ctx, n.Org); err != nil {
			return RecordResult{}, err
		}
	}
	if err != nil {
		return RecordResult{}, fmt.Errorf("record intent: %w", err)
	}
	if len(r.texts)%2 != 1 {
		return RecordResult{}, errReply
	}
	out := RecordResult{Now: r.now, Sent: r.sent, Response: r.texts[0], Others: make(map[string]string, len(r.texts)/2)}
	for i := 1; i < len(r.texts); i += 2 {
		out.Others[r.texts[i]] = r.texts[i+1]
	}
	return out, nil
}

// noteArgs returns the arguments of noteIntent in noting.lua.
func noteArgs(n *ledger.IntentRecord) []string {
	return []string{n.Fingerprint, n.Lookalike, n.Intent, n.Row, n.Owner}
}

// End ends an intent or replaces its row, and reports whether the row was replaced.
func (s *Intents) End(ctx context.Context, e *ledger.IntentUpdate) (replaced bool, err error) {
	r, err := s.calls.do(ctx, e.Org, endCall(e))
	if err != nil {
		return false, fmt.Errorf("end intent: %w", err)
	}
	return r.status == 1, nil
}

// EndAll ends intents of one organisation or replaces their rows.
func (s *Intents) EndAll(ctx context.Context, all []ledger.IntentUpdate) error {
	calls := make([]*call, len(all))
	for i := range all {
		c := endCall(&all[i])
		calls[i] = &c
	}
	if err := s.together(ctx, calls); err != nil {
		return fmt.Errorf("end intents: %w", err)
	}
	return nil
}

func endCall(e *ledger.IntentUpdate) call {
	return call{org: e.Org, texts: append([]string{"finish"}, endArgs(e)...)}
}

// together executes calls in one script.
func (s *Intents) together(ctx context.Context, calls []*call) error {
	args := make([]any, 0, 10*len(calls))
	for _, c := range calls {
		for i := range c.texts {
			args = append(args, &c.texts[i]) // a pointer avoids an allocation
		}
	}
	list, now, sent, err := s.run(ctx, s.update, calls[0].org, args, false)
	if err != nil {
		return err
	}
	if len(list) != len(calls) {
		return errReply
	}
	for i, c := range calls {
		one, _ := list[i].([]any)
		if c.reply, err = decodeReply(one); err != nil {
			return err
		}
		c.reply.now, c.reply.sent = now, sent
	}
	return nil
}

// endArgs returns the arguments of finish in finishing.lua.
func endArgs(e *ledger.IntentUpdate) []string {
	what := make([]byte, 0, 3)
	for _, field := range []struct {
		mark byte
		set  bool
	}{{'m', e.SetCreated}, {'l', e.UnsetLookalike}, {'a', e.Text != ""}} {
		if field.set {
			what = append(what, field.mark)
		}
	}
	return []string{e.Created, e.Fingerprint, e.Lookalike, e.Response, e.Intent, e.OldRow, e.Row, string(what), e.Text}
}

// Claim assigns a resource to an intent, and reports whether the resource belongs to the intent.
func (s *Intents) Claim(ctx context.Context, c *ledger.Claim) (bool, error) {
	list, _, _, err := s.run(ctx, s.claim, c.Org, []any{c.Created, c.Lookalike, c.Intent, c.Owner, flag(c.Named)}, true)
	if err != nil {
		return false, fmt.Errorf("claim resource: %w", err)
	}
	if n, ok := list[0].(int64); ok && len(list) == 1 {
		return n == 1, nil
	}
	return false, errReply
}

// Forget removes intents whose calls have created nothing.
func (s *Intents) Forget(ctx context.Context, org string, ids ...string) error {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	if _, _, _, err := s.run(ctx, s.forget, org, args, false); err != nil {
		return fmt.Errorf("remove intents: %w", err)
	}
	return nil
}

// run runs a script and returns its reply without the head, the store's clock, and the time of sending. If whole is set, it waits until
// the intents are complete.
func (s *Intents) run(
	ctx context.Context, script *redis.Script, org string, args []any, whole bool,
) (reply []any, now, sent time.Time, err error) {
	for {
		sent = time.Now()
		keys, first := s.opening(org)
		list, err := script.Run(ctx, s.client, keys, append(first, args...)...).Slice()
		if err != nil {
			return nil, now, sent, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		known, head, err := s.head(org, list)
		if err != nil {
			return nil, now, sent, err
		}
		if known || !whole {
			return list[2:], time.UnixMilli(head[2]), sent, nil
		}
		if err := s.Recover(ctx, org); err != nil {
			return nil, now, sent, err
		}
	}
}

// head decodes the first two elements of a reply: whether the intents are known, and [epoch, writes, now].
func (s *Intents) head(org string, list []any) (known bool, head []int64, err error) {
	if len(list) < 2 {
		return false, make([]int64, 3), errReply
	}
	status, ok1 := list[0].(int64)
	text, ok2 := list[1].(string)
	head, err = split(text, 3)
	if err != nil || !ok1 || !ok2 {
		return false, make([]int64, 3), errors.Join(errReply, err)
	}
	s.saw(org, head[0], head[1])
	return status == 1, head, nil
}
