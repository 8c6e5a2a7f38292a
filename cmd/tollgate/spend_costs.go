package main

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// costs is what the commands about costs are asked.
type costs struct {
	output

	client           *adminClient
	from, to, bucket string
	by               []string
	where            map[string]*[]string
	labels           []string
	limit            int
}

// dimensions are what costs are grouped and filtered by, and what they are for people.
var dimensions = []struct{ name, usage string }{ //nolint:gochecknoglobals // read only
	{"team", "team"}, {"key", "key"}, {"kind", "kind of resource"}, {"resource", "resource"}, {"gpu", "type of GPU or CPU"}, {"dc", "data centre"},
}

func newCosts(c *adminClient) []*cobra.Command {
	history := &costs{client: c}
	top := &costs{client: c, bucket: "total"}
	export := &costs{client: c}
	commands := []*cobra.Command{
		history.command("history", "Show what resources have cost, by time and group", history.history),
		top.command("top", "Show what costs most", top.top),
		export.command("export", "Write what resources have cost as CSV with the columns of FOCUS 1.2", export.export),
		newForecast(c),
	}
	for i, f := range []*costs{history, export} {
		cmd := commands[2*i]
		cmd.Flags().StringVar(&f.bucket, "bucket", "day", "hour, day, month or total")
	}
	history.flag(commands[0])
	top.flag(commands[1])
	commands[0].Flags().StringSliceVar(&history.by, "by", []string{"team"}, "what to group by: "+dimensionNames())
	commands[1].Flags().StringSliceVar(&top.by, "by", []string{"resource", "team"}, "what to group by: "+dimensionNames())
	commands[1].Flags().IntVarP(&top.limit, "limit", "n", 10, "how many rows")
	return commands
}

func dimensionNames() string {
	names := make([]string, len(dimensions))
	for i, d := range dimensions {
		names[i] = d.name
	}
	return strings.Join(append(names, "label:NAME"), ", ")
}

// labelUsage is that of the filter by label.
const labelUsage = "only this label, name=value, or name= for what has none"

func (c *costs) command(use, short string, run func(ctx context.Context, org string, w io.Writer) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ORG", Short: short, Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			c.output = cmp.Or(c.output, "csv")
			return c.check()
		},
		RunE: action(func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0], cmd.OutOrStdout()) }),
	}
	f := cmd.Flags()
	f.StringVar(&c.from, "from", "", "first day or hour, e.g. 2026-11-01 or 2026-11-01T09:00:00Z (default 30 days ago)")
	f.StringVar(&c.to, "to", "", "day or hour after the last (default tomorrow)")
	c.where = make(map[string]*[]string)
	for _, d := range dimensions {
		c.where[d.name] = f.StringArray(d.name, nil, "only this "+d.usage+"; more than one can be given")
	}
	f.StringArrayVar(&c.labels, "label", nil, labelUsage+"; more than one can be given")
	return cmd
}

func (c *costs) query(org string) string {
	q := url.Values{"org": {org}, "by": c.by, "label": c.labels}
	for name, value := range map[string]string{"from": c.from, "to": c.to, "bucket": c.bucket} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, values := range c.where {
		if len(*values) > 0 {
			q[name] = *values
		}
	}
	return q.Encode()
}

func (c *costs) ask(ctx context.Context, org string) (*admin.Costs, error) {
	var out admin.Costs
	err := c.client.do(ctx, http.MethodGet, "/admin/spend/history?"+c.query(org), &out)
	return &out, err
}

func (c *costs) history(ctx context.Context, org string, w io.Writer) error {
	out, err := c.ask(ctx, org)
	if err != nil {
		return err
	}
	return c.write(w, out, c.sheet(out))
}

func (c *costs) top(ctx context.Context, org string, w io.Writer) error {
	out, err := c.ask(ctx, org)
	if err != nil {
		return err
	}
	out.Rows = out.Rows[:min(len(out.Rows), max(0, c.limit))]
	return c.write(w, out, c.sheet(out))
}

// sheet has a column for each group, and of resources their names, too.
func (c *costs) sheet(out *admin.Costs) sheet {
	timed := c.bucket != "total"
	var header []string
	if timed {
		header = append(header, "start")
	}
	for _, by := range c.by {
		header = append(header, by)
		if by == "resource" {
			header = append(header, "kind", "name", "gpu", "dc")
		}
	}
	s := sheet{append(header, "usd")}
	for _, r := range out.Rows {
		var row []string
		if timed {
			row = append(row, r.Start.Format(time.RFC3339))
		}
		for _, by := range c.by {
			label, isLabel := strings.CutPrefix(by, "label:")
			switch {
			case by == "resource":
				row = append(row, r.Resource, r.Kind, r.Name, r.GPU, r.DataCenter)
			case isLabel:
				row = append(row, r.Labels[label])
			default:
				row = append(row, map[string]string{"team": r.Team, "key": r.Key, "kind": r.Kind, "gpu": r.GPU, "dc": r.DataCenter}[by])
			}
		}
		s = append(s, append(row, r.USD))
	}
	if c.output == "table" {
		total := make([]string, len(s[0]))
		total[0], total[len(total)-1] = "total", out.Total
		s = append(s, total)
	}
	return s
}

// export copies what the gateway writes.
func (c *costs) export(ctx context.Context, org string, w io.Writer) error {
	return c.client.copy(ctx, "/admin/spend/export?"+c.query(org), w)
}

func newForecast(c *adminClient) *cobra.Command {
	var out output
	var teams, keys []string
	cmd := &cobra.Command{
		Use: "forecast ORG", Short: "Estimate what is spent by the end of the day and of the month", Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return out.check() },
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var f admin.Forecasts
			if err := c.do(cmd.Context(), http.MethodGet, "/admin/spend/forecast?"+url.Values{"org": {args[0]}, "team": teams, "key": keys}.Encode(), &f); err != nil {
				return err
			}
			s, budgets := sheet{{"scope", "usd/h", "today", "day", "day low", "day high", "this month", "month", "month low", "month high", "days"}}, budgetSheet()
			for _, r := range f.Scopes {
				budgets.addBudgets(r.Scope, r.Budgets)
				s.add(r.Scope, r.PerHour, r.Today, r.Day.Expected, r.Day.Low, r.Day.High, r.ThisMonth, r.Month.Expected, r.Month.Low, r.Month.High, r.Days)
			}
			if len(budgets) == 1 {
				return out.write(cmd.OutOrStdout(), f, s)
			}
			return out.write(cmd.OutOrStdout(), f, s, budgets)
		}),
	}
	out.flag(cmd)
	cmd.Flags().StringArrayVar(&teams, "team", nil, "only this team; more than one can be given")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "only this key; more than one can be given")
	return cmd
}
