package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Ownership is the owner of a resource, and its description.
type Ownership struct {
	Owner Owner    `json:"owner"`
	About Metadata `json:"about"`
}

// or returns the remembered description, and the found one where that is empty.
func (a Metadata) or(found Metadata) Metadata {
	return Metadata{
		Operation: cmp.Or(a.Operation, found.Operation), Decision: cmp.Or(a.Decision, found.Decision), Name: cmp.Or(a.Name, found.Name),
		Description: cmp.Or(a.Description, found.Description), GPU: cmp.Or(a.GPU, found.GPU), DataCenter: cmp.Or(a.DataCenter, found.DataCenter), Labels: cmp.Or(a.Labels, found.Labels),
		StopAt: a.StopAt, EndAt: a.EndAt,
	}
}

// Offer is a gateway's memory of a lost ledger.
type Offer struct {
	Gateway string
	// Epoch is that of the rebuild which the offer is for.
	Epoch  int64
	Owners map[string]Ownership
	// Balances are those of a time in a zone. Their accrued costs go on by
	// their rates until the offer is made. Owners are of the same time, or later.
	Balances []Balance
	At       time.Time
	Zone     Zone
}

// Head is a store's short description of a ledger.
type Head struct {
	// Epoch changes with each rebuild, Seq with each change.
	Epoch, Seq int64
	Complete   bool
	Lost       LostPart
}

// Restoration holds the reservations that a gateway remembers of a lost ledger.
type Restoration struct {
	// Epoch is the epoch of the rebuild.
	Epoch int64
	// Holds are in-flight and open reservations.
	Holds []RestoredHold
	// EndedHoldsSandbox are IDs of holds that have ended. A store that went back to an older state may have them.
	Ended []string
	// Jobs are jobs of the run interface whose owners are known.
	Jobs []OwnedJob
}

// RestoredHold is a hold from a gateway's memory.
type RestoredHold struct {
	Hold

	// Accrued says that the balances of the gateway's offer contain the accrual of the hold.
	Accrued bool
}

// OwnedJob is a job with its owner, and the time until which the store keeps the owner.
type OwnedJob struct {
	Job
	Owner

	Until time.Time
}

// ErrEpochChanged means that a restoration, or a pass, belongs to an earlier rebuild.
var ErrEpochChanged = errors.New("spend: the ledger is of another epoch")

// RecoveryStore is the part of a store in which gateways bring together what they remember of a lost ledger.
// Each gateway calls Offer, then Restore, then Sign.
type RecoveryStore interface {
	// Heads returns the heads of organisations, in their order.
	Heads(ctx context.Context, orgs []string) ([]Head, error)
	// Offer keeps the offered owners for an hour, and raises accrued costs to the offered
	// costs of the current periods. An owner replaces an older one, and takes precedence over none: a gateway may have found a
	// resource in the platform's list before the loss was noticed, and another gateway knows its owner.
	Offer(ctx context.Context, org string, o *Offer) error
	// Restore ends and adds holds, and returns the holds that it added: those that the store does not have and that have
	// not ended. It returns ErrOtherEpoch unless the ledger is of the given epoch.
	Restore(ctx context.Context, org string, r *Restoration) ([]Hold, error)
	// MarkRestored records that a gateway has offered and restored all that it remembers.
	MarkRestored(ctx context.Context, org string, epoch int64, gateway string) error
	// Offers returns the owners that were offered for a rebuild, and the gateways that have signed.
	Offers(ctx context.Context, org string, epoch int64) (owners map[string]Ownership, gateways []string, err error)
	// Position returns the latest position of a ledger that the store has reported to this gateway. Saw sets the position that an earlier
	// process of the gateway has seen: a ledger that is behind it was lost.
	Position(org string) Position
	SetPosition(org string, p Position)
}

// Snapshots is this gateway's memory of ledgers: the state of each ledger as it was read last, at most an
// interval ago, see [Watcher], the settlements since, and the reservations of the gateway's own calls.
// When a ledger is rebuilt because the store has lost it, every gateway offers its image. It is safe for
// concurrent use.
type Snapshots struct {
	*Deps

	mu    sync.Mutex // guards orgs, the fields of images, and heard
	orgs  map[string]*snapshot
	heard time.Time // when the store answered this gateway for the first time
}

