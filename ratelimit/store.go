package ratelimit

import (
	"context"
	"errors"
	"time"
)

// Retention is how long a store keeps the counts of a scope after the end of the day. If the clock steps back by less than Retention, even
// across midnight, no window starts again from zero.
const Retention = 2 * time.Hour

// Store stores the counts shared by all gateways. [redisstore] is the production implementation; [storetest] contains the reference
// model and the test suite for implementations.
//
// Implementations are safe for concurrent use and never repeat a command whose outcome is unknown. If Apply returns an error, the
// operations may or may not have been charged; callers must assume that they were charged but not admitted.
//
// [redisstore]: https://pkg.go.dev/github.com/tollgate-dev/tollgate/ratelimit/redisstore
// [storetest]: https://pkg.go.dev/github.com/tollgate-dev/tollgate/test/limits/storetest
type Store interface {
	// Group returns the name of the group that an organisation belongs to. One Apply can serve all organisations of a group. In a store on a
	// single node, all organisations form one group; in a cluster, each organisation forms its own group.
	Group(org string) string

	// Apply executes ops in order, as one atomic step, and sets their results. It returns the store's clock in Unix milliseconds. All ops
	// must belong to the same Group. Each op is checked against the limits that it contains.
	Apply(ctx context.Context, ops []Op) (now int64, err error)

	// Adjust corrects the counts of current windows; see Adjustment. There is at least one, and all have the same Gateway. Adjust ignores
	// windows that have ended. After an error, an Adjustment with a Delta must not be sent again, because it may already have been applied.
	Adjust(ctx context.Context, org string, adjustments []Adjustment) error

	// Restore calls adjust, which sends the counts that this gateway remembers, and then marks this gateway as restored. After a restart, the
	// store admits calls again once all live gateways are marked or the pause has ended. timeout limits the time to set the mark.
	Restore(ctx context.Context, gateway string, timeout time.Duration, adjust func(context.Context) error) error

	// Leases returns the permits that live gateways hold in each of the given scopes, as last reported by the gateways on the given day (in
	// days since the Unix epoch).
	Leases(ctx context.Context, org string, day int64, scopes []Ref) ([][]LeaseState, error)

	// Snapshot returns the counts of an organisation. It charges nothing.
	Snapshot(ctx context.Context, org string) (Snapshot, error)

	// Reset sets the counts of a scope to zero and begins a new generation. If ref is the zero Ref, it does so for all scopes of the
	// organisation.
	Reset(ctx context.Context, org string, ref Ref) error

	// Heartbeat records that a gateway is alive, and returns information about the other gateways. A gateway counts as alive for ttl after its
	// latest heartbeat.
	Heartbeat(ctx context.Context, gateway string, ttl time.Duration) (HeartbeatResult, error)
}

// HeartbeatResult is the store's reply to a heartbeat.
type HeartbeatResult struct {
	// Live is the number of live gateways, including this one.
	Live int
	// Resets is the total number of resets so far, for any scope.
	Resets int64
	// GatewayLost is set if a gateway was alive before the store lost counts, has not restored its own counts, and the pause after the loss
	// ends within [LossNotice].
	GatewayLost bool
}

// LossNotice is the length of the final part of the pause after a restart of the store; see [ErrRestarted]. When this part begins, a
// gateway that has not restored its counts is considered lost. LossNotice is long enough for every other gateway to send at least one
// heartbeat.
const LossNotice = HeartbeatInterval + HeartbeatInterval/2

// ErrRestarted means that the store has restarted or failed over, and may have lost counts. The store then pauses: it admits no calls until
// every gateway has restored its counts with Restore, or the maximum length of the pause has been reached.
var ErrRestarted = errors.New("ratelimit: store restarted")

// ErrNotServing means that the server refused an Adjust, for example because the server is still starting. Any other error of Adjust means
// that no server has responded.
var ErrNotServing = errors.New("ratelimit: store is not ready")

