package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// ScopeKind is the kind of a scope.
type ScopeKind string

// Kinds of scopes.
const (
	KindKey  ScopeKind = "key"
	KindTeam ScopeKind = "team"
	KindOrg  ScopeKind = "org"
)

// Scope identifies a holder of budgets: a key, a team or the organisation. ID is "" for the organisation.
type Scope struct {
	Kind ScopeKind
	ID   string
}

// String returns the scope as shown in messages.
func (s Scope) String() string {
	switch s.Kind {
	case KindKey, KindTeam:
		return string(s.Kind) + " " + s.ID
	case KindOrg:
	}
	return "organisation"
}

// Owner is the key and team that created a resource and pay for it. The zero Owner is the organisation.
type Owner struct {
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
}

// String returns the owner as shown in messages.
func (o Owner) String() string { return o.Scopes()[max(0, len(o.Scopes())-2)].String() }

// Scopes returns the scopes that count an owner's resources: the key, the team and the organisation. It omits a key or a team that is not
// set.
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

// Holder is the gateway that executes a reservation's call.
type Holder struct {
	// Incarnation identifies one start of the gateway process. It is never reused.
	Incarnation string
	// Gateway is the name of the gateway, unique among the gateways that share the store.
	Gateway string
}

// String encodes h; see HolderOf.
func (h Holder) String() string { return h.Incarnation + " " + h.Gateway }

// HolderOf decodes a holder from the format of stores.
func HolderOf(text string) Holder {
	incarnation, gateway, _ := strings.Cut(text, " ")
	return Holder{incarnation, gateway}
}

// Metadata describes a resource or a hold, for display and for the reconciler.
type Metadata struct {
	// Operation and Decision identify the call that created the resource or hold.
	Operation string `json:"operation,omitempty"`
	Decision  string `json:"decision,omitempty"`
	// Name is the name of the resource. Description summarizes its parts; see [Describe].
	Name        string `json:"name,omitempty"`
	Description string `json:"print,omitempty"`
	// GPU is the type of the GPU or CPU, and DataCenter the location; see [Machine].
	GPU        string `json:"gpu,omitempty"`
	DataCenter string `json:"dc,omitempty"`
	Labels     Labels `json:"labels,omitempty"`
	// MaxCost is the maximum one-time cost of the call, in micro-dollars, if less is reserved.
	MaxCost int64 `json:"most,omitempty"`
	// StopAt and EndAt are the times when the gateway stops and terminates the pod, in Unix seconds; 0 means never. For a sandbox, EndAt
	// is the latest time of its end by the platform.
	StopAt int64 `json:"stop_at,omitempty"`
	EndAt  int64 `json:"end_at,omitempty"`
}

// Reservation asks a [Store] to reserve amounts in budgets for one call.
type Reservation struct {
	// Hold is the ID of the hold and identifies the call. A second reservation with the same Hold is a repeat of the first one.
	Hold string
	// Kind is the kind of the resource. Resource is the ID of the resource, or "" for a call that creates one.
	Kind, Resource string
	// Owner pays for the resource. For an existing resource it must equal the owner in the ledger.
	Owner Owner
	// After holds the maximum amounts of the resource after the call.
	After Amounts
	// Free is set for a call that lowers the resource's amounts: it reserves nothing and is never refused.
	Free     bool
	Metadata Metadata
	// Holder is set by [Outbox].
	Holder Holder
	// Waived are the names of ceilings that do not apply to the call; see [Ceiling.Name].
	Waived []string
	// Intent, if not nil, is recorded together with the hold. If the intent cannot be recorded, nothing is reserved.
	Intent *IntentRecord
	// Limits are the limits of each of the owner's scopes, in the order of [Owner.Scopes].
	Limits  [][Ceilings]int64
	Horizon Horizon
}

// Status is the outcome of a reservation.
type Status uint8

const (
	// Admitted means that the amounts were reserved.
	Admitted Status = iota
	// Refused means that a ceiling would be exceeded; nothing was reserved.
	Refused
	// OtherOwner means that the resource has another owner; nothing was reserved.
	OtherOwner
	// Settled means that the hold was settled before; nothing was reserved.
	Settled
	// Closed means that the ledger may be incomplete and must be rebuilt from the platform's lists first; nothing was reserved.
	Closed
	// Repeated means that another intent has the same fingerprint; nothing was reserved.
	Repeated
	// IntentsLost means that the store has lost intents, which must be restored first; nothing was reserved.
	IntentsLost
)

// Level is the usage of a ceiling: the amounts used and reserved before the call, and the amount needed by the call. For a period,
// Reserved includes the cost of running resources until the horizon.
type Level struct {
	Used, Reserved, Needs int64
}

// Sum returns the total usage with the call.
func (l Level) Sum() int64 { return l.Used + l.Reserved + l.Needs }

