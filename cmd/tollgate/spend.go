package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/audit"
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
	add("reconcile", "Compare the ledger with what the platform has, now", reconcile)
	cmd.AddCommand(newSpendShow(c), newHolds(c), newAdopt(c), newIdle(c), newKeep(c))
	cmd.AddCommand(newCosts(c)...)
	return cmd
}

func newAdopt(c *adminClient) *cobra.Command {
	var team, key, file string
	cmd := &cobra.Command{
		Use:   "adopt ORG [ID]",
		Short: "Make a resource a team's or a key's, who pays for it from then on",
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return adoptAll(cmd.Context(), c, args[0], file, cmd.OutOrStdout())
			}
			return adopt(cmd.Context(), c, url.Values{"org": {args[0]}, "id": {args[1]}, "team": {team}, "key": {key}}, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&team, "team", "", "id of the team")
	cmd.Flags().StringVar(&key, "key", "", "id of the key; its team is the owner, too")
	cmd.Flags().StringVar(&file, "from-audit", "", "audit log: give whatever has no owner back to who made it")
	cmd.MarkFlagsMutuallyExclusive("from-audit", "team")
	cmd.MarkFlagsMutuallyExclusive("from-audit", "key")
	return cmd
}

func adopt(ctx context.Context, c *adminClient, q url.Values, w io.Writer) error {
	var a admin.Adopted
	if err := c.do(ctx, http.MethodPost, "/admin/spend/adopt?"+q.Encode(), &a); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %s (was: %s)\n", a.Resource, a.Owner, a.Was)
	return err
}

// adoptAll gives back what an audit log knows the maker of and the ledger does not.
func adoptAll(ctx context.Context, c *adminClient, org, file string, w io.Writer) error {
	made, err := audit.Makers(org, file)
	if err != nil {
		return err
	}
	l, err := ledgerOf(ctx, c, org)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range l.Resources {
		m, known := made[r.ID]
		if !known || r.Team+r.Key != "" || m.Team+m.Key == "" {
			continue
		}
		if err := adopt(ctx, c, url.Values{"org": {org}, "id": {r.ID}, "team": {m.Team}, "key": {m.Key}}, w); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.ID, err))
		}
	}
	return errors.Join(errs...)
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

func reconcile(ctx context.Context, c *adminClient, org string, w io.Writer) error {
	var r admin.Reconciled
	if err := c.do(ctx, http.MethodPost, "/admin/spend/reconcile?"+url.Values{"org": {org}}.Encode(), &r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d resources: %d adopted, %d removed, %d changed. Holds: %d carried out, %d released, %d open.\n",
		r.Resources, r.Adopted, r.Removed, r.Changed, r.Found, r.Released, r.Open)
	return err
}
