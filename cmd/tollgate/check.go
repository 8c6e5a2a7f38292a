package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

func newCheck() *cobra.Command {
	var c checking
	var printed, coverage bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration without starting the gateway",
		Long: `Loads everything that 'serve' would load: the file, its secrets, the API schemas and
the policies. Prints each fault with its position, and exits with 1 if there is one.
A setting without effect, such as an expired exception, is reported as a warning.

With --no-secrets, environment variables and files of secrets are not read, and log
directories are not checked, so that a pull request can be checked.`,
		Example: `  tollgate check tollgate.yaml
  tollgate check tollgate.yaml --no-secrets -o github`,
		Args: configFile(&c.path),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			if printed {
				text, err := config.Schema()
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
				}
				return err
			}
			if coverage {
				return printCoverage(cmd.OutOrStdout(), c.out)
			}
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVarP(&c.path, "config", "c", "tollgate.yaml", "configuration file")
	stateFlag(cmd, &c.state)
	cmd.Flags().BoolVar(&c.noSecrets, "no-secrets", false, "do not check secrets")
	c.out = outputFlag(cmd, "table", "json", "sarif", "github")
	cmd.Flags().BoolVar(&printed, "print-schema", false, "only print the JSON Schema of the configuration")
	cmd.Flags().BoolVar(&coverage, "coverage", false,
		"only print the rules that apply to each API operation; exit with 1 if no rule applies to an operation")
	cmd.MarkFlagsMutuallyExclusive("print-schema", "output")
	return cmd
}

// configFile lets a command accept the configuration file as an argument, as an alternative to --config.
func configFile(path *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("expected one FILE, got %d", len(args))
		case len(args) == 1 && cmd.Flags().Changed("config"):
			return errors.New("configuration file given twice: as FILE and with --config")
		case len(args) == 1:
			*path = args[0]
		}
		return nil
	}
}

// printCoverage lists the rules that apply to each operation.
func printCoverage(w io.Writer, out *output) error {
	if out.format == "sarif" || out.format == "github" {
		return usagef("--coverage supports the formats table and json, not %s", out.format)
	}
	api, err := schema.Load()
	if err != nil {
		return err
	}
	runs, err := schema.LoadRun()
	if err != nil {
		return err
	}
	t := sheet{{"operation", "changes", "body", "state judged", "price", "policies see", "gaps"}}
	gaps := 0
	list := operator.CoverageOf(slices.Concat(api.Operations(), runs.Operations()))
	for _, c := range list {
		changes := map[bool]string{true: "yes"}[c.Mutates]
		gaps += len(c.Gaps)
		t.add(c.Operation, changes, c.Body, c.State, c.Price, fmt.Sprintf("%s:%s", c.Kind, c.Verb), strings.Join(c.Gaps, "; "))
	}
	if err := out.write(w, list, t); err != nil {
		return err
	}
	if gaps > 0 {
		return fmt.Errorf("%s", counted(gaps, "gap"))
	}
	return nil
}

// checking is one run of the command check.
type checking struct {
	path      string
	state     string // state directory of serve
	noSecrets bool
	out       *output
}

func (c *checking) run(ctx context.Context, stdout, stderr io.Writer) error {
	write := map[string]func(io.Writer, []finding) error{"json": writeFindings, "sarif": writeSARIF, "github": writeAnnotations}[c.out.format]
	isolated, stop := isolation(ctx)
	defer stop()
	loaded, err := config.Load(c.path, config.Sources{WithoutSecrets: c.noSecrets}, operator.Validator{Isolate: isolated})
	if err == nil {
		var g *gateway.Gateway
		if g, err = compile(ctx, loaded, isolated); g != nil {
			g.Close()
		}
	}
	found := findings(c.path, severityError, err)
	if err == nil {
		found = findings(c.path, severityWarning, errors.Join(loaded.Warnings(time.Now())...))
	}
	switch {
	case write != nil:
		if werr := write(stdout, found); werr != nil {
			return werr
		}
	case err != nil:
		report(stderr, c.path, err)
	default:
		return c.passed(loaded, found, stdout, stderr)
	}
	if err != nil {
		return errReported
	}
	return nil
}

