package gateway

import (
	"cmp"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Swap compiles cfg and puts it in force for all requests that start afterwards. If Swap returns an error, the previous configuration stays
// in force.
func (g *Gateway) Swap(cfg settings.Config) error {
	g.current.changing.Lock()
	defer g.current.changing.Unlock()
	if g.current.closed {
		return errors.New("the gateway is closed")
	}
	restart := g.current.started.NeedRestart(&cfg)
	if old := g.current.Load(); old != nil { // a listener cannot stop using TLS
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
		g.current.status.SetFailed(g.deps.Now(), err)
		return err
	}
	old := g.current.Swap(next)
	g.current.view.Set(next.View)
	g.current.status.SetLoaded(next.Loaded, cfg.Revision, restart, cfg.RejectedFiles)
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
	default: // a signal is pending; Run will see the newest state
	}
	// This closes only idle connections. Requests in progress keep the old client.
	old.close()
	for _, setting := range restart {
		g.deps.Logger.Warn("configuration change requires a restart", "field", setting)
	}
	return nil
}

// reconsider reloads the configuration file if its current version was rejected. It reports whether a new configuration came into force.
func (k *kit) reconsider(ctx context.Context) bool {
	report := k.current.status.Report()
	if k.deps.Reread == nil || report.Problem() == "" {
		return false
	}
	before := k.current.engine()
	k.deps.Reread(ctx)
	return k.current.engine() != before
}

// Rejected records that a new configuration could not be read because of err. The admin listener shows the error.
func (g *Gateway) Rejected(err error) { g.current.status.SetFailed(g.deps.Now(), err) }

// changeCallers calls change with the callers in force, and replaces them with the result for all requests that start afterwards. It ends
// the streams of callers that are no longer permitted.
func (k *kit) changeCallers(change func(*callers.Callers) (*callers.Callers, error)) {
	k.current.changing.Lock()
	next, pipeline := *k.current.Load(), *k.current.pipeline()
	changed, err := change(next.callers)
	if err == nil {
		next.callers, pipeline.Callers = changed, changed.Callers
		v := changed.View(next.Config)
		v.Loaded = next.Loaded
		next.pipeline, next.View = &pipeline, v
		k.current.Store(&next)
		k.current.view.Set(next.View)
	}
	k.current.changing.Unlock()
	if err != nil {
		k.deps.Logger.Error("cannot apply changes to the keys created at run time", "error", err)
		return
	}
	k.streams.Recheck()
}

// Reopen reopens the decision log. Call it after the file was renamed.
func (g *Gateway) Reopen() { g.decisions.Reopen() }

// RefreshKeys reads changed runtime keys and token revocations from the store and puts them in force. [Gateway.Run] does so every second.
func (g *Gateway) RefreshKeys(ctx context.Context) error { return g.keys.Refresh(ctx) }
