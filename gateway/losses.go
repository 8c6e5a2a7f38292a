package gateway

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// newImages makes what remembers ledgers, and tells of those that were lost: by a line of
// the log, a count and a webhook.
func (g *Gateway) newImages(store interface {
	spend.Store
	spend.Notices
},
) *spend.Images {
	count := g.countLosses()
	return &spend.Images{
		Store: store, Notices: store, Gateway: g.name, Peers: g.store.Alive, Recorded: g.recorded, Logger: g.deps.Logger, Now: g.deps.Now, Patience: peerPatience,
		Told: func(ctx context.Context, org string, l *spend.Loss) {
			count(org, l.Lost)
			const kind = "ledger.lost"
			g.tell(ctx, org, strings.Join([]string{kind, org, strconv.FormatInt(l.At.UnixMilli(), 10)}, ":"), kind, l.At, lostLedger{org, lossOf(l)})
		},
	}
}

// countLosses measures what was lost of ledgers, from 0 on, so that a first loss is an
// increase; count is told of each.
func (g *Gateway) countLosses() (count func(org string, l spend.Lost)) {
	type loss struct {
		org  string
		lost spend.Lost
	}
	var mu sync.Mutex // guards counts
	counts := make(map[loss]int64)
	m := g.meter()
	losses := telemetry.Must(m.Int64ObservableCounter("tollgate.ledger.losses", metric.WithDescription("Ledgers of spending that the store has lost, or a part of them.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if g.current.Load() == nil {
			return nil // it is not serving yet
		}
		mu.Lock()
		defer mu.Unlock()
		for _, org := range g.budgeted() {
			for _, l := range spend.Losses() {
				o.ObserveInt64(losses, counts[loss{org, l}], metric.WithAttributes(attribute.String("org", org), attribute.String("lost", string(l))))
			}
		}
		return nil
	}, losses))
	return func(org string, l spend.Lost) {
		mu.Lock()
		defer mu.Unlock()
		counts[loss{org, l}]++
	}
}

// peerPatience is how long a rebuild waits for what other gateways remember: as long as
// one that says nothing is taken to be alive.
const peerPatience = 5 * time.Second

// proving is the limiter's store. Where it restores what another server has lost of
// counts, what that has lost of ledgers is found out before.
type proving struct {
	ratelimit.Store

	g *Gateway
}

// Restore implements ratelimit.Store.
func (p proving) Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error {
	if err := p.g.accounts.Prove(ctx, p.g.budgeted()); err != nil {
		return err
	}
	return p.Store.Restore(ctx, gateway, within, adjust)
}

// lostLedger is what receivers are told about a ledger that the store has lost.
type lostLedger struct {
	Org string `json:"org"`
	*admin.Loss
}

func lossOf(l *spend.Loss) *admin.Loss {
	if l == nil {
		return nil
	}
	return &admin.Loss{Lost: string(l.Lost), Reason: l.Lost.String(), At: l.At, Rebuilt: timeOf(l.Rebuilt), Returned: l.Returned, Unowned: l.Unowned}
}

// recorded is what the audit log, if there is one, says of resources.
func (g *Gateway) recorded(ctx context.Context, org string, ids []string) map[string]spend.Owned {
	o, cfg := g.org(org), g.current.Load().config.Audit
	if o == nil || cfg.File == nil {
		return nil
	}
	made, err := audit.Makers(org, audit.Files(cfg.File)...)
	if err != nil {
		g.deps.Logger.WarnContext(ctx, "the audit log cannot be read for the owners of resources", "org", org, "error", err.Error())
		return nil
	}
	all := make(map[string]spend.Owned)
	for _, id := range ids {
		r, known := made[id]
		if !known {
			continue
		}
		if k := o.Key(r.Key); k != nil && r.Team == "" {
			r.Team = k.Team
		}
		all[id] = spend.Owned{
			Owner: spend.Owner{Team: r.Team, Key: r.Key}, About: spend.About{Operation: r.Operation, Decision: r.Decision, Labels: spend.Labels(r.Labels)},
		}
	}
	return all
}
