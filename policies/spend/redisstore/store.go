package redisstore

import (
	"context"
	_ "embed"
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

	"github.com/tollgate-dev/tollgate/policies/spend"
)

var (
	//go:embed common.lua
	common string
	//go:embed reserve.lua
	reserveSource string
	//go:embed settle.lua
	settleSource string
	//go:embed adjust.lua
	adjustSource string
	//go:embed rebuild.lua
	rebuildSource string
	//go:embed post.lua
	postSource string
)

// Store is a [spend.Store] in Redis. It is safe for concurrent use. It does not own
// its client.
type Store struct {
	client                           redis.UniversalClient
	prefix                           string
	zones                            spend.Zones
	clock                            atomic.Int64 // the latest time that was seen, in Unix milliseconds
	reserve, settle, adjust, rebuild *redis.Script
	post                             *redis.Script

	mu   sync.Mutex // guards seen
	seen map[string]position
}

var _ spend.Store = (*Store)(nil)

// position names a state of a ledger; later ones are larger.
type position struct{ epoch, seq int64 }

// New returns a store whose keys begin with prefix, with the zones of organisations.
// It does not dial.
func New(client redis.UniversalClient, prefix string, zones spend.Zones) *Store {
	script := func(source string) *redis.Script { return redis.NewScript(common + source) }
	return &Store{
		client: client, prefix: prefix, zones: zones, seen: make(map[string]position),
		reserve: script(reserveSource), settle: script(settleSource), adjust: script(adjustSource), rebuild: script(rebuildSource),
		post: script(postSource),
	}
}

// keys are those of an organisation, as common.lua lists them. An organisation's id
// has no braces; see ratelimit.CheckID.
func (s *Store) keys(org string) []string {
	stem := s.prefix + "{" + org + "}:"
	return []string{stem + "accounts", stem + "resources", stem + "holds", stem + "ended", stem + "changes"}
}

// with adds a key to those of an organisation, "" for none.
func (s *Store) with(org, key string) []string {
	if key == "" {
		return s.keys(org)
	}
	return append(s.keys(org), key)
}

// notices is the key of what spend.Notices remembers of an organisation.
func (s *Store) notices(org string) string { return s.prefix + "{" + org + "}:notices" }

// Noticed implements spend.Notices.
func (s *Store) Noticed(ctx context.Context, org string) (map[string]string, error) {
	list, err := s.client.HGetAll(ctx, s.notices(org)).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", spend.ErrUnavailable, err)
	}
	return list, nil
}

// Notice implements spend.Notices.
func (s *Store) Notice(ctx context.Context, org, name, value string) error {
	var cmd redis.Cmder
	if value == "" {
		cmd = s.client.HDel(ctx, s.notices(org), name)
	} else {
		cmd = s.client.HSet(ctx, s.notices(org), name, value)
	}
	if err := cmd.Err(); err != nil {
		return fmt.Errorf("%w: %w", spend.ErrUnavailable, err)
	}
	return nil
}

// Reserve implements spend.Store.
func (s *Store) Reserve(ctx context.Context, org string, r *spend.Reservation) (spend.Outcome, error) {
	horizon := int64(-1)
	if r.Horizon != spend.Period {
		horizon = r.Horizon.Duration().Milliseconds()
	}
	args := []any{
		s.numbers(org, append([]int64{flag(r.Free), horizon}, clamped(r.After)...)...),
		r.Hold, r.Kind, r.Resource, r.Owner.Team, r.Owner.Key, about(r.About),
	}
	for _, limits := range r.Limits {
		args = append(args, join(limits[:]))
	}
	reply, err := s.run(ctx, s.reserve, org, s.with(org, r.Unless), args)
	if err != nil {
		return spend.Outcome{}, fmt.Errorf("reserve: %w", err)
	}
	out := spend.Outcome{Status: spend.Status(reply.status), Now: reply.now, Ends: s.zones.Of(org).Ends(reply.now)}
	switch {
	case out.Status == spend.OtherOwner && len(reply.rest) == 2:
		out.Owner = spend.Owner{Team: reply.rest[0], Key: reply.rest[1]}
	case out.Status <= spend.Refused && len(reply.rest) == 3+len(r.Limits):
		passed, err := split(reply.rest[2], 2)
		if err != nil {
			return spend.Outcome{}, err
		}
		out.Scope, out.Ceiling = int(passed[0]), int(passed[1])
		for _, text := range reply.rest[3:] {
			n, err := split(text, 3*spend.Ceilings)
			if err != nil {
				return spend.Outcome{}, err
			}
			var levels [spend.Ceilings]spend.Level
			for i := range levels {
				levels[i] = spend.Level{Used: n[3*i], Reserved: n[3*i+1], Needs: n[3*i+2]}
			}
			out.Levels = append(out.Levels, levels)
		}
	case out.Status <= spend.OtherOwner:
		return spend.Outcome{}, errReply
	}
	return out, nil
}

