package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// policyAudit holds the flags of `policy audit`.
type policyAudit struct {
	client             *adminClient
	output             *output
	config             string
	exitCode, violated bool
}

func newPolicyAudit() *cobra.Command {
	p := &policyAudit{}
	cmd := &cobra.Command{
		Use:   "audit ORG",
		Short: "Evaluate all resources of an organisation against its policies",
		Long: `Lists every pod, cluster, endpoint, template and network volume of an organisation.
For each resource, the list contains the owner, the current cost, and the verdicts of
the policies. The policies evaluate an update that does not change the resource, as if
the owner had sent it with the role admin. Use the command before you enforce a policy.
The command makes no changes.

It uses the admin listener of the running gateway. With -c, it applies the policies
of that configuration, whose secrets are needed to read from the platform. Owners are
known only if the configuration names the store of the gateways.`,
		Example: `  tollgate policy audit acme --violations -o csv
  tollgate policy audit acme -c next.yaml --exit-code`,
		Args: named([]string{"ORG"}),
		RunE: action(func(cmd *cobra.Command, args []string) error { return p.do(cmd, args[0]) }),
	}
	p.client = newAdminClient(cmd)
	f := cmd.Flags()
	f.StringVarP(&p.config, "config", "c", "", "apply the policies of this configuration")
	p.output = outputFlag(cmd)
	completeArguments(cmd, []string{"ORG"})
	f.BoolVar(&p.violated, "violations", false, "only resources that a policy denies or cannot evaluate")
	f.BoolVar(&p.exitCode, "exit-code", false, "exit with 1 if a policy denies a resource or cannot evaluate it")
	return cmd
}

func (p *policyAudit) do(cmd *cobra.Command, org string) error {
	x, err := p.ask(cmd.Context(), org)
	if err != nil {
		return err
	}
	bad := false
	var kept []explain.AuditedResource
	for _, s := range x.Resources {
		bad = bad || s.Verdict != explain.Allowed
		if !p.violated || len(s.Policies) > 0 || s.Verdict != explain.Allowed {
			kept = append(kept, s)
		}
	}
	x.Resources = kept
	if err := p.output.write(cmd.OutOrStdout(), x, p.sheet(x)); err != nil {
		return err
	}
	if x.Ownerless != "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "warning: owners unknown: %s\n", x.Ownerless)
	}
	if p.exitCode && bad {
		return errReported
	}
	return nil
}

func (p *policyAudit) ask(ctx context.Context, org string) (*explain.Audit, error) {
	if p.config == "" {
		x := new(explain.Audit)
		return x, p.client.get(ctx, "/admin/audit", url.Values{"org": {org}}, x)
	}
	loaded, err := config.Load(p.config, config.Sources{DemoKeys: true}, operator.Validator{})
	if err != nil {
		return nil, err
	}
	isolated, stop := isolation(ctx)
	defer stop()
	g, closeStore, err := build(ctx, loaded, isolated)
	defer closeStore()
	if err != nil {
		return nil, err
	}
	defer g.Close()
	x, err := g.Questions().Audit(ctx, org)
	if err == nil && x.Ownerless != "" && loaded.Config.Redis.Embedded && callers.HasLedger(g.Questions().Org(org)) {
		x.Ownerless = "only the gateway itself can read its embedded store"
	}
	return x, err
}

// resultLines returns one line for each policy result about a resource.
func resultLines(s *explain.AuditedResource) []string {
	var lines []string
	for _, p := range s.Policies {
		lines = append(lines, p.Policy+" "+p.Verdict+": "+p.Message)
	}
	if s.Reason != "" {
		lines = append(lines, "not evaluated: "+s.Reason)
	}
	return lines
}

// sheet returns a table with a row for each resource. If a resource has several policy results, people see one row per result, and programs
// get all results in one cell.
func (p *policyAudit) sheet(x *explain.Audit) sheet {
	if !p.output.people() {
		t := sheet{{"team", "key", "kind", "id", "name", "usd_per_hour", "usd_per_month", "verdict", "policies"}}
		for _, s := range x.Resources {
			t.add(s.Team, s.Key, s.Kind, s.ID, s.Name, usd(s.USDPerHour), usd(s.USDPerMonth), s.Verdict, strings.Join(resultLines(&s), "; "))
		}
		return t
	}
	t := sheet{{"owner", "kind", "id", "name", "usd/h", "usd/month", "verdict", "policies"}}
	for _, s := range x.Resources {
		lines := resultLines(&s)
		t.add(owner(s.Team, s.Key), s.Kind, s.ID, s.Name, usd(s.USDPerHour), usd(s.USDPerMonth), s.Verdict, append(lines, "")[0])
		for _, line := range lines[min(1, len(lines)):] {
			t.add("", "", "", "", "", "", "", line)
		}
	}
	return t
}
