package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Store is a [ledger.Store] in Redis. It is safe for concurrent use. It does not close its client.
type Store struct {
	client                           redis.Cmdable
	prefix                           string
	writer                           string // unique name of the Store
	zones                            ledger.Zones
	clock                            atomic.Int64  // latest known time, in Unix milliseconds
	script, adjust, rebuild, restore *redis.Script // script executes calls
	post, repair, offer, shut        *redis.Script
	accrual                          *redis.Script
	calls                            *callGroup
	server                           *limits.Server // nil if any server is trusted
	// Intents stores the intents of reservations.
	Intents *Intents
	// Now is the clock that measures how long the Store remembers its own writes.
	Now func() time.Time

	mu      sync.Mutex // guards ledgers and their contents
	ledgers map[string]*orgLedger
}

var _ ledger.Store = (*Store)(nil)

// orgLedger holds the known facts about an organisation's ledger.
type orgLedger struct {
	// keys are the keys in the order of ledger.lua.
	keys []string
	// seen is the latest known position, and wrote the time of the Store's latest write. gatewayLost is the server epoch for which the
	// ledger was closed.
	seen        position
	wrote       time.Time
	gatewayLost int64
	// passing contains an element while a pass of this Store has the lock or waits for it.
	passing chan struct{}
	// zone, days and calendar are the periods last sent to the scripts: the encoded calendar of the day between days.
	zone     ledger.Zone
	days     [2]int64
	calendar string
}

// New returns a store with the given key prefix and the zones of organisations. It does not connect.
func New(client redis.Cmdable, prefix string, zones ledger.Zones) *Store {
	s := &Store{
		Now: time.Now, client: client, prefix: prefix, writer: newWriter(), zones: zones, Intents: NewIntents(client, prefix),
		ledgers: make(map[string]*orgLedger),
		script:  callsScript(),
		adjust:  script("adjust"), rebuild: script("rebuild"), restore: script("restore"),
		post: script("post"), repair: script("repair"), offer: script("offer"), shut: script("close"),
		accrual: script("accrual"),
	}
	s.calls = newCallGroup(client, s.together)
	return s
}

// of returns the ledger of an organisation. The caller holds s.mu. The ID of an organisation contains no braces; see ratelimit.CheckID.
func (s *Store) of(org string) *orgLedger {
	l := s.ledgers[org]
	if l == nil {
		stem := s.prefix + "{" + org + "}:"
		l = &orgLedger{
			keys:    []string{stem + "accounts", stem + "resources", stem + "holds", stem + "ended", stem + "changes"},
			passing: make(chan struct{}, 1),
		}
		s.ledgers[org] = l
	}
	return l
}

// keys returns the keys of an organisation's ledger, followed by others.
func (s *Store) keys(org string, others ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.of(org).keys
	return append(slices.Clip(keys), others...)
}

// notices returns the key of an organisation's values in the NoticeStore.
func (s *Store) notices(org string) string { return s.prefix + "{" + org + "}:notices" }

// Noticed implements ledger.NoticeStore.
func (s *Store) Noticed(ctx context.Context, org string) (map[string]string, error) {
	list, err := s.client.HGetAll(ctx, s.notices(org)).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return list, nil
}

// Notice implements ledger.NoticeStore.
func (s *Store) Notice(ctx context.Context, org, name, value string) error {
	var cmd redis.Cmder
	if value == "" {
		cmd = s.client.HDel(ctx, s.notices(org), name)
	} else {
		cmd = s.client.HSet(ctx, s.notices(org), name, value)
	}
	if err := cmd.Err(); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return nil
}

