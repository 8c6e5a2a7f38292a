package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Limits of group commit: the number of concurrent scripts per organisation, and the number of calls per script, which takes about
// two milliseconds.
const (
	flights   = 2
	callBatch = 32
)

// call is a reservation or a settlement (see calls.lua), or records or ends an intent (see update.lua).
type call struct {
	org     string
	numbers []int64
	texts   []string
	until   time.Time // deadline of the caller, or zero

	// For a reservation or a settlement. job is the key of the owner of a job, or "".
	settles, intent bool
	job             string

	reply reply
	err   error
}

// newCall returns a call with its first texts, and with capacity for the texts of a reservation or settlement.
func newCall(texts ...string) call {
	return call{texts: append(make([]string, 0, 16), texts...), numbers: make([]int64, 0, 32)}
}

// tracer is a client that traces its commands. A shared script is traced for each of its calls.
type tracer interface {
	Span(ctx context.Context, name string) (end func())
}

// untraced is a context without values. Commands executed with it are not part of a trace.
type untraced struct{ context.Context } //nolint:containedctx // it is a context

// Value implements context.Context.
func (untraced) Value(any) any { return nil }

// callGroup combines concurrent calls of an organisation into scripts.
type callGroup struct {
	*ratelimit.Group[call]

	client redis.Cmdable
	// together executes calls of one organisation in one script, and sets their replies.
	together func(ctx context.Context, calls []*call) error
}

func newCallGroup(client redis.Cmdable, together func(ctx context.Context, calls []*call) error) *callGroup {
	g := &callGroup{client: client, together: together}
	g.Group = ratelimit.NewGroup(flights, callBatch, g.execute)
	return g
}

// do executes a call, together with calls of the same organisation that are waiting.
func (g *callGroup) do(ctx context.Context, org string, c call) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if t, ok := g.client.(tracer); ok {
		defer t.Span(ctx, "evalsha")()
	}
	c.org = org
	c.until, _ = ctx.Deadline()
	g.Do(ctx, org, &c)
	return c.reply, c.err
}

// execute executes calls in one script. A failed script has written nothing: each call is then executed separately, so that an
// unreadable record fails only the calls that read it.
func (g *callGroup) execute(ctx context.Context, calls []*call) {
	ctx, cancel := ratelimit.GroupContext(untraced{ctx}, calls, func(c *call) time.Time { return c.until })
	defer cancel()
	err := g.together(ctx, calls)
	failed, ok := errors.AsType[redis.Error](err)
	alone := ok && len(calls) > 1 && strings.HasPrefix(failed.Error(), "ERR ")
	for i, c := range calls {
		if c.err = err; alone {
			c.err = g.together(ctx, calls[i:i+1])
		}
	}
}

// together executes reservations and settlements.
func (s *Store) together(ctx context.Context, calls []*call) error {
	org := calls[0].org
	more, first := s.Intents.opening(org)
	texts, numbers := 0, 0
	for _, c := range calls {
		texts, numbers = texts+len(c.texts), numbers+4+len(c.numbers)
	}
	keys, given := s.keys(org, more...), append(make([]int64, 0, 1+numbers), int64(len(calls)))
	args := append(make([]any, 1, 1+len(first)+texts+lastArgs), first...)
	for _, c := range calls {
		job := 0
		if c.job != "" {
			keys = append(keys, c.job)
			job = len(keys)
		}
		given = append(append(given, flag(c.settles), flag(c.intent), int64(job), int64(len(c.numbers))), c.numbers...)
		for i := range c.texts {
			args = append(args, &c.texts[i]) // a pointer avoids an allocation
		}
	}
	args[0] = s.known(org, given...)
	sent := time.Now()
	r, err := s.run(ctx, s.script, org, keys, args)
	if err == nil && len(r.calls) != len(calls) {
		err = errReply
	}
	for i, c := range calls {
		if err == nil {
			c.reply = r.calls[i]
			c.reply.epoch, c.reply.now, c.reply.sent = r.epoch, r.now, sent
		}
	}
	return err
}
