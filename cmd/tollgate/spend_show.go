package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// show is what `spend show` is asked.
type show struct {
	output

	client *adminClient
	watch  time.Duration
	where  map[string]*string
	labels []string
}

func newSpendShow(c *adminClient) *cobra.Command {
	s := &show{client: c, where: make(map[string]*string)}
	cmd := &cobra.Command{
		Use: "show ORG", Short: "Show budgets, what is spent, and the resources that count", Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if s.watch < 0 {
				return fmt.Errorf("--watch %s: must not be negative", s.watch)
			}
			for _, label := range s.labels {
				if !strings.Contains(label, "=") {
					return fmt.Errorf("--label %s: expected name=value", label)
				}
			}
			return s.check()
		},
		RunE: action(func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args[0], cmd.OutOrStdout()) }),
	}
	s.flag(cmd)
	cmd.Flags().DurationVar(&s.watch, "watch", 0, "show it again and again, at this distance, e.g. 5s")
	for _, d := range dimensions {
		s.where[d.name] = cmd.Flags().String(d.name, "", "only this "+d.usage)
	}
	cmd.Flags().StringArrayVar(&s.labels, "label", nil, labelUsage)
	return cmd
}

func (s *show) run(ctx context.Context, org string, w io.Writer) error {
	for {
		l, err := ledgerOf(ctx, s.client, org)
		if err != nil {
			return err
		}
		s.keep(l)
		if err := s.tell(l, w); err != nil || s.watch == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.watch):
			_, _ = fmt.Fprintln(w)
		}
	}
}

// keep leaves out what is not asked for.
func (s *show) keep(l *admin.Ledger) {
	unlike := func(name, value string) bool { return *s.where[name] != "" && *s.where[name] != value }
	l.Resources = slices.DeleteFunc(l.Resources, func(r admin.Resource) bool {
		return unlike("team", r.Team) || unlike("key", r.Key) || unlike("kind", r.Kind) || unlike("resource", r.ID) || unlike("gpu", r.GPU) || unlike("dc", r.DataCenter) ||
			slices.ContainsFunc(s.labels, func(label string) bool { name, value, _ := strings.Cut(label, "="); return r.Labels[name] != value })
	})
	team, key := *s.where["team"], *s.where["key"]
	if team == "" && key == "" {
		return
	}
	l.Scopes = slices.DeleteFunc(l.Scopes, func(b admin.Balance) bool {
		return (team == "" || b.Scope != "team "+team) && (key == "" || b.Scope != "key "+key)
	})
	l.Holds = slices.DeleteFunc(l.Holds, func(h admin.Hold) bool { return unlike("team", h.Team) || unlike("key", h.Key) })
}

// labelText is labels as they are set.
func labelText(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for name, value := range labels {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ", ")
}

// lossText says what happened to a ledger, and when.
func lossText(l *admin.Loss) string {
	text := "The ledger was lost at " + l.At.Format(time.DateTime) + ": " + l.Reason + ". "
	if l.Rebuilt == nil {
		return text + "It is being rebuilt."
	}
	return text + fmt.Sprintf("It was rebuilt at %s: %d resources have their owner back, %d have none.", l.Rebuilt.Format(time.DateTime), l.Returned, l.Unowned)
}

func (s *show) tell(l *admin.Ledger, w io.Writer) error {
	if !l.Complete && s.output == "table" {
		_, _ = fmt.Fprintf(w, "The ledger is not complete: what raises cost is refused until it was compared with the platform.\n\n")
	}
	if l.Loss != nil && s.output == "table" {
		_, _ = fmt.Fprintln(w, lossText(l.Loss)+"\n")
	}
	for _, b := range l.Scopes {
		for _, budget := range b.Budgets {
			if budget.Over != "" && s.output == "table" {
				_, _ = fmt.Fprintf(w, "Runs under way may pass the budget %s %s by %s USD at most.\n\n", b.Scope, budget.Name, budget.Over)
			}
		}
	}
	scopes := sheet{{"scope", "usd/h", "reserved", "runs", "today", "month", "gpus", "pods", "workers", "gb", "budget"}}
	for _, b := range l.Scopes {
		a, r := b.Committed, b.Reserved
		scopes.add(b.Scope, a.PerHour, r.PerHour, r.Runs, b.Day, b.Month, a.GPUs+r.GPUs, a.Pods+r.Pods, a.Workers+r.Workers, a.VolumeGB+r.VolumeGB, budgetText(b.Limits))
	}
	budgets := budgetSheet()
	for _, b := range l.Scopes {
		budgets.addBudgets(b.Scope, b.Budgets)
	}
	sheets := []sheet{scopes}
	if len(budgets) > 1 {
		sheets = append(sheets, budgets)
	}
	if len(l.Resources) == 0 {
		return s.write(w, l, sheets...)
	}
	resources := sheet{{"resource", "kind", "name", "owner", "usd/h", "gpus", "since", "labels"}}
	for _, r := range l.Resources {
		resources.add(r.ID, r.Kind, r.Name, owner(r.Team, r.Key), r.Takes.PerHour, r.Takes.GPUs, r.Since.Format(time.DateTime), labelText(r.Labels))
	}
	return s.write(w, l, append(sheets, resources)...)
}

// budgetSheet has a row for each budget of each scope.
func budgetSheet() sheet {
	return sheet{{"scope", "budget", "limit", "used", "reserved", "left", "used up"}}
}

func (s *sheet) addBudgets(scope string, budgets []admin.Budget) {
	for _, b := range budgets {
		s.add(scope, b.Name, b.Limit, b.Used, b.Reserved, b.Left, b.UsedUp)
	}
}
