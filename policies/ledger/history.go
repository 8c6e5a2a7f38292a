package ledger

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Item is a resource that incurs costs while it belongs to one owner, with the attributes that are known of the resource.
type Item struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind,omitempty"`
	Owner
	Name       string `json:"name,omitempty"`
	GPU        string `json:"gpu,omitempty"`
	DataCenter string `json:"dc,omitempty"`
	// Decision is the decision ID of the call that created the resource.
	Decision string `json:"decision,omitempty"`
	Labels   Labels `json:"labels,omitempty"`
	// Period is the period whose accrued costs an adjustment changed.
	Period AccrualPeriod `json:"period,omitempty"`
	Terms
}

// Terms are the prices of an item in micro-dollars per hour: the agreed price, and the list price if it differs. In a Series they are the
// latest known prices, and in a Rollup the prices at the time of the roll-up. A price is zero if it is unknown or was not requested, and
// for one-time costs.
type Terms struct {
	Rate int64 `json:"rate,omitempty"`
	// List is the list price; 0 if it equals Rate.
	List int64 `json:"list,omitempty"`
	// GB is the size of a network volume.
	GB int64 `json:"gb,omitempty"`
}

// at returns t if it contains the given rate, or else Terms with only that rate.
func (t Terms) at(rate int64) Terms {
	if t.Rate == rate {
		return t
	}
	return Terms{Rate: rate}
}

// maxName is the number of bytes of a name that are kept.
const maxName = 64

// NewItem returns the item of a resource.
func NewItem(resource, kind string, o Owner, a Metadata) Item {
	name := a.Name
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return Item{
		Resource: resource, Kind: kind, Owner: o, Name: name, GPU: a.GPU, DataCenter: a.DataCenter,
		Decision: a.Decision, Labels: a.Labels,
	}
}

// NewRunItem returns the item of a one-time cost, such as a run. All runs of an owner on one endpoint or model share an item; each
// adjustment has its own item.
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

// Change is a change of an item's rate, or a one-time cost of the item. Rate is the new rate minus the old rate, in micro-dollars per hour.
// It takes effect at At, which may be earlier than the time of recording. Once is the one-time cost in micro-dollars; only adjustments can
// make it negative.
type Change struct {
	Item Item
	Rate int64
	Once int64
	At   time.Time
}

// Series is an item that accrues cost at Rate, in micro-dollars per hour. The roll-ups already contain its cost up to At, in Unix
// milliseconds. Carry is the fraction of a micro-dollar that the roll-ups do not contain yet, in micro-dollar milliseconds per hour.
type Series struct {
	Item  Item  `json:"item"`
	Rate  int64 `json:"rate"`
	Carry int64 `json:"carry,omitempty"`
	At    int64 `json:"at"`
}

// Unit is the length of a roll-up.
type Unit string

// Units of roll-ups, in UTC.
const (
	Hourly Unit = "hour"
	Daily  Unit = "day"
)

// Length returns the duration of the unit.
func (u Unit) Length() time.Duration {
	if u == Hourly {
		return time.Hour
	}
	return 24 * time.Hour
}

// Start returns the start of the unit that contains t.
func (u Unit) Start(t time.Time) time.Time { return t.UTC().Truncate(u.Length()) }

// Rollup is the cost of an item, in micro-dollars, in the hour or day that began at Start.
type Rollup struct {
	Start time.Time
	Item  Item
	Micro int64
}

// RollupProgress describes how far costs have been rolled up.
type RollupProgress struct {
	// Version changes with each call of [RollupStore.Post], and with each move of accrued costs.
	Version int64
	// Until is the end of the time for which all series are rolled up; zero before the first roll-up.
	Until time.Time
	// Pending is the number of changes that are not rolled up yet.
	Pending int64
	// Now is the store's clock.
	Now time.Time
	// Transfers are the moves of accrued costs between teams, in the order of their times. Roll-ups keep the former team.
	Transfers Transfers
}

// RollupInput is the input for computing roll-ups.
type RollupInput struct {
	RollupProgress

	Series []Series
	// Changes are the pending changes, in the order of recording.
	Changes []Change
	// Resources is the whole ledger if Until is zero.
	Resources []Record
}

// Posting is a set of additions to roll-ups.
type Posting struct {
	// Version is the version of the RollupInput that the posting was computed from. The posting is rejected if another posting was made since
	// that version.
	Version int64
	Until   time.Time
	// Series replace the stored series of the same items. A series without a rate is deleted.
	Series []Series
	// Changes is the number of input changes covered by the posting.
	Changes int
	// Rollups are hourly. The store adds them to the daily roll-ups too.
	Rollups []Rollup
	// Billed are the hourly differences between the bill and the counted cost. They are also added to the owner's accrued cost in the periods
	// that contain the hour, or to the accrued cost of the team that the owner's cost was transferred to. HistoryOnly prevents that
	// addition: it is set if the store had lost the roll-ups of the hour but the accrued cost was restored.
	Billed      []Rollup
	Transfers   Transfers
	HistoryOnly bool
	Retention   Retention
}

// RollupStore stores roll-ups. It must be the same database as the [Store] with the recorded changes, so that both are lost together.
// Implementations are safe for concurrent use.
type RollupStore interface {
	// RollupProgress returns how far the costs have been rolled up.
	RollupProgress(ctx context.Context, org string) (RollupProgress, error)
	// RollupInput returns the input of the next posting.
	RollupInput(ctx context.Context, org string) (RollupInput, error)
	// Post applies a posting, and reports whether it was applied. It is atomic and safe to repeat.
	Post(ctx context.Context, org string, p *Posting) (bool, error)
	// Rollups returns the roll-ups of the units that began at the given times, in no particular order.
	Rollups(ctx context.Context, org string, u Unit, starts []time.Time) ([]Rollup, error)
}

// History rolls up the costs of resources, and reads them. It is safe for concurrent use, including by several gateways that share a store.
type History struct {
	Store     RollupStore
	Retention Retention

	found  sync.Map // organisation to the latest argument of SetResources
	pasts  sync.Map // organisation to pastCosts
	flight singleflight.Group
}

// SetResources sets the resources found at the platform, by ID. History takes additional facts about the items of an organisation from
// these resources. The map must not be modified afterwards.
func (h *History) SetResources(org string, found map[string]*PlatformResource) {
	h.found.Store(org, found)
}

// known returns the latest argument of SetResources, or nil.
func (h *History) known(org string) map[string]*PlatformResource {
	known, _ := h.found.Load(org)
	found, _ := known.(map[string]*PlatformResource)
	return found
}

// rollTries limits the retries when another gateway posts first.
const rollTries = 5

// RollUpHours calls RollUp if an hour has ended or the ledger has changed since the last roll-up.
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

// RollUp rolls up the costs that an organisation has accrued up to the present. It splits them into several small postings.
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
	return fmt.Errorf("roll up %s: %w: other gateways rolled up the same costs at the same time", org, ErrUnavailable)
}

// post applies the postings of a RollupInput. It returns false if another gateway has already posted it.
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

// learn copies the facts of the platform's record.
func (i *Item) learn(f *PlatformResource) {
	i.GPU = cmp.Or(f.GPU, i.GPU)
	i.DataCenter = cmp.Or(f.DataCenter, i.DataCenter)
	i.Terms = Terms{Rate: f.Amounts[Burn], List: f.ListRate, GB: f.Amounts[VolumeGB]}
}

// Machine returns the GPU or CPU type and the data centre of a resource. Each result is "" if it is unknown, absent or ambiguous.
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
	switch kind { //nolint:exhaustive // other kinds have no machine
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
