package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// idleOutputs writes a list in each of its forms.
var idleOutputs = map[string]func(io.Writer, *admin.IdleList) error{ //nolint:gochecknoglobals // read only
	"table": tableOfIdle, "csv": csvOfIdle,
	"json": func(w io.Writer, l *admin.IdleList) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(l)
	},
}

func newIdle(c *adminClient) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "idle ORG",
		Short: "Show what costs money and does not work, whose it is, since when, and what it costs a month",
		Args:  cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if idleOutputs[output] == nil {
				return fmt.Errorf("--output %s: expected table, csv or json", output)
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var l admin.IdleList
			if err := c.do(cmd.Context(), http.MethodGet, "/admin/spend/idle?"+url.Values{"org": {args[0]}}.Encode(), &l); err != nil {
				return err
			}
			return idleOutputs[output](cmd.OutOrStdout(), &l)
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, csv or json")
	return cmd
}

func newKeep(c *adminClient) *cobra.Command {
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "keep ORG ID",
		Short: "Leave a resource alone for a time although it is idle",
		Args:  cobra.ExactArgs(2),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var k admin.Kept
			q := url.Values{"org": {args[0]}, "id": {args[1]}, "for": {span.String()}}
			if err := c.do(cmd.Context(), http.MethodPost, "/admin/spend/keep?"+q.Encode(), &k); err != nil {
				return err
			}
			said := "is no longer kept"
			if k.Until != nil {
				said = "is kept until " + k.Until.Format(time.RFC3339)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", k.Resource, said)
			return err
		}),
	}
	cmd.Flags().DurationVar(&span, "for", 24*time.Hour, "how long, at most 720h; 0 ends it")
	return cmd
}

var idleColumns = []string{"resource", "kind", "name", "owner", "reason", "since", "usd_per_month", "kept_until", "stop_at"} //nolint:gochecknoglobals // read only

// idleRow is a resource in the order of the columns.
func idleRow(r *admin.IdleResource) []string {
	moment := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	return []string{r.ID, r.Kind, r.Name, owner(r.Team, r.Key), r.Reason, moment(&r.Since), r.PerMonth, moment(r.Kept), moment(r.StopAt)}
}

func csvOfIdle(w io.Writer, l *admin.IdleList) error {
	rows := [][]string{idleColumns}
	for i := range l.Resources {
		rows = append(rows, idleRow(&l.Resources[i]))
	}
	return admin.WriteCSV(w, rows)
}

func tableOfIdle(w io.Writer, l *admin.IdleList) error {
	if l.At == nil {
		_, err := fmt.Fprintln(w, "The platform was not looked at yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "RESOURCE\tKIND\tNAME\tOWNER\tREASON\tSINCE\tUSD/MONTH\tKEPT\tSTOP")
	for i := range l.Resources {
		_, _ = fmt.Fprintln(t, strings.Join(idleRow(&l.Resources[i]), "\t"))
	}
	return t.Flush()
}
