package proof

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Units can be charged without a call being admitted: the answer to an exchange
// was lost, permits could not be returned, a gateway died with permits in hand. That
// must be all there is of under-admission, so gateways account for it.

// witness is a store that reports the units of each scope's day which an exchange
// may have charged, or failed to return, when its answer is missing.
type witness struct {
	ratelimit.Store
	report func(lost map[string]int64)
	// forgets is set for a server that loses its data: returns may be lost with it,
	// while others remember the counts before them.
	forgets bool
}

// sentKey is the key in a context of a *bool that reports whether a command was
// given to the connection: a store that pauses refuses without sending anything.
type sentKey struct{}

// Apply implements [ratelimit.Store].
func (s witness) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	var sent bool
	now, err := s.Store.Apply(context.WithValue(ctx, sentKey{}, &sent), ops)
	if err == nil || !sent {
		return now, err
	}
	lost := make(map[string]int64)
	for i := range ops {
		for s := range ops[i].Scopes {
			units := ops[i].Calls * ops[i].Cost
			if len(ops[i].Draws) > 0 {
				units = ops[i].Draws[s].Need[2] + ops[i].Draws[s].Want[2]
			}
			lost[ops[i].Scopes[s].ID] += units
		}
	}
	s.report(lost)
	return now, err
}

// Adjust implements [ratelimit.Store].
func (s witness) Adjust(ctx context.Context, org string, adjustments []ratelimit.Adjustment) error {
	err := s.Store.Adjust(ctx, org, adjustments)
	if err != nil || s.forgets {
		lost := make(map[string]int64)
		for i := range adjustments {
			lost[adjustments[i].Ref.ID] += max(0, -adjustments[i].Delta[2])
		}
		s.report(lost)
	}
	return err
}

// sentHook marks the contexts of the commands that are sent.
type sentHook struct{}

// DialHook implements [redis.Hook].
func (sentHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (sentHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements [redis.Hook].
func (sentHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if sent, ok := ctx.Value(sentKey{}).(*bool); ok {
			*sent = true
		}
		return next(ctx, cmd)
	}
}
