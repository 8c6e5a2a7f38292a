package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	translatestore "github.com/tollgate-dev/tollgate/translate/redisstore"
	"github.com/tollgate-dev/tollgate/translate/v1/export"
)

func newMigrateImport() *cobra.Command {
	var url, urlEnv, org, prefix string
	cmd := &cobra.Command{
		Use:   "import --org ID FILE",
		Short: "Remember what v1 told of an account before it was switched off",
		Long: `Fills the memory of the translators, in the store the gateways share, from an
export: a JSON object {"endpoints": [...], "templates": [...], "pods": [...]} of
the answers v1 gave to GET /endpoints, /templates and /pods. It adds to what is
remembered and replaces nothing, so it may be repeated. Entries with a fault are
left out and listed with their line; the command then exits with 1.`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if url == "" {
				url = os.Getenv(urlEnv)
			}
			return importExport(cmd.Context(), importPlan{url: url, prefix: gateway.Prefix(prefix), org: org, path: args[0]}, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVar(&url, "redis", "", "URL of the gateways' store; prefer --redis-env when it holds a password")
	cmd.Flags().StringVar(&urlEnv, "redis-env", "REDIS_URL", "variable that holds the URL, unless --redis is given")
	cmd.Flags().StringVar(&prefix, "prefix", string(gateway.DefaultPrefix), "redis.prefix of the configuration")
	cmd.Flags().StringVar(&org, "org", "", "id of the organisation the export is of, as in the configuration")
	return cmd
}

type importPlan struct {
	url, org, path string
	prefix         gateway.Prefix
}

// importTimeout bounds a whole import.
const importTimeout = 10 * time.Minute

func importExport(ctx context.Context, p importPlan, stdout, stderr io.Writer) error {
	if err := ratelimit.CheckID(p.org); err != nil {
		return fmt.Errorf("--org: %w", err)
	}
	if err := p.prefix.Validate(); err != nil {
		return fmt.Errorf("--prefix: %w", err)
	}
	if p.url == "" {
		return errors.New("say where the store is: --redis URL, or --redis-env NAME")
	}
	data, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	e, err := export.Parse(data)
	if err != nil {
		return fmt.Errorf("%s:%w", p.path, err)
	}
	for _, f := range e.Faults {
		_, _ = fmt.Fprintf(stderr, "%s:%v\n", p.path, &f)
	}
	opts, err := redisstore.Options(p.url)
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	client := redis.NewUniversalClient(opts)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	counts, err := e.Import(ctx, translatestore.New(client, p.prefix.Legacy()), p.org)
	if werr := writeCounts(stdout, e, counts); err == nil {
		err = werr
	}
	if err == nil && len(e.Faults) > 0 {
		return errReported
	}
	return err
}

func writeCounts(w io.Writer, e *export.Export, counts map[string]export.Count) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "KIND\tADDED\tCOMPLETED\tKNOWN ALREADY\tNOTHING TO KEEP")
	for _, kind := range export.Kinds() {
		c := counts[kind]
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", kind, c.Added, c.Completed, c.Kept, e.Empty[kind])
	}
	if err := t.Flush(); err != nil || len(e.Faults) == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "left out for a fault: %d\n", len(e.Faults))
	return err
}
