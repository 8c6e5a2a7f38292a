package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/gateway/listen"
)

// lastWords is how long after timeouts.drain logs and counts may still be written.
const lastWords = 500 * time.Millisecond

// Run serves until ctx ends, then drains. It returns nil after a clean stop. Calls
// still in flight timeouts.drain after the doors have closed are cut off.
func (g *Gateway) Run(ctx context.Context) error {
	cfg := g.view.Config()
	data, err := listen.Open(g.deps.Data, cfg.Listen)
	if err != nil {
		return err
	}
	adminListener, err := listen.Open(g.deps.Admin, cfg.Admin.Listen)
	if err != nil {
		return errors.Join(err, data.Close())
	}
	adminListener = listen.Reserved(adminListener)
	var door net.Listener
	if g.deps.Envoy != nil || cfg.Envoy.Listen != "" {
		if door, err = listen.Open(g.deps.Envoy, cfg.Envoy.Listen); err != nil {
			return errors.Join(err, data.Close(), adminListener.Close())
		}
	}
	g.keys.Poll(ctx) // before the doors open
	stopNoting := g.retired.Start(ctx, g.tasks.Run)
	logged := g.decisions.Start(ctx, g.tasks.Run)
	stopShipping := g.audit.Start(ctx, g.tasks.Run)
	group, ctx := errgroup.WithContext(ctx)
	// At the end readiness fails first, then the doors close and drain, and the
	// admin listener goes last, so that probes can watch all of it.
	doors, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	defer closeDoors()
	over, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	defer context.AfterFunc(doors, func() { time.AfterFunc(cfg.Timeouts.Drain, cutOff) })()
	watch, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	defer endWatch()
	// Permits drawn while the doors drain are given back, too.
	limit, endLimits := context.WithCancel(context.WithoutCancel(ctx))
	defer endLimits()
	group.Go(func() error {
		<-ctx.Done()
		g.status.Serving(false)
		g.deps.Logger.InfoContext(ctx, "draining", "notice", cfg.Notice().String(), "drain", cfg.Timeouts.Drain.String())
		time.AfterFunc(cfg.Notice(), closeDoors)
		return nil
	})
	group.Go(func() error {
		defer endWatch()
		defer endLimits()
		both, open := errgroup.WithContext(doors) // one that fails ends the other
		both.Go(func() error {
			return g.listeners.Serve(open, over, g.listeners.Data(open, data, cfg), leaving(ctx, g.Handler()))
		})
		if door != nil {
			both.Go(func() error { return g.serveGRPC(open, over, door) })
			both.Go(func() error {
				return g.tasks.Run(open, "envoy fleet", func(ctx context.Context) error { return g.envoyFleet().Run(ctx, data.Addr(), door.Addr()) })
			})
		}
		defer g.drainLedger(over)
		defer g.drainBackground(over)
		return both.Wait()
	})
	group.Go(func() error {
		return g.listeners.Serve(watch, over, g.listeners.Admin(adminListener), g.AdminHandler())
	})
	g.runTasks(group, ctx, limit, watch)
	g.checkStore(ctx)
	g.status.Serving(true)
	defer time.AfterFunc(bundleHold, func() { g.waited.Store(true) }).Stop()
	if g.deps.Serving != nil {
		g.deps.Serving()
	}
	g.deps.Logger.InfoContext(ctx, "serving", "listen", data.Addr().String(), "admin", adminListener.Addr().String(),
		"revision", cfg.Revision, "version", g.deps.Version)
	err = g.awaitEnd(over, group.Wait)
	g.limitMetrics.Stop()
	last, endLast := context.WithCancel(context.WithoutCancel(ctx))
	defer endLast()
	defer context.AfterFunc(over, func() { time.AfterFunc(lastWords, endLast) })()
	err = errors.Join(err, g.awaitEnd(last, func() error {
		defer stopShipping()
		defer stopNoting()
		return logged()
	}))
	g.Close()
	g.deps.Logger.InfoContext(ctx, "stopped", "clean", err == nil)
	return err
}

