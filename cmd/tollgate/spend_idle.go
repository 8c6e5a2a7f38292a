package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

func newIdle(c *adminClient) *cobra.Command {
	var out output
	var done bool
	cmd := &cobra.Command{
		Use:     "idle ORG",
		Short:   "Show what costs money and does not work, whose it is, since when, and what it costs a month",
		Long:    "Shows what costs money and does not work; with --done, which pods the gateways have stopped and why, as long as decisions are kept.",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return out.check() },
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if done {
				return writeStops(cmd, c, args[0], out)
			}
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
	cmd.Flags().BoolVar(&done, "done", false, "show the pods that were stopped instead")
	out.flag(cmd)
	return cmd
}

// writeStops lists the pods of an organisation that its gateways have stopped.
func writeStops(cmd *cobra.Command, c *adminClient, org string, out output) error {
	var answer decisionList
	if err := c.do(cmd.Context(), http.MethodGet, "/admin/decisions?"+url.Values{"org": {org}, "own": {"true"}, "limit": {"1000"}}.Encode(), &answer); err != nil {
		return err
	}
	answer.Decisions = slices.DeleteFunc(answer.Decisions, func(s explain.Summary) bool { return s.Own == nil || s.Operation != "podAction" })
	if answer.Incomplete != "" {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), answer.Incomplete)
	}
	s := sheet{{"time", "resource", "team", "done", "decision"}}
	for _, d := range answer.Decisions {
		s.add(d.Time.UTC().Format(time.RFC3339), d.Own.Resource, d.Team, d.Own.Did, d.DecisionID)
	}
	return out.write(cmd.OutOrStdout(), &answer, s)
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
