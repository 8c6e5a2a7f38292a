package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// platformFlags are the flags of the emulator.
type platformFlags struct {
	listen, control, seed, startTime, hold string
	fast, demo                             bool
	opts                                   platform.Options
}

func newPlatform() *cobra.Command {
	var f platformFlags
	cmd := &cobra.Command{
		Use:   "platform",
		Short: "Run the platform emulator",
		Long: `Runs an emulator of the platform: the complete v2 API and the run interface, with
prices, limited stock and bills, but without renting real resources. Without a seed
file it has one account, with the key ` + platform.DefaultKey + `.`,
		Example: "  tollgate platform --fast",
		Args:    named(nil),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return runPlatform(cmd.Context(), f, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8090", "address of the v2 API and the run interface")
	cmd.Flags().StringVar(&f.control, "control-listen", "", "address of the control interface, which requires no key (default: disabled)")
	cmd.Flags().StringVar(&f.seed, "seed", "", "JSON file with accounts, prices, stock and initial calls")
	cmd.Flags().StringVar(&f.opts.DataFile, "data", "", "file that stores the state across restarts; if empty, the state is kept in memory")
	cmd.Flags().BoolVar(&f.fast, "fast", false, "run the emulator's clock at sixty times the normal speed")
	cmd.Flags().BoolVar(&f.demo, "demo", false, "use the accounts of 'tollgate demo'")
	cmd.Flags().BoolVar(&f.opts.Strict, "strict", false, "refuse calls that the platform's published description does not contain")
	cmd.Flags().IntVar(&f.opts.PageSize, "page-size", 0, "default page size of lists; 0 means 1000, and -1 disables paging")
	cmd.Flags().StringVar(&f.opts.Worker.Python, "worker", "",
		"Python interpreter, such as python3, that runs the functions sent to endpoints, without a sandbox: use only your own code; if empty, no function is run")
	cmd.Flags().StringVar(&f.hold, "hold", "", "name of an operation, such as createPod; its first call is executed but gets no response")
	cmd.Flags().StringVar(&f.startTime, "start-time", "",
		"start time of the clock as an RFC 3339 time (default: now). A later time in the stored state takes precedence")
	cmd.AddCommand(newPlatformDiff())
	return cmd
}

// fastSpeed is the speed of the clock with --fast.
const fastSpeed = 60

func runPlatform(ctx context.Context, f platformFlags, stdout io.Writer) error {
	opts, start := f.opts, time.Now()
	if f.startTime != "" {
		var err error
		if start, err = time.Parse(time.RFC3339, f.startTime); err != nil {
			return fmt.Errorf("start-time: %w", err)
		}
	}
	speed := 1.0
	if f.fast {
		speed = fastSpeed
	}
	opts.Clock = platform.NewClock(start, speed)
	var seed *platform.Seed
	if f.seed != "" {
		data, err := os.ReadFile(f.seed)
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		if seed, err = platform.ParseSeed(data); err != nil {
			return err
		}
		opts.Accounts = seed.Accounts
	}
	if f.demo {
		opts.Accounts = demoAccounts()
	}
	held := platform.Fault{Operation: f.hold, Kind: platform.FaultHang, After: true, Times: 1}
	if err := held.Validate(); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	l, err := net.Listen("tcp", f.listen) //nolint:noctx // opened once, at start
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	emulator, err := newEmulator(opts)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if f.hold != "" {
		emulator.AddFault(held)
	}
	if seed != nil {
		if err := emulator.ApplySeed(ctx, seed); err != nil {
			return errors.Join(err, l.Close(), emulator.Close())
		}
	}
	if _, err := fmt.Fprintf(stdout, "platform emulator on http://%s\n", l.Addr()); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if f.control != "" {
		cl, err := net.Listen("tcp", f.control) //nolint:noctx // opened once, at start
		if err != nil {
			return errors.Join(fmt.Errorf("listen: %w", err), l.Close(), emulator.Close())
		}
		if _, err := fmt.Fprintf(stdout, "control interface on http://%s\n", cl.Addr()); err != nil {
			return err
		}
		group.Go(func() error { return serveUntil(ctx, cl, emulator.ControlHandler(), func() error { return nil }) })
	}
	group.Go(func() error { return serveUntil(ctx, l, emulator.CombinedHandler(), emulator.Close) })
	return group.Wait()
}

// newEmulator returns an emulator that serves the embedded API description.
func newEmulator(opts platform.Options) (*platform.Server, error) {
	api, err := schema.Load()
	if err != nil {
		return nil, err
	}
	opts.OpenAPI = api.Document()
	return platform.New(opts)
}

// emulatorEnd is the maximum time that the emulator takes at shutdown to store its state.
const emulatorEnd = 10 * time.Second

// serveUntil serves h until ctx ends. It then calls finish to end long requests such as streams.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler, finish func() error) error {
	allowToEnd(ctx, emulatorEnd)
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stopped <- errors.Join(finish(), s.Close())
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return <-stopped
}