// passed prints the result for a configuration without faults, with hints, as text for people.
func (c *checking) passed(loaded *config.Loaded, warnings []finding, stdout, stderr io.Writer) error {
	for _, warning := range warnings {
		_, _ = fmt.Fprintf(stderr, "warning: %v\n", warning.Fault)
	}
	keys, ledgers := 0, false
	for i, o := range loaded.Config.Orgs {
		keys, ledgers = keys+len(o.Keys), ledgers || callers.HasLedger(&o)
		if o.Isolation.HidesUnowned() {
			_, _ = fmt.Fprintf(stdout, "%s: hint: orgs[%d].isolation.unowned is not set; "+
				"only exempt roles see resources created outside the gateway, until 'tollgate spend adopt' assigns an owner\n", c.path, i)
		}
	}
	if c.state == "" && ledgers {
		_, _ = fmt.Fprintf(stdout, "%s: hint: state directory is not set (--state, $STATE_DIRECTORY); if Redis and all gateways are lost at the same time, "+
			"the owners of resources and the reservations of calls in flight are lost, and resources count only for their organisation\n", c.path)
	}
	if loaded.Config.Catalog.SandboxRate == 0 {
		_, _ = fmt.Fprintf(stdout, "%s: hint: catalog.sandbox_rate is not set; requests to create sandboxes are refused, because the rate of a sandbox is not known before it runs\n", c.path)
	}
	_, err := fmt.Fprintf(stdout, "%s: no faults; %s, %s, revision %s\n",
		c.path, counted(len(loaded.Config.Orgs), "organisation"), counted(keys, "key"), loaded.Config.Revision)
	return err
}

// compile builds a gateway in the same way as the command serve, but the gateway never connects to Redis and writes no logs of decisions or
// changes.
func compile(ctx context.Context, loaded *config.Loaded, isolated *policies.Isolator) (*gateway.Gateway, error) {
	g, closeStore, err := build(ctx, loaded, isolated)
	closeStore()
	return g, err
}

// build is like compile, but the gateway may connect to Redis until closeStore is called. If the configuration uses the embedded store, the
// gateway has no store.
func build(ctx context.Context, loaded *config.Loaded, isolated *policies.Isolator) (g *gateway.Gateway, closeStore func(), err error) {
	url := "redis://127.0.0.1:1"
	if !loaded.Config.Redis.Embedded && loaded.Config.Redis.URL.Resolved() {
		url = loaded.Config.Redis.URL.Reveal()
	}
	client, err := redisstore.Open(url, 0)
	if err != nil {
		return nil, func() {}, fmt.Errorf("redis.url: %w", err)
	}
	closeStore = func() { _ = client.Close() }
	providers, err := telemetry.NewProviders(ctx, settings.Telemetry{}, telemetry.Process{Version: version()})
	if err != nil {
		return nil, closeStore, err
	}
	cfg := loaded.Config
	cfg.Decisions.DecisionLog, cfg.Audit.File = policyconfig.DefaultDecisionLog(), nil // nothing must be written
	g, err = gateway.New(cfg, gateway.Deps{
		Redis: client, Logger: slog.New(slog.DiscardHandler), Providers: providers, Now: time.Now, Version: version(), Isolate: isolated,
	})
	return g, closeStore, errors.Join(loaded.Locate(err), providers.Shutdown(ctx))
}

// report writes each fault in err on its own line, and their number. what names the checked file or directory.
func report(w io.Writer, what string, err error) {
	all := policyconfig.Joined(err)
	for _, e := range all {
		_, _ = fmt.Fprintln(w, e)
	}
	_, _ = fmt.Fprintf(w, "%s: %s\n", what, counted(len(all), "fault"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
