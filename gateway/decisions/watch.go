package decisions

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// othersEvery is the time between looks for other gateways' decisions, and tellOnce how many decisions are remembered, so that each is told
// once.
const othersEvery, tellOnce = time.Second, 4096

// watching sends decisions to one reader.
type watching struct {
	*Decisions
	q    explain.Query
	out  chan any
	told *lru.Cache[string, bool] // by decision
	// places are how far the archive was read, by organisation.
	places map[string]string
}

// watch returns the selected decisions from now on, by this gateway at once and by others as soon as the archive has them, until ctx ends and the
// channel is closed. It has a missed in the place of decisions that the reader was too slow for.
func (d *Decisions) watch(ctx context.Context, q explain.Query) <-chan any {
	w := &watching{d, q, make(chan any), telemetry.Must(lru.New[string, bool](tellOnce)), make(map[string]string)}
	own := d.History.Watch()
	w.others(ctx) // where the archive ends now
	go func() {
		defer close(w.out)
		defer own.Stop()
		look := time.NewTicker(othersEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-own.C:
				s := p.Report(nil).Summary()
				w.tell(ctx, &s)
			case <-look.C:
				w.others(ctx)
			}
			if n := own.TakeMissed(); n > 0 {
				w.send(ctx, missed{n})
			}
		}
	}()
	return w.out
}

// others sends the decisions archived since the last look. While the store is away, it tells this gateway's decisions alone, and the others' later.
func (w *watching) others(ctx context.Context) {
	if w.archive == nil {
		return
	}
	for _, org := range w.orgs(w.q.Org) {
		place, err := w.archive.follow(ctx, org, w.places[org], func(s *explain.Summary) { w.tell(ctx, s) })
		if err == nil || w.places[org] != "" {
			w.places[org] = place
		}
	}
}

func (w *watching) tell(ctx context.Context, s *explain.Summary) {
	if known, _ := w.told.ContainsOrAdd(s.DecisionID, true); !known && w.q.Match(s) {
		w.send(ctx, *s)
	}
}

func (w *watching) send(ctx context.Context, v any) {
	select {
	case w.out <- v:
	case <-ctx.Done():
	}
}
