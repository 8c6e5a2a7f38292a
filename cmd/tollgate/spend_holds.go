package main

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

func newHolds(c *adminClient) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "holds ORG",
		Short:   "Show reservations whose call has not ended, or whose end is not known",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return out.check() },
		RunE: action(func(cmd *cobra.Command, args []string) error {
			l, err := ledgerOf(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			s := sheet{{"hold", "age", "state", "until", "operation", "name", "resource", "owner", "usd/h", "runs", "gpus", "pods", "workers", "gb", "gateway", "decision"}}
			for _, h := range l.Holds {
				a := h.Reserves
				s.add(h.ID, age(h.Age), h.State, moment(h.Until), h.Operation, h.Name, h.Resource, owner(h.Team, h.Key),
					a.PerHour, a.Runs, a.GPUs, a.Pods, a.Workers, a.VolumeGB, h.Gateway, h.Decision)
			}
			return out.write(cmd.OutOrStdout(), l.Holds, s)
		}),
	}
	out.flag(cmd)
	cmd.AddCommand(newReleaseHold(c))
	return cmd
}

// age is seconds as people read them.
func age(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func newReleaseHold(c *adminClient) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "release ORG ID",
		Short: "End a reservation whose call has left nothing",
		Args:  cobra.ExactArgs(2),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var h admin.Hold
			q := url.Values{"org": {args[0]}, "id": {args[1]}, "reason": {reason}}
			if err := c.do(cmd.Context(), http.MethodPost, "/admin/spend/holds/release?"+q.Encode(), &h); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is released: it was %s for %s (%s)\n", h.ID, h.State, age(h.Age), owner(h.Team, h.Key))
			return err
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log (required)")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // it was defined above
	}
	return cmd
}
