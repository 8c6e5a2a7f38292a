package main

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// completionTime limits how long a shell waits for a gateway.
const completionTime = time.Second

// complete registers the completion of a flag.
func complete(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	must(cmd.RegisterFlagCompletionFunc(flag, with))
}

// completeParam registers the completion of a parameter's flag: configured names or enumerated values.
func completeParam(cmd *cobra.Command, flag string, p *adminapi.Param) {
	switch {
	case p.OneOf != nil:
		complete(cmd, flag, cobra.FixedCompletions(p.OneOf, cobra.ShellCompDirectiveNoFileComp))
	case p.Type == reflect.TypeFor[adminapi.Org]():
		complete(cmd, flag, orgNames)
	case p.Type == reflect.TypeFor[adminapi.Team](), p.Type == reflect.TypeFor[adminapi.PastTeam]():
		complete(cmd, flag, teamNames)
	case p.Name == "operation":
		complete(cmd, flag, operationNames)
	case namesOf(p.Name) != nil:
		complete(cmd, flag, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return namesOf(p.Name).ask(cmd, orgOf(cmd, args)), cobra.ShellCompDirectiveNoFileComp
		})
	default:
		complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// names describes where completion finds names: a path of the operators' API, the name of the list in the response, and the name of the
// list items' member with the name.
type names struct{ path, list, member string }

// namesOf returns where completion finds the values of a parameter, or of the argument ID of a command. It returns nil if the gateway
// cannot list these values.
func namesOf(what string) *names {
	return map[string]*names{
		"key":                          {"/admin/keys", "keys", "id"},
		"scope":                        {"/admin/limits", "windows", "scope"},
		"tollgate approvals grant":     {"/admin/approvals", "approvals", "id"},
		"tollgate approvals deny":      {"/admin/approvals", "approvals", "id"},
		"tollgate spend snooze":        {"/admin/spend/resources", "resources", "id"},
		"tollgate spend adopt":         {"/admin/spend/resources", "resources", "id"},
		"tollgate spend holds release": {"/admin/spend/holds", "holds", "id"},
	}[what]
}

// ask returns the names in an organisation, or nil if the gateway does not answer.
func (n *names) ask(cmd *cobra.Command, org string) (list []string) {
	if org == "" {
		return nil
	}
	var answer map[string][]map[string]any // members of other types are left out
	askBriefly(cmd, n.path+"?"+url.Values{"org": {org}}.Encode(), &answer)
	for _, item := range answer[n.list] {
		if name, _ := item[n.member].(string); name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// orgOf returns the ID of the organisation, from --org or the first argument.
func orgOf(cmd *cobra.Command, args []string) string {
	if f := cmd.Flag("org"); f != nil {
		return f.Value.String()
	}
	org, _, _ := strings.Cut(append(args, "")[0], "/")
	return org
}

// operationNames completes operations of the platform's API.
func operationNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	api, err := schema.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, op := range api.Operations() {
		ids = append(ids, op.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeArguments completes the arguments of a command: an organisation or one of its keys first, then an ID.
func completeArguments(cmd *cobra.Command, arguments []string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch arguments[len(args)] {
		case "ORG":
			return orgNames(cmd, args, begun)
		case "ORG/KEY":
			return keyNames(cmd, begun)
		case "ID":
			if n := namesOf(cmd.CommandPath()); n != nil {
				return n.ask(cmd, args[0]), cobra.ShellCompDirectiveNoFileComp
			}
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// keyNames completes organisations followed by a slash and, after the slash, their keys.
func keyNames(cmd *cobra.Command, begun string) ([]string, cobra.ShellCompDirective) {
	if org, _, hasOrg := strings.Cut(begun, "/"); hasOrg {
		list := namesOf("key").ask(cmd, org)
		for i := range list {
			list[i] = org + "/" + list[i]
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := orgNames(cmd, nil, begun)
	for i := range list {
		list[i] += "/"
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// askBriefly decodes the gateway's response into answer. It leaves answer unchanged if no response arrives.
func askBriefly(cmd *cobra.Command, target string, answer any) {
	base, err := cmd.Flags().GetString("admin")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	_ = (&adminClient{base}).do(ctx, http.MethodGet, target, nil, answer)
}

// configuredOrgs returns the organisations of the gateway, or nil if the gateway does not answer.
func configuredOrgs(cmd *cobra.Command) []adminapi.Tenant {
	var answer struct{ Orgs []adminapi.Tenant }
	askBriefly(cmd, "/admin/orgs", &answer)
	return answer.Orgs
}

func orgNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, o := range configuredOrgs(cmd) {
		names = append(names, o.ID)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// teamNames completes teams of the named organisation, or of all organisations.
func teamNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	org := orgOf(cmd, args)
	var names []string
	for _, o := range configuredOrgs(cmd) {
		if org == "" || o.ID == org {
			names = append(names, o.Teams...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// policyNames completes built-in policies and directories.
func policyNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list := compiler.Library()
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return names, cobra.ShellCompDirectiveFilterDirs | cobra.ShellCompDirectiveDefault
}
