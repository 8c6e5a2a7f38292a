package ratelimit

import (
	"context"
	"errors"
	"time"
)

// Retention is how long a store keeps a scope after the end of its day. A clock
// that steps back by less than that reopens nothing even at midnight.
const Retention = 2 * time.Hour

// Store keeps the counts all gateways share. [redisstore] is the one for
// production; [storetest] has the model it is checked against and the suite any
// implementation must pass.
//
// Implementations are safe for concurrent use and never repeat a command whose
// outcome is unknown: an error from Apply means the operations may or may not
// have been charged, and that they must be taken as charged but not admitted.
//
// [redisstore]: https://pkg.go.dev/github.com/tollgate-dev/tollgate/ratelimit/redisstore
// [storetest]: https://pkg.go.dev/github.com/tollgate-dev/tollgate/test/limits/storetest
type Store interface {
	// Group names the set of organisations that one Apply may mix. A store on a
	// single node returns the same for all; a cluster returns one per slot.
	Group(org string) string

	// Apply runs ops in order, as one atomic step, and fills in their results.
	// It returns the store's clock in Unix milliseconds. All ops are of one
	// Group; each is judged by the limits it carries.
	Apply(ctx context.Context, ops []Op) (now int64, err error)

	// Adjust corrects counts of the running windows after the fact, see
	// Adjustment. Corrections to windows that have ended are dropped. An
	// Adjustment with a Delta that is sent twice counts twice.
	Adjust(ctx context.Context, org string, adjustments []Adjustment) error

	// Restore runs adjust, which brings back the counts that a restarted store has lost,
	// and then tells the other gateways, within the time given, that this one has
	// done so.
	Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error

	// Leases returns the permits that live gateways last reported of scopes of
	// an organisation on a day, a list for each scope.
	Leases(ctx context.Context, org string, day int64, scopes []Ref) ([][]LeaseState, error)

	// Snapshot returns the counts of an organisation, without charging.
	Snapshot(ctx context.Context, org string) (Snapshot, error)

	// Reset sets the counts of a scope, or of all scopes of the organisation if
	// ref is the zero Ref, to nothing, and starts a new generation.
	Reset(ctx context.Context, org string, ref Ref) error

	// HeartbeatIntervaltbeat records that a gateway is alive and returns its news of the
	// others.
	Heartbeat(ctx context.Context, gateway string, within time.Duration) (HeartbeatResult, error)
}

// HeartbeatResult is the answer to a gateway that says that it is alive.
type HeartbeatResult struct {
	// Live is how many gateways said so within the time asked for, this one
	// included.
	Live int
	// Resets is the number of resets so far, of anything.
	Resets int64
	// GatewayLost says that the store has lost counts, and that the pause after it ends
	// within [LossNotice] although a gateway that was alive before has not restored its own.
	GatewayLost bool
}

// LossNotice is how long before the end of a pause a gateway that has not restored its
// counts is taken to be lost. At least one beat of every other one falls into it.
const LossNotice = HeartbeatInterval + HeartbeatInterval/2

// ErrRestarted is wrapped in the error of a Store that has restarted or failed
// over and may have lost counts. It admits nothing until every gateway has
// restored its remembered counts, by Restore, or has not done so for too long.
var ErrRestarted = errors.New("ratelimit: store restarted")

// ErrNotServing is wrapped in the error of an Adjust that the server has refused, as one does that is
// there again and not yet ready. Other errors say that no server has answered.
var ErrNotServing = errors.New("ratelimit: store is not ready")

// Op is one operation on a store: either Calls identical calls of one Cost, of
// which as many as fit are admitted, or (with Draws) one call that brings part
// of its need from leased permits and takes new ones along. In both cases Debts are
// charged first, to the same Scopes.
type Op struct {
	Org string
	// Scopes are the limited scopes, at least one.
	Scopes []Scope
	// Calls is the number of identical calls; it is 1 if Draws is used. An Op with 0 calls
	// charges its Debts, and nothing else.
	Calls int64
	// Debts, if not empty, has one entry per scope, some of which may be zero. The store
	// charges them before it decides about any Op of the same Apply, and whether they fit or not.
	Debts []Debt
	// Debtor names the process that owes Debts. No two processes share a name, even if one
	// takes the place of the other.
	Debtor string
	// Cost is the units that each call takes from every window, times the cost of its scope.
	Cost int64
	// Draws, if not empty, has one entry per scope and takes the place of Cost.
	Draws []Draw
	// Divisor bounds the units that a gateway holds after Draws: of a window with r units
	// left, those that it holds included, at most r/Divisor. At least 1.
	Divisor int64
	// Gateway is the name under which the leases of Draws are listed.
	Gateway string

	// Admitted is the number of calls that fit. With Draws it is 0 or 1.
	Admitted int64
	// After holds the states after this operation, one per scope.
	After []State
}

// Units returns the units that each call takes from every window of scope i.
func (o *Op) Units(i int) int64 { return o.Scopes[i].units(o.Cost) }

// Debt is the charge for the calls of one scope that a gateway admitted by [FailLocal].
// The gateway sends a Debt with every exchange about its scope until the store has
// replied. Units grows meanwhile, so the store charges the part that it has not charged before.
type Debt struct {
	// Number identifies the Debt among the Debts of its scope and debtor, and grows. The store
	// ignores a Debt with a smaller Number than the last one it charged. 0 is no Debt.
	Number int64
	// Generation and Index name the windows that Units belong to. Units of a window that has
	// ended, or of an older generation, are not charged.
	Generation int64
	Index      [Windows]int64
	// Units are all units of the Debt so far. A window that ends while the Debt lasts is
	// followed by the next one, which begins with 0.
	Units [Windows]int64
	// Blind is set if the gateway had not heard of the scope from the store: Units belong to
	// the scope's current generation, and no window of them is later than the store's clock.
	Blind bool
}

// Draw is a leasing call's request to one scope.
type Draw struct {
	// Need must be available in full for the call to be admitted.
	Need [Windows]int64
	// Want are the units that the gateway would like to have beyond that.
	Want [Windows]int64
	// Held are the units that the gateway will hold if it gets nothing of Want.
	Held [Windows]int64
	// Granted is the part of Want it got, charged with the need. Nothing if the
	// call was refused.
	Granted [Windows]int64
}

// Adjustment corrects the count of one scope.
type Adjustment struct {
	Ref Ref
	// State names the windows (Index) and the generation the correction is for,
	// and in Count the least that must be counted after it, which brings back
	// the count that a store has lost.
	State State
	// Delta is added to each window after that: negative to return permits. A count
	// never becomes negative.
	Delta [Windows]int64
	// Limit is the quota the scope had when last seen, for the operator's view.
	Limit Limit
	// Gateway and Held update the lease listed for a gateway; no change if
	// Gateway is empty.
	Gateway string
	Held    [Windows]int64
}

// Snapshot holds a store's counts for one organisation.
type Snapshot struct {
	// Now is the store's clock, in Unix milliseconds.
	Now int64
	// Scopes are all scopes counted today, sorted by kind and ID.
	Scopes []ScopeState
}

// ScopeState is one scope in a Snapshot.
type ScopeState struct {
	Ref Ref
	// Limit is the quota of the latest call.
	Limit Limit
	State State
	// Leases are the permits that gateways last reported, sorted by gateway.
	Leases []LeaseState
}

// LeaseState is one gateway's part of a scope: permits charged to the
// windows and not yet spent, as of its last exchange with the store.
type LeaseState struct {
	Gateway string
	Index   [Windows]int64
	Held    [Windows]int64
}
