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

// Ownership is the owner of a resource with its metadata.
type Ownership struct {
	Owner Owner    `json:"owner"`
	About Metadata `json:"about"`
}

// or returns a copy of a in which empty fields are taken from found.
func (a Metadata) or(found Metadata) Metadata {
	return Metadata{
		Operation: cmp.Or(a.Operation, found.Operation), Decision: cmp.Or(a.Decision, found.Decision), Name: cmp.Or(a.Name, found.Name),
		Description: cmp.Or(a.Description, found.Description), GPU: cmp.Or(a.GPU, found.GPU),
		DataCenter: cmp.Or(a.DataCenter, found.DataCenter), Labels: cmp.Or(a.Labels, found.Labels),
		StopAt: a.StopAt, EndAt: a.EndAt,
	}
}

// Offer is one gateway's memory of a lost ledger.
type Offer struct {
	Gateway string
	// Epoch identifies the rebuild.
	Epoch  int64
	Owners map[string]Ownership
	// Balances are the balances at At, in Zone. Costs continue to accrue at the rates of the balances until the offer is processed. Owners
	// were read at At or later.
	Balances []Balance
	At       time.Time
	Zone     Zone
}

// Head is a summary of a ledger's state in the store.
type Head struct {
	// Epoch changes with each rebuild and Seq with each change of the ledger.
	Epoch, Seq int64
	Complete   bool
	Lost       LostPart
}

// Restoration is the set of reservations of a lost ledger that a gateway still remembers.
type Restoration struct {
	// Epoch identifies the rebuild.
	Epoch int64
	// Holds are the in-flight and open reservations.
	Holds []RestoredHold
	// Ended are the IDs of ended holds. A store that has returned to an older state may still contain them.
	Ended []string
	// Jobs are the jobs of the run interface with known owners.
	Jobs []OwnedJob
}

// RestoredHold is a hold remembered by a gateway.
type RestoredHold struct {
	Hold

	// Accrued is set if the balances in the gateway's offer include the cost accrued for the hold.
	Accrued bool
}

// OwnedJob is a job with its owner, and the time until which the store keeps it.
type OwnedJob struct {
	Job
	Owner

	Until time.Time
}

// ErrEpochChanged means that another rebuild has begun since a restoration or a reconciliation pass began.
var ErrEpochChanged = errors.New("ledger: the epoch has changed")

// RecoveryStore is the part of a store that gateways use to restore their memory of a lost ledger. Each gateway calls Offer, then
// Restore, then MarkRestored.
type RecoveryStore interface {
	// Heads returns the heads of the given organisations, in the same order.
	Heads(ctx context.Context, orgs []string) ([]Head, error)
	// Offer stores the offered owners for an hour, and raises the accrued costs of the current periods to the offered ones. A newer owner
	// replaces an older one, and any owner takes precedence over none: a gateway may have found a resource in the platform's list before
	// the loss was noticed, while another gateway knows its owner.
	Offer(ctx context.Context, org string, o *Offer) error
	// Restore ends holds and adds holds. It returns the added holds: those that are missing from the store and have not ended. It returns
	// ErrEpochChanged if the ledger has a different epoch.
	Restore(ctx context.Context, org string, r *Restoration) ([]Hold, error)
	// MarkRestored records that a gateway has offered and restored all of its memory.
	MarkRestored(ctx context.Context, org string, epoch int64, gateway string) error
	// Offers returns the owners offered for a rebuild, and the gateways that called MarkRestored.
	Offers(ctx context.Context, org string, epoch int64) (owners map[string]Ownership, gateways []string, err error)
	// Position returns the latest position of a ledger that the store has reported to this gateway. SetPosition sets the position known to
	// an earlier process of the gateway: if the ledger is before that position, data was lost.
	Position(org string) Position
	SetPosition(org string, p Position)
}

// Snapshots is this gateway's memory of ledgers. For each ledger it holds the state that was read last, at most one interval ago (see
// [Watcher]), the settlements since then, and the reservations of the gateway's own calls. When a ledger is rebuilt because the store
// has lost it, every gateway offers its snapshot. Snapshots is safe for concurrent use.
type Snapshots struct {
	*Deps

	mu    sync.Mutex // guards orgs, the fields of snapshots, and heard
	orgs  map[string]*snapshot
	heard time.Time // time of the store's first answer to this gateway
}

// snapshot is the memory of one organisation's ledger.
type snapshot struct {
	// settling is read-locked by each settlement and locked by a restoration.
	settling sync.RWMutex

	state State
	read  time.Time
	seq   int64 // at most the sequence number of state
	// offered is the epoch of the latest rebuild that has received the snapshot. restored is the epoch of the latest one that has received
	// the reservations.
	offered, restored int64
	// settled holds the settlements since shortly before the state was read.
	settled []outcome
	count   int64 // number of settlements so far
	reservations
	// snoozes are the snoozes made at this gateway, and those found by its latest pass, as in the NoticeStore.
	snoozes map[string]string
	head    Head
	loss    *Loss // latest loss
	// rebuilding is set while this gateway rebuilds the ledger. failed is the error of its latest attempt.
	rebuilding bool
	failed     error
	lost       bool // lost and not complete yet
}