// snapshot is the memory of one organisation's ledger.
type snapshot struct {
	// settling is read-locked by each settlement, and locked by a restoration.
	settling sync.RWMutex

	state State
	read  time.Time
	seq   int64 // at most the sequence of the state
	// offered is the epoch of the latest rebuild that the image was offered for, restored the epoch of the latest one that the
	// reservations were read for.
	offered, restored int64
	// settled are the settlements since about the time that the state was read.
	settled []outcome
	count   int64 // number of settlements so far
	reservations
	head Head
	loss *Loss // the latest
	// rebuilding says that this gateway rebuilds the ledger, failed why its last attempt failed.
	rebuilding bool
	failed     error
	lost       bool // and not complete yet
}

// outcome is the result of a settlement.
type outcome struct {
	number   int64
	resource string
	owned    Ownership
	once     int64
}

// Loss is the loss of parts of a ledger, and its result.
type Loss struct {
	Lost LostPart  `json:"lost"`
	At   time.Time `json:"at"`
	// Rebuilt is when the ledger was complete again, zero before.
	Rebuilt time.Time `json:"rebuilt,omitzero"`
	// OwnersRestored is how many resources have their owner back; Unowned is how many have none.
	Returned int `json:"returned"`
	Unowned  int `json:"unowned"`
}

// of returns the image of an organisation, with mu held.
func (m *Snapshots) of(org string) *snapshot {
	if m.orgs == nil {
		m.orgs = make(map[string]*snapshot)
	}
	if m.orgs[org] == nil {
		m.orgs[org] = new(snapshot)
	}
	return m.orgs[org]
}

// begin is to be called before a state is read that is taken afterwards.
func (m *Snapshots) begin(org string) (from int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(org).count
}

// take makes a complete state the image, if that of before was offered for its rebuild.
func (m *Snapshots) take(org string, s *State, from int64) {
	if !s.Complete {
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
	img.covered(s, from)
	m.record(org, img)
}

// owners returns the owners of all resources that the image knows.
func (img *snapshot) owners() map[string]Ownership { return ownersOf(img.state.Resources, img.settled) }

// ownersOf returns the owners of resources by the records of a ledger and the outcomes since.
func ownersOf(resources []Record, settled []outcome) map[string]Ownership {
	owners := make(map[string]Ownership, len(resources))
	for i := range resources {
		r := &resources[i]
		owners[r.ID] = Ownership{r.Owner, r.Metadata}
	}
	for i := range settled {
		if s := &settled[i]; s.resource != "" {
			owners[s.resource] = s.owned
		}
	}
	return owners
}

// Owners returns the owners of resources as far as this gateway remembers them, the zero Owner for others. They can be out of date:
// another gateway may have changed an owner since the ledger was read.
func (m *Snapshots) Owners(org string, resources []string) []Owner {
	m.mu.Lock()
	known := m.of(org).owners()
	m.mu.Unlock()
	owners := make([]Owner, len(resources))
	for i, id := range resources {
		owners[i] = known[id].Owner
	}
	return owners
}

// offer is the image of an organisation, for a rebuild.
func (m *Snapshots) offer(org string, epoch int64) *Offer {
	m.mu.Lock()
	defer m.mu.Unlock()
	img := m.of(org)
	o := &Offer{Gateway: m.Self.Gateway, Epoch: epoch, Owners: img.owners(), At: img.state.Now, Zone: img.state.Zone}
	sums := make(map[Scope]*Balance)
	o.Balances = slices.Clone(img.state.Balances)
	for i := range o.Balances {
		sums[o.Balances[i].Scope] = &o.Balances[i]
	}
	for _, s := range img.settled {
		if s.resource != "" {
			continue // its cost accrues with time
		}
		for _, scope := range s.owned.Owner.Scopes() {
			if b := sums[scope]; b != nil {
				b.Accrued = b.Accrued.plus(s.once)
			}
		}
	}
	return o
}

// lossNotice is the name of the last loss in Notices.
const lossNotice = "loss"

// LastLoss returns the last loss, nil for nothing.
func LastLoss(ctx context.Context, n NoticeStore, org string) (*Loss, error) {
	noticed, err := n.Noticed(ctx, org)
	if err != nil || noticed[lossNotice] == "" {
		return nil, err
	}
	l := new(Loss)
	return l, json.Unmarshal([]byte(noticed[lossNotice]), l)
}

func (m *Snapshots) notice(ctx context.Context, org string, l *Loss) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return m.Store.Notice(ctx, org, lossNotice, string(text))
}

// recollection is the gateways' memory of a ledger that is rebuilt.
type recollection struct {
	loss   *Loss
	owners map[string]Ownership
}

