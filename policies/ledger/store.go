package ledger

import (
	"context"
	"errors"
	"strings"
	"time"
)

// ScopeKind is the kind of a scope's subject.
type ScopeKind string

// The kinds of scopes.
const (
	KindKey  ScopeKind = "key"
	KindTeam ScopeKind = "team"
	KindOrg  ScopeKind = "org"
)

// Scope is who shares a budget. ID is "" for the organisation.
type Scope struct {
	Kind ScopeKind
	ID   string
}

// String names the scope, for people.
func (s Scope) String() string {
	switch s.Kind {
	case KindKey, KindTeam:
		return string(s.Kind) + " " + s.ID
	case KindOrg:
	}
	return "organisation"
}

// Owner is the maker of a resource, who pays for it. The zero Owner is the
// organisation.
type Owner struct {
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
}

// String names the owner, for people.
func (o Owner) String() string { return o.Scopes()[max(0, len(o.Scopes())-2)].String() }

// Scopes returns the scopes that an owner's resources are counted in: the key, the
// team, the organisation.
func (o Owner) Scopes() []Scope {
	scopes := make([]Scope, 0, 3)
	if o.Key != "" {
		scopes = append(scopes, Scope{KindKey, o.Key})
	}
	if o.Team != "" {
		scopes = append(scopes, Scope{KindTeam, o.Team})
	}
	return append(scopes, Scope{Kind: KindOrg})
}

// Holder is the gateway that a reservation's call belongs to.
type Holder struct {
	// Incarnation names one start of the gateway's process: two starts never share it.
	Incarnation string
	// Gateway is the name of the gateway among those that share the store.
	Gateway string
}

// String is the inverse of HolderOf.
func (h Holder) String() string { return h.Incarnation + " " + h.Gateway }

// HolderOf reads a holder as stores keep it.
func HolderOf(text string) Holder {
	incarnation, gateway, _ := strings.Cut(text, " ")
	return Holder{incarnation, gateway}
}

// Metadata describes a resource or a hold for people and for the
// reconciler.
type Metadata struct {
	// Operation and Decision are those of the call that made it.
	Operation string `json:"operation,omitempty"`
	Decision  string `json:"decision,omitempty"`
	// Name is the resource's, Print describes its parts; see [HoldsCommittedormResource].
	Name        string `json:"name,omitempty"`
	Description string `json:"print,omitempty"`
	// GPU is the type of its GPU or CPU, DataCenter where it is; see [Machine].
	GPU        string `json:"gpu,omitempty"`
	DataCenter string `json:"dc,omitempty"`
	Labels     Labels `json:"labels,omitempty"`
	// MaxCost is the greatest one-time cost of the call, in micro-dollars, where less is reserved for it.
	MaxCost int64 `json:"most,omitempty"`
	// StopAt and EndAt are when the gateway stops and terminates the pod, in Unix seconds; 0 is never. Of a sandbox, EndAt is when the
	// platform ends it at the latest.
	StopAt int64 `json:"stop_at,omitempty"`
	EndAt  int64 `json:"end_at,omitempty"`
}

// Reservation asks for room for one call.
type Reservation struct {
	// Hold names the call; a repeat with the same Hold is the same reservation.
	Hold string
	// Kind is that of the resource, Resource its id, "" for one to be made.
	Kind, Resource string
	// Owner pays: of a resource that exists it must be the one in the ledger.
	Owner Owner
	// Delay are the greatest amounts of the resource if the call is carried out.
	After Amounts
	// Free reserves nothing and is never refused: the call lowers the
	// resource's amounts.
	Free     bool
	Metadata Metadata
	// Holder is filled in by an [Outbox].
	Holder Holder
	// Waived names ceilings that do not apply to the call; see [Ceiling.Name].
	Waived []string
	// IntentntRecord is the intent that is noted with the hold, nil for none: where it cannot be,
	// nothing is reserved.
	Intent *IntentRecord
	// Limits are the ceilings of each of the owner's scopes, in their order.
	Limits  [][Ceilings]int64
	Horizon Horizon
}

// Status is the outcome of a reservation.
type Status uint8

