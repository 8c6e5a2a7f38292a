package spend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Item is what costs money: a resource while it is an owner's, and what is known of
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
}

// maxName bounds what is kept of a name, in bytes.
const maxName = 64

// ItemOf returns the item of a resource.
func ItemOf(resource, kind string, o Owner, a About) Item {
	name := a.Name
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return Item{Resource: resource, Kind: kind, Owner: o, Name: name, GPU: a.GPU, DataCenter: a.DataCenter, Decision: a.Decision, Labels: a.Labels}
}

// RunOf returns the item of something that costs once, such as a run: all of an owner
// on one endpoint or model are one item.
func RunOf(kind string, o Owner, a About) Item {
	return Item{Resource: ItemOf("", kind, o, a).Name, Kind: kind, Owner: o}
}

// sameAs reports whether two items are the same resource of the same owner.
func (i *Item) sameAs(other *Item) bool {
	return i.Resource == other.Resource && i.Owner == other.Owner
}

// Change is one of an item's rate: Rate is the difference, in micro-dollars per hour,
// which holds from At on. At may be before the change was entered. Or it is what an
// item has cost Once, in micro-dollars.
type Change struct {
	Item Item
	Rate int64
	Once int64
	At   time.Time
}

// Series is an item that costs money now: its rate, in micro-dollars per hour, and the
// remainder of what it has cost, in micro-dollar milliseconds per hour.
type Series struct {
	Item  Item  `json:"item"`
	Rate  int64 `json:"rate"`
	Carry int64 `json:"carry,omitempty"`
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

// Rollup is what an item has cost in the unit of time that began at Start, in
// micro-dollars.
type Rollup struct {
	Start time.Time
	Item  Item
	Micro int64
}

// Tally is until when roll-ups have been made, and what has changed since then.
type Tally struct {
	// Version is 0 if none were made, and another after each [Archive] Post.
	Version int64
	Until   time.Time
	Series  []Series
	// Changes are in the order in which they were entered.
	Changes []Change
	// Resources is the whole ledger.
	Resources []Record
	// Now is the store's clock.
	Now time.Time
}

// Posting adds to roll-ups.
type Posting struct {
	// Version is that of the tally which the posting was made from. If another one was
	// made meanwhile, nothing is done.
	Version int64
	Until   time.Time
	// Series take the place of those of the tally.
	Series []Series
	// Changes is how many of the tally's are in the posting.
	Changes int
	// Rollups are hourly. They are added to those of the days, too.
	Rollups []Rollup
	// Billed are hourly, too: by how much what was billed differs from what was counted.
	// That is also added to what has accrued for the owner in the day and the month, as
	// far as the hour is in them.
	Billed []Rollup
	Keep   Retention
}

// Archive keeps roll-ups. It is one with the [Store] whose changes it counts: both are
// lost together. Implementations are safe for concurrent use.
type Archive interface {
	Tally(ctx context.Context, org string) (Tally, error)
	// Post is one atomic step, safe to repeat, and reports whether the posting was made.
	Post(ctx context.Context, org string, p *Posting) (bool, error)
	// Rollups returns those of the units that began at the given times, in no order.
	Rollups(ctx context.Context, org string, u Unit, starts []time.Time) ([]Rollup, error)
}

// History rolls up what resources cost. It is safe for concurrent use, and so are
// histories of several gateways on one archive.
type History struct {
	Archive Archive
	Keep    Retention
}

const (
	// rollTries bounds how often another gateway may be quicker.
	rollTries = 5
	// rollSize is about how many roll-ups one posting has at most, unless a single hour
	// has more.
	rollSize = 4000
)

// Roll makes the roll-ups of an organisation up to date. Found is what is known of
// resources now; it may be nil.
func (h *History) Roll(ctx context.Context, org string, found map[string]*Found) error {
	for lost := 0; lost < rollTries; {
		t, err := h.Archive.Tally(ctx, org)
		if err != nil {
			return fmt.Errorf("roll up %s: %w", org, err)
		}
		present := t.present()
		p := t.posting(present, found)
		p.Keep = h.Keep
		done, err := h.Archive.Post(ctx, org, p)
		switch {
		case err != nil:
			return fmt.Errorf("roll up %s: %w", org, err)
		case !done:
			lost++
		case !p.Until.Before(present):
			return nil
		}
	}
	return fmt.Errorf("roll up %s: %w: other gateways were quicker", org, ErrUnavailable)
}

// present is the latest time that the tally has seen: clocks can step back.
func (t *Tally) present() time.Time {
	latest := t.Now
	if t.Until.After(latest) {
		latest = t.Until
	}
	for _, c := range t.Changes {
		if c.At.After(latest) {
			latest = c.At
		}
	}
	return latest
}

// posting is the next step towards the tally's present.
func (t *Tally) posting(present time.Time, found map[string]*Found) *Posting {
	if t.Version == 0 { // what runs already is counted from now on
		p := &Posting{Until: present, Changes: len(t.Changes)}
		for _, r := range t.Resources {
			if rate := r.Amounts[Burn]; rate > 0 {
				p.Series = append(p.Series, Series{Item: ItemOf(r.ID, r.Kind, r.Owner, r.About), Rate: rate})
			}
		}
		return p
	}
	hours := max(1, rollSize/max(1, len(t.Series)+len(t.Changes)))
	p := &Posting{Version: t.Version, Until: present}
	if step := Hourly.Start(t.Until).Add(time.Duration(hours) * time.Hour); step.Before(p.Until) {
		p.Until = step
	}
	for p.Changes < len(t.Changes) && !t.Changes[p.Changes].At.After(p.Until) {
		p.Changes++
	}
	ran := make([]running, 0, len(t.Series))
	for _, s := range t.Series {
		ran = append(ran, running{Series: s, steps: []step{{t.Until.UnixMilli(), s.Rate}}})
	}
	for _, c := range t.Changes[:p.Changes] {
		if c.Once > 0 {
			p.Rollups = append(p.Rollups, Rollup{Start: Hourly.Start(c.At), Item: c.Item, Micro: c.Once})
			continue
		}
		i := slices.IndexFunc(ran, func(r running) bool { return r.Item.sameAs(&c.Item) })
		if i < 0 {
			i = len(ran)
			ran = append(ran, running{Series: Series{Item: c.Item}})
		}
		ran[i].Rate += c.Rate
		ran[i].steps = append(ran[i].steps, step{c.At.UnixMilli(), c.Rate})
	}
	for i := range ran {
		r := &ran[i]
		if f := found[r.Item.Resource]; f != nil {
			r.Item.learn(f)
		}
		p.Rollups = append(p.Rollups, r.accrue(p.Until.UnixMilli())...)
		if r.Rate != 0 {
			p.Series = append(p.Series, r.Series)
		}
	}
	return p
}

// running is a series and the changes of its rate, the first being from none.
type running struct {
	Series

	steps []step
}

type step struct{ at, rate int64 }

// accrue returns what the series has cost up to a time, by hour.
func (r *running) accrue(until int64) []Rollup {
	slices.SortStableFunc(r.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	var out []Rollup
	rate := int64(0)
	for i, s := range r.steps {
		end := until
		if i+1 < len(r.steps) {
			end = min(end, r.steps[i+1].at)
		}
		rate += s.rate
		for from := s.at; from < end; {
			start := from - from%hour
			to := min(end, start+hour)
			micro, rest := cost(rate, to-from, r.Carry)
			r.Carry = rest
			if n := len(out); n > 0 && out[n-1].Start.UnixMilli() == start {
				out[n-1].Micro += micro
			} else {
				out = append(out, Rollup{Start: time.UnixMilli(start).UTC(), Item: r.Item, Micro: micro})
			}
			from = to
		}
	}
	return slices.DeleteFunc(out, func(r Rollup) bool { return r.Micro == 0 })
}

// learn takes over what the platform says of a resource.
func (i *Item) learn(f *Found) {
	i.GPU = cmp.Or(f.GPU, i.GPU)
	i.DataCenter = cmp.Or(f.DataCenter, i.DataCenter)
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
	case operation.KindCluster:
		gpu = text(resource["compute"], "gpuTypeId")
	case operation.KindEndpoint:
		object, _ := resource["gpu"].(map[string]any)
		gpu = one(object["pools"])
	}
	return gpu, dataCenter
}
