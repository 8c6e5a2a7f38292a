package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Class is a group of operations with quotas of their own beside the caller's.
type Class struct {
	ID string
	// Per says whose calls share the quota.
	Per ratelimit.ScopeKind
	// Cost is what one call takes.
	Cost  int64
	Limit ratelimit.Limit
}

// Classes counts v2 calls in the quotas of their operation's classes. It stands in
// the call part, so that a legacy request is counted for what it does: each v2 call
// it becomes, in the classes and, but for the first, in the caller's own quotas.
type Classes struct {
	Count    *Count
	Recorder *telemetry.Recorder
}

// Name implements Filter.
func (*Classes) Name() string { return "classes" }

// Request refuses with 429 when a window is full.
func (f *Classes) Request(ctx context.Context, ex *Exchange) error {
	if err := f.Count.Request(ctx, ex); err != nil {
		return err
	}
	if ex.Caller.Exempt {
		return nil
	}
	for _, c := range ex.Tenant.Classes[ex.Operation.ID] {
		class := ratelimit.ClassRead
		if ex.Operation.Mutates {
			class = ratelimit.ClassWrite
		}
		d, err := take(ctx, ex, f.Recorder, ratelimit.Take{
			Org: ex.Caller.Org, Cost: c.Cost, Class: class,
			Scopes: []ratelimit.Scope{{Kind: ratelimit.KindClass, ID: c.scope(ex), Limit: c.Limit}},
		})
		if err != nil {
			return err
		}
		if !d.Allowed {
			ex.Limit = &d
			return limited(&d)
		}
	}
	return nil
}

// scope names what a class counts for a caller.
func (c *Class) scope(ex *Exchange) string {
	switch c.Per {
	case ratelimit.KindKey:
		return c.ID + "/key/" + ex.Caller.Key
	case ratelimit.KindTeam:
		return c.ID + "/team/" + ex.Caller.Team
	default:
		return c.ID
	}
}

// Response tells the limits that refused.
func (f *Classes) Response(_ context.Context, ex *Exchange) error {
	if ex.Limit != nil && !ex.Limit.Allowed {
		ex.Limit.WriteHeaders(ex.Answer.Header)
	}
	return nil
}
