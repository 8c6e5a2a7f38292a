package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Leave the retired interfaces: who still calls them, and what they knew",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigrateReport(), newMigrateImport())
	return cmd
}

func newMigrateReport() *cobra.Command {
	c := &adminClient{}
	var org, format string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "List who calls v1 and GraphQL, how often, and what to call instead",
		Long: `Asks a running gateway who still calls the retired interfaces: one line for each
key, program and operation, with the v2 operation that takes its place and the
fields v2 has no place for. A GraphQL document counts for each of its root fields.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return reportLegacy(cmd.Context(), c, org, format, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&c.base, "admin", "http://127.0.0.1:8081", "address of the gateway's admin listener")
	cmd.Flags().StringVar(&c.tokenEnv, "token-env", "TOLLGATE_ADMIN_TOKEN", "variable that holds the admin token, if one is configured")
	cmd.Flags().StringVar(&org, "org", "", "only this organisation")
	cmd.Flags().StringVar(&format, "format", "table", "table, csv or json")
	return cmd
}

func reportLegacy(ctx context.Context, c *adminClient, org, format string, w io.Writer) error {
	write, ok := map[string]func(io.Writer, []admin.LegacyCall) error{
		"table": legacyTable, "csv": legacyCSV, "json": legacyJSON,
	}[format]
	if !ok {
		return fmt.Errorf("--format %q: want table, csv or json", format)
	}
	target := "/admin/legacy"
	if org != "" {
		target += "?" + url.Values{"org": {org}}.Encode()
	}
	var answer struct{ Calls []admin.LegacyCall }
	if err := c.do(ctx, http.MethodGet, target, &answer); err != nil {
		return err
	}
	return write(w, answer.Calls)
}

func legacyTable(w io.Writer, calls []admin.LegacyCall) error {
	if len(calls) == 0 {
		_, err := fmt.Fprintln(w, "No calls to retired interfaces.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ORG\tKEY\tPROGRAM\tINTERFACE\tOPERATION\tCALLS\tFAILED\tLAST SEEN\tIN V2\tWITHOUT A PLACE IN V2")
	for _, c := range calls {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.Org, c.Key, c.Agent, c.Dialect, c.Operation,
			c.Count, c.Statuses["4xx"]+c.Statuses["5xx"], c.Last.UTC().Format(time.DateTime), successors(c), lostFields(c))
	}
	return t.Flush()
}

// successors tells what to call instead.
func successors(c admin.LegacyCall) string {
	if len(c.V2) == 0 {
		return "nothing"
	}
	return strings.Join(c.V2, ", ")
}

// lostFields tells which fields had no place in v2, the most frequent first.
func lostFields(c admin.LegacyCall) string {
	fields := usage.Names(c.Lost)
	for i, f := range fields {
		fields[i] = fmt.Sprintf("%s (%d)", f, c.Lost[f])
	}
	return strings.Join(fields, ", ")
}

func legacyCSV(w io.Writer, calls []admin.LegacyCall) error {
	rows := [][]string{{"org", "key", "program", "interface", "operation", "calls", "2xx", "4xx", "5xx", "first", "last", "v2", "lost"}}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, c := range calls {
		rows = append(rows, []string{
			c.Org, c.Key, c.Agent, c.Dialect, c.Operation,
			number(c.Count), number(c.Statuses["2xx"]), number(c.Statuses["4xx"]), number(c.Statuses["5xx"]),
			c.First.UTC().Format(time.RFC3339), c.Last.UTC().Format(time.RFC3339),
			strings.Join(c.V2, " "), strings.Join(usage.Names(c.Lost), " "),
		})
	}
	return admin.WriteCSV(w, rows)
}

func legacyJSON(w io.Writer, calls []admin.LegacyCall) error {
	if calls == nil {
		calls = []admin.LegacyCall{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"calls": calls})
}
