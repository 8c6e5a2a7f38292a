package main

import (
	"context"
	"fmt"
	"io"
	"log" //nolint:depguard // redirected to the gateway's log
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

func newServe() *cobra.Command {
	var path, state string
	cmd := &cobra.Command{
		Use:   "serve [FILE]",
		Short: "Run the gateway",
		Long: `Runs the gateway until it is interrupted. The configuration is reloaded on SIGHUP,
and when its file, a file of a secret, or a policy directory changes. A configuration
with a fault never replaces the configuration in force.

The state directory stores the owners of resources, in case Redis and all gateways
are lost at the same time. Gateways can share it.`,
		Example: "  tollgate serve tollgate.yaml",
		Args:    configFile(&path),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), path, state, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", "tollgate.yaml", "configuration file")
	stateFlag(cmd, &state)
	return cmd
}

// stateFlag adds the flag for the state directory. The default is the directory created by the service manager (StateDirectory= in
// systemd.exec(5)).
func stateFlag(cmd *cobra.Command, state *string) {
	first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	cmd.Flags().StringVar(state, "state", "", "directory that stores the owners of resources (default $STATE_DIRECTORY)")
	*state = first
}

func serve(ctx context.Context, path, state string, stdout, stderr io.Writer) error {
	tuneHeap()
	isolated, stop := isolation(ctx)
	defer stop()
	judge := operator.Validator{Isolate: isolated}
	loaded, err := config.Load(path, config.Sources{}, judge)
	if err != nil {
		return err
	}
	var deps gateway.Deps
	if err := inheritSockets(&loaded.Config, &deps); err != nil {
		return err
	}
	f := &followed{path: path, judge: judge, loaded: loaded, again: make(chan chan<- struct{}), hup: make(chan os.Signal, 1)}
	signal.Notify(f.hup, syscall.SIGHUP)
	defer signal.Stop(f.hup)
	level := new(slog.LevelVar)
	logger := newLogger(stderr, loaded.Config.Log, level)
	warn(loaded, logger)
	deps.Logger, deps.LogLevel, deps.Stdout, deps.State = logger, level, stdout, state
	deps.Isolate, deps.File, deps.Reread = isolated, f.read, f.reread
	return runGateway(ctx, loaded, deps, f, nil)
}

// followed is a configuration file that is reloaded when it changes.
type followed struct {
	path   string
	judge  operator.Validator
	loaded *config.Loaded // the configuration in force
	again  chan chan<- struct{}
	hup    chan os.Signal
}

// read reads the file without secrets.
func (f *followed) read() (*settings.Config, error) {
	now, err := config.Load(f.path, config.Sources{WithoutSecrets: true}, f.judge)
	if err != nil {
		return nil, err
	}
	return &now.Config, nil
}

// reread reloads the file. It returns when the reload is complete or ctx ends.
func (f *followed) reread(ctx context.Context) {
	done := make(chan struct{})
	select {
	case f.again <- done:
		<-done
	case <-ctx.Done():
	}
}

// watch applies changes until ctx ends.
func (f *followed) watch(ctx context.Context, g *gateway.Gateway, logger *slog.Logger) {
	config.Watch(ctx, f.loaded.Inputs, config.ReloadRequests{Signals: f.hup, Reload: f.again, Expired: f.judge.Isolate.CompileEnded()},
		logger, func(asked bool) config.Inputs {
			notifyManager(logger, reloading())
			defer notifyManager(logger, daemon.SdNotifyReady)
			return f.reload(g, logger, asked)
		})
}

// warn logs the warnings about a configuration.
func warn(loaded *config.Loaded, logger *slog.Logger) {
	for _, warning := range loaded.Warnings(time.Now()) {
		logger.Warn("configuration", "warning", warning.Error())
	}
}

// reload applies the configuration in the file, or logs why the configuration was refused. It returns the state of the files that it read.
// If asked is true, reload also reads files that seem unchanged. reload immediately frees the memory of the previous configuration, because
// the next reload may follow within a second.
func (f *followed) reload(g *gateway.Gateway, logger *slog.Logger, asked bool) config.Inputs {
	defer debug.FreeOSMemory()
	g.Reopen()
	loaded, err := config.Load(f.path, config.Sources{Previous: f.loaded, Reread: asked}, f.judge)
	if err != nil {
		g.Rejected(err)
		logger.Error("configuration refused, keeping the previous configuration", "file", f.path, "fault", err.Error())
		return config.Inputs{}
	}
	inputs := loaded.Inputs
	for err = g.Swap(loaded.Config); err != nil; err = g.Swap(loaded.Config) {
		next, err := loaded.WithoutFaultyFiles(err)
		if err != nil {
			logger.Error("configuration refused, keeping the previous configuration", "file", f.path, "fault", err.Error())
			return inputs
		}
		loaded = next // does not contain the organisation file rejected last
	}
	loaded.Commit()
	f.loaded = loaded
	for _, r := range loaded.Config.RejectedFiles {
		logger.Error("organisation file refused; the organisation keeps its previous configuration",
			"file", r.File, "org", r.Org, "fault", r.Fault)
	}
	warn(loaded, logger)
	logger.Info("configuration in force", "file", f.path, "revision", loaded.Config.Revision)
	return loaded.Inputs
}

// At shutdown, exporting the remaining telemetry may take the rest of the drain timeout (timeouts.drain), but at least leastFlush and at
// most mostFlush.
const leastFlush, mostFlush = 400 * time.Millisecond, 5 * time.Second

// runGateway runs a gateway, with its store, listeners and telemetry, until ctx ends. It adds what is missing to deps. file is the
// configuration file to follow, or nil. past, if not nil, holds the week of calls that the demo makes first, and the clock of the demo.
func runGateway(ctx context.Context, loaded *config.Loaded, deps gateway.Deps, file *followed, past *history) (err error) {
	instance := loaded.Config.InstanceName()
	annotated := func(h slog.Handler) *slog.Logger {
		return slog.New(telemetry.WithAttrs(h, slog.String("instance", instance)))
	}
	// Libraries that log by themselves write to the gateway's log. The settings for this are global to the process, so they are made only
	// here. Errors of the telemetry export go only to the local log, not to the export.
	local := annotated(deps.Logger.Handler())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { local.WarnContext(ctx, "telemetry", "error", err.Error()) }))
	providers, err := telemetry.NewProviders(ctx, loaded.Config.Telemetry, telemetry.Process{Version: version(), Instance: instance})
	if err != nil {
		return err
	}
	var stopped time.Time
	noted := make(chan struct{})
	defer context.AfterFunc(ctx, func() { stopped = time.Now(); close(noted) })()
	defer func() {
		left := mostFlush
		if ctx.Err() != nil {
			<-noted
			left = min(left, max(leastFlush, time.Until(stopped.Add(loaded.Config.Timeouts.Notice+loaded.Config.Timeouts.Drain))))
		}
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
		defer cancel()
		if serr := providers.Shutdown(flush); serr != nil && err == nil {
			local.WarnContext(ctx, "telemetry not flushed", "error", serr.Error())
		}
	}()
	deps.Logger = annotated(providers.Logged(deps.Logger.Handler()))
	redis.SetLogger(redisLog{deps.Logger})
	log.SetFlags(0)
	log.SetOutput(telemetry.StandardLog(deps.Logger).Writer())
	client, store, stop, err := openRedis(&loaded.Config)
	if err != nil {
		return err
	}
	defer stop()
	deps.Redis, deps.Providers, deps.Now, deps.Version, deps.Instance = client, providers, time.Now, version(), instance
	deps.Serving = func() { notifyManager(deps.Logger, daemon.SdNotifyReady) }
	if past != nil {
		deps.Now = past.clock.Now
	}
	g, err := gateway.New(loaded.Config, deps)
	if err != nil {
		return loaded.Locate(err)
	}
	defer context.AfterFunc(ctx, func() { notifyManager(deps.Logger, daemon.SdNotifyStopping) })()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(debug.FreeOSMemory) // frees the garbage of compilation, which is several times the live heap
	allowToEnd(ctx, loaded.Config.ShutdownNotice()+loaded.Config.Timeouts.Drain)
	if past != nil {
		if err := past.fill(ctx, g, store); err != nil {
			g.Close()
			return err
		}
	}
	if file == nil {
		return g.Run(ctx)
	}
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	background.Go(func() {
		_ = g.Supervise(watch, "reload", func(ctx context.Context) error { // returns nil, or the gateway ends
			file.watch(ctx, g, deps.Logger)
			return nil
		})
	})
	return g.Run(ctx)
}

// redisLog receives the log of the Redis client, for debugging only. Callers report failed calls.
type redisLog struct{ logger *slog.Logger }

// Printf implements the logger of the Redis client.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.logger.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, args...))
}

// openRedis connects to the shared store, or starts the embedded store and returns it as embedded.
func openRedis(f *settings.Config) (client redisstore.Client, embedded *miniredis.Miniredis, stop func(), err error) {
	if f.Redis.Embedded {
		m := miniredis.NewMiniRedis()
		if err := m.StartAddr("127.0.0.1:0"); err != nil {
			return nil, nil, nil, fmt.Errorf("embedded store: %w", err)
		}
		client, err := redisstore.Open("redis://"+m.Addr(), f.Limits.Timeout)
		if err != nil {
			m.Close()
			return nil, nil, nil, err
		}
		return client, m, func() { _ = client.Close(); m.Close() }, nil
	}
	client, err = redisstore.Open(f.Redis.URL.Reveal(), f.Limits.Timeout)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("redis: %w", err)
	}
	return client, nil, func() { _ = client.Close() }, nil
}

// newLogger returns a logger with an adjustable level.
func newLogger(w io.Writer, c settings.Log, level *slog.LevelVar) *slog.Logger {
	level.Set(c.Level.Level())
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