const (
	// Admitted means that there is room, and that it is held.
	Admitted Status = iota
	// Refused means that a ceiling would be passed; nothing is held.
	Refused
	// OtherOwner means that the resource is another owner's; nothing is held.
	OtherOwner
	// Settled means that the hold was settled already; nothing is held.
	Settled
	// Closed means that the ledger is not known to be complete: it has to be rebuilt
	// from the platform's lists first. Nothing is held.
	Closed
	// Repeated means that the wish of the Note has other intents; nothing is held.
	Repeated
	// IntentsLost means that the store has lost intents, which have to be restored first; nothing is held.
	IntentsLost
)

// Level is how full a ceiling is: used and reserved before the call, and the amount that the
// call needs. Of a period's, reserved is the cost of running resources for the horizon.
type Level struct {
	Used, Reserved, Needs int64
}

// Sum is the amount in the ceiling with the call.
func (l Level) Sum() int64 { return l.Used + l.Reserved + l.Needs }

// Outcome is the store's answer to a reservation.
type Outcome struct {
	Status Status
	// Owner is that of the resource, for OtherOwner.
	Owner Owner
	// Levels are those of each scope's ceilings, in the order of the owner's scopes; zero where there is no ceiling.
	Levels [][Ceilings]Level
	// Scope and Ceiling are the first that would be passed, for Refused.
	Scope, Ceiling int
	// Held are the reserved amounts, for Admitted.
	Held Amounts
	// Sent is when the request to the store was sent, by this gateway's clock.
	Sent time.Time
	// Epoch is the epoch of the ledger; see [Head].
	Epoch int64
	// Now is the store's clock, Ends is when the periods end that it is in: the day, the week, the month and the quarter.
	Now  time.Time
	Ends [periods]time.Time
}

// End is how a hold ends.
type End uint8

const (
	// Release means that the call was not carried out.
	Release End = iota
	// Open means that it is not known whether it was.
	Open
	// Commit means that it was.
	Commit
)

// Settlement ends a hold, or opens it.
type Settlement struct {
	Hold string
	End  End
	// ResolveWithin is after how long an open hold that nothing is found for is released.
	ResolveWithin time.Duration
	// NewID is the ID that an open hold has from now on, "" for its own. A hold that has
	// that ID already is committed in full. With a commit, As ends too.
	NewID string
	// Job is the job whose one-time cost accrues, nil if it is none. Without its hold, the cost accrues to the recorded owner of
	// the job, and to nobody without one: the gateway did not submit the job.
	Job *Job
	// WholeReservation commits the reservation instead of Amounts, and of a one-time cost the most
	// that it can be; see [Hold.MaxCost].
	WholeReservation bool
	// Kind, Resource, Owner and About are those of the resource, for Commit. Those
	// of the hold win. Resource is "" for a one-time cost that leaves nothing: then
	// Amounts[Cost] accrues, without a hold only within a day of a rebuild: only a loss of the store
	// can have lost the hold.
	Kind, Resource string
	Owner          Owner
	Metadata       Metadata
	// Amounts are the resource's present amounts; Gone that it exists no more.
	Amounts Amounts
	Gone    bool
	// From is when the cost of a new resource began, or that of another one changed; zero is when the hold was made, or now.
	From time.Time
	// Intent is how the intent of the hold goes on, nil without one.
	Intent *IntentUpdate
}

// Adjustment makes the ledger follow the platform.
type Adjustment struct {
	Kind, Resource string
	// Version is that of the record which the adjustment is made for, 0 if there was
	// none, or [LiveSandbox]. If the record has changed since then, or a call about the resource is
	// under way, nothing is done.
	Version int64
	Amounts Amounts
	Gone    bool
	// From is when the rate changed, as far as the record accrued since then; zero is now.
	From time.Time
	// Metadata describes a resource that is entered, or, unless it is empty, one that is given an owner.
	Metadata Metadata
	// Owner is the resource's from now on; nil leaves it as it is. A resource entered
	// without one belongs to the owner it had when an adjustment removed it, or else to
	// the organisation.
	Owner *Owner
}

// LiveSandbox is the Version of an adjustment of a sandbox that has not ended, whatever the version of its record.
const LiveSandbox = -1

// AdjustResult is the outcome of an adjustment.
type AdjustResult uint8

const (
	// AdjustSkipped means that nothing was done.
	AdjustSkipped AdjustResult = iota
	// AdjustAppliedtedimeKey means that the ledger follows.
	AdjustApplied
	// AdjustReturned means that the resource was entered as that of its earlier owner.
	AdjustReturned
)

