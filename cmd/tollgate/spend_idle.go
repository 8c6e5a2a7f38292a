package main

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

func newIdle(c *adminClient) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "idle ORG",
		Short:   "Show what costs money and does not work, whose it is, since when, and what it costs a month",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return out.check() },
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var l admin.IdleList
			if err := c.do(cmd.Context(), http.MethodGet, "/admin/spend/idle?"+url.Values{"org": {args[0]}}.Encode(), &l); err != nil {
				return err
			}
			s := sheet{{"resource", "kind", "name", "owner", "reason", "since", "usd_per_month", "kept_until", "stop_at"}}
			if out == "table" {
				if l.At == nil {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), "The platform was not looked at yet.")
					return err
				}
				s = sheet{{"resource", "kind", "name", "owner", "reason", "since", "usd/month", "kept", "stop"}}
			}
			for _, r := range l.Resources {
				s.add(r.ID, r.Kind, r.Name, owner(r.Team, r.Key), r.Reason, moment(&r.Since), r.PerMonth, moment(r.Kept), moment(r.StopAt))
			}
			return out.write(cmd.OutOrStdout(), &l, s)
		}),
	}
	out.flag(cmd)
	return cmd
}

// moment is a time in RFC 3339, or "" if there is none.
func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
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
