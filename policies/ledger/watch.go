package ledger

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
)

// Watcher reads the newest version number of each ledger at intervals. It detects losses even if no calls arrive, renews snapshots that are
// older than an interval, and supplies the entries that this gateway remembers when another gateway rebuilds a ledger.
type Watcher struct {
	*Snapshots

	Loop *Loop
}

// Run polls until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	beat := time.NewTicker(w.PollInterval)
	defer beat.Stop()
	rebuilds, ctx := errgroup.WithContext(ctx)
	defer func() { panics.Raise(rebuilds.Wait()) }()
	for {
		w.poll(ctx, rebuilds)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
		}
	}
}

// poll polls all ledgers once. An unavailable store does not count as a loss.
func (w *Watcher) poll(ctx context.Context, rebuilds *errgroup.Group) {
	orgs := w.Gateway.Budgeted()
	w.Loop.kept.observe(orgs)
	if len(orgs) == 0 {
		return
	}
	heads, err := w.heads(ctx, orgs)
	if err != nil {
		return
	}
	for i, org := range orgs {
		if heads[i].Lost != "" {
			w.lost(ctx, org, heads[i], rebuilds)
		} else if err := w.follow(ctx, org, heads[i]); err != nil && ctx.Err() == nil {
			w.Logger.WarnContext(ctx, "cannot check the state of a ledger", "org", org, "error", err.Error())
		}
	}
}

// lost starts the rebuild of a ledger, unless this gateway is already rebuilding it.
func (w *Watcher) lost(ctx context.Context, org string, h Head, rebuilds *errgroup.Group) {
	w.mu.Lock()
	img := w.of(org)
	img.head = h
	busy := img.rebuilding
	img.rebuilding, img.lost = true, true
	w.mu.Unlock()
	if busy {
		return
	}
	rebuilds.Go(func() error {
		var err error
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			img.rebuilding, img.failed = false, err
		}()
		return panics.Catch(func() {
			switch err = w.Loop.Rebuild(ctx, org); {
			case errors.Is(err, ErrEpochChanged):
				err = nil // the other rebuild completes the ledger
			case err == nil || ctx.Err() != nil:
			case errors.Is(err, ErrUnavailable): // for example, go-redis repeats an earlier dial error for up to a second after Redis returns
				w.Logger.InfoContext(ctx, "rebuild of a lost ledger begins again at the next poll", "org", org, "error", err.Error())
			default:
				w.Logger.WarnContext(ctx, "cannot rebuild a lost ledger", "org", org, "error", err.Error())
			}
		})
	})
}

// smallLedger is the maximum number of resources and scopes of a ledger that is read at every poll that finds it changed.
const smallLedger = 200

// follow contributes to a rebuild and renews the snapshot.
func (w *Watcher) follow(ctx context.Context, org string, h Head) error {
	w.mu.Lock()
	img := w.of(org)
	img.head = h
	known, seq, age := img.state.Epoch, img.seq, w.Now().Sub(img.read)
	img.lost = !h.Complete && (img.lost || known != 0) // a pass or another gateway has noticed the loss and begun the rebuild
	small := len(img.state.Resources)+len(img.state.Balances) < smallLedger
	w.mu.Unlock()
	if known != 0 || !h.Complete {
		if err := w.answer(ctx, org, h.Epoch, h.Complete, w.Loop.outbox); err != nil {
			return err
		}
	}
	if !h.Complete || known == h.Epoch && (seq == h.Seq || !small && age < w.Interval) {
		return nil
	}
	if known != h.Epoch {
		loss, err := LastLoss(ctx, w.Store, org)
		if err != nil {
			return err
		}
		w.mu.Lock()
		img.loss = loss
		w.mu.Unlock()
	}
	if err := w.forgetSnoozes(ctx, org); err != nil {
		return err
	}
	from := w.begin(org)
	state, err := w.Store.Show(ctx, org)
	if err != nil {
		return err
	}
	w.replace(org, &state, from)
	w.mu.Lock()
	defer w.mu.Unlock()
	img.seq = h.Seq
	return nil
}

// recently is the time after a loss during which [Snapshots.Losses] reports it.
const recently = 24 * time.Hour

// Losses describes, by organisation, the losses of ledgers that are incomplete or that were lost in the last day.
func (m *Snapshots) Losses() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]string)
	for org, img := range m.orgs {
		switch {
		case img.head.Lost != "" && img.failed != nil:
			all[org] = img.head.Lost.String() + ": calls that raise cost are refused; the ledger cannot be rebuilt: " + img.failed.Error()
		case img.head.Lost != "":
			all[org] = img.head.Lost.String() + ": calls that raise cost are refused until the ledger is rebuilt"
		case img.loss != nil && m.Now().Sub(img.loss.At) < recently:
			all[org] = img.loss.Lost.String() + " at " + img.loss.At.Format(time.RFC3339) + ": the ledger was rebuilt"
		}
	}
	return all
}

// Rebuilding returns the number of lost ledgers that are not complete yet.
func (m *Snapshots) Rebuilding() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, img := range m.orgs {
		if img.lost {
			n++
		}
	}
	return n
}
