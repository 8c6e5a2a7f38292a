package main

import (
	"context"
	"fmt"
	"io"
	"log" //nolint:depguard // what libraries write to it is led to ours
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
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
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

func newServe() *cobra.Command {
	var path, state string
	cmd := &cobra.Command{
		Use:   "serve [FILE]",
		Short: "Run the gateway",
		Long: `Runs the gateway until it is interrupted. The configuration is read again on
SIGHUP and when its file changes, or the file of a secret or a directory of
policies it names; a configuration with a fault never replaces the one in force.

The state directory keeps the owners of resources, for the case that Redis and all
gateways are lost together. Gateways can share it.`,
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

// stateFlag adds the flag for the state directory. By default it is the directory that the service manager has made (systemd.exec(5),
// StateDirectory=).
func stateFlag(cmd *cobra.Command, state *string) {
	first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	cmd.Flags().StringVar(state, "state", "", "directory that keeps the owners of resources, $STATE_DIRECTORY by default")
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
	inherited, err := inheritSockets(&loaded.Config)
	if err != nil {
		return err
	}
	f := &followed{path: path, judge: judge, loaded: loaded, again: make(chan chan<- struct{}), hup: make(chan os.Signal, 1)}
	signal.Notify(f.hup, syscall.SIGHUP)
	defer signal.Stop(f.hup)
	level := new(slog.LevelVar)
	logger := newLogger(stderr, loaded.Config.Log, level)
	warn(loaded, logger)
	return runGateway(ctx, loaded, runOptions{
		logger: logger, level: level, stdout: stdout, state: state, sockets: inherited, isolate: isolated, file: f,
	})
}

// followed is a configuration file that is read again when it changes.
type followed struct {
	path   string
	judge  operator.Validator
	loaded *config.Loaded // in force
	again  chan chan<- struct{}
	hup    chan os.Signal
}

// read reads the file, without secrets.
func (f *followed) read() (*settings.Config, error) {
	now, err := config.Load(f.path, config.Sources{WithoutSecrets: true}, f.judge)
	if err != nil {
		return nil, err
	}
	return &now.Config, nil
}

// reread returns once the file has been put in force, or when ctx ends.
func (f *followed) reread(ctx context.Context) {
	done := make(chan struct{})
	select {
	case f.again <- done:
		<-done
	case <-ctx.Done():
	}
}

// watch puts changes in force until ctx ends.
func (f *followed) watch(ctx context.Context, g *gateway.Gateway, logger *slog.Logger) {
	config.Watch(ctx, f.loaded.Inputs, config.ReloadRequests{Signals: f.hup, Reload: f.again, Expired: f.judge.Isolate.CompileEnded()}, logger, func(asked bool) config.Inputs {
		notifyManager(logger, reloading())
		defer notifyManager(logger, daemon.SdNotifyReady)
		return f.reload(g, logger, asked)
	})
}

// warn logs settings without effect.
func warn(loaded *config.Loaded, logger *slog.Logger) {
	for _, warning := range loaded.Warnings(time.Now()) {
		logger.Warn("configuration", "warning", warning.Error())
	}
}

// reload puts the file's configuration in force, or says why not,
// and returns the inputs that it was read from. It frees the old configuration and the garbage of the reading at once: the next
// reload may follow in a second, and memory must not grow with the number of reloads. Where asked to, it reads files that look unchanged, too.
func (f *followed) reload(g *gateway.Gateway, logger *slog.Logger, asked bool) config.Inputs {
	defer debug.FreeOSMemory()
	g.Reopen()
	loaded, err := config.Load(f.path, config.Sources{Previous: f.loaded, Reread: asked}, f.judge)
	if err != nil {
		g.Rejected(err)
		logger.Error("configuration refused, the old one stays", "file", f.path, "fault", err.Error())
		return config.Inputs{}
	}
	inputs := loaded.Inputs
	for err = g.Swap(loaded.Config); err != nil; err = g.Swap(loaded.Config) {
		next, err := loaded.WithoutFaultyFiles(err)
		if err != nil {
			logger.Error("configuration refused, the old one stays", "file", f.path, "fault", err.Error())
			return inputs
		}
		loaded = next // each time with one file less
	}
	loaded.Commit()
	f.loaded = loaded
	for _, r := range loaded.Config.RejectedFiles {
		logger.Error("file of an organisation refused, its last good section stays", "file", r.File, "org", r.Org, "fault", r.Fault)
	}
	warn(loaded, logger)
	logger.Info("configuration in force", "file", f.path, "revision", loaded.Config.Revision)
	return loaded.Inputs
}

// runOptions holds the differences between serve and demo.
type runOptions struct {
	logger *slog.Logger
	// level is that of logger, which reloads change; nil stays.
	level *slog.LevelVar
	// stdout is where a decision log on standard output goes.
	stdout io.Writer
	// state is the state directory, "" for none.
	state string
	// file is the configuration's, nil for none.
	file *followed
	// sockets are used instead of the configured addresses if not nil.
	sockets
	// isolate runs Rego that is not known to end.
	isolate *policies.Isolator
	// past is the week of calls that the gateway begins with, whose clock it has; nil for none.
	past *history
}

// The export of the remaining telemetry at the end takes the rest of timeouts.drain,
// up to mostFlush, but at least leastFlush.
const leastFlush, mostFlush = 400 * time.Millisecond, 5 * time.Second

// runGateway runs a gateway and everything it needs until ctx ends.
func runGateway(ctx context.Context, loaded *config.Loaded, o runOptions) (err error) {
	instance := loaded.Config.InstanceName()
	annotated := func(h slog.Handler) *slog.Logger {
		return slog.New(telemetry.WithAttrs(h, slog.String("instance", instance)))
	}
	// Libraries that log by themselves write into our log. These are the
	// process's own settings, so they belong here and nowhere below. The cause of a
	// failed export is not exported.
	local := annotated(o.logger.Handler())
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
	o.logger = annotated(providers.Logged(o.logger.Handler()))
	redis.SetLogger(redisLog{o.logger})
	log.SetFlags(0)
	log.SetOutput(telemetry.StandardLog(o.logger).Writer())
	client, store, stop, err := openRedis(&loaded.Config)
	if err != nil {
		return err
	}
	defer stop()
	deps := gateway.Deps{
		Redis: client, Logger: o.logger, LogLevel: o.level, Providers: providers, Now: time.Now, Version: version(), Instance: instance, Stdout: o.stdout, State: o.state,
		Data: o.data, Admin: o.admin, Envoy: o.envoy, Isolate: o.isolate,
		Serving: func() { notifyManager(o.logger, daemon.SdNotifyReady) },
	}
	if o.file != nil {
		deps.File, deps.Reread = o.file.read, o.file.reread
	}
	if o.past != nil {
		deps.Now = o.past.clock.Now
	}
	g, err := gateway.New(loaded.Config, deps)
	if err != nil {
		return loaded.Locate(err)
	}
	defer context.AfterFunc(ctx, func() { notifyManager(o.logger, daemon.SdNotifyStopping) })()
	// The garbage of compiling is several times the live heap.
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		debug.FreeOSMemory()
	}()
	defer func() { <-freed }()
	allowToEnd(ctx, loaded.Config.ShutdownNotice()+loaded.Config.Timeouts.Drain)
	if o.past != nil {
		if err := o.past.fill(ctx, g, store); err != nil {
			g.Close()
			return err
		}
	}
	if o.file == nil {
		return g.Run(ctx)
	}
	watch, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = g.Supervise(watch, "reload", func(ctx context.Context) error { // it returns nil, or the gateway ends
			o.file.watch(ctx, g, o.logger)
			return nil
		})
	}()
	err = g.Run(ctx)
	cancel()
	<-watched
	return err
}

// redisLog writes the Redis client's log. Failures of calls are reported
// by their callers, so this is for debugging only.
type redisLog struct{ logger *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.logger.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, args...))
}

// openRedis opens the shared store, or the embedded one, which it returns besides.
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

// newLogger returns a logger whose level can be changed.
func newLogger(w io.Writer, c settings.Log, level *slog.LevelVar) *slog.Logger {
	level.Set(c.Level.Level())
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
