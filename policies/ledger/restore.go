package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// maxEnded is the number of ended holds that a gateway remembers per organisation.
	maxEnded = 4096
	// maxOwnedJobs is the number of jobs with owners that a gateway remembers per organisation.
	maxOwnedJobs = 10_000
)

// reservations is the memory of an organisation's holds: the holds of this gateway's calls, and the holds that this gateway has opened
// or ended.
type reservations struct {
	// held contains holds of this gateway's calls by ID: in flight, or opened since the state of the snapshot was read.
	held map[string]*heldCall
	// ended are the IDs of open holds that this gateway has ended, oldest first.
	ended []string
	// jobs are the latest jobs with owners recorded by this gateway, oldest first.
	jobs []OwnedJob
}

// heldCall is a hold with the number of the settlement that opened it.
type heldCall struct {
	Hold

	number int64
	// recovered is set for a hold of an earlier process of this gateway, loaded from its journal.
	recovered bool
}

// reserved records the hold of an admitted reservation.
func (v *reservations) reserved(r *Reservation, out *Outcome) {
	if v.held == nil {
		v.held = make(map[string]*heldCall)
	}
	v.held[r.Hold] = &heldCall{Hold: Hold{
		ID: r.Hold, Kind: r.Kind, Resource: r.Resource, Owner: r.Owner, Amounts: out.Held, Metadata: r.Metadata, Holder: r.Holder, At: out.Now,
	}}
}

// settle records a settlement accepted by the store.
func (v *reservations) settle(s *Settlement, number int64, now time.Time) {
	h := v.held[s.Hold]
	switch {
	case s.End != Open:
		delete(v.held, s.Hold)
		if h == nil || h.Open {
			v.end(s.Hold)
		}
	case h != nil:
		h.Open, h.Until, h.number = true, now.Add(s.ResolveWithin), number
		if s.NewID != "" {
			delete(v.held, s.Hold)
			h.ID = s.NewID
			v.held[h.ID] = h
		}
	}
}

func (v *reservations) end(hold string) {
	if v.ended = append(v.ended, hold); len(v.ended) > maxEnded {
		v.ended = slices.Clone(v.ended[len(v.ended)-maxEnded/2:])
	}
}

// forgotten is how long an in-flight hold that is missing from the store stays in memory. The settlement of an older hold was lost. Holds
// of an earlier process are dropped at once.
const forgotten = time.Minute

// covered drops open and ended holds that are contained in a state read after settlement number from.
func (v *reservations) covered(s *State, from int64) {
	have := make(map[string]bool, len(s.Holds))
	for i := range s.Holds {
		have[s.Holds[i].ID] = true
	}
	maps.DeleteFunc(v.held, func(id string, h *heldCall) bool {
		return h.Open && h.number <= from || !h.Open && !have[id] && (h.recovered || s.Now.Sub(h.At) > forgotten)
	})
}

// restoration returns the reservations in the snapshot. Holds of other gateways are included if they are open or if their gateway is
// not alive.
func (img *snapshot) restoration(epoch int64, now time.Time, alive []string) *Restoration {
	r := &Restoration{Epoch: epoch, Ended: slices.Clone(img.ended)}
	accrued := make(map[string]bool, len(img.state.Holds))
	for _, h := range img.state.Holds {
		accrued[h.ID] = true
		if img.held[h.ID] == nil && !slices.Contains(img.ended, h.ID) && (h.Open || !slices.Contains(alive, h.Holder.Gateway)) {
			r.Holds = append(r.Holds, RestoredHold{h, true})
		}
	}
	for _, h := range img.held {
		r.Holds = append(r.Holds, RestoredHold{h.Hold, accrued[h.ID]})
	}
	for _, j := range img.jobs {
		if j.Until.After(now) {
			r.Jobs = append(r.Jobs, j)
		}
	}
	return r
}

// recordingStore is a store that records all changes in the snapshots.
type recordingStore struct {
	Store

	images *Snapshots
}

// image returns the snapshot of an organisation.
func (m *Snapshots) image(org string) *snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(org)
}

// Reserve implements Store. It fails if the ledger was lost before the reply arrived, because this gateway has then restored its
// reservations without this one.
func (r recordingStore) Reserve(ctx context.Context, org string, res *Reservation) (Outcome, error) {
	out, err := r.Store.Reserve(ctx, org, res)
	if err != nil || out.Status != Admitted {
		return out, err
	}
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	img := r.images.of(org)
	if out.Epoch < img.restored {
		return Outcome{}, fmt.Errorf("reserve: %w: the ledger lost its data during the call", ErrUnavailable)
	}
	if img.state.Epoch == 0 {
		img.state.Epoch = out.Epoch // the ledger has not been read yet
	}
	img.reserved(res, &out)
	r.images.recordHold(org, res.Hold, img.held[res.Hold])
	return out, nil
}

