package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

func newMigrate() *cobra.Command {
	return group("migrate", "Leave the retired interfaces: who still calls them, and what they knew", newMigrateReport(), newMigrateImport())
}

func newMigrateReport() *cobra.Command {
	c := &adminClient{}
	var org string
	var out output
	cmd := &cobra.Command{
		Use:   "report",
		Short: "List who calls v1 and GraphQL, how often, and what to call instead",
		Long: `Asks a running gateway who still calls the retired interfaces: one line for each
key, program and operation, with the v2 operation that takes its place and the
fields v2 has no place for. A GraphQL document counts for each of its root fields.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return reportLegacy(cmd.Context(), c, org, out, cmd.OutOrStdout())
		}),
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&org, "org", "", "only this organisation")
	cmd.Flags().StringVar((*string)(&out), "format", "table", "table, csv or json")
	return cmd
}

func reportLegacy(ctx context.Context, c *adminClient, org string, out output, w io.Writer) error {
	if out.check() != nil {
		return fmt.Errorf("--format %q: want table, csv or json", out)
	}
	target := "/admin/legacy"
	if org != "" {
		target += "?" + url.Values{"org": {org}}.Encode()
	}
	var answer struct{ Calls []admin.LegacyCall }
	if err := c.do(ctx, http.MethodGet, target, &answer); err != nil {
		return err
	}
	if out == "table" && len(answer.Calls) == 0 {
		_, err := fmt.Fprintln(w, "No calls to retired interfaces.")
		return err
	}
	return out.write(w, map[string]any{"calls": slices.Concat([]admin.LegacyCall{}, answer.Calls)}, legacySheet(out, answer.Calls))
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

// legacySheet is what programs read as CSV, or what people do.
func legacySheet(out output, calls []admin.LegacyCall) sheet {
	if out == "csv" {
		t := sheet{{"org", "key", "program", "interface", "operation", "calls", "2xx", "4xx", "5xx", "first", "last", "v2", "lost"}}
		for _, c := range calls {
			t.add(c.Org, c.Key, c.Agent, c.Dialect, c.Operation, c.Count, c.Statuses["2xx"], c.Statuses["4xx"], c.Statuses["5xx"],
				c.First.UTC().Format(time.RFC3339), c.Last.UTC().Format(time.RFC3339), strings.Join(c.V2, " "), strings.Join(usage.Names(c.Lost), " "))
		}
		return t
	}
	t := sheet{{"org", "key", "program", "interface", "operation", "calls", "failed", "last seen", "in v2", "without a place in v2"}}
	for _, c := range calls {
		t.add(c.Org, c.Key, c.Agent, c.Dialect, c.Operation, c.Count, c.Statuses["4xx"]+c.Statuses["5xx"],
			c.Last.UTC().Format(time.DateTime), successors(c), lostFields(c))
	}
	return t
}