// Outcome is the store's answer to a reservation.
type Outcome struct {
	Status Status
	// Owner is the owner of the resource, if Status is OtherOwner.
	Owner Owner
	// Levels are the levels of each scope's ceilings, in the order of the owner's scopes; zero for ceilings without a limit.
	Levels [][Ceilings]Level
	// Scope and Ceiling are the indexes of the first ceiling that would be exceeded, if Status is Refused.
	Scope, Ceiling int
	// Held holds the reserved amounts, if Status is Admitted.
	Held Amounts
	// Sent is the time when the request was sent to the store, by this gateway's clock.
	Sent time.Time
	// Epoch is the epoch of the ledger; see [Head].
	Epoch int64
	// Now is the store's clock. Ends are the ends of the current day, week, month and quarter.
	Now  time.Time
	Ends [periods]time.Time
}

// End is the new state of a hold after a settlement.
type End uint8

const (
	// Release means that the call was not executed.
	Release End = iota
	// Open means that it is unknown whether the call was executed.
	Open
	// Commit means that the call was executed.
	Commit
)

// Settlement commits or releases a hold, or marks it as open.
type Settlement struct {
	Hold string
	End  End
	// ResolveWithin is the time after which an open hold is released if no result is found.
	ResolveWithin time.Duration
	// NewID is the new ID of an open hold; "" keeps the ID. If another hold has the ID NewID, that hold is committed in full. A commit or
	// release also ends the hold NewID.
	NewID string
	// Job is the job whose one-time cost accrues, or nil. If the hold is missing, the cost accrues to the recorded owner of the job;
	// without a recorded owner it is not charged, because the gateway did not submit the job.
	Job *Job
	// WholeReservation commits the reserved amounts instead of Amounts, and the maximum of a one-time cost; see [Hold.MaxCost].
	WholeReservation bool
	// Kind, Resource, Owner and Metadata describe the resource, if End is Commit. The values of the hold take precedence. Resource is "" for a
	// one-time cost without a resource. Then Amounts[Cost] accrues; if the hold is missing, the cost accrues only within a day of a rebuild,
	// because only a loss of data can have removed the hold.
	Kind, Resource string
	Owner          Owner
	Metadata       Metadata
	// Amounts are the current amounts of the resource. Gone is set if no resource of this kind and ID exists.
	Amounts Amounts
	Gone    bool
	// From is the time when the cost of a new resource began, or when the cost of another resource changed. Zero means the time of the
	// hold, or now.
	From time.Time
	// Intent, if not nil, updates the intent of the hold.
	Intent *IntentUpdate
}

// Adjustment changes the record of one resource to match the platform. It is unrelated to AccrualAdjustment.
type Adjustment struct {
	Kind, Resource string
	// Version is the version of the record that the adjustment was computed from, 0 if there was no record, or [LiveSandbox]. Nothing is
	// changed if the record has changed since that version or if a call about the resource is in progress.
	Version int64
	Amounts Amounts
	Gone    bool
	// From is the time when the rate changed; a time before the record began to accrue is adjusted. Zero means now.
	From time.Time
	// Metadata describes an added resource. If Owner is set and Metadata is not empty, it also replaces the metadata of a recorded resource.
	Metadata Metadata
	// Owner is the new owner of the resource; nil keeps the owner. A resource added without an Owner belongs to its previous owner if an
	// adjustment removed it within OwnerRetention, and otherwise to the organisation; see [Reconciler].
	Owner *Owner
}

// LiveSandbox is a value of Adjustment.Version that matches every version of a sandbox that has not ended.
const LiveSandbox = -1

// AdjustResult is the outcome of an adjustment.
type AdjustResult uint8

const (
	// AdjustSkipped means that nothing was changed.
	AdjustSkipped AdjustResult = iota
	// AdjustApplied means that the adjustment was made.
	AdjustApplied
	// AdjustReturned means that the resource was added for its previous owner.
	AdjustReturned
)

// OwnerRetention is how long the owner of a resource is kept after an adjustment has removed the resource.
const OwnerRetention = 30 * 24 * time.Hour

// Record is one resource in the ledger.
type Record struct {
	ID, Kind string
	Owner    Owner
	Amounts  Amounts
	Metadata Metadata
	// Version changes with each change of the record.
	Version int64
	// Since is the time when the resource was added, or when its cost began if that was earlier. Changed is the time of the last change of
	// its amounts.
	Since, Changed time.Time
	// Pending is the number of calls about the resource in progress.
	Pending int64
}

// Hold is a reservation that has not ended.
type Hold struct {
	ID, Kind string
	// Resource is "" for a call that creates a resource.
	Resource string
	Owner    Owner
	Amounts  Amounts
	Metadata Metadata
	Holder   Holder
	At       time.Time
	// Open is set if the outcome of the call is unknown. Until is the time when an open hold is released if no result is found. If the hold
	// of a call in progress has taken over open holds, Until is the latest of their times.
	Open  bool
	Until time.Time
}

// CoveredBy reports whether the hold of a call that changes a resource of an owner takes over h; see [Accounts].Reserve. more are the
// amounts that the call adds to the resource.
func (h *Hold) CoveredBy(resource string, owner Owner, more Amounts) bool {
	return h.Open && h.Resource == resource && h.Owner == owner && h.Amounts != (Amounts{}) && !h.Amounts.Above(more)
}