// runTasks starts the tasks that live as long as the process: until ctx ends, until the doors have
// drained (limit), or until the process stops to listen at all (watch).
func (g *Gateway) runTasks(group *errgroup.Group, ctx, limit, watch context.Context) {
	endless := func(run func(context.Context)) func(context.Context) error {
		return func(ctx context.Context) error {
			run(ctx)
			return nil
		}
	}
	start := func(ctx context.Context, name string, run func(context.Context) error) {
		group.Go(func() error { return ignoreCanceled(g.tasks.Run(ctx, name, run)) })
	}
	start(limit, "limiter", g.limiter.Run)
	start(limit, "intents", g.intents.Run)
	start(limit, "outbox", g.money.Outbox.Run)
	start(ctx, "ledger warnings", endless(g.money.WarnOfStore))
	start(ctx, "reconciler", g.money.Books.Run)
	start(limit, "ledger images", g.money.Images.Run)
	start(watch, "journal of owners", g.money.Journal.Run)
	start(ctx, "exceptions", func(ctx context.Context) error {
		return g.alerts.WatchExceptions(ctx, g.money.Notices, g.money.Books.Lead)
	})
	start(ctx, "reports", func(ctx context.Context) error { return g.alerts.WatchReports(ctx, g.operators().reports.Weekly) })
	start(ctx, "policies", g.follow)
	start(ctx, "catalog", func(ctx context.Context) error { return g.catalog.Run(ctx, orgs(g.view.Config())...) })
	start(watch, "fleet", g.fleet.Announce)
	start(watch, "issuer keys", endless(g.issuerKeys.Run))
	start(watch, "keys", endless(g.keys.Run)) // keys are revoked while the doors drain, too
	start(watch, "store check", g.watchStore)
	group.Go(func() error { // tasks that are not of the group
		select {
		case err := <-g.fatal:
			return err
		case <-ctx.Done():
			return nil
		}
	})
}

// Supervise runs a task of the caller that lives as long as the gateway. A task that panics is
// restarted; see [tasks.Supervisor].
func (g *Gateway) Supervise(ctx context.Context, name string, task func(context.Context) error) error {
	return g.tasks.Run(ctx, name, task)
}

// awaitEnd waits until something has ended, but not beyond the end of over.
func (g *Gateway) awaitEnd(over context.Context, end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		return err
	case <-over.Done():
	}
	select {
	case err := <-ended: // what was cut off ends at once
		return err
	case <-time.After(lastWords / 2):
		g.deps.Logger.WarnContext(over, "what did not end in timeouts.drain is left behind")
		return nil
	}
}

// leaving makes every answer after the end of ctx end its connection, too: by the
// time the listener closes, callers have connected anew, to another gateway, and
// no request crosses the closing of a connection that was kept for it.
func leaving(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drainBackground gives creates that outlived their requests as much time as requests have.
// Then it cuts them off; a client that repeats such a create looks for its pod.
func (g *Gateway) drainBackground(over context.Context) {
	if !g.background.Wait(over) {
		g.deps.Logger.WarnContext(over, "creates are cut off that outlived their requests")
	}
}

// drainLedger gives the ledger's store that time to take the ends of calls.
func (g *Gateway) drainLedger(over context.Context) {
	if left := g.money.Outbox.Drain(over); left > 0 {
		g.deps.Logger.WarnContext(over, "the ledger was not told how calls have ended: their reservations stay until it is found out", "calls", left)
	}
}

// follow runs the policy engine of the state in force, which polls bundles, and
// turns to the next one after a swap.
func (g *Gateway) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		g.background.Go(func() { g.keepRevision(ctx) })
		g.background.Go(func() { g.money.Configured(ctx) })
		run, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- g.tasks.Run(run, "bundles", func(ctx context.Context) error { return g.current.Load().engine.Run(ctx) })
		}()
		select {
		case <-g.swapped:
		case <-ctx.Done():
		}
		cancel()
		if err := ignoreCanceled(<-ended); err != nil {
			return err
		}
	}
	return nil
}

// keepRevision keeps the configuration in force for operators.
func (g *Gateway) keepRevision(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.view.Config().Limits.Timeout)
	defer cancel()
	if err := g.revisions.Save(ctx); err != nil && ctx.Err() == nil {
		g.deps.Logger.WarnContext(ctx, "the configuration was not kept among the revisions", "error", err.Error())
	}
}

// ignoreCanceled turns the end of a context into a clean end.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (g *Gateway) serveGRPC(ctx, over context.Context, l net.Listener) error {
	s := g.ExtProc()
	go func() {
		<-ctx.Done()
		g.envoys.End() // those streams never end by themselves
		defer context.AfterFunc(over, s.Stop)()
		s.GracefulStop()
	}()
	if err := s.Serve(l); err != nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}
