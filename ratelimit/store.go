package ratelimit

import (
	"context"
	"errors"
	"time"
)

// Retention is the time that a store keeps a scope after the end of its day. A clock that steps back by less than that reopens no
// window, even at midnight.
const Retention = 2 * time.Hour

// Store stores the counts shared by all gateways. [redisstore] is the production implementation; [storetest] contains the reference
// model and the test suite for implementations.
//
// Implementations are safe for concurrent use and never repeat a command whose outcome is unknown. If Apply returns an error, the
// operations may or may not have been charged; they must be treated as charged but not admitted.
//
// [redisstore]: https://pkg.go.dev/github.com/tollgate-dev/tollgate/ratelimit/redisstore
// [storetest]: https://pkg.go.dev/github.com/tollgate-dev/tollgate/test/limits/storetest
type Store interface {
	// Group names the set of organisations that can share one Apply. A store on a single node returns the same name for all; a cluster
	// returns one per slot.
	Group(org string) string

	// Apply executes ops in order, as one atomic step, and sets their results. It returns the store's clock in Unix milliseconds. All ops
	// must belong to the same Group. Each op is checked against the limits that it contains.
	Apply(ctx context.Context, ops []Op) (now int64, err error)

	// Adjust corrects counts of current windows; see Adjustment. Corrections of ended windows are dropped. An Adjustment with a Delta must not
	// be sent again after an error, because it would count twice.
	Adjust(ctx context.Context, org string, adjustments []Adjustment) error

	// Restore first calls adjust, which sends the counts that this gateway remembers, and then marks this gateway as restored. The store
	// admits calls again once all live gateways are marked or the pause has ended. within limits its duration.
	Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error

	// Leases returns, for each of the given scopes of an organisation, the permits that live gateways last reported on a day.
	Leases(ctx context.Context, org string, day int64, scopes []Ref) ([][]LeaseState, error)

	// Snapshot returns the counts of an organisation without charging anything.
	Snapshot(ctx context.Context, org string) (Snapshot, error)

	// Reset zeroes the counts of a scope, or of all scopes of the organisation if ref is the zero Ref, and begins a new generation.
	Reset(ctx context.Context, org string, ref Ref) error

	// Heartbeat records that a gateway is alive, and returns information about the others.
	Heartbeat(ctx context.Context, gateway string, within time.Duration) (HeartbeatResult, error)
}

// HeartbeatResult is the store's reply to a heartbeat.
type HeartbeatResult struct {
	// Live is the number of gateways with a heartbeat within the requested time, including this one.
	Live int
	// Resets is the total number of resets so far, for any scope.
	Resets int64
	// GatewayLost is set if the store has lost counts, a gateway that was alive before has not restored its own, and the pause after the
	// loss ends within [LossNotice].
	GatewayLost bool
}

// LossNotice is the length of the final part of the pause after a restart of the store; see [ErrRestarted]. A gateway that has not restored
// its counts when this part begins is considered lost. LossNotice includes at least one heartbeat of every other gateway.
const LossNotice = HeartbeatInterval + HeartbeatInterval/2

// ErrRestarted is wrapped in the error of a Store that has restarted or failed over and may have lost counts. The store admits nothing
// during the pause that follows, until every gateway has restored its counts by Restore, or has failed to do so for too long.
var ErrRestarted = errors.New("ratelimit: store restarted")

// ErrNotServing is wrapped in the error of an Adjust that the server refused, for example because it is starting. Other errors mean
// that no server has responded.
var ErrNotServing = errors.New("ratelimit: store is not ready")

