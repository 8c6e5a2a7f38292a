package main

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// completionTime bounds how long a shell waits for a gateway.
const completionTime = time.Second

type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete registers the completion of a flag.
func complete(cmd *cobra.Command, flag string, with completion) {
	must(cmd.RegisterFlagCompletionFunc(flag, with))
}

// completeParam completes the flag of a parameter: configured names, and enumerations.
func completeParam(cmd *cobra.Command, flag string, p *row.Param) {
	switch {
	case p.OneOf != nil:
		complete(cmd, flag, cobra.FixedCompletions(p.OneOf, cobra.ShellCompDirectiveNoFileComp))
	case p.Type == reflect.TypeFor[row.Org]():
		complete(cmd, flag, orgNames)
	case p.Type == reflect.TypeFor[row.Team](), p.Type == reflect.TypeFor[row.PastTeam]():
		complete(cmd, flag, teamNames)
	default:
		complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// completeArguments completes an organisation where a command begins with one.
func completeArguments(cmd *cobra.Command, arguments []string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || len(arguments) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch arguments[0] {
		case "ORG":
			return orgNames(cmd, args, begun)
		case "ORG/KEY":
			names, _ := orgNames(cmd, args, begun)
			for i := range names {
				names[i] += "/"
			}
			return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// configuredOrgs asks the gateway for its organisations; none where it does not answer.
func configuredOrgs(cmd *cobra.Command) []row.Tenant {
	base, err := cmd.Flags().GetString("admin")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var answer struct{ Orgs []row.Tenant }
	_ = (&adminClient{base}).do(ctx, http.MethodGet, "/admin/orgs", &answer)
	return answer.Orgs
}

func orgNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, o := range configuredOrgs(cmd) {
		names = append(names, o.ID)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// teamNames are the teams of the organisation that is named, or of all.
func teamNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	org := ""
	if f := cmd.Flag("org"); f != nil {
		org = f.Value.String()
	} else if len(args) > 0 {
		org = args[0]
	}
	var names []string
	for _, o := range configuredOrgs(cmd) {
		if org == "" || o.ID == org {
			names = append(names, o.Teams...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// policyNames are the policies of the library; a directory is named as well.
func policyNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, err := load.Library()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return names, cobra.ShellCompDirectiveFilterDirs | cobra.ShellCompDirectiveDefault
}
