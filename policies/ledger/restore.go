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
	// maxEnded bounds the number of ended holds that a gateway remembers for each organisation.
	maxEnded = 4096
	// maxOwnedJobs bounds the number of jobs whose owners a gateway remembers for each organisation.
	maxOwnedJobs = 10_000
)

// reservations is the memory of an organisation's holds: those of this gateway's calls, and those that it has opened or ended.
type reservations struct {
	// held are holds of this gateway's calls by ID: in flight, or opened since the state of the image was read.
	held map[string]*heldCall
	// ended are IDs of open holds that this gateway has ended, oldest first.
	ended []string
	// jobs are the latest jobs that this gateway has recorded owners for, oldest first.
	jobs []OwnedJob
}

// heldCall is a hold, and the number of the settlement that opened it.
type heldCall struct {
	Hold

	number int64
	// recovered says that the hold is of an earlier process of this gateway, by its journal.
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

// settle records a settlement that the store has taken.
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

// forgotten is the age at which a hold of a call in flight that the store does not have is no longer remembered: its settlement
// was lost. Holds of an earlier process are forgotten at once.
const forgotten = time.Minute

// covered forgets what a state covers that was read after so many settlements: open holds, and holds that have ended.
func (v *reservations) covered(s *State, from int64) {
	have := make(map[string]bool, len(s.Holds))
	for i := range s.Holds {
		have[s.Holds[i].ID] = true
	}
	maps.DeleteFunc(v.held, func(id string, h *heldCall) bool {
		return h.Open && h.number <= from || !h.Open && !have[id] && (h.recovered || s.Now.Sub(h.At) > forgotten)
	})
}

// restoration returns what the image remembers of reservations. Holds of others are restored if they are open, or if their gateway
// is not alive.
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

// recordingStore is a store whose traffic the images remember.
type recordingStore struct {
	Store

	images *Snapshots
}

// snapshot returns the image of an organisation.
func (m *Snapshots) image(org string) *snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(org)
}

// Reserve implements Store. A reservation in a ledger that was lost before its reply arrived is none: this gateway has
// restored its reservations without it.
func (r recordingStore) Reserve(ctx context.Context, org string, res *Reservation) (Outcome, error) {
	out, err := r.Store.Reserve(ctx, org, res)
	if err != nil || out.Status != Admitted {
		return out, err
	}
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	img := r.images.of(org)
	if out.Epoch < img.restored {
		return Outcome{}, fmt.Errorf("reserve: %w: the ledger was lost meanwhile", ErrUnavailable)
	}
	if img.state.Epoch == 0 {
		img.state.Epoch = out.Epoch // of a ledger that has not been read yet
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

// settled adds an outcome to an image, with mu held.
func (m *Snapshots) settled(org string, img *snapshot, s outcome) {
	m.recordOwner(org, s.resource, &s.owned)
	img.count++
	s.number = img.count
	img.settled = append(img.settled, s)
}

// answer offers the image for a rebuild, restores the reservations, and signs, once. A ledger that is complete already gets
// the reservations and owners of a gateway that was not heard in time.
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
	restored, err := m.restore(ctx, org, img, epoch)
	if errors.Is(err, ErrEpochChanged) {
		return nil // the next look answers the next rebuild
	}
	if err != nil {
		return err
	}
	if complete { // the rebuild did not have this offer
		returned, err := giveBack(ctx, m.Store, org, offer.Owners)
		if err != nil {
			return err
		}
		if returned > 0 {
			m.Logger.WarnContext(ctx, "resources have their owners back from a gateway that was not heard during the rebuild",
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

// restore restores the reservations that the image remembers, while no settlement is under way.
func (m *Snapshots) restore(ctx context.Context, org string, img *snapshot, epoch int64) ([]Hold, error) {
	img.settling.Lock()
	defer img.settling.Unlock()
	m.mu.Lock()
	img.restored = max(img.restored, epoch)
	r := img.restoration(epoch, m.Now(), m.Gateway.Peers())
	m.mu.Unlock()
	return m.Store.Restore(ctx, org, r)
}
