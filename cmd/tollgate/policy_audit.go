package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// policyAudit is the command line of `policy audit`.
type policyAudit struct {
	client             *adminClient
	config, output     string
	exitCode, violated bool
}

func newPolicyAudit() *cobra.Command {
	p := &policyAudit{}
	cmd := &cobra.Command{
		Use:   "audit ORG",
		Short: "Hold everything an organisation has against its policies",
		Long: `Lists every pod, cluster, endpoint, template and network volume of an
organisation with its owner, what it costs as it is, and what each policy would
say to an update that changes nothing, made by its owner as an administrator: so
that one knows before one enforces. Only reads are made.

The running gateway is asked through its admin listener. With -c, the policies are
those of that configuration, whose secrets are needed to read from the platform;
whose the resources are is then known if it names the store of the gateways.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, *explain.Audit) error{
				"table": auditTable, "csv": auditCSV, "json": func(w io.Writer, x *explain.Audit) error { return writeJSON(w, x) },
			}[p.output]
			if !ok {
				return fmt.Errorf("--output %q: want table, csv or json", p.output)
			}
			return action(func(cmd *cobra.Command, _ []string) error { return p.do(cmd, args[0], write) })(cmd, args)
		},
	}
	p.client = newAdminClient(cmd)
	f := cmd.Flags()
	f.StringVarP(&p.config, "config", "c", "", "hold it against the policies of this configuration")
	f.StringVarP(&p.output, "output", "o", "table", "table, csv or json")
	f.BoolVar(&p.violated, "violations", false, "only what policies have something to say about, or could not judge")
	f.BoolVar(&p.exitCode, "exit-code", false, "exit with 1 if a policy denies anything there is, or could not judge it")
	return cmd
}

func (p *policyAudit) do(cmd *cobra.Command, org string, write func(io.Writer, *explain.Audit) error) error {
	x, err := p.ask(cmd.Context(), org)
	if err != nil {
		return err
	}
	bad := false
	var kept []explain.Standing
	for _, s := range x.Resources {
		bad = bad || s.Verdict != explain.Allowed
		if !p.violated || len(s.Policies) > 0 || s.Verdict != explain.Allowed {
			kept = append(kept, s)
		}
	}
	x.Resources = kept
	if err := write(cmd.OutOrStdout(), x); err != nil {
		return err
	}
	if x.Ownerless != "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "warning: owners are not known: %s\n", x.Ownerless)
	}
	if p.exitCode && bad {
		return errReported
	}
	return nil
}

func (p *policyAudit) ask(ctx context.Context, org string) (*explain.Audit, error) {
	if p.config == "" {
		x := new(explain.Audit)
		return x, p.client.do(ctx, http.MethodGet, "/admin/audit?"+url.Values{"org": {org}}.Encode(), x)
	}
	loaded, err := config.Load(p.config, config.Sources{DemoKeys: true})
	if err != nil {
		return nil, err
	}
	g, closeStore, err := build(ctx, loaded)
	defer closeStore()
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Audit(ctx, org)
}

// said is what policies say of a resource, a line for each.
func said(s *explain.Standing) []string {
	var lines []string
	for _, p := range s.Policies {
		lines = append(lines, printable(p.Policy+" "+p.Verdict+": "+p.Message))
	}
	if s.Reason != "" {
		lines = append(lines, "not judged: "+printable(s.Reason))
	}
	return lines
}

func auditTable(w io.Writer, x *explain.Audit) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "OWNER\tKIND\tID\tNAME\tUSD/H\tUSD/MONTH\tVERDICT\tPOLICIES")
	for _, s := range x.Resources {
		lines := append(said(&s), "")
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", owner(s.Team, s.Key), s.Kind, s.ID, printable(s.Name), s.USDPerHour, s.USDPerMonth, s.Verdict, lines[0])
		for _, line := range lines[1:] {
			if line != "" {
				_, _ = fmt.Fprintf(t, "\t\t\t\t\t\t\t%s\n", line)
			}
		}
	}
	return t.Flush()
}

func auditCSV(w io.Writer, x *explain.Audit) error {
	rows := [][]string{{"team", "key", "kind", "id", "name", "usd_per_hour", "usd_per_month", "verdict", "policies"}}
	for _, s := range x.Resources {
		rows = append(rows, []string{s.Team, s.Key, s.Kind, s.ID, printable(s.Name), s.USDPerHour, s.USDPerMonth, string(s.Verdict), strings.Join(said(&s), "; ")})
	}
	return admin.WriteCSV(w, rows)
}