// outcome is the result of a settlement.
type outcome struct {
	number   int64
	resource string
	owned    Ownership
	once     int64
}

// Loss describes which part of a ledger was lost, and the result of the rebuild.
type Loss struct {
	Lost LostPart  `json:"lost"`
	At   time.Time `json:"at"`
	// Rebuilt is the time when the ledger was complete again; zero before that.
	Rebuilt time.Time `json:"rebuilt,omitzero"`
	// Returned is the number of resources whose owner was restored. Unowned is the number of resources without an owner.
	Returned int `json:"returned"`
	Unowned  int `json:"unowned"`
}

// of returns the snapshot of an organisation. The caller holds mu.
func (m *Snapshots) of(org string) *snapshot {
	if m.orgs == nil {
		m.orgs = make(map[string]*snapshot)
	}
	if m.orgs[org] == nil {
		m.orgs[org] = new(snapshot)
	}
	return m.orgs[org]
}

// begin must be called before a state is read that will be passed to take.
func (m *Snapshots) begin(org string) (from int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(org).count
}

// replace replaces the snapshot with a complete state. If the ledger was rebuilt, the previous snapshot must have been offered for that
// rebuild.
func (m *Snapshots) replace(org string, s *State, from int64) {
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

// owners returns the owners of all resources in the snapshot.
func (img *snapshot) owners() map[string]Ownership { return ownersOf(img.state.Resources, img.settled) }

// ownersOf returns the owners of resources from the records of a ledger and the settlements since.
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

// Owners returns the owners of resources as remembered by this gateway, and the zero Owner for unknown ones. They may be out of date,
// because another gateway may have changed an owner since the ledger was read.
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

// offer returns the snapshot of an organisation as an offer for a rebuild.
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
			continue // the cost of a resource accrues over time
		}
		for _, scope := range s.owned.Owner.Scopes() {
			if b := sums[scope]; b != nil {
				b.Accrued = b.Accrued.plus(s.once)
			}
		}
	}
	return o
}

// lossNotice is the name of the latest loss in the NoticeStore.
const lossNotice = "loss"

// LastLoss returns the latest loss, or nil.
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

// recollection is the memory of all gateways of a ledger that is being rebuilt.
type recollection struct {
	loss   *Loss
	owners map[string]Ownership
}

// owns reports whether a gateway remembers the owner of a resource. If so, the call that created the resource has been answered and its
// hold is no longer needed.
func (r *recollection) owns(f *PlatformResource) bool { return r.owners[f.ID].Owner != (Owner{}) }

// offerPoll is the interval between two checks for offers from peers.
const offerPoll = 50 * time.Millisecond

// recall offers the snapshot of this gateway for a rebuild that has begun, and waits for the offers of its peers.
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
		before.Lost = LostAll // other gateways knew the ledger
	}
	r.loss, err = m.lost(ctx, org, before)
	return r, err
}

// lost records which parts of a ledger were lost, before the rebuild overwrites that information. It returns the loss that no rebuild
// has repaired yet, or nil.
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
	m.Logger.ErrorContext(ctx, "store lost all or part of a ledger, rebuilding it", "org", org, "lost", string(before.Lost),
		"reason", before.Lost.String())
	l := &Loss{Lost: before.Lost, At: before.Now.UTC()}
	return l, m.notice(ctx, org, l)
}

// heads returns the heads of ledgers, and records the time of the store's first answer.
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

// await waits until all peers have made their offers, at most PeerTimeout. A gateway learns about its peers through the store, so it
// does not know all of them until the store has been answering for PeerTimeout, however long the gateway has run.
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

// rest completes a recollection with records from outside the ledger, for resources that no gateway remembers. If such a record belongs
// to a ledger that seems to be new, the ledger was lost together with all gateways.
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

// returned adds n resources to the restored ones in the report on the latest loss. Several rebuilds can repair one loss: each counts
// only the resources that it restored.
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

// finished returns the loss that a rebuild has repaired, or nil, so that it can be recorded. It reports the loss only once: another rebuild
// after the same loss only updates the record.
func (m *Snapshots) finished(ctx context.Context, org string, r *recollection, report *Report, now time.Time) (*Loss, error) {
	if r.loss == nil {
		return nil, nil //nolint:nilnil // no loss
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
		m.Logger.WarnContext(ctx, "rebuilt a lost ledger", "org", org, "lost", string(l.Lost), "returned", l.Returned, "unowned", l.Unowned)
		report.Loss = &l
	}
	return &l, nil
}
