package gateway

import (
	"cmp"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Swap compiles cfg and, if that succeeds, puts it in force for every request
// that starts from now on. On an error the old configuration stays.
func (g *Gateway) Swap(cfg settings.Config) error {
	g.current.changing.Lock()
	defer g.current.changing.Unlock()
	if g.current.closed {
		return errors.New("the gateway has ended")
	}
	restart := g.current.started.NeedRestart(&cfg)
	if old := g.current.Load(); old != nil { // a listener cannot stop to speak TLS
		cfg.TLS.Pair = cmp.Or(cfg.TLS.Pair, old.Config.TLS.Pair)
		cfg.Admin.TLS.Pair = cmp.Or(cfg.Admin.TLS.Pair, old.Config.Admin.TLS.Pair)
		if cfg.Envoy.TLS.Pair == nil {
			cfg.Envoy.TLS = old.Config.Envoy.TLS
		}
	}
	next, err := g.compile(&cfg)
	if err == nil {
		err = g.envoys.SetGroups(envoy.Groups(&cfg), cfg.Envoy.XDS.Token.Reveal())
	}
	if err != nil {
		g.current.status.Failed(g.deps.Now(), err)
		return err
	}
	old := g.current.Swap(next)
	g.current.view.Set(next.View)
	g.current.status.Loaded(next.Loaded, cfg.Revision, restart, cfg.RejectedFiles)
	for i := range g.features {
		if apply := g.features[i].apply; apply != nil {
			apply(old, next)
		}
	}
	if old == nil {
		return nil
	}
	g.streams.Recheck()
	select {
	case g.current.swapped <- struct{}{}:
	default: // Run has yet to look, and will see the newest
	}
	// Requests under way keep the old client; only its idle connections go.
	old.close()
	for _, setting := range restart {
		g.deps.Logger.Warn("configuration change requires a restart", "field", setting)
	}
	return nil
}

// reconsider has a refused configuration read again, and reports whether another one came into force.
func (k *kit) reconsider(ctx context.Context) bool {
	report := k.current.status.Report()
	if k.deps.Reread == nil || report.Why() == "" {
		return false
	}
	before := k.current.engine()
	k.deps.Reread(ctx)
	return k.current.engine() != before
}

// Rejected notes a configuration that could not even be read, so that the
// admin listener shows it.
func (g *Gateway) Rejected(err error) { g.current.status.Failed(g.deps.Now(), err) }

// changeCallers puts the callers in force that change makes of the callers in force, for every request that starts from now on, and ends the
// streams of callers that are not in force any more.
func (k *kit) changeCallers(change func(*callers.Callers) (*callers.Callers, error)) {
	k.current.changing.Lock()
	next, pipeline := *k.current.Load(), *k.current.pipeline()
	changed, err := change(next.callers)
	if err == nil {
		next.callers, pipeline.Callers = changed, changed.Callers
		v := changed.View(next.Config, next.Replacements)
		v.Loaded = next.Loaded
		next.pipeline, next.View = &pipeline, v
		k.current.Store(&next)
		k.current.view.Set(next.View)
	}
	k.current.changing.Unlock()
	if err != nil {
		k.deps.Logger.Error("keys made at run time cannot be put in force", "error", err)
		return
	}
	k.streams.Recheck()
}

// Reopen makes the decision log follow a file that was renamed.
func (g *Gateway) Reopen() { g.decisions.Reopen() }

// RefreshKeys reads the keys made at run time and the revocations of tokens that have
// changed, and puts them in force. Run does so every second.
func (g *Gateway) RefreshKeys(ctx context.Context) error { return g.keys.Refresh(ctx) }
