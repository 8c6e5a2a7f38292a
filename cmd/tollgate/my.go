package main

import (
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// mine is a command that shows callers their own records. It sends requests to the data listener with the caller's key.
type mine struct {
	use, short, example string
	path                string
	// like is the route of the operators' API that has the same parameters. It is "" for commands without such a route.
	like     string
	defaults map[string]string
	show     view
}

// ownRecords returns the subcommands of "my".
func ownRecords() []mine {
	return []mine{
		{
			use: "spend", short: "Show your costs, by time and group", path: "/tollgate/spend",
			example: "tollgate my spend --by key --from 2026-11-01",
			like:    "GET /admin/spend/history", defaults: map[string]string{"by": "gpu", "bucket": "day"}, show: of(costsPage),
		},
		{
			use: "resources", short: "Show your resources that cost money, and how much", path: "/tollgate/resources",
			example: "tollgate my resources --label project=llm", like: "GET /admin/spend",
			show: of(func(l *money.ResourceList, _ asked) page { return page{sheets: []sheet{resourceSheet(l.Resources)}} }),
		},
		{
			use: "decisions", short: "List decisions on your calls, with the reason for each refusal", path: "/tollgate/decisions",
			example: "tollgate my decisions --refused --since 24h", like: "GET /admin/decisions", show: of(decisionsPage),
		},
		{
			use: "approvals", short: "List your requests for approval", example: "tollgate my approvals",
			path: "/tollgate/approvals", show: of(approvalsPage),
		},
		{
			use: "keys", short: "List the keys of your team, as its lead", example: "tollgate my keys", path: "/tollgate/keys",
			show: of(func(l *struct{ Keys []callers.Key }, _ asked) page { return page{sheets: []sheet{keySheet(l.Keys)}} }),
		},
	}
}

func newMy() *cobra.Command {
	cmd := group("my", "Show your own costs, resources, decisions, approval requests and keys", "  tollgate my spend")
	cmd.Long = `Shows the records of a caller or, for a lead, of the whole team. The commands need the
address of the gateway and a key, but no access to the admin listener. "tollgate
whoami" shows the identity of a key, and its remaining limits and budgets.`
	for _, m := range ownRecords() {
		cmd.AddCommand(m.command())
	}
	return cmd
}

func (m *mine) command() *cobra.Command {
	c := new(callerClient)
	cmd := &cobra.Command{Use: m.use, Short: m.short, Example: indent(m.example), Args: named(nil)}
	out := outputFlag(cmd)
	flags := rowCommand{spec: adminapi.Command{Defaults: m.defaults}, given: url.Values{}}
	for _, p := range m.parameters() {
		flags.flag(cmd, &p)
	}
	c.flags(cmd)
	cmd.RunE = action(func(cmd *cobra.Command, _ []string) error {
		q, err := flags.query(nil)
		if err != nil {
			return err
		}
		target := m.path
		if len(q) > 0 {
			target += "?" + q.Encode()
		}
		text, err := c.read(cmd, target)
		if err != nil {
			return err
		}
		return asked{q, out}.write(cmd.OutOrStdout(), text, m.show)
	})
	return cmd
}

// parameters returns the parameters of the route in like, without org and team.
func (m *mine) parameters() []adminapi.Param {
	for _, r := range gateway.AdminRows() {
		if r.Pattern == m.like {
			return slices.DeleteFunc(slices.Clone(r.Parameters()), func(p adminapi.Param) bool { return p.Name == "org" || p.Name == "team" })
		}
	}
	return nil
}