// owns reports whether a gateway remembers the owner of a resource. The call that created the resource has been answered, and does not need
// its hold any more.
func (r *recollection) owns(f *PlatformResource) bool { return r.owners[f.ID].Owner != (Owner{}) }

// offerPoll is the distance of two looks at the peers' offers.
const offerPoll = 50 * time.Millisecond

// recall offers the image of this gateway to a rebuild that has begun, and waits for
// those of its peers.
func (m *Snapshots) recall(ctx context.Context, org string, before *State, outbox *Outbox) (*recollection, error) {
	heads, err := m.heads(ctx, []string{org})
	if err != nil {
		return nil, err
	}
	epoch := heads[0].Epoch
	if err := m.answer(ctx, org, epoch, false, outbox); err != nil {
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
func (m *Snapshots) lost(ctx context.Context, org string, before *State) (*Loss, error) {
	last, err := LastLoss(ctx, m.Store, org)
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

// heads returns the heads of ledgers, and notes the first answer of the store.
func (m *Snapshots) heads(ctx context.Context, orgs []string) ([]Head, error) {
	heads, err := m.Store.Heads(ctx, orgs)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heard.IsZero() {
		m.heard = m.Now()
	}
	return heads, nil
}

// await waits until all peers have offered, at most for PeerPatience. A gateway hears its peers through the store: it does not know all of
// them until the store has answered it for PeerPatience, however long it has run.
func (m *Snapshots) await(ctx context.Context, org string, epoch int64) (map[string]Ownership, error) {
	late := time.NewTimer(m.PeerTimeout)
	defer late.Stop()
	poll := time.NewTicker(offerPoll)
	defer poll.Stop()
	m.mu.Lock()
	heard := m.heard
	m.mu.Unlock()
	for waiting := true; ; {
		owners, gateways, err := m.Store.Offers(ctx, org, epoch)
		young := !m.SingleGateway && m.Now().Sub(heard) < m.PeerTimeout
		missing := slices.ContainsFunc(m.Gateway.Peers(), func(p string) bool { return !slices.Contains(gateways, p) })
		if err != nil || !waiting || !young && !missing {
			return owners, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			waiting = false
		case <-poll.C:
		}
	}
}

// rest adds to a recollection the records elsewhere of resources that no gateway
// remembers. A record there of a ledger that seems never to have been shows that it
// was lost with all gateways.
func (r *recollection) rest(ctx context.Context, p *pass, unknown []*PlatformResource) {
	if !p.report.Rebuilt {
		return
	}
	var ids []string
	for _, f := range unknown {
		if _, known := r.owners[f.ID]; !known {
			ids = append(ids, f.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	recorded := p.Gateway.RecordedOwners(ctx, p.org, ids)
	if len(recorded) == 0 {
		return
	}
	if r.owners == nil {
		r.owners = make(map[string]Ownership)
	}
	maps.Copy(r.owners, recorded)
	if r.loss == nil {
		r.loss = &Loss{Lost: LostAll, At: p.state.Now.UTC()}
	}
}

// returned adds resources that have their owner back to the report on the last loss. Several rebuilds can make one loss good: each
// returns only the resources that are left.
func (m *Snapshots) returned(ctx context.Context, org string, n int) error {
	if n == 0 {
		return nil
	}
	l, err := LastLoss(ctx, m.Store, org)
	if err != nil || l == nil {
		return err
	}
	l.Returned, l.Unowned = l.Returned+n, max(0, l.Unowned-n)
	return m.notice(ctx, org, l)
}

// finished returns the loss that a rebuild has made good, nil for none, for its notice. It puts the loss into the report once: a further
// rebuild of the same loss only updates the notice.
func (m *Snapshots) finished(ctx context.Context, org string, r *recollection, report *Report, now time.Time) (*Loss, error) {
	if r.loss == nil {
		return nil, nil //nolint:nilnil // there was no loss
	}
	last, err := LastLoss(ctx, m.Store, org)
	if err != nil {
		return nil, err
	}
	l, reported := *r.loss, false
	if l.Returned = report.OwnersRestored; last != nil && last.At.Equal(l.At) {
		l.Returned, reported = last.Returned, !last.Rebuilt.IsZero()
	}
	l.Rebuilt, l.Unowned = now.UTC(), report.Unowned
	if !reported {
		m.Logger.WarnContext(ctx, "a lost ledger was rebuilt", "org", org, "lost", string(l.Lost), "returned", l.Returned, "unowned", l.Unowned)
		report.Loss = &l
	}
	return &l, nil
}
