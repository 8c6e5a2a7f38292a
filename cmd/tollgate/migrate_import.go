package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	translatestore "github.com/tollgate-dev/tollgate/translate/redisstore"
	"github.com/tollgate-dev/tollgate/translate/v1/export"
)

func newMigrateImport() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "import ORG FILE -c tollgate.yaml",
		Short: "Import the answers of v1 about an account, saved before it was switched off",
		Long: `Fills the memory of the translators, in the store the gateways share, from an
export: a JSON object {"endpoints": [...], "templates": [...], "pods": [...]} of
the answers v1 gave to GET /endpoints, /templates and /pods. It adds to the
memory and replaces nothing, so you can repeat it. Entries with a fault are
left out and listed with their line; the command then exits with 1. Of the
secrets of the configuration only redis.url must be there.`,
		Example: "  tollgate migrate import acme v1.json -c tollgate.yaml",
		Args:    named([]string{"ORG", "FILE"}),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			store, err := storeOf(file, args[0])
			if err != nil {
				return err
			}
			return importExport(cmd.Context(), store, args[0], args[1], cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVarP(&file, "config", "c", "tollgate.yaml", "configuration of the gateways")
	return cmd
}

// storeOf returns the store that the gateways of a configuration with an organisation
// share.
func storeOf(file, org string) (settings.Redis, error) {
	loaded, err := config.Load(file, config.Sources{WithoutSecrets: true}, gateway.Judge{})
	if err != nil {
		return settings.Redis{}, err
	}
	store := loaded.Config.Redis
	if !slices.ContainsFunc(loaded.Config.Orgs, func(o settings.Org) bool { return o.ID == org }) {
		return store, fmt.Errorf("%s has no organisation %q", file, org)
	}
	if store.Embedded {
		return store, fmt.Errorf("%s: redis.embedded: the store is in the gateway's process and cannot be filled from outside", file)
	}
	if err := strictyaml.ResolveSecrets(&store, os.LookupEnv, func(name string) ([]byte, error) { return files.Read(name, files.MaxSecret) }); err != nil {
		return store, fmt.Errorf("%s: redis.%w", file, err)
	}
	return store, nil
}

// importTimeout bounds a whole import.
const importTimeout = 10 * time.Minute

func importExport(ctx context.Context, store settings.Redis, org, path string, stdout, stderr io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	e, err := export.Parse(data)
	if err != nil {
		return fmt.Errorf("%s:%w", path, err)
	}
	for _, f := range e.Faults {
		_, _ = fmt.Fprintf(stderr, "%s:%v\n", path, &f)
	}
	client, err := redisstore.Open(store.URL.Reveal(), 0)
	if err != nil {
		return fmt.Errorf("redis.url: %w", err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	counts, err := e.Import(ctx, translatestore.New(client, store.Prefix.Legacy()), org)
	if werr := writeCounts(stdout, e, counts); err == nil {
		err = werr
	}
	if err == nil && len(e.Faults) > 0 {
		return errReported
	}
	return err
}

func writeCounts(w io.Writer, e *export.Export, counts map[string]export.Count) error {
	t := sheet{{"kind", "added", "completed", "known already", "nothing to keep"}}
	for _, kind := range export.Kinds() {
		c := counts[kind]
		t.add(kind, c.Added, c.Completed, c.Kept, e.Empty[kind])
	}
	if err := t.print(w); err != nil || len(e.Faults) == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "left out for a fault: %d\n", len(e.Faults))
	return err
}