// Reserve implements ledger.Store.
func (s *Store) Reserve(ctx context.Context, org string, r *ledger.Reservation) (ledger.Outcome, error) {
	horizon := int64(-1)
	if r.Horizon != ledger.UntilPeriodEnd {
		horizon = r.Horizon.Duration().Milliseconds()
	}
	after := r.After.Clamped()
	c := newCall(r.Hold, r.Kind, r.Resource, r.Owner.Team, r.Owner.Key, encodeMetadata(r.Metadata), r.Holder.String())
	c.numbers = append(append(c.numbers, flag(r.Free), horizon), after[:]...)
	for i := range r.Limits {
		c.numbers = appendCeilings(c.numbers, &r.Limits[i])
	}
	if n := r.Intent; n != nil {
		c.intent = true
		c.texts = append(append(append(c.texts, n.Response), noteArgs(n)...), strings.Join(n.Ignored, " "))
	}
	ask := func() (reply, error) { return s.reserved(ctx, org, c) }
	var reply reply
	var err error
	if r.Free {
		reply, err = ask()
	} else {
		reply, err = s.onSameServer(ctx, org, ask)
	}
	if err != nil {
		return ledger.Outcome{}, fmt.Errorf("reserve: %w", err)
	}
	out := ledger.Outcome{
		Status: ledger.Status(reply.status), Now: reply.now, Sent: reply.sent, Epoch: reply.epoch,
		Ends: s.zones.Of(org).Ends(reply.now),
	}
	switch {
	case out.Status == ledger.OtherOwner && len(reply.texts) == 2:
		out.Owner = ledger.Owner{Team: reply.texts[0], Key: reply.texts[1]}
	case out.Status <= ledger.Refused && len(reply.numbers) >= 2+ledger.Dimensions:
		n := reply.numbers
		out.Scope, out.Ceiling, out.Held = int(n[0]), int(n[1]), ledger.Amounts(n[2:])
		if out.Levels = levels(r.Limits, n[2+ledger.Dimensions:]); out.Levels == nil {
			return ledger.Outcome{}, errReply
		}
	case out.Status <= ledger.OtherOwner:
		return ledger.Outcome{}, errReply
	}
	return out, nil
}

// appendCeilings appends the number of a scope's ceilings, then the index (from 1) and the limit of each.
func appendCeilings(numbers []int64, limits *[ledger.Ceilings]int64) []int64 {
	at := len(numbers)
	numbers = append(numbers, 0)
	for i, limit := range limits {
		if limit > 0 {
			numbers[at]++
			numbers = append(numbers, int64(i+1), limit)
		}
	}
	return numbers
}

// levels decodes three numbers for each ceiling with a limit. It returns nil if the count of numbers differs.
func levels(limits [][ledger.Ceilings]int64, n []int64) [][ledger.Ceilings]ledger.Level {
	all := make([][ledger.Ceilings]ledger.Level, len(limits))
	for i := range limits {
		for c, limit := range limits[i] {
			if limit == 0 {
				continue
			}
			if len(n) < 3 {
				return nil
			}
			all[i][c], n = ledger.Level{Used: n[0], Reserved: n[1], Needs: n[2]}, n[3:]
		}
	}
	return all
}

// reserved makes a reservation. If intents were lost, it recovers them first.
func (s *Store) reserved(ctx context.Context, org string, c call) (reply, error) {
	for {
		r, err := s.calls.do(ctx, org, c)
		if err != nil || ledger.Status(r.status) != ledger.IntentsLost {
			return r, err
		}
		if err := s.Intents.Recover(ctx, org); err != nil {
			return reply{}, err
		}
	}
}

