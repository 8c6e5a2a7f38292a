package gateway

import (
	"cmp"
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Swap compiles cfg and, if that succeeds, puts it in force for every request
// that starts from now on. On an error the old configuration stays.
func (g *Gateway) Swap(cfg settings.Config) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	if g.closed {
		return errors.New("the gateway has ended")
	}
	if g.started == nil {
		g.started = &cfg
	}
	restart := g.started.NeedRestart(&cfg)
	if old := g.current.Load(); old != nil { // a listener cannot stop to speak TLS
		cfg.TLS.Pair = cmp.Or(cfg.TLS.Pair, old.Config.TLS.Pair)
		cfg.Admin.TLS.Pair = cmp.Or(cfg.Admin.TLS.Pair, old.Config.Admin.TLS.Pair)
		if cfg.Envoy.TLS.Pair == nil {
			cfg.Envoy.TLS = old.Config.Envoy.TLS
		}
	}
	next, err := g.compile(&cfg)
	if err == nil {
		err = g.envoys.SetGroups(envoy.Groups(&cfg))
	}
	if err != nil {
		g.status.Failed(g.deps.Now(), err)
		return err
	}
	old := g.current.Swap(next)
	g.view.Set(next.View)
	g.issuerKeys.Retain(next.pipeline.Callers.Directory.Verifier(), next.admins.Verifier())
	g.status.Loaded(next.Loaded, cfg.Revision, restart, cfg.Refused)
	g.apply(&cfg)
	if g.audit.Log != nil {
		if err := g.audit.Log.Loaded(cfg.Revision); err != nil {
			g.deps.Logger.Error("the audit log cannot be written", "error", err)
		}
	}
	if old == nil {
		return nil
	}
	g.streams.Recheck()
	select {
	case g.swapped <- struct{}{}:
	default: // Run has yet to look, and will see the newest
	}
	for _, org := range old.Config.Orgs {
		now := g.view.Org(org.ID)
		if old.account.Upstream.Credential(org.ID) != next.account.Upstream.Credential(org.ID) || old.Config.Platform.BaseURL != cfg.Platform.BaseURL ||
			now != nil && !now.Prices.Equal(org.Prices) {
			g.catalog.Forget(org.ID)
		}
	}
	for i := range cfg.Orgs {
		g.engines.TellUnlisted(&cfg.Orgs[i], g.catalog.Last(cfg.Orgs[i].ID))
	}
	// Requests under way keep the old client; only its idle connections go.
	old.close()
	for _, setting := range restart {
		g.deps.Logger.Warn("configuration change requires a restart", "field", setting)
	}
	return nil
}

// apply passes a new configuration to the parts that outlive configurations.
func (g *Gateway) apply(cfg *settings.Config) {
	if g.deps.LogLevel != nil {
		g.deps.LogLevel.Set(cfg.Log.Level.Level())
	}
	g.recorder.Apply(cfg.Telemetry.Context)
	g.deps.Providers.Sample(cfg.Telemetry.SampleRatio)
	g.decisions.Apply(cfg)
}

// close drops idle connections.
func (s *state) close() {
	s.account.Upstream.Close()
	s.runs.Close()
}

// reconsider has a refused configuration read again, and reports whether another one came into force.
func (g *Gateway) reconsider(ctx context.Context) bool {
	report := g.status.Report()
	if g.deps.Reread == nil || report.Why() == "" {
		return false
	}
	before := g.current.Load()
	g.deps.Reread(ctx)
	return g.current.Load().engine != before.engine
}

// Rejected notes a configuration that could not even be read, so that the
// admin listener shows it.
func (g *Gateway) Rejected(err error) { g.status.Failed(g.deps.Now(), err) }

// applyKeys puts the keys now known in force, of which some have changed, by organisation, for every request that starts from now on, and
// ends the streams of those that are not in force any more.
func (g *Gateway) applyKeys(changed map[string][]string) {
	g.changing.Lock()
	next, pipeline := *g.current.Load(), *g.pipeline()
	callers, err := g.keys.With(next.callers, changed)
	if err == nil {
		next.callers, pipeline.Callers = callers, callers.Callers
		v := callers.View(next.Config, next.Moves)
		v.Loaded = next.Loaded
		next.pipeline, next.View = &pipeline, v
		g.current.Store(&next)
		g.view.Set(next.View)
	}
	g.changing.Unlock()
	if err != nil {
		g.deps.Logger.Error("keys made at run time cannot be put in force", "error", err)
		return
	}
	g.streams.Recheck()
}

// RefreshKeys reads the keys made at run time and the revocations of tokens that have
// changed, and puts them in force. Run does so every second.
func (g *Gateway) RefreshKeys(ctx context.Context) error { return g.keys.Refresh(ctx) }
