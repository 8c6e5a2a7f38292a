package decisions

import (
	"context"
	"encoding/json"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// othersEvery is the interval at which other gateways' decisions are read. tellOnce is the number of decision IDs kept to avoid
// sending a decision twice.
const othersEvery, tellOnce = time.Second, 4096

// watching sends decisions to one client.
type watching struct {
	*Decisions
	q    explain.Query
	out  chan any
	sent *lru.Cache[string, bool] // by decision ID
	// places is the position up to which the archive has been read, by organisation.
	places map[string]string
}

// watch returns a channel of the selected decisions from now on: decisions of this gateway immediately, and decisions of other gateways
// once they are in the archive. When ctx ends, the channel is closed. Decisions dropped because the client is too slow are replaced by a missed
// value.
func (d *Decisions) watch(ctx context.Context, q explain.Query) <-chan any {
	w := &watching{d, q, make(chan any), telemetry.Must(lru.New[string, bool](tellOnce)), make(map[string]string)}
	own := d.History.Watch()
	w.others(ctx) // start at the current end of the archive
	go func() {
		defer close(w.out)
		defer own.Stop()
		tick := time.NewTicker(othersEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-own.C:
				s := p.Report(nil).Summary()
				w.sendOnce(ctx, &s)
			case <-tick.C:
				w.others(ctx)
			}
			if n := own.TakeMissed(); n > 0 {
				w.send(ctx, missed{n})
			}
		}
	}()
	return w.out
}

// others sends the decisions archived since the last call. While the store is unavailable, only this gateway's decisions are sent;
// decisions of other gateways follow later.
func (w *watching) others(ctx context.Context) {
	if w.archive == nil {
		return
	}
	for _, org := range w.deps.OrgIDs(w.q.Org) {
		place, err := w.archive.store.Follow(ctx, org, w.places[org], func(raw json.RawMessage) {
			if s := summaryOf(raw); s != nil {
				w.sendOnce(ctx, s)
			}
		})
		if err == nil || w.places[org] != "" {
			w.places[org] = place
		}
	}
}

func (w *watching) sendOnce(ctx context.Context, s *explain.Summary) {
	if known, _ := w.sent.ContainsOrAdd(s.DecisionID, true); !known && w.q.Match(s) {
		w.send(ctx, *s)
	}
}

func (w *watching) send(ctx context.Context, v any) {
	select {
	case w.out <- v:
	case <-ctx.Done():
	}
}
