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

// flushTimeout is the additional time, after the drain timeout (timeouts.drain), for writing the remaining logs and counts.
const flushTimeout = 500 * time.Millisecond

// Run serves requests until ctx ends, and then shuts down. It closes the listeners and waits for the calls in progress, but aborts calls
// that take longer than the drain timeout (timeouts.drain). Run returns nil after a clean shutdown.
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
	g.current.status.SetServing(true)
	defer time.AfterFunc(bundleHold, func() { g.health.waited.Store(true) }).Stop()
	if g.deps.Serving != nil {
		g.deps.Serving()
	}
	g.deps.Logger.InfoContext(ctx, "serving", "listen", on.data.Addr().String(), "admin", on.admin.Addr().String(),
		"revision", cfg.Revision, "version", g.deps.Version)

	<-life.Stopping().Done()
	g.current.status.SetServing(false)
	g.deps.Logger.InfoContext(ctx, "draining", "notice", cfg.ShutdownNotice().String(), "drain", cfg.Timeouts.Drain.String())
	<-time.After(cfg.ShutdownNotice())
	time.AfterFunc(cfg.Timeouts.Drain, cutOff)
	clean := life.Shutdown(over, tasks.Closed, tasks.Drained, tasks.Stopping)
	last, endLast := context.WithCancel(context.WithoutCancel(ctx))
	defer endLast()
	defer context.AfterFunc(over, func() { time.AfterFunc(flushTimeout, endLast) })()
	if clean = life.Shutdown(last, tasks.Ended) && clean; !clean {
		g.deps.Logger.WarnContext(ctx, "drain timeout exceeded, abandoning remaining work")
	}
	g.Close()
	err = life.Err()
	g.deps.Logger.InfoContext(ctx, "stopped", "clean", err == nil)
	return err
}

// opened holds the open listeners.
type opened struct {
	data, admin, envoy net.Listener // envoy is nil if envoy.listen is not configured
	*listen.Listeners
}

// open opens the configured listeners.
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

// listTasks returns the tasks that run until shutdown: the servers for callers and Envoys, the tasks of the features, and the admin server.
// The admin server stops last, so that probes can observe the shutdown. When over ends, requests in progress are aborted.
func (g *Gateway) listTasks(on opened, stopping, over context.Context) []tasks.Task {
	list := []tasks.Task{{Name: "door", Until: tasks.Closed, Run: func(ctx context.Context) error {
		return on.Serve(ctx, over, on.Data(ctx, on.data, g.current.view.Config(), g.current.signers),
			closeConnections(stopping, g.Handler()), g.streams.End)
	}}}
	if on.envoy != nil {
		list = append(list,
			tasks.Task{Name: "envoy door", Until: tasks.Closed, Run: func(ctx context.Context) error { return g.serveGRPC(ctx, over, on.envoy) }},
			tasks.Task{
				Name: "envoy fleet", Until: tasks.Closed,
				Run: func(ctx context.Context) error { return g.envoyFleet().Run(ctx, on.data.Addr(), on.envoy.Addr()) },
			})
	}
	for i := range g.features {
		if own := g.features[i].tasks; own != nil {
			list = append(list, own()...)
		}
	}
	return append(list, tasks.Task{Name: "admin listener", Until: tasks.Drained, Run: func(ctx context.Context) error {
		err := on.Serve(ctx, over, on.Admin(on.admin), g.AdminHandler(), g.streams.End)
		if errors.Is(err, listen.ErrAborted) {
			return nil // reads of operators, for example of a log that they follow
		}
		return err
	}})
}

// Supervise runs a task until ctx ends, and restarts the task if it panics; see [tasks.Supervisor]. name identifies the task in the log.
func (g *Gateway) Supervise(ctx context.Context, name string, task func(context.Context) error) error {
	return g.tasks.Run(ctx, name, task)
}

// closeConnections makes responses close their connections once ctx has ended. Clients then connect to another gateway before the listener
// closes, so that they send no requests on a closing connection.
func closeConnections(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drainBackground waits for calls that create a resource and continue after their requests have ended. When draining ends, it abandons
// them. A client that repeats such a request gets the resource.
func (p *parts) drainBackground(over context.Context) {
	if !p.background.Wait(over) {
		p.deps.Logger.WarnContext(over, "drain timeout exceeded, canceling calls that still create resources for ended requests")
	}
}

// drainLedger waits until the store has accepted all settlements, or until draining ends.
func (p *parts) drainLedger(over context.Context) {
	if left := p.money.Outbox.Drain(over); left > 0 {
		p.deps.Logger.WarnContext(over, "shutting down with unsent settlements; the reconciler will settle these calls", "calls", left)
	}
}

// follow runs the policy engine in force, which polls bundles. After a reload, follow runs the new engine instead.
func (p *parts) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		p.background.Go(func() { p.storeRevision(ctx) })
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

// storeRevision stores the configuration in force for operators.
func (p *parts) storeRevision(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.current.view.Config().Limits.Timeout)
	defer cancel()
	if err := p.revisions.Save(ctx); err != nil && ctx.Err() == nil {
		p.deps.Logger.WarnContext(ctx, "cannot store the configuration revision", "error", err.Error())
	}
}

func (g *Gateway) serveGRPC(ctx, over context.Context, l net.Listener) error {
	s := g.ExtProc()
	go func() {
		<-ctx.Done()
		g.envoys.Close() // xDS streams never end by themselves
		defer context.AfterFunc(over, s.Stop)()
		s.GracefulStop()
	}()
	if err := s.Serve(l); err != nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}