// OwnerRetention is how long the owner of a resource is kept that an adjustment removed.
const OwnerRetention = 30 * 24 * time.Hour

// Record is one resource in the ledger.
type Record struct {
	ID, Kind string
	Owner    Owner
	Amounts  Amounts
	Metadata Metadata
	// Version changes with each change of the record.
	Version int64
	// Since is when it was entered, or its cost began before that; Changed is when its amounts changed last.
	Since, Changed time.Time
	// Pending is how many calls about it are under way.
	Pending int64
}

// Hold is one reservation that has not ended.
type Hold struct {
	ID, Kind string
	// Resource is "" for one to be made.
	Resource string
	Owner    Owner
	Amounts  Amounts
	Metadata Metadata
	Holder   Holder
	At       time.Time
	// Open says that the outcome of the call is not known; Until is when the hold
	// is released if nothing is found.
	Open  bool
	Until time.Time
}

// Balance is the account of one scope.
type Balance struct {
	Scope               Scope
	Committed, Reserved Amounts
	Accrued
}

// State is the whole ledger of one organisation at one moment.
type State struct {
	Now time.Time
	// Zone says when periods begin.
	Zone Zone
	// Epoch changes with each rebuild.
	Epoch int64
	// Complete is false while the ledger has to be rebuilt; Lost names the parts that the store has
	// lost of it since it was complete.
	Complete bool
	Lost     LostPart
	// Repairs changes with each repair of the sums.
	Repairs   int64
	Balances  []Balance
	Resources []Record
	Holds     []Hold
}

// Job names a job of the run interface.
type Job struct {
	// Endpoint is the id of the endpoint or model that runs it.
	Endpoint, ID string
}

// Store keeps ledgers. Each method is one atomic step, and safe to repeat with the
// same arguments. Implementations are safe for concurrent use.
type Store interface {
	RollupStore
	RecoveryStore
	AccrualStore
	NoticeStore
	Reserve(ctx context.Context, org string, r *Reservation) (Outcome, error)
	// Settle ends a hold or opens it. Settling an ended hold changes nothing. A commit without
	// its hold, after a loss of the store, enters the resource or its one-time cost all the same, or removes
	// the resource if no other call about it is in flight. It never lowers amounts that other calls have changed
	// meanwhile. A resource that was removed does not return with a commit that arrives later.
	Settle(ctx context.Context, org string, s *Settlement) error
	// Adjust makes adjustments, and returns the outcome of each. It is atomic for each
	// of them alone: with an error, those of the beginning may have been made.
	Adjust(ctx context.Context, org string, list ...*Adjustment) ([]AdjustResult, error)
	// Lock waits until the caller alone reconciles the ledger, for a bounded time.
	Lock(ctx context.Context, org string) (unlock func(), err error)
	// BeginRebuild announces that the ledger is being rebuilt; Finish declares it complete,
	// unless the store was lost since Begin with the same token, and reports whether
	// it is.
	BeginRebuild(ctx context.Context, org, token string) error
	FinishRebuild(ctx context.Context, org, token string) (bool, error)
	// Repair adds differences to sums, and reports whether it did; see [Repair].
	Repair(ctx context.Context, org string, r *Repair) (bool, error)
	// Owners returns those of resources and then those of jobs, the zero Owner for one
	// that is not known, and reports whether the ledger is complete.
	Owners(ctx context.Context, org string, resources []string, jobs ...Job) (owners []Owner, complete bool, err error)
	// SetJobOwner remembers the owner of a job for a time. A later note changes nothing.
	SetJobOwner(ctx context.Context, org string, j Job, o Owner, keep time.Duration) error
	Show(ctx context.Context, org string) (State, error)
	// Holds is Show of the holds alone.
	Holds(ctx context.Context, org string) (State, error)
	// Balances is Show of the balances of an owner's scopes alone, in their order.
	Balances(ctx context.Context, org string, o Owner) (State, error)
}

// ErrUnavailable means that the ledger cannot be asked.
var ErrUnavailable = errors.New("spend: the ledger cannot be asked")

// Adjust makes one adjustment, and reports whether it was made.
func Adjust(ctx context.Context, s Store, org string, a *Adjustment) (bool, error) {
	made, err := s.Adjust(ctx, org, a)
	return err == nil && made[0] != AdjustSkipped, err
}