// Settle implements Store.
func (r recordingStore) Settle(ctx context.Context, org string, s *Settlement) error {
	img := r.images.image(org)
	img.settling.RLock()
	defer img.settling.RUnlock()
	err := r.Store.Settle(ctx, org, s)
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	switch {
	case s.End != Commit:
	case s.Gone:
		r.images.recordOwner(org, s.Resource, nil)
	case s.Resource == "":
		r.images.settled(org, img, outcome{owned: Ownership{s.Owner, s.Metadata}, once: s.Amounts[Cost]})
	default:
		r.images.settled(org, img, outcome{resource: s.Resource, owned: Ownership{s.Owner, s.Metadata}})
	}
	if err == nil {
		img.count++
		img.reservations.settle(s, img.count, r.images.Now())
		r.images.recordHold(org, s.Hold, img.held[s.Hold])
		if s.NewID != "" {
			r.images.recordHold(org, s.NewID, img.held[s.NewID])
		}
	}
	return err
}

// Adjust implements Store.
func (r recordingStore) Adjust(ctx context.Context, org string, list ...*Adjustment) ([]AdjustResult, error) {
	done, err := r.Store.Adjust(ctx, org, list...)
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	img := r.images.of(org)
	for i, a := range list[:len(done)] {
		switch {
		case done[i] == AdjustSkipped:
		case a.Gone:
			r.images.recordOwner(org, a.Resource, nil)
		case a.Owner != nil:
			r.images.settled(org, img, outcome{resource: a.Resource, owned: Ownership{*a.Owner, a.Metadata}})
		}
	}
	return done, err
}

// SetJobOwner implements Store.
func (r recordingStore) SetJobOwner(ctx context.Context, org string, j Job, o Owner, keep time.Duration) error {
	r.images.mu.Lock()
	img := r.images.of(org)
	img.jobs = append(img.jobs, OwnedJob{j, o, r.images.Now().Add(keep)})
	if len(img.jobs) > maxOwnedJobs {
		img.jobs = slices.Clone(img.jobs[len(img.jobs)-maxOwnedJobs/2:])
	}
	r.images.mu.Unlock()
	return r.Store.SetJobOwner(ctx, org, j, o, keep)
}

// settled adds an outcome to a snapshot. The caller holds mu.
func (m *Snapshots) settled(org string, img *snapshot, s outcome) {
	m.recordOwner(org, s.resource, &s.owned)
	img.count++
	s.number = img.count
	img.settled = append(img.settled, s)
}

// answer contributes to a rebuild. It offers the snapshot, restores the reservations and marks them as restored, once per rebuild. If the
// ledger is already complete because the rebuild did not wait for this gateway, answer adds the gateway's reservations and owners.
func (m *Snapshots) answer(ctx context.Context, org string, epoch int64, complete bool, outbox *Outbox) error {
	m.mu.Lock()
	img := m.of(org)
	known := img.offered == epoch || img.state.Epoch == epoch || epoch == 0
	m.mu.Unlock()
	if known {
		return nil
	}
	offer := m.offer(org, epoch)
	if err := m.Store.Offer(ctx, org, offer); err != nil {
		return err
	}
	if err := outbox.Sweep(ctx, org); err != nil {
		return err
	}
	noticed, err := m.Store.Noticed(ctx, org)
	if err != nil {
		return err
	}
	if _, err := m.restoreSnoozes(ctx, org, noticed); err != nil {
		return err
	}
	restored, err := m.restore(ctx, org, img, epoch)
	if errors.Is(err, ErrEpochChanged) {
		return nil // the next poll answers the next rebuild
	}
	if err != nil {
		return err
	}
	if complete { // the rebuild lacked this offer
		returned, err := returnToOwners(ctx, m.Store, org, offer.Owners)
		if err != nil {
			return err
		}
		if returned > 0 {
			m.Logger.WarnContext(ctx, "restored owners of resources from the memory of a gateway that missed the rebuild of the ledger",
				"org", org, "returned", returned)
		}
		if err := m.returned(ctx, org, returned); err != nil {
			return err
		}
	}
	if err := m.Store.MarkRestored(ctx, org, epoch, m.Self.Gateway); err != nil {
		return err
	}
	if complete && len(restored) > 0 {
		m.Events.RestoredLate(ctx, org, restored)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	img.offered = epoch
	return nil
}

// restore restores the reservations in the snapshot while no settlement is in progress.
func (m *Snapshots) restore(ctx context.Context, org string, img *snapshot, epoch int64) ([]Hold, error) {
	img.settling.Lock()
	defer img.settling.Unlock()
	m.mu.Lock()
	img.restored = max(img.restored, epoch)
	r := img.restoration(epoch, m.Now(), m.Gateway.Peers())
	m.mu.Unlock()
	return m.Store.Restore(ctx, org, r)
}
