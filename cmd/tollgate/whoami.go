package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

func newWhoami() *cobra.Command {
	c := new(callerClient)
	cmd := &cobra.Command{
		Use: "whoami", Short: "Show the identity of a key, and its remaining limits and budgets", Args: named(nil),
		Example: "  tollgate whoami\n  tollgate whoami --key-env ANN -o json",
		Long: `Shows a caller as the gateway sees it: its organisation, team and roles, its remaining
limits and budgets with their reset times, and its approval requests. ` + "`--key-env`" + `
names the environment variable with the caller's key.`,
	}
	out := outputFlag(cmd)
	c.flags(cmd)
	cmd.RunE = action(func(cmd *cobra.Command, _ []string) error {
		text, err := c.read(cmd, "/tollgate/me")
		if err != nil {
			return err
		}
		var me selfservice.Me
		if err := json.Unmarshal(text, &me); err != nil {
			return err
		}
		return out.write(cmd.OutOrStdout(), text, whoamiSheets(&me)...)
	})
	return cmd
}

// whoamiSheets returns a table with the caller's identity, and a table for each non-empty list.
func whoamiSheets(m *selfservice.Me) []sheet {
	who := sheet{{"org", "team", "key", "roles", "until"}}
	who.add(m.Org, m.Team, m.Key, strings.Join(m.Roles, ", "), m.Until)
	limits := sheet{{"limit", "window", "of", "left", "resets_in"}}
	for _, l := range m.Limits {
		var left any = ""
		if l.Remaining != nil {
			left = *l.Remaining
		}
		limits.add(l.Scope, l.Window, l.Limit, left, time.Duration(l.ResetSeconds)*time.Second)
	}
	budgets := sheet{{"budget", "name", "of", "used", "reserved", "left", "ends"}}
	for _, b := range m.Budgets {
		of := func(amount string) any { return budgetCell(b.Name, amount) }
		budgets.add(b.Scope, b.Name, of(b.Limit), of(b.Used), of(b.Reserved), of(b.Left), b.Ends)
	}
	approvals := sheet{{"approval", "state", "summary", "usd", "per", "until"}}
	for _, a := range m.Approvals {
		approvals.add(a.ID, a.State, a.Summary, usd(a.USD), a.Per, a.Until)
	}
	p := page{sheets: []sheet{who}}
	p.add(limits)
	p.add(budgets)
	p.add(approvals)
	return p.sheets
}
