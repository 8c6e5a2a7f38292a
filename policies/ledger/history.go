package ledger

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Item is a source of costs: a resource while it belongs to one owner, and the facts known of
// it.
type Item struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind,omitempty"`
	Owner
	Name       string `json:"name,omitempty"`
	GPU        string `json:"gpu,omitempty"`
	DataCenter string `json:"dc,omitempty"`
	// Decision is that of the call that made the resource.
	Decision string `json:"decision,omitempty"`
	Labels   Labels `json:"labels,omitempty"`
	// UntilPeriodEnd is the one whose accrued costs an adjustment changed.
	Period AccrualPeriod `json:"period,omitempty"`
	Terms
}

// Terms are the hourly costs of an item, in micro-dollars: of a series, those that the
// reconciler found last; of a roll-up, those of its time. They are zero where they are not
// known, in one-time costs, and where they are not asked for.
type Terms struct {
	Rate int64 `json:"rate,omitempty"`
	// List is the rate of the platform's list instead, 0 if that is Rate.
	List int64 `json:"list,omitempty"`
	// GB is the size of a network volume.
	GB int64 `json:"gb,omitempty"`
}

// at is the terms at a rate: those that are known, or the rate alone.
func (t Terms) at(rate int64) Terms {
	if t.Rate == rate {
		return t
	}
	return Terms{Rate: rate}
}

// maxName bounds the kept part of a name, in bytes.
const maxName = 64

// NewItem returns the item of a resource.
func NewItem(resource, kind string, o Owner, a Metadata) Item {
	name := a.Name
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return Item{Resource: resource, Kind: kind, Owner: o, Name: name, GPU: a.GPU, DataCenter: a.DataCenter, Decision: a.Decision, Labels: a.Labels}
}

// NewRunItem returns the item of something that costs once, such as a run: all of an owner
// on one endpoint or model are one item. Each adjustment is an item.
func NewRunItem(kind string, o Owner, a Metadata) Item {
	if kind == KindAdjustment {
		item := NewItem(a.Decision, kind, o, Metadata{Name: a.Name})
		item.Period = AccrualPeriod(a.Operation)
		return item
	}
	return Item{Resource: NewItem("", kind, o, a).Name, Kind: kind, Owner: o}
}

// sameAs reports whether two items are the same resource of the same owner.
func (i *Item) sameAs(other *Item) bool {
	return i.Resource == other.Resource && i.Owner == other.Owner
}

// Change is one of an item's rate: Rate is the difference, in micro-dollars per hour,
// which holds from At on. At may be before the change was entered. Or it is an
// item's one-time cost Once, in micro-dollars, which is negative only of an adjustment.
type Change struct {
	Item Item
	Rate int64
	Once int64
	At   time.Time
}

// Series is an item that costs money now: its rate, in micro-dollars per hour, and the
// remainder of its cost, in micro-dollar milliseconds per hour. Its cost
// until At, in Unix milliseconds, is rolled up.
type Series struct {
	Item  Item  `json:"item"`
	Rate  int64 `json:"rate"`
	Carry int64 `json:"carry,omitempty"`
	At    int64 `json:"at"`
}

// Unit is the length of a roll-up.
type Unit string

// The units of roll-ups, in UTC.
const (
	Hourly Unit = "hour"
	Daily  Unit = "day"
)

// Length is how long the unit is.
func (u Unit) Length() time.Duration {
	if u == Hourly {
		return time.Hour
	}
	return 24 * time.Hour
}

// Start returns when the unit that a time is in began.
func (u Unit) Start(t time.Time) time.Time { return t.UTC().Truncate(u.Length()) }

// Rollup is the cost of an item in the unit of time that began at Start, in
// micro-dollars.
type Rollup struct {
	Start time.Time
	Item  Item
	Micro int64
}

// RollupProgress is how far roll-ups have been made.
type RollupProgress struct {
	// Version is another after each [RollupStore] Post.
	Version int64
	// Until is when roll-ups were made last of all series, zero before the first time.
	Until time.Time
	// Pending is how many changes are in none.
	Pending int64
	// Now is the store's clock.
	Now time.Time
}

// RollupInput is the source of roll-ups.
type RollupInput struct {
	RollupProgress

	Series []Series
	// Changes are those waiting, in the order in which they were entered.
	Changes []Change
	// Resources is the whole ledger if Until is zero.
	Resources []Record
}

