package spend

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Owned is the owner of a resource, and its description.
type Owned struct {
	Owner Owner `json:"owner"`
	About About `json:"about"`
}

// or returns the remembered description, and the found one where that is empty.
func (a About) or(found About) About {
	return About{
		Operation: cmp.Or(a.Operation, found.Operation), Decision: cmp.Or(a.Decision, found.Decision), Name: cmp.Or(a.Name, found.Name),
		Print: cmp.Or(a.Print, found.Print), GPU: cmp.Or(a.GPU, found.GPU), DataCenter: cmp.Or(a.DataCenter, found.DataCenter), Labels: cmp.Or(a.Labels, found.Labels),
	}
}

// Offer is a gateway's memory of a lost ledger.
type Offer struct {
	Gateway string
	// Epoch is that of the rebuild which the offer is for.
	Epoch  int64
	Owners map[string]Owned
	// Balances are those of a time in a zone. Their accrued costs go on by
	// their rates until the offer is made.
	Balances []Balance
	At       time.Time
	Zone     Zone
}

// Head is a store's short description of a ledger.
type Head struct {
	// Epoch changes with each rebuild, Seq with each change.
	Epoch, Seq int64
	Complete   bool
	Lost       Lost
}

// Memorial is where gateways bring together their memories of lost ledgers.
type Memorial interface {
	// Heads returns those of organisations, in their order.
	Heads(ctx context.Context, orgs []string) ([]Head, error)
	// Offer keeps the owners that are offered for an hour, and raises sums to those
	// offered of periods that go on. Nothing is overwritten but resources without an owner: a gateway may have found one in the
	// platform's list before the loss was noticed, and another knows its owner.
	Offer(ctx context.Context, org string, o *Offer) error
	// Offered returns the owners that were offered for a rebuild, and by which gateways.
	Offered(ctx context.Context, org string, epoch int64) (owners map[string]Owned, gateways []string, err error)
}

// Images is this gateway's memory of ledgers: of each the state that was read
// last, at most an interval old, see [Watch], and its settlements since. When a ledger is rebuilt
// because the store has lost it, every gateway offers its image. It is safe for
// concurrent use.
type Images struct {
	Store   Store
	Notices Notices
	// Gateway is the name of this one, Peers are those that are alive.
	Gateway string
	Peers   func() []string
	// Recorded returns other records of resources that no image has.
	Recorded func(ctx context.Context, org string, ids []string) map[string]Owned
	// Told is told of each loss when the ledger was rebuilt.
	Told   func(ctx context.Context, org string, l *Loss)
	Logger *slog.Logger
	Now    func() time.Time
	// Patience is how long a rebuild waits for the offers of peers.
	Patience time.Duration

	mu   sync.Mutex // guards orgs
	orgs map[string]*image
}

// image is the memory of one organisation's ledger.
type image struct {
	state State
	read  time.Time
	seq   int64 // no later than the state
	// offered is the epoch of the rebuild that the image was offered for last.
	offered int64
	// settled are the settlements since about the time that the state was read.
	settled []outcome
	count   int64 // of settlements so far
	head    Head
	loss    *Loss // the last one
	// rebuilding says that this gateway is at it.
	rebuilding bool
}

// outcome is the entry of a settlement, in brief.
type outcome struct {
	number   int64
	resource string
	owned    Owned
	once     int64
}

// Loss is the loss of parts of a ledger, and its result.
type Loss struct {
	Lost Lost      `json:"lost"`
	At   time.Time `json:"at"`
	// Rebuilt is when the ledger was complete again, zero before.
	Rebuilt time.Time `json:"rebuilt,omitzero"`
	// Returned is how many resources have their owner back; Unowned is how many have none.
	Returned int `json:"returned"`
	Unowned  int `json:"unowned"`
}

// of returns the image of an organisation, with mu held.
func (m *Images) of(org string) *image {
	if m.orgs == nil {
		m.orgs = make(map[string]*image)
	}
	if m.orgs[org] == nil {
		m.orgs[org] = new(image)
	}
	return m.orgs[org]
}