// Op is an operation on a store. The store first charges Debts to Scopes. If Draws is empty, the store then admits as many of the Calls
// identical calls as the limits of Scopes permit. If Draws is not empty, the Op describes one call: the call uses permits that its gateway
// has already leased, and the gateway leases new permits.
type Op struct {
	Org string
	// Scopes are the limited scopes, at least one.
	Scopes []Scope
	// Calls is the number of identical calls; it is 1 if Draws is used. An Op with 0 calls only charges its Debts.
	Calls int64
	// Debts, if not empty, has one entry per scope; an entry may be zero. The store charges them before it decides about any Op of the same
	// Apply, even if the units do not fit.
	Debts []Debt
	// Debtor is the name of the process that owes Debts. No other process ever uses the same name.
	Debtor string
	// Cost is the number of units that each call takes from every window, multiplied by the cost of its scope.
	Cost int64
	// Draws, if not empty, has one entry per scope and replaces Cost.
	Draws []Draw
	// Divisor limits the permits that a gateway holds after Draws. In a window with r units left, including the permits that the gateway
	// already holds, the limit is r/Divisor. Divisor is at least 1. A Limiter sets it to the number of live gateways times 100 /
	// leaseShare, so that all gateways together hold at most that share.
	Divisor int64
	// Gateway is the name under which the leases of Draws are listed.
	Gateway string

	// Admitted is the number of calls that fit. With Draws it is 0 or 1.
	Admitted int64
	// After contains the states after this operation, one per scope.
	After []State
}

// Units returns the number of units that each call takes from every window of scope i.
func (o *Op) Units(i int) int64 { return o.Scopes[i].Units(o.Cost) }

// Debt is the charge for calls of one scope that a gateway admitted while the store was down; see [FailLocal]. The gateway sends the Debt
// with every request about the scope until the store confirms it. Units can grow between two requests; the store charges only units that it
// has not charged before.
type Debt struct {
	// Number identifies the Debt among the debts of the same scope and debtor. Later debts have larger numbers. The store ignores a Debt with
	// a smaller Number than the last one it charged. If Number is 0, there is no Debt.
	Number int64
	// Generation and Index identify the windows of Units. Units of ended windows and of older generations are not charged.
	Generation int64
	Index      [Windows]int64
	// Units is the number of owed units in each window so far. When a window ends while the Debt exists, the next window starts with 0.
	Units [Windows]int64
	// Blind is set if the store has never reported the scope to the gateway. The store then charges Units to the current generation of the
	// scope, and to windows no later than its own clock.
	Blind bool
}

// Draw is the request of a leasing call for one scope.
type Draw struct {
	// Need is the number of units that must be available for the call to be admitted.
	Need [Windows]int64
	// Want is the number of units to lease in addition to Need.
	Want [Windows]int64
	// Held is the number of units that the gateway will hold if none of Want is granted.
	Held [Windows]int64
	// Granted is the part of Want that the store granted and charged together with Need. It is zero if the call was refused.
	Granted [Windows]int64
}

// Adjustment corrects the count of one scope.
type Adjustment struct {
	Ref Ref
	// State identifies the generation and the windows (Index) to correct. Counts in the store that are lower than Count are raised to Count,
	// which restores lost counts.
	State State
	// Delta is added to the count of each window afterwards; a negative value returns permits. A count never becomes negative.
	Delta [Windows]int64
	// Limit is the latest known quota of the scope. Operators see it.
	Limit Limit
	// Gateway and Held replace the listed lease of a gateway. If Gateway is empty, the listed leases do not change.
	Gateway string
	Held    [Windows]int64
}

// Snapshot contains a store's counts for one organisation.
type Snapshot struct {
	// Now is the store's clock, in Unix milliseconds.
	Now int64
	// Scopes holds all scopes that have been charged today, sorted by kind and ID.
	Scopes []ScopeState
}

// ScopeState is the state of one scope in a Snapshot.
type ScopeState struct {
	Ref Ref
	// Limit is the quota that the latest call used.
	Limit Limit
	State State
	// Leases holds the permits last reported by each gateway, sorted by gateway.
	Leases []LeaseState
}

// LeaseState holds the permits of one scope that a gateway has taken from the store but has not used yet, as of its latest request to the
// store.
type LeaseState struct {
	Gateway string
	Index   [Windows]int64
	Held    [Windows]int64
}
