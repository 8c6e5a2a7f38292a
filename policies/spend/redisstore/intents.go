package redisstore

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

var (
	//go:embed intent.lua
	intentSource string
	//go:embed note.lua
	noteSource string
	//go:embed end.lua
	endSource string
	//go:embed claim.lua
	claimSource string
)

// Intents keeps intents in Redis: with the ledger's holds where there are budgets, by
// themselves otherwise. Each method is one atomic step and safe to repeat. It is safe
// for concurrent use, and does not own its client.
type Intents struct {
	client           redis.Cmdable
	note, end, claim *redis.Script
}

// NewIntents returns a store of intents. It does not dial.
func NewIntents(client redis.Cmdable) *Intents {
	script := func(source string) *redis.Script { return redis.NewScript(intentSource + source) }
	return &Intents{client: client, note: script(noteSource), end: script(endSource), claim: script(claimSource)}
}

// Noted holds the intents found under a wish.
type Noted struct {
	// Now is the store's clock.
	Now time.Time
	// Answer is the stored answer.
	Answer string
	// Others are the rows of other intents, by their ids.
	Others map[string]string
}

// Note notes an intent, unless there is an answer or another intent of the wish, but for
// those that are past.
func (s *Intents) Note(ctx context.Context, n *spend.Note) (Noted, error) {
	args := append([]any{strings.Join(n.Past, " ")}, noteArgs(n)...)
	list, err := s.note.Run(ctx, s.client, []string{n.Wish, n.Like, n.Answer}, args...).StringSlice()
	if err != nil {
		return Noted{}, fmt.Errorf("note: %w: %w", spend.ErrUnavailable, err)
	}
	if len(list) < 2 || len(list)%2 != 0 {
		return Noted{}, errReply
	}
	ms, err := strconv.ParseInt(list[0], 10, 64)
	if err != nil {
		return Noted{}, errReply
	}
	out := Noted{Now: time.UnixMilli(ms), Answer: list[1], Others: make(map[string]string, len(list)/2-1)}
	for i := 2; i < len(list); i += 2 {
		out.Others[list[i]] = list[i+1]
	}
	return out, nil
}

// noteArgs are the arguments of noteIntent in intent.lua.
func noteArgs(n *spend.Note) []any {
	return []any{n.Intent, n.Row, n.Owner, n.TTL.Milliseconds()}
}

// End has intents of one organisation go on, and returns how many rows were replaced.
func (s *Intents) End(ctx context.Context, all []spend.Ending) (int, error) {
	keys, args := make([]string, 0, 4*len(all)), make([]any, 0, 6*len(all))
	for i := range all {
		keys, args = append(keys, endKeys(&all[i])...), append(args, endArgs(&all[i])...)
	}
	n, err := s.end.Run(ctx, s.client, keys, args...).Int()
	if err != nil {
		return 0, fmt.Errorf("end: %w: %w", spend.ErrUnavailable, err)
	}
	return n, nil
}

func endKeys(e *spend.Ending) []string { return []string{e.Made, e.Wish, e.Like, e.Answer} }

// endArgs are the arguments of finish in intent.lua.
func endArgs(e *spend.Ending) []any {
	what := make([]byte, 0, 3)
	for _, key := range []struct {
		mark byte
		set  bool
	}{{'m', e.Known}, {'l', e.Unlike}, {'a', e.Text != ""}} {
		if key.set {
			what = append(what, key.mark)
		}
	}
	return []any{e.Intent, e.Was, e.Row, what, e.Text, e.TTL.Milliseconds()}
}

// Claim reports whether a resource is an intent's.
func (s *Intents) Claim(ctx context.Context, c *spend.Claim) (bool, error) {
	n, err := s.claim.Run(ctx, s.client, []string{c.Made, c.Like}, c.Intent, c.Owner, flag(c.Named), c.TTL.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("claim: %w: %w", spend.ErrUnavailable, err)
	}
	return n == 1, nil
}