// Balance is the account of one scope.
type Balance struct {
	Scope               Scope
	Committed, Reserved Amounts
	Accrued
}

// State is the ledger of one organisation at one moment.
type State struct {
	Now time.Time
	// Zone determines when periods begin.
	Zone Zone
	// Epoch changes with each rebuild.
	Epoch int64
	// Complete is false while the ledger must be rebuilt. Lost is the part of the ledger that was lost since it was complete.
	Complete bool
	Lost     LostPart
	// Repairs changes with each repair of the sums. It is the Version of the next [Repair].
	Repairs   int64
	Balances  []Balance
	Resources []Record
	Holds     []Hold
}

// Sort sorts balances with the organisation first, then teams, then keys, and everything else by ID.
func (s *State) Sort() {
	rank := map[ScopeKind]int{KindOrg: 0, KindTeam: 1, KindKey: 2}
	slices.SortFunc(s.Balances, func(a, b Balance) int {
		return cmp.Or(cmp.Compare(rank[a.Scope.Kind], rank[b.Scope.Kind]), cmp.Compare(a.Scope.ID, b.Scope.ID))
	})
	slices.SortFunc(s.Resources, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Holds, func(a, b Hold) int { return cmp.Compare(a.ID, b.ID) })
}

// Job identifies a job of the run interface.
type Job struct {
	// Endpoint is the ID of the endpoint or model that runs the job.
	Endpoint, ID string
}

// Accounts is the part of a [Store] that a [Ledger] uses.
type Accounts interface {
	// Reserve reserves the amounts of a call. The hold takes over the open holds of the same resource and owner that it covers: they end, and
	// the call needs only the amounts in addition to theirs. If such a hold is released, an open hold with its amounts remains, because the
	// outcome of the earlier calls is unknown.
	Reserve(ctx context.Context, org string, r *Reservation) (Outcome, error)
	// Settle commits or releases a hold, or marks it as open. Settling an ended hold changes nothing. If the hold is missing after a loss of
	// data, a commit still records the resource or its one-time cost, or removes the resource. A commit never lowers amounts that other
	// calls have changed in the meantime, and does not add a resource that was removed before the commit arrived.
	Settle(ctx context.Context, org string, s *Settlement) error
	// Adjust makes adjustments and returns the outcome of each. Each adjustment is atomic, but the list is not: if Adjust returns an error,
	// the adjustments at the beginning of the list may have been made.
	Adjust(ctx context.Context, org string, list ...*Adjustment) ([]AdjustResult, error)
	// Owners returns the owners of resources, followed by the owners of jobs, and reports whether the ledger is complete. An unknown owner is
	// zero.
	Owners(ctx context.Context, org string, resources []string, jobs ...Job) (owners []Owner, complete bool, err error)
	// SetJobOwner records the owner of a job. The record expires after keep. A later call for the same job changes nothing.
	SetJobOwner(ctx context.Context, org string, j Job, o Owner, keep time.Duration) error
	Show(ctx context.Context, org string) (State, error)
	// Balances returns the state with the balances of an owner's scopes only, in the order of the scopes.
	Balances(ctx context.Context, org string, o Owner) (State, error)
}

// Store stores ledgers. Each method is atomic and safe to repeat with the same arguments. Implementations are safe for concurrent use.
type Store interface {
	Accounts
	RollupStore
	RecoveryStore
	NoticeStore
	// AdjustAccrual applies an adjustment. The store remembers its ID for [AccrualRetention].
	AdjustAccrual(ctx context.Context, org string, a *AccrualAdjustment) (AccrualOutcome, error)
	// MoveAccrual moves accrued costs between teams.
	MoveAccrual(ctx context.Context, org string, m *AccrualMove) (AccrualOutcome, error)
	// Lock waits for a limited time until no other caller reconciles the ledger. unlock must be called afterwards.
	Lock(ctx context.Context, org string) (unlock func(), err error)
	// BeginRebuild announces that the ledger is being rebuilt. FinishRebuild declares the ledger complete, unless data was lost since
	// BeginRebuild with the same token, and reports whether it is complete.
	BeginRebuild(ctx context.Context, org, token string) error
	FinishRebuild(ctx context.Context, org, token string) (bool, error)
	// Repair adds differences to sums, and reports whether it did; see [Repair].
	Repair(ctx context.Context, org string, r *Repair) (bool, error)
	// Holds returns the state with the holds only.
	Holds(ctx context.Context, org string) (State, error)
}

// ErrUnavailable means that the ledger cannot be read or changed at the moment.
var ErrUnavailable = errors.New("ledger unavailable")

// Adjust makes a single adjustment, and reports whether it was made.
func Adjust(ctx context.Context, s Accounts, org string, a *Adjustment) (bool, error) {
	made, err := s.Adjust(ctx, org, a)
	return err == nil && made[0] != AdjustSkipped, err
}