// Op is an operation on a store. It is either Calls identical calls with a Cost, admitted as long as they fit, or (with Draws) one
// call that contributes leased permits to its need and takes new ones. In both cases, Debts are charged first to the same Scopes.
type Op struct {
	Org string
	// Scopes are the limited scopes, at least one.
	Scopes []Scope
	// Calls is the number of identical calls; it is 1 if Draws is used. An Op with 0 calls only charges its Debts.
	Calls int64
	// Debts, if not empty, has one entry per scope; entries may be zero. The store charges them before it decides about any Op of the same
	// Apply, even if they do not fit.
	Debts []Debt
	// Debtor is the name of the process that owes Debts. It is never reused, not even by a process that replaces another one.
	Debtor string
	// Cost is the number of units that each call takes from every window, multiplied by the cost of its scope.
	Cost int64
	// Draws, if not empty, has one entry per scope and replaces Cost.
	Draws []Draw
	// Divisor limits the units that a gateway holds after Draws: in a window with r units left, including those that it holds, at most
	// r/Divisor. It is at least 1. A Limiter sets it to the number of live gateways times 100 / [LeaseConfig].Share, so that all gateways
	// together hold at most that share.
	Divisor int64
	// Gateway is the name under which the leases of Draws are listed.
	Gateway string

	// Admitted is the number of calls that fit. With Draws it is 0 or 1.
	Admitted int64
	// After contains the states after this operation, one per scope.
	After []State
}

// Units returns the number of units that each call takes from every window of scope i.
func (o *Op) Units(i int) int64 { return o.Scopes[i].units(o.Cost) }

// Debt is the charge for the calls of one scope that a gateway admitted by [FailLocal]. The gateway sends a Debt with every exchange about
// its scope until the store has replied. Because Units grows in the meantime, the store charges only the part that it has not charged
// before.
type Debt struct {
	// Number identifies the Debt among the debts of its scope and debtor, and increases. The store ignores a Debt with a smaller Number
	// than the last one it charged. A Number of 0 means no Debt.
	Number int64
	// Generation and Index identify the windows of Units. Units of ended windows and of older generations are not charged.
	Generation int64
	Index      [Windows]int64
	// Units is the total of the Debt so far. When a window ends while the Debt exists, the next window starts with 0.
	Units [Windows]int64
	// Blind is set if the store has never reported the scope to the gateway: Units then belong to the scope's current generation, and no
	// window of them is later than the store's clock.
	Blind bool
}

// Draw is the request of a leasing call for one scope.
type Draw struct {
	// Need must be available in full for the call to be admitted.
	Need [Windows]int64
	// Want is the number of units requested in addition.
	Want [Windows]int64
	// Held is the number of units that the gateway will hold if none of Want is granted.
	Held [Windows]int64
	// Granted is the granted part of Want, which is charged together with Need. It is zero if the call was refused.
	Granted [Windows]int64
}

// Adjustment corrects the count of one scope.
type Adjustment struct {
	Ref Ref
	// State identifies the generation and the windows (Index) to correct. Its Count raises a lower count in the store to at least this value,
	// which restores lost counts.
	State State
	// Delta is then added to each window: a negative value returns permits. A count never becomes negative.
	Delta [Windows]int64
	// Limit is the latest known quota of the scope, for display to operators.
	Limit Limit
	// Gateway and Held update the lease listed for a gateway. An empty Gateway changes nothing.
	Gateway string
	Held    [Windows]int64
}

// Snapshot contains a store's counts for one organisation.
type Snapshot struct {
	// Now is the store's clock, in Unix milliseconds.
	Now int64
	// Scopes are all scopes counted today, sorted by kind and ID.
	Scopes []ScopeState
}

// ScopeState is the state of one scope in a Snapshot.
type ScopeState struct {
	Ref Ref
	// Limit is the quota of the latest call.
	Limit Limit
	State State
	// Leases are the permits last reported by gateways, sorted by gateway.
	Leases []LeaseState
}

// LeaseState is the part of a scope leased by one gateway: permits that were charged and not spent yet, as of its latest exchange with
// the store.
type LeaseState struct {
	Gateway string
	Index   [Windows]int64
	Held    [Windows]int64
}
