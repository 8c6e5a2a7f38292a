package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
)

// flushTimeout is how long after timeouts.drain logs and counts may still be written.
const flushTimeout = 500 * time.Millisecond

// Run serves until ctx ends, then drains. It returns nil after a clean stop. Calls
// still in flight timeouts.drain after the doors have closed are cut off.
func (g *Gateway) Run(ctx context.Context) error {
	cfg := g.current.view.Config()
	on, err := g.open(cfg)
	if err != nil {
		return err
	}
	g.keys.Poll(ctx) // before the doors open
	over, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	life := tasks.NewLifecycle(ctx, g.tasks)
	life.Start(g.listTasks(on, life.Stopping(), over))
	g.health.checkStore(ctx)
	g.current.status.Serving(true)
	defer time.AfterFunc(bundleHold, func() { g.health.waited.Store(true) }).Stop()
	if g.deps.Serving != nil {
		g.deps.Serving()
	}
	g.deps.Logger.InfoContext(ctx, "serving", "listen", on.data.Addr().String(), "admin", on.admin.Addr().String(),
		"revision", cfg.Revision, "version", g.deps.Version)

	<-life.Stopping().Done()
	g.current.status.Serving(false)
	g.deps.Logger.InfoContext(ctx, "draining", "notice", cfg.ShutdownNotice().String(), "drain", cfg.Timeouts.Drain.String())
	<-time.After(cfg.ShutdownNotice())
	time.AfterFunc(cfg.Timeouts.Drain, cutOff)
	clean := life.Shutdown(over, tasks.Closed, tasks.Drained, tasks.Stopping)
	last, endLast := context.WithCancel(context.WithoutCancel(ctx))
	defer endLast()
	defer context.AfterFunc(over, func() { time.AfterFunc(flushTimeout, endLast) })()
	if clean = life.Shutdown(last, tasks.Ended) && clean; !clean {
		g.deps.Logger.WarnContext(ctx, "what did not end in timeouts.drain is left behind")
	}
	g.Close()
	err = life.Err()
	g.deps.Logger.InfoContext(ctx, "stopped", "clean", err == nil)
	return err
}

// opened are the listeners of a gateway that runs.
type opened struct {
	data, admin, envoy net.Listener // envoy is nil without a door for Envoys
	*listen.Listeners
}

// open opens the listeners of a configuration.
func (g *Gateway) open(cfg *settings.Config) (on opened, err error) {
	on.Listeners = &listen.Listeners{Current: g.current.view, Logger: g.deps.Logger, Recorder: g.recorder}
	on.Measure(g.meter(), g.current.revocations)
	if on.data, err = listen.Open(g.deps.Data, cfg.Listen); err != nil {
		return on, err
	}
	if on.admin, err = listen.Open(g.deps.Admin, cfg.Admin.Listen); err != nil {
		return on, errors.Join(err, on.data.Close())
	}
	on.admin = listen.Reserved(on.admin)
	if g.deps.Envoy != nil || cfg.Envoy.Listen != "" {
		if on.envoy, err = listen.Open(g.deps.Envoy, cfg.Envoy.Listen); err != nil {
			return on, errors.Join(err, on.data.Close(), on.admin.Close())
		}
	}
	return on, nil
}

// listTasks lists the tasks that live as long as the process: the doors, the tasks of features, and the admin listener, which goes last, so that
// probes can watch what is drained. Requests that have not ended when over ends are cut off.
func (g *Gateway) listTasks(on opened, stopping, over context.Context) []tasks.Task {
	list := []tasks.Task{{Name: "door", Until: tasks.Closed, Run: func(ctx context.Context) error {
		return on.Serve(ctx, over, on.Data(ctx, on.data, g.current.view.Config(), g.current.signers), closeConnections(stopping, g.Handler()), g.streams.End)
	}}}
	if on.envoy != nil {
		list = append(list,
			tasks.Task{Name: "envoy door", Until: tasks.Closed, Run: func(ctx context.Context) error { return g.serveGRPC(ctx, over, on.envoy) }},
			tasks.Task{Name: "envoy fleet", Until: tasks.Closed, Run: func(ctx context.Context) error { return g.envoyFleet().Run(ctx, on.data.Addr(), on.envoy.Addr()) }})
	}
	for i := range g.features {
		if own := g.features[i].tasks; own != nil {
			list = append(list, own()...)
		}
	}
	return append(list, tasks.Task{Name: "admin listener", Until: tasks.Drained, Run: func(ctx context.Context) error {
		return on.Serve(ctx, over, on.Admin(on.admin), g.AdminHandler(), g.streams.End)
	}})
}

// Supervise runs a task of the caller that lives as long as the gateway. A task that panics is
// restarted; see [tasks.Supervisor].
func (g *Gateway) Supervise(ctx context.Context, name string, task func(context.Context) error) error {
	return g.tasks.Run(ctx, name, task)
}

// closeConnections makes every answer after the end of ctx end its connection, too: by the
// time the listener closes, callers have connected anew, to another gateway, and
// no request crosses the closing of a connection that was kept for it.
func closeConnections(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drainBackground gives creates that outlived their requests as much time as requests have.
// Then it cuts them off; a client that repeats such a create looks for its pod.
func (p *parts) drainBackground(over context.Context) {
	if !p.background.Wait(over) {
		p.deps.Logger.WarnContext(over, "creates are cut off that outlived their requests")
	}
}

// drainLedger gives the ledger's store that time to take the ends of calls.
func (p *parts) drainLedger(over context.Context) {
	if left := p.money.Outbox.Drain(over); left > 0 {
		p.deps.Logger.WarnContext(over, "the ledger was not told how calls have ended: their reservations stay until it is found out", "calls", left)
	}
}

// follow runs the policy engine of the state in force, which polls bundles, and
// turns to the next one after a swap.
func (p *parts) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		p.background.Go(func() { p.keepRevision(ctx) })
		p.background.Go(func() { p.money.CheckOwners(ctx) })
		run, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- p.tasks.Run(run, "bundles", func(ctx context.Context) error { return p.current.Load().engine.Run(ctx) })
		}()
		select {
		case <-p.current.swapped:
		case <-ctx.Done():
		}
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

// keepRevision keeps the configuration in force for operators.
func (p *parts) keepRevision(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.current.view.Config().Limits.Timeout)
	defer cancel()
	if err := p.revisions.Save(ctx); err != nil && ctx.Err() == nil {
		p.deps.Logger.WarnContext(ctx, "the configuration was not kept among the revisions", "error", err.Error())
	}
}

func (g *Gateway) serveGRPC(ctx, over context.Context, l net.Listener) error {
	s := g.ExtProc()
	go func() {
		<-ctx.Done()
		g.envoys.Close() // those streams never end by themselves
		defer context.AfterFunc(over, s.Stop)()
		s.GracefulStop()
	}()
	if err := s.Serve(l); err != nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}