// Posting adds to roll-ups.
type Posting struct {
	// Version is that of the tally which the posting was made from. If another one was
	// made meanwhile, nothing is done.
	Version int64
	Until   time.Time
	// Series take the place of those of the same item; one without a rate ends.
	Series []Series
	// Changes is how many of the tally's are in the posting.
	Changes int
	// Rollups are hourly. They are added to those of the days, too.
	Rollups []Rollup
	// Billed are hourly, too: by how much the bill differs from the counted cost.
	// That is also added to the owner's accrued cost in the day and the month, as
	// far as the hour is in them, unless Quiet: the store has lost the roll-ups of the hour, and the
	// accrued cost was restored.
	Billed      []Rollup
	HistoryOnly bool
	Retention   Retention
}

// RollupStore keeps roll-ups. It is one with the [Store] whose changes it counts: both are
// lost together. Implementations are safe for concurrent use.
type RollupStore interface {
	RollupProgress(ctx context.Context, org string) (RollupProgress, error)
	RollupInput(ctx context.Context, org string) (RollupInput, error)
	// Post is one atomic step, safe to repeat, and reports whether the posting was made.
	Post(ctx context.Context, org string, p *Posting) (bool, error)
	// Rollups returns those of the units that began at the given times, in no order.
	Rollups(ctx context.Context, org string, u Unit, starts []time.Time) ([]Rollup, error)
}

// History rolls up the costs of resources. It is safe for concurrent use, and so are
// histories of several gateways on one store.
type History struct {
	Store     RollupStore
	Retention Retention

	found sync.Map // by organisation, the last argument of Learn
}

// SetResources takes the resources found of an organisation. They must not be changed.
func (h *History) SetResources(org string, found map[string]*PlatformResource) {
	h.found.Store(org, found)
}

// known is the last argument of Learn, nil for none.
func (h *History) known(org string) map[string]*PlatformResource {
	known, _ := h.found.Load(org)
	found, _ := known.(map[string]*PlatformResource)
	return found
}

// rollTries bounds how often another gateway may be quicker.
const rollTries = 5

// RollUpHours is Roll if an hour has ended since the last time, or something has changed.
func (h *History) RollUpHours(ctx context.Context, org string) error {
	at, err := h.Store.RollupProgress(ctx, org)
	if err != nil {
		return fmt.Errorf("roll up %s: %w", org, err)
	}
	if at.Pending == 0 && !at.Until.Before(Hourly.Start(at.Now)) {
		return nil
	}
	return h.RollUp(ctx, org)
}

// RollUp makes the roll-ups of an organisation up to date, in small postings.
func (h *History) RollUp(ctx context.Context, org string) error {
	for range rollTries {
		t, err := h.Store.RollupInput(ctx, org)
		if err != nil {
			return fmt.Errorf("roll up %s: %w", org, err)
		}
		done, err := h.post(ctx, org, newRolling(&t, h.known(org)))
		if err != nil {
			return fmt.Errorf("roll up %s: %w", org, err)
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("roll up %s: %w: other gateways were quicker", org, ErrUnavailable)
}

// post makes the postings of a tally. It reports false if another gateway was quicker.
func (h *History) post(ctx context.Context, org string, r *rolling) (bool, error) {
	for !r.done {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		p := r.next()
		p.Retention = h.Retention
		if done, err := h.Store.Post(ctx, org, p); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// learn takes over the platform's record of a resource.
func (i *Item) learn(f *PlatformResource) {
	i.GPU = cmp.Or(f.GPU, i.GPU)
	i.DataCenter = cmp.Or(f.DataCenter, i.DataCenter)
	i.Terms = Terms{Rate: f.Amounts[Burn], List: f.ListRate, GB: f.Amounts[VolumeGB]}
}

// Machine returns the type of GPU, or of CPU, that a resource has, and its data
// centre; each is "" if it has none or several, or if that is not known.
func Machine(kind operation.Kind, resource map[string]any) (gpu, dataCenter string) {
	text := func(m any, name string) string {
		object, _ := m.(map[string]any)
		s, _ := object[name].(string)
		return s
	}
	one := func(list any) string {
		values, _ := list.([]any)
		if len(values) != 1 {
			return ""
		}
		s, _ := values[0].(string)
		return s
	}
	dataCenter = cmp.Or(text(resource, "dataCenterId"), text(resource, "dataCenter"), one(resource["dataCenterIds"]))
	switch kind { //nolint:exhaustive // the others have no machine
	case operation.KindPod:
		gpu = cmp.Or(text(resource["gpu"], "id"), text(resource["cpu"], "id"))
	case operation.KindSandbox:
		gpu = text(resource, "cpuFlavorId")
	case operation.KindCluster:
		gpu = text(resource["compute"], "gpuTypeId")
	case operation.KindEndpoint:
		object, _ := resource["gpu"].(map[string]any)
		gpu = one(object["pools"])
	}
	return gpu, dataCenter
}
