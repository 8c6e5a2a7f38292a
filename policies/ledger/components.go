package ledger

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Platform is the platform API as the ledger uses it. Each call concerns one organisation.
type Platform interface {
	// List returns all resources of the organisation. If the platform does not list the resources of a billable kind and recorded returns true
	// for the kind, List returns an error.
	List(ctx context.Context, org string, recorded func(operation.Kind) bool) ([]PlatformResource, error)
	// Get returns one resource, or nil if the platform answers 404.
	Get(ctx context.Context, org string, kind operation.Kind, id string) (*PlatformResource, error)
	// EndedSandbox returns the terminated or failed sandbox that a call created, or nil. List omits such sandboxes.
	EndedSandbox(ctx context.Context, org, call string) (*PlatformResource, error)
	// Bills returns the nonzero bills of the whole hours in a range.
	Bills(ctx context.Context, org string, from, to time.Time) ([]Bill, error)
	// JobOutcome returns a settlement that commits the hold of a job. It returns nil while the job is running, and ErrNoJob if the platform
	// answers 404.
	JobOutcome(ctx context.Context, org string, h *Hold) (*Settlement, error)
	// StopPod stops a pod and returns its remaining amounts.
	StopPod(ctx context.Context, org, id string) (Amounts, error)
	// Delete deletes a resource. Deleting a resource that no longer exists is not an error.
	Delete(ctx context.Context, org string, kind operation.Kind, id string) error
}

// ErrNoJob is returned by [Platform].JobOutcome if the platform does not know the job, for example because its endpoint was deleted or its
// result has expired.
var ErrNoJob = errors.New("the platform does not know the job")

// Gateway provides information about this gateway and its peers.
type Gateway interface {
	// Plan returns the budgets of an organisation, or nil if it has no budgets.
	Plan(org string) *Plan
	// Budgeted returns the organisations that have budgets.
	Budgeted() []string
	// Peers returns the names of the live gateways.
	Peers() []string
	// Dead reports whether another gateway is known to be dead, and how long ago it was last heard from.
	Dead(ctx context.Context, incarnation string) (silent time.Duration, dead bool)
	// Claim assigns a resource to the call of a hold, and reports whether the resource now belongs to that call. Claim does not assign a
	// resource that another call has created or may have created.
	Claim(ctx context.Context, org string, f *PlatformResource, h *Hold) (bool, error)
	// Forget removes the intents of holds whose calls have created nothing. A repeat of such a call is then treated as a new call.
	Forget(ctx context.Context, org string, holds ...string) error
	// RecordedOwners returns the owners of resources found in records outside the ledger, such as the audit log.
	RecordedOwners(ctx context.Context, org string, ids []string) map[string]Ownership
}

// Events receives the findings and actions of the ledger. Its methods do not wait for deliveries.
type Events interface {
	// Observed is called at the start of each pass with an organisation's plan and its complete ledger.
	Observed(ctx context.Context, org string, p *Plan, s *State)
	// PassEnded is called at the end of each pass. If err is not nil, the report covers the work done before the error occurred.
	PassEnded(ctx context.Context, org string, r *Report, err error)
	// Announce sends a notice that pods will be stopped or that a resource is idle. It calls done with the result of the delivery: nil if the
	// receiver accepted the notice or if the organisation has no receiver.
	Announce(ctx context.Context, c *Cause, r *Record, done func(err error))
	// Stopped reports that a pod was stopped, or that it was deleted at its deadline.
	Stopped(ctx context.Context, c *Cause, r *Record)
	// Released reports that a reservation was released because its call is no longer in progress.
	Released(org string, h *Hold)
	// RestoredLate reports reservations that this gateway restored into a ledger that had been declared complete without them.
	RestoredLate(ctx context.Context, org string, holds []Hold)
}

// Deps are the dependencies of a ledger. All fields are required, except Journal.
type Deps struct {
	Store      Store
	Platform   Platform
	Gateway    Gateway
	Events     Events
	Leadership Leadership
	Logger     *slog.Logger
	Now        func() time.Time
	// Self identifies this gateway.
	Self Holder
	// SingleGateway is set if no other gateway can share the store.
	SingleGateway bool
	// Journal stores the snapshots for the next start of this gateway; nil disables it.
	Journal *Journal
	// History rolls up the costs of resources in each pass.
	History *History
	// BillDelay is [Bills.Delay].
	BillDelay time.Duration
	// Interval is the time between regular passes. It also limits the idle time that one pass can confirm ([IdleResource].Observed) and the
	// age of the snapshot of a large, changed ledger ([Snapshots]). PollInterval is the time between two checks of the ledger heads.
	Interval, PollInterval time.Duration
	// CallTimeout is the maximum duration of a call. A hold that is older belongs to a gateway process that has ended. Unresolved is the
	// additional time during which a pass searches for the result of a call with an unknown outcome.
	CallTimeout, Unresolved time.Duration
	// PeerTimeout limits how long a rebuild waits for the offers of peers. A gateway that has been connected to the store for less than
	// PeerTimeout does not know all of its peers yet.
	PeerTimeout time.Duration
}

// Components are the ledger of a gateway and the workers that keep the ledger consistent with the platform. The caller of [New] must run
// Outbox, Loop, Watch and the journal.
type Components struct {
	Ledger *Ledger
	// Outbox is the store that the ledger writes to.
	Outbox *Outbox
	// Loop reconciles the ledger with the platform.
	Loop *Loop
	// Watch polls the ledger heads.
	Watch *Watcher
}

// New returns the components of a gateway's ledger, with the snapshots that earlier processes left in the journal.
func New(deps Deps) *Components {
	d := &deps
	images := &Snapshots{Deps: d}
	images.recover()
	store := recordingStore{d.Store, images}
	kicks := make(kicks, maxKicks)
	outbox := &Outbox{Deps: d, Store: store, kicks: kicks, wake: make(chan struct{}, 1), boxes: make(map[string]*box)}
	loop := &Loop{Leadership: d.Leadership, kicks: kicks, Reconciler: &Reconciler{
		Deps: d, Store: store, images: images, outbox: outbox,
		bills: &Bills{Store: d.Store, Platform: d.Platform, Delay: d.BillDelay, Retention: d.History.Retention},
	}}
	return &Components{
		Ledger: &Ledger{Store: outbox, Costs: NewRunCosts(), Loop: loop, Snapshots: images, Logger: d.Logger},
		Outbox: outbox, Loop: loop, Watch: &Watcher{Snapshots: images, Loop: loop},
	}
}