// Remember returns the store with its traffic remembered.
func (m *Images) Remember(s Store) Store { return remembering{s, m} }

type remembering struct {
	Store

	images *Images
}

// Settle implements Store.
func (r remembering) Settle(ctx context.Context, org string, s *Settlement) error {
	err := r.Store.Settle(ctx, org, s)
	if s.End == Commit && !s.Gone {
		r.images.settled(org, outcome{resource: s.Resource, owned: Owned{s.Owner, s.About}, once: s.Amounts[Cost]})
	}
	return err
}

// Adjust implements Store.
func (r remembering) Adjust(ctx context.Context, org string, list ...*Adjustment) ([]Adjusted, error) {
	done, err := r.Store.Adjust(ctx, org, list...)
	for i, a := range list[:len(done)] {
		if done[i] != NotMade && a.Owner != nil {
			r.images.settled(org, outcome{resource: a.Resource, owned: Owned{*a.Owner, a.About}})
		}
	}
	return done, err
}

func (m *Images) settled(org string, s outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	img := m.of(org)
	img.count++
	s.number = img.count
	img.settled = append(img.settled, s)
}

// begin is to be called before a state is read that is taken afterwards.
func (m *Images) begin(org string) (from int64) {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(org).count
}

// take makes a complete state the image, if that of before was offered for its rebuild.
func (m *Images) take(org string, s *State, from int64) {
	if m == nil || !s.Complete {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	img := m.of(org)
	if img.state.Epoch != 0 && s.Epoch != img.state.Epoch && s.Epoch != img.offered {
		return
	}
	img.state, img.read = *s, m.Now()
	img.settled = slices.DeleteFunc(img.settled, func(s outcome) bool { return s.number <= from })
}

// offer is the image of an organisation, for a rebuild.
func (m *Images) offer(org string, epoch int64) *Offer {
	m.mu.Lock()
	defer m.mu.Unlock()
	img := m.of(org)
	o := &Offer{Gateway: m.Gateway, Epoch: epoch, Owners: make(map[string]Owned, len(img.state.Resources)), At: img.state.Now, Zone: img.state.Zone}
	for _, r := range img.state.Resources {
		o.Owners[r.ID] = Owned{r.Owner, r.About}
	}
	sums := make(map[Scope]*Balance)
	o.Balances = slices.Clone(img.state.Balances)
	for i := range o.Balances {
		sums[o.Balances[i].Scope] = &o.Balances[i]
	}
	for _, s := range img.settled {
		if s.resource != "" {
			o.Owners[s.resource] = s.owned
			continue
		}
		for _, scope := range s.owned.Owner.Scopes() {
			if b := sums[scope]; b != nil {
				b.Day, b.Month = b.Day+s.once, b.Month+s.once
			}
		}
	}
	return o
}

// answer offers the image for a rebuild, once.
func (m *Images) answer(ctx context.Context, org string, epoch int64) error {
	m.mu.Lock()
	img := m.of(org)
	known := img.offered == epoch || img.state.Epoch == epoch || epoch == 0
	m.mu.Unlock()
	if known {
		return nil
	}
	if err := m.Store.Offer(ctx, org, m.offer(org, epoch)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	img.offered = epoch
	return nil
}

// lossNotice is the name of the last loss in Notices.
const lossNotice = "loss"

// LastLoss returns the last loss, nil for nothing.
func LastLoss(ctx context.Context, n Notices, org string) (*Loss, error) {
	noticed, err := n.Noticed(ctx, org)
	if err != nil || noticed[lossNotice] == "" {
		return nil, err
	}
	l := new(Loss)
	return l, json.Unmarshal([]byte(noticed[lossNotice]), l)
}

func (m *Images) notice(ctx context.Context, org string, l *Loss) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return m.Notices.Notice(ctx, org, lossNotice, string(text))
}

// recollection is the gateways' memory of a ledger that is rebuilt.
type recollection struct {
	loss   *Loss
	owners map[string]Owned
}

// offerPoll is the distance of two looks at the peers' offers.
const offerPoll = 50 * time.Millisecond

// recall offers the image of this gateway to a rebuild that has begun, and waits for
// those of its peers.
func (m *Images) recall(ctx context.Context, org string, before *State) (*recollection, error) {
	if m == nil {
		return new(recollection), nil
	}
	heads, err := m.Store.Heads(ctx, []string{org})
	if err != nil {
		return nil, err
	}
	epoch := heads[0].Epoch
	if err := m.answer(ctx, org, epoch); err != nil {
		return nil, err
	}
	owners, err := m.await(ctx, org, epoch)
	if err != nil {
		return nil, err
	}
	r := &recollection{owners: owners}
	if before.Lost == "" && len(owners) > 0 && before.Epoch == 0 {
		before.Lost = LostAll // others knew the ledger
	}
	r.loss, err = m.lost(ctx, org, before)
	return r, err
}

// lost notes what a ledger has lost that is to be rebuilt, before the store forgets it. It
// returns the loss that no rebuild has made good yet, nil for none.
func (m *Images) lost(ctx context.Context, org string, before *State) (*Loss, error) {
	if m == nil {
		return nil, nil
	}
	last, err := LastLoss(ctx, m.Notices, org)
	switch {
	case err != nil:
		return nil, err
	case last != nil && last.Rebuilt.IsZero():
		return last, nil
	case before.Lost == "":
		return nil, nil
	}
	m.Logger.ErrorContext(ctx, "the store has lost a ledger, or a part of it: it is rebuilt", "org", org, "lost", string(before.Lost), "reason", before.Lost.String())
	l := &Loss{Lost: before.Lost, At: before.Now.UTC()}
	return l, m.notice(ctx, org, l)
}

// await waits until all peers have offered, but not for long.
func (m *Images) await(ctx context.Context, org string, epoch int64) (map[string]Owned, error) {
	late := time.NewTimer(m.Patience)
	defer late.Stop()
	poll := time.NewTicker(offerPoll)
	defer poll.Stop()
	for waiting := true; ; {
		owners, gateways, err := m.Store.Offered(ctx, org, epoch)
		if err != nil || !waiting || !slices.ContainsFunc(m.Peers(), func(p string) bool { return !slices.Contains(gateways, p) }) {
			return owners, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			waiting = false // they are dead, or as good as
		case <-poll.C:
		}
	}
}

// rest adds to a recollection the records elsewhere of resources that no gateway
// remembers. A record there of a ledger that seems never to have been shows that it
// was lost with all gateways; bills then supply the accrued costs.
func (r *recollection) rest(ctx context.Context, p *pass, unknown []*Found) error {
	if p.Images == nil || !p.report.Rebuilt {
		return nil
	}
	var ids []string
	for _, f := range unknown {
		if _, known := r.owners[f.ID]; !known {
			ids = append(ids, f.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	recorded := p.Images.Recorded(ctx, p.org, ids)
	if len(recorded) == 0 {
		return nil
	}
	if r.owners == nil {
		r.owners = make(map[string]Owned)
	}
	maps.Copy(r.owners, recorded)
	if r.loss != nil {
		return nil
	}
	r.loss = &Loss{Lost: LostAll, At: p.state.Now.UTC()}
	return p.Bills.again(ctx, p.org, p.state)
}

// finished tells of the loss that a rebuild has made good.
func (m *Images) finished(ctx context.Context, org string, r *recollection, report *Report, now time.Time) error {
	if m == nil || r.loss == nil {
		return nil
	}
	r.loss.Rebuilt, r.loss.Unowned, r.loss.Returned = now.UTC(), report.Unowned, report.Returned
	m.Logger.WarnContext(ctx, "a lost ledger was rebuilt", "org", org, "lost", string(r.loss.Lost), "returned", r.loss.Returned, "unowned", r.loss.Unowned)
	if m.Told != nil {
		m.Told(ctx, org, r.loss)
	}
	return m.notice(ctx, org, r.loss)
}