// Settle implements spend.Store.
func (s *Store) Settle(ctx context.Context, org string, p *spend.Settlement) error {
	args := []any{
		s.numbers(org, append([]int64{int64(p.End), p.Wait.Milliseconds(), flag(p.Gone), flag(p.Full)}, clamped(p.Amounts)...)...),
		p.Hold, p.Kind, p.Resource, p.Owner.Team, p.Owner.Key, about(p.About), p.As,
	}
	keys := s.keys(org)
	if m := p.Mark; m != nil {
		keys, args = append(keys, m.Key), append(args, m.Value, m.Keep.Milliseconds())
	}
	_, err := s.run(ctx, s.settle, org, keys, args)
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

// Adjust implements spend.Store.
func (s *Store) Adjust(ctx context.Context, org string, a *spend.Adjustment) (bool, error) {
	var owner spend.Owner
	if a.Owner != nil {
		owner = *a.Owner
	}
	numbers := append([]int64{a.Version, flag(a.Gone)}, clamped(a.Amounts)...)
	reply, err := s.run(ctx, s.adjust, org, s.keys(org), []any{
		s.numbers(org, append(numbers, flag(a.Owner != nil))...), a.Kind, a.Resource, about(a.About), owner.Team, owner.Key,
	})
	if err != nil {
		return false, fmt.Errorf("adjust: %w", err)
	}
	return reply.status == 1, nil
}

// Begin implements spend.Store.
func (s *Store) Begin(ctx context.Context, org, token string) error {
	_, err := s.rebuilt(ctx, org, token, false)
	return err
}

// Finish implements spend.Store.
func (s *Store) Finish(ctx context.Context, org, token string) (bool, error) {
	return s.rebuilt(ctx, org, token, true)
}

func (s *Store) rebuilt(ctx context.Context, org, token string, finish bool) (bool, error) {
	reply, err := s.run(ctx, s.rebuild, org, s.keys(org), []any{s.numbers(org, flag(finish)), token})
	if err != nil {
		return false, fmt.Errorf("rebuild: %w", err)
	}
	return reply.status == 1, nil
}

// reply is what every script returns.
type reply struct {
	status int64
	now    time.Time
	rest   []string
}

var errReply = errors.New("a script of the ledger answered what it does not answer")

// stale is the status of every script that was given a calendar without the present.
const stale = -1

// run runs a script. A failed one may have run: every script can be repeated.
func (s *Store) run(ctx context.Context, script *redis.Script, org string, keys []string, args []any) (r reply, err error) {
	for range 3 { // the clock can be anywhere once, and pass midnight meanwhile
		c := s.zones.Of(org).Calendar(time.UnixMilli(s.clock.Load()))
		r, err = s.once(ctx, script, org, keys, append(args, join(slices.Concat(c[:]...))))
		if err != nil || r.status != stale {
			return r, err
		}
	}
	return reply{}, fmt.Errorf("%w: its clock leaps", spend.ErrUnavailable)
}

func (s *Store) once(ctx context.Context, script *redis.Script, org string, keys []string, args []any) (reply, error) {
	list, err := script.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", spend.ErrUnavailable, err)
	}
	if len(list) < 2 {
		return reply{}, errReply
	}
	var r reply
	var ok bool
	if r.status, ok = list[0].(int64); !ok {
		return reply{}, errReply
	}
	texts := make([]string, len(list)-1)
	for i, v := range list[1:] {
		if texts[i], ok = v.(string); !ok {
			return reply{}, errReply
		}
	}
	n, err := split(texts[0], 3)
	if err != nil {
		return reply{}, err
	}
	s.saw(org, position{n[0], n[1]})
	r.now, r.rest = time.UnixMilli(n[2]), texts[1:]
	s.clock.Store(n[2])
	return r, nil
}

// saw notes the latest state of a ledger.
func (s *Store) saw(org string, p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.seen[org]; p.epoch > was.epoch || p.epoch == was.epoch && p.seq > was.seq {
		s.seen[org] = p
	}
}

// numbers is the first argument of a script: the latest state seen, and others.
func (s *Store) numbers(org string, others ...int64) string {
	s.mu.Lock()
	p := s.seen[org]
	s.mu.Unlock()
	return join(append([]int64{p.epoch, p.seq}, others...))
}

func join(list []int64) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// split reads at least n integers.
func split(text string, n int) ([]int64, error) {
	fields := strings.Fields(text)
	if len(fields) < n {
		return nil, errReply
	}
	list := make([]int64, len(fields))
	for i, f := range fields {
		var err error
		if list[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	return list, nil
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

func clamped(a spend.Amounts) []int64 {
	a = a.Clamped()
	return a[:]
}

// about is one line of text.
func about(a spend.About) string {
	text, err := json.Marshal(a)
	if err != nil { // strings always encode
		panic(err)
	}
	return string(text)
}
