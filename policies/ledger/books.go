package ledger

import (
	"context"
	"log/slog"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Platform is what the ledger asks of the platform, for one organisation at a time.
type Platform interface {
	// List returns everything that the organisation has. The list of a known kind that costs something cannot be absent.
	List(ctx context.Context, org string, known func(operation.Kind) bool) ([]PlatformResource, error)
	// Get returns one resource, nil if the platform answers 404.
	Get(ctx context.Context, org string, kind operation.Kind, id string) (*PlatformResource, error)
	// EndedHoldsSandbox returns the terminated or failed sandbox that a call created, or nil if there is none. List omits such sandboxes.
	EndedSandbox(ctx context.Context, org, call string) (*PlatformResource, error)
	// Bills returns the bills of the whole hours in a range, without those that are 0.
	Bills(ctx context.Context, org string, from, to time.Time) ([]Bill, error)
	// JobOutcome returns the outcome of a hold's job: a commit, or nil while the job runs or if nothing is known of it.
	JobOutcome(ctx context.Context, org string, h *Hold) (*Settlement, error)
	// StopPod stops a pod and returns its remaining amounts.
	StopPod(ctx context.Context, org, id string) (Amounts, error)
	// Delete deletes a resource. It is no error if the resource is gone already.
	Delete(ctx context.Context, org string, kind operation.Kind, id string) error
}

// Gateway is what the ledger asks of the gateway that it belongs to.
type Gateway interface {
	// Plan returns the budgets of an organisation, nil for an organisation without budgets.
	Plan(org string) *Plan
	// Budgeted returns the organisations that have budgets.
	Budgeted() []string
	// Peers returns the names of the gateways that are alive.
	Peers() []string
	// Dead returns how long another gateway has been silent if it is known to be dead.
	Dead(ctx context.Context, incarnation string) (silent time.Duration, dead bool)
	// Claim gives a resource to the call of a hold, and reports whether it belongs to that call: of resources that look alike, each
	// belongs to one call.
	Claim(ctx context.Context, org string, f *PlatformResource, h *Hold) (bool, error)
	// Forget removes the intents of holds whose creates have made nothing.
	Forget(ctx context.Context, org string, holds ...string) error
	// RecordedOwners returns the owners of resources by records outside the ledger.
	RecordedOwners(ctx context.Context, org string, ids []string) map[string]Ownership
}

// Events receives what the ledger finds and does. Its methods do not wait for deliveries.
type Events interface {
	// Observed is called with the plan of an organisation and its complete ledger when a pass begins.
	Observed(ctx context.Context, org string, p *Plan, s *State)
	// Exceededded is called when a pass has ended. With an error, the report has what was done until then.
	PassEnded(ctx context.Context, org string, r *Report, err error)
	// Announce sends a notice that pods will be stopped, or that a resource is idle, and calls ended with the outcome of the delivery: nil
	// if the receiver accepted the notice, or if the organisation has no receiver.
	Announce(ctx context.Context, c *Cause, r *Record, ended func(err error))
	// Stopped reports that a pod was stopped, or deleted at its deadline.
	Stopped(ctx context.Context, c *Cause, r *Record)
	// HoldsReleased reports that a reservation was released because no call has it in hand.
	Released(org string, h *Hold)
	// RestoredLate reports reservations that this gateway restored into a ledger that was complete without them.
	RestoredLate(ctx context.Context, org string, holds []Hold)
}

// Deps are what the parts of a ledger work with. All are required, except Journal.
type Deps struct {
	Store      Store
	Platform   Platform
	Gateway    Gateway
	Events     Events
	Leadership Leadership
	Logger     *slog.Logger
	Now        func() time.Time
	// Self is this gateway.
	Self Holder
	// SingleGateway says that no other gateway can share the store.
	SingleGateway bool
	// Journal keeps the images for the next start of this gateway; nil keeps nothing.
	Journal *Journal
	// History rolls up the costs of resources in each pass.
	History *History
	// BillDelay is [Bills.Delay].
	BillDelay time.Duration
	// Interval is the time between two regular passes: the most idle time that one pass vouches for, and the age at which the image of a
	// large ledger that has changed is renewed. Beat is the time between two looks at the heads of ledgers.
	Interval, PollInterval time.Duration
	// CallTimeout is how long a call may take: a hold that is older belongs to a gateway that has ended. Unresolved is how much longer a pass
	// looks for the result of a call with an unknown outcome.
	CallTimeout, Unresolved time.Duration
	// PeerTimeout is how long a rebuild waits for the offers of peers, and how long the store must have answered a gateway for it to know
	// its peers.
	PeerTimeout time.Duration
}

// Componentsare the ledger of a gateway and the parts that keep it in line with the platform. They do nothing by themselves: the caller runs
// Outbox, Loop, Watch and the journal.
type Components struct {
	Ledger *Ledger
	// Outbox is the ledger's store.
	Outbox *Outbox
	// Loop reconciles the ledger with the platform.
	Loop *Loop
	// Watcher follows the heads of ledgers.
	Watch *Watcher
}

// New returns the books of a gateway, which remember what the journal has of earlier processes.
func New(deps Deps) *Components {
	d := &deps
	images := &Snapshots{Deps: d}
	images.recover()
	store := recordingStore{d.Store, images}
	kicks := make(kicks, maxKicks)
	outbox := &Outbox{Deps: d, Store: store, kicks: kicks, wake: make(chan struct{}, 1), boxes: make(map[string]*box)}
	loop := &Loop{Leadership: d.Leadership, kicks: kicks, Reconciler: &Reconciler{
		Deps: d, Store: store, images: images, outbox: outbox, bills: &Bills{Store: d.Store, Platform: d.Platform, Delay: d.BillDelay, Retention: d.History.Retention},
	}}
	return &Components{
		Ledger: &Ledger{Store: outbox, Costs: NewRunCosts(), Loop: loop, Snapshots: images, Logger: d.Logger},
		Outbox: outbox, Loop: loop, Watch: &Watcher{Snapshots: images, Loop: loop},
	}
}
