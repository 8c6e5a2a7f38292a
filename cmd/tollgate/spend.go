package main

import (
	"cmp"
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
)

func newSpend() *cobra.Command {
	cmd := group("spend", "Show budgets and what is spent, and compare the ledger with the platform")
	c := newAdminClient(cmd)
	add := func(use, short string, run func(ctx context.Context, c *adminClient, org string, w io.Writer) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use + " ORG", Short: short, Args: cobra.ExactArgs(1),
			RunE: action(func(cmd *cobra.Command, args []string) error {
				return run(cmd.Context(), c, args[0], cmd.OutOrStdout())
			}),
		})
	}
	add("holds", "Show reservations whose call has not ended, or whose end is not known", showHolds)
	add("reconcile", "Compare the ledger with what the platform has, now", reconcile)
	cmd.AddCommand(newSpendShow(c), newAdopt(c), newIdle(c), newKeep(c))
	cmd.AddCommand(newCosts(c)...)
	return cmd
}

func newAdopt(c *adminClient) *cobra.Command {
	var team, key string
	cmd := &cobra.Command{
		Use:   "adopt ORG ID",
		Short: "Make a resource a team's or a key's, who pays for it from then on",
		Args:  cobra.ExactArgs(2),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var a admin.Adopted
			q := url.Values{"org": {args[0]}, "id": {args[1]}, "team": {team}, "key": {key}}
			if err := c.do(cmd.Context(), http.MethodPost, "/admin/spend/adopt?"+q.Encode(), &a); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s (was: %s)\n", a.Resource, a.Owner, a.Was)
			return err
		}),
	}
	cmd.Flags().StringVar(&team, "team", "", "id of the team")
	cmd.Flags().StringVar(&key, "key", "", "id of the key; its team is the owner, too")
	return cmd
}

func ledgerOf(ctx context.Context, c *adminClient, org string) (*admin.Ledger, error) {
	var l admin.Ledger
	err := c.do(ctx, http.MethodGet, "/admin/spend?"+url.Values{"org": {org}}.Encode(), &l)
	return &l, err
}

func budgetText(limits map[string]string) string {
	var parts []string
	for name, limit := range limits {
		parts = append(parts, name+" "+limit)
	}
	slices.Sort(parts)
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func owner(team, key string) string {
	return cmp.Or(strings.Trim(team+"/"+key, "/"), "organisation")
}

func showHolds(ctx context.Context, c *adminClient, org string, w io.Writer) error {
	l, err := ledgerOf(ctx, c, org)
	if err != nil {
		return err
	}
	t := sheet{{"since", "operation", "name", "resource", "owner", "usd/h", "runs", "gpus", "decision", "end"}}
	for _, h := range l.Holds {
		end := "under way"
		if h.Open {
			end = "unknown, looked for until " + h.Until.Format(time.DateTime)
		}
		t.add(h.Since.Format(time.DateTime), h.Operation, h.Name, h.Resource,
			owner(h.Team, h.Key), h.Reserves.PerHour, h.Reserves.Runs, h.Reserves.GPUs, h.Decision, end)
	}
	return t.print(w)
}

func reconcile(ctx context.Context, c *adminClient, org string, w io.Writer) error {
	var r admin.Reconciled
	if err := c.do(ctx, http.MethodPost, "/admin/spend/reconcile?"+url.Values{"org": {org}}.Encode(), &r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d resources: %d adopted, %d removed, %d changed. Holds: %d carried out, %d released, %d open.\n",
		r.Resources, r.Adopted, r.Removed, r.Changed, r.Found, r.Released, r.Open)
	return err
}
