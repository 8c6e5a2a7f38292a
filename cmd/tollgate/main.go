package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // the policy working_hours needs time zones that may be missing on the machine

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/policies/isolate/jobs"
)

// Exit statuses.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	if code, isChild := jobs.Main(context.Background()); isChild {
		os.Exit(code)
	}
	redis.SetLogger(redisLog{slog.New(slog.DiscardHandler)}) // commands report failed calls themselves
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = withEnding(ctx, os.Stderr, os.Exit)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr)) //nolint:gocritic // the process ends here
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, errReported) {
		return exitFailure
	}
	_, _ = fmt.Fprintf(stderr, "tollgate: %v\n", err)
	if _, ok := errors.AsType[*failure](err); ok {
		return exitFailure
	}
	_, _ = fmt.Fprintf(stderr, "See '%s --help'.\n", cmd.CommandPath())
	return exitUsage
}

// failure is an error that occurred while a command ran. All other errors concern the command line.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errReported is a failure that was already reported to the user.
var errReported = &failure{errors.New("reported")}

// usageError is an error in the command line that the command itself detects.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// action returns a command function that calls body. It converts each error of body to a failure, but returns a usageError unchanged.
func action(body func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := body(cmd, args)
		if _, isUsage := errors.AsType[usageError](err); isUsage || err == nil || errors.Is(err, errReported) {
			return err
		}
		return &failure{err}
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tollgate",
		Short: "A policy-enforcing API gateway for the Compute Platform",
		Long: `tollgate is an API gateway between a company's users and the Compute Platform. It
identifies callers, validates requests against the API schema, enforces the
organisation's policies, limits and budgets, and translates calls to the retired v1
and GraphQL interfaces. Callers never see the platform's own key.

Try it without an account:  tollgate demo

Commands with --admin connect to the admin listener of a running gateway. These
environment variables set defaults:

  TOLLGATE_ADMIN        address of the admin listener, the default of --admin
  TOLLGATE_ADMIN_TOKEN  token for the admin listener, if it requires one
  TOLLGATE_KEY          key of a caller, for commands with --gateway

The exit status is 0 on success, 1 on failure, and 2 for an invalid command line.`,
		Example: `  tollgate demo
  tollgate status`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.SetVersionTemplate("tollgate {{.Version}}\n") // as the command "version"
	add := func(heading string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: heading, Title: heading + ":"})
		for _, c := range commands {
			c.GroupID = heading
		}
		root.AddCommand(commands...)
	}
	add("Run", newServe(), newCheck(), newDemo(), newDev(), newPlatform(), newEnvoy())
	add("Spend", newBilling())
	add("Policy", newPolicy(), newExplain())
	add("Access", newKeys(), newLogin(), newWhoami(), newMy(), newEnv())
	add("Operate", newAudit(), newHealth(), newMigrate())
	root.AddCommand(newMan(), newVersion())
	addRows(root)
	childOf(root, "spend").AddCommand(newAdopt())
	root.InitDefaultCompletionCmd()
	completion := childOf(root, "completion")
	completion.Args, completion.RunE = noSuchCommand, root.RunE
	root.InitDefaultHelpCmd()
	childOf(root, "help").Args = func(_ *cobra.Command, args []string) error {
		topic, rest, err := root.Find(args)
		if err == nil && topic.HasSubCommands() {
			err = noSuchCommand(topic, rest)
		}
		return err
	}
	return root
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version", Example: "  tollgate version -o json",
		Args: named(nil),
	}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = action(func(cmd *cobra.Command, _ []string) error {
		w := cmd.OutOrStdout()
		if out.format == "text" {
			_, err := fmt.Fprintf(w, "tollgate %s\n", version())
			return err
		}
		return out.write(w, map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	})
	return cmd
}

// stamp is the version, which the Makefile and the Dockerfile set at link time.
var stamp string //nolint:gochecknoglobals // set by the linker

// version returns stamp or, if it is empty, the module version in the build information, or "dev".
func version() string {
	if stamp != "" {
		return stamp
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
