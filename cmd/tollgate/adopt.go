package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

func newAdopt() *cobra.Command {
	var c *adminClient
	var team, key, file, from, to string
	cmd := &cobra.Command{
		Use:   "adopt ORG (ID | --from-team OLD --to-team NEW | --from-audit FILE)",
		Short: "Change the owner of a resource, or of all resources of a team",
		Long: `Changes the owner of a resource to a team or a key. With --from-team and --to-team,
transfers all resources of a team, and its costs of the current day and month, to
another team. The former team need not be in the configuration. With --key, transfers
only resources of one key.`,
		Example: `  tollgate spend adopt acme k2n5x8 --team research
  tollgate spend adopt acme --from-team research --to-team science
  tollgate spend adopt acme --from-team research --to-team ops --key ann-laptop
  tollgate spend adopt acme --from-audit /var/log/tollgate/audit.log`,
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" || from != "" {
				return named([]string{"ORG"})(cmd, args)
			}
			return named([]string{"ORG", "ID"})(cmd, args)
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return adoptAll(cmd.Context(), c, args[0], file, cmd.OutOrStdout())
			}
			if from != "" {
				return adoptTeam(cmd.Context(), c, url.Values{"org": {args[0]}, "from_team": {from}, "to_team": {to}, "key": {key}}, cmd.OutOrStdout())
			}
			return adopt(cmd.Context(), c, url.Values{"org": {args[0]}, "id": {args[1]}, "team": {team}, "key": {key}}, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&team, "team", "", "ID of the team")
	cmd.Flags().StringVar(&key, "key", "", "ID of the key that becomes the owner, with its team. With --from-team, transfer only resources of this key")
	cmd.Flags().StringVar(&from, "from-team", "", "ID of the former team, which need not be in the configuration")
	cmd.Flags().StringVar(&to, "to-team", "", "ID of the new team")
	cmd.Flags().StringVar(&file, "from-audit", "", "audit log from which to restore missing owners")
	cmd.MarkFlagsMutuallyExclusive("from-audit", "team")
	cmd.MarkFlagsMutuallyExclusive("from-audit", "key")
	cmd.MarkFlagsRequiredTogether("from-team", "to-team")
	cmd.MarkFlagsMutuallyExclusive("from-team", "from-audit", "team")
	c = newAdminClient(cmd)
	complete(cmd, "team", teamNames)
	complete(cmd, "to-team", teamNames)
	completeArguments(cmd, []string{"ORG", "ID"})
	return cmd
}

func adopt(ctx context.Context, c *adminClient, q url.Values, w io.Writer) error {
	var a money.Adopted
	if err := c.post(ctx, "/admin/spend/adopt", q, &a); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %s (was: %s)\n", a.Resource, a.Owner, a.Was)
	return err
}

// adoptTeam transfers all resources of a team, or of one of its keys, to another team.
func adoptTeam(ctx context.Context, c *adminClient, q url.Values, w io.Writer) error {
	var a money.AdoptedTeam
	if err := c.post(ctx, "/admin/spend/adopt-team", q, &a); err != nil {
		return err
	}
	line := fmt.Sprintf("team %s: received %d resources, %s USD of today and %s USD of this month from team %s",
		a.To, a.Resources, a.Day, a.Month, a.From)
	if a.Pending > 0 {
		line += fmt.Sprintf("; %d resources not transferred, because calls about them are in progress: repeat the command later", a.Pending)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// adoptAll restores owners that are missing in the ledger but recorded in an audit log.
func adoptAll(ctx context.Context, c *adminClient, org, file string, w io.Writer) error {
	made, err := audit.Creators(org, file)
	if err != nil {
		return err
	}
	// A gateway that has just started may not know the resources yet.
	if err := c.post(ctx, "/admin/spend/reconcile", url.Values{"org": {org}}, new(money.Reconciled)); err != nil {
		return err
	}
	var l money.Ledger
	if err := c.get(ctx, "/admin/spend", url.Values{"org": {org}}, &l); err != nil {
		return err
	}
	var errs []error
	restored := 0
	for _, r := range l.Resources {
		m, known := made[r.ID]
		if !known || r.Team+r.Key != "" || m.Team+m.Key == "" {
			continue
		}
		if err := adopt(ctx, c, url.Values{"org": {org}, "id": {r.ID}, "team": {m.Team}, "key": {m.Key}}, w); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.ID, err))
			continue
		}
		restored++
	}
	_, err = fmt.Fprintf(w, "%s restored\n", counted(restored, "owner"))
	return errors.Join(append(errs, err)...)
}