// Settle implements ledger.Store.
func (s *Store) Settle(ctx context.Context, org string, p *ledger.Settlement) error {
	amounts := p.Amounts.Clamped()
	c := newCall(p.Hold, p.Kind, p.Resource, p.Owner.Team, p.Owner.Key, encodeMetadata(p.Metadata), p.NewID)
	c.settles = true
	c.numbers = append(append(append(c.numbers, int64(p.End), p.ResolveWithin.Milliseconds(), flag(p.Gone), flag(p.WholeReservation)),
		amounts[:]...), unixMilli(p.From))
	if e := p.Intent; e != nil {
		c.intent, c.texts = true, append(c.texts, endArgs(e)...)
	}
	if p.Job != nil {
		c.job = s.jobs(org, []ledger.Job{*p.Job})[0]
	}
	if _, err := s.calls.do(ctx, org, c); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

// Adjust implements ledger.Store.
func (s *Store) Adjust(ctx context.Context, org string, list ...*ledger.Adjustment) ([]ledger.AdjustResult, error) {
	made := make([]ledger.AdjustResult, 0, len(list))
	for part := range slices.Chunk(list, adjustSize) {
		some, err := s.adjusted(ctx, org, part)
		if err != nil {
			return nil, fmt.Errorf("adjust: %w", err)
		}
		made = append(made, some...)
	}
	return made, nil
}

// adjustSize is the number of adjustments made by one script, which takes about a millisecond.
const adjustSize = 64

func (s *Store) adjusted(ctx context.Context, org string, list []*ledger.Adjustment) ([]ledger.AdjustResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys := s.keys(org)
	args := append(make([]any, 0, 2+6*len(list)), s.known(org, int64(len(list)), ledger.OwnerRetention.Milliseconds()))
	for _, a := range list {
		var owner ledger.Owner
		if a.Owner != nil {
			owner = *a.Owner
		}
		keys = append(keys, s.prefix+"{"+org+"}:gone:"+a.Resource)
		amounts := a.Amounts.Clamped()
		numbers := slices.Concat([]int64{a.Version, flag(a.Gone)}, amounts[:], []int64{flag(a.Owner != nil), unixMilli(a.From)})
		args = append(args, integers(numbers...), a.Kind, a.Resource, encodeMetadata(a.Metadata), owner.Team, owner.Key)
	}
	reply, err := s.run(ctx, s.adjust, org, keys, args)
	if err != nil || len(reply.numbers) != len(list) {
		return nil, cmp.Or(err, errReply)
	}
	made := make([]ledger.AdjustResult, len(list))
	for i, n := range reply.numbers {
		made[i] = ledger.AdjustResult(n)
	}
	return made, nil
}

// BeginRebuild implements ledger.Store.
func (s *Store) BeginRebuild(ctx context.Context, org, token string) error {
	_, err := s.rebuilt(ctx, org, token, false)
	return err
}

// FinishRebuild implements ledger.Store.
func (s *Store) FinishRebuild(ctx context.Context, org, token string) (bool, error) {
	return s.rebuilt(ctx, org, token, true)
}

func (s *Store) rebuilt(ctx context.Context, org, token string, finish bool) (bool, error) {
	reply, err := s.run(ctx, s.rebuild, org, s.keys(org), []any{s.known(org, flag(finish)), token})
	if err != nil {
		return false, fmt.Errorf("rebuild ledger: %w", err)
	}
	return reply.status == 1, nil
}

// repairBatch is the largest number of scopes repaired by one script.
const repairBatch = 100

// Repair implements ledger.Store.
func (s *Store) Repair(ctx context.Context, org string, r *ledger.Repair) (bool, error) {
	version := r.Version
	for batch := range slices.Chunk(r.Differences, repairBatch) {
		args := []any{s.known(org, version), len(batch)}
		for _, d := range batch {
			args = append(args, nameOf(d.Scope), integers(slices.Concat(d.Committed[:], d.Reserved[:])...))
		}
		reply, err := s.run(ctx, s.repair, org, s.keys(org), args)
		if err != nil {
			return false, fmt.Errorf("repair sums: %w", err)
		}
		if reply.status != 1 {
			return false, nil
		}
		version++
	}
	return true, nil
}

// reply is the reply of a script, or of one call of calls.lua.
type reply struct {
	status int64
	epoch  int64
	now    time.Time
	sent   time.Time // by this gateway's clock, for a call
	// numbers and texts follow the head of the reply; calls are the replies of its calls.
	numbers []int64
	texts   []string
	calls   []reply
}

// newWriter returns a unique name for a store.
func newWriter() string { return rand.Text() }

// headSize is the number of numbers that follow the status of every reply; see head in common.lua.
const headSize = 6

var errReply = errors.New("unexpected reply from ledger script")

// stale is the status returned if the calendar sent to a script does not contain the current time.
const stale = -1

// lastArgs is the number of arguments added by run.
const lastArgs = 3

// run runs a script. A failed script may have been executed; all scripts are safe to repeat.
func (s *Store) run(ctx context.Context, script *redis.Script, org string, keys []string, args []any) (r reply, err error) {
	for range 3 { // the first calendar may be wrong, and midnight may pass meanwhile
		r, err = s.once(ctx, script, org, keys, append(args, s.writer, s.seen(org).writes, s.calendar(org)))
		if err != nil || r.status != stale {
			return r, err
		}
	}
	return reply{}, fmt.Errorf("%w: the Redis clock jumped", ledger.ErrUnavailable)
}

func (s *Store) once(ctx context.Context, script *redis.Script, org string, keys []string, args []any) (reply, error) {
	list, err := script.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	r, err := decodeReply(list)
	n := r.numbers
	if err != nil || len(n) < headSize {
		return reply{}, errReply
	}
	s.saw(org, position{n[0], n[1], n[3]})
	s.Intents.saw(org, n[4], n[5])
	s.clock.Store(n[2])
	r.epoch, r.now, r.numbers = n[0], time.UnixMilli(n[2]), n[headSize:]
	return r, nil
}

// decodeReply decodes a status, numbers, texts and the replies of calls.
func decodeReply(list []any) (r reply, err error) {
	n := make([]int64, 0, len(list))
	for _, v := range list {
		switch v := v.(type) {
		case int64:
			n = append(n, v)
		case string:
			r.texts = append(r.texts, v)
		case []any:
			one, err := decodeReply(v)
			if err != nil {
				return r, err
			}
			r.calls = append(r.calls, one)
		default:
			return r, errReply
		}
	}
	if len(n) == 0 {
		return r, errReply
	}
	r.status, r.numbers = n[0], n[1:]
	return r, nil
}

// calendar returns the encoded calendar of an organisation's current day, the last argument of its scripts. It is recomputed once a day
// and when the zone changes.
func (s *Store) calendar(org string) string {
	now, zone := s.clock.Load(), s.zones.Of(org)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of(org)
	if l.zone != zone || now < l.days[0] || now >= l.days[1] {
		c := zone.Calendar(time.UnixMilli(now))
		l.zone, l.days = zone, c.Day()
		l.calendar = string(integers(slices.Concat(c[:]...)...))
	}
	return l.calendar
}

// known returns the first argument of a script: the latest known epoch and sequence, followed by others.
func (s *Store) known(org string, others ...int64) []byte {
	p := s.seen(org)
	return integers(slices.Concat([]int64{p.epoch, p.seq}, others)...)
}

// integers encodes integers as a JSON array.
func integers(list ...int64) []byte {
	out := append(make([]byte, 0, 16+8*len(list)), '[')
	for i, n := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, n, 10)
	}
	return append(out, ']')
}

// split decodes a JSON array of at least n integers.
func split(text string, n int) ([]int64, error) {
	text, begins := strings.CutPrefix(text, "[")
	text, ends := strings.CutSuffix(text, "]")
	if !begins || !ends {
		return nil, errReply
	}
	list := make([]int64, 0, max(n, 8))
	for f := range strings.SplitSeq(text, ",") {
		i, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errReply, err)
		}
		list = append(list, i)
	}
	if len(list) < n {
		return nil, errReply
	}
	return list, nil
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// unixMilli returns a time in Unix milliseconds, 0 for the zero time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// encodeMetadata encodes metadata as one line of text.
func encodeMetadata(a ledger.Metadata) string {
	text, err := json.Marshal(a)
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return string(text)
}
