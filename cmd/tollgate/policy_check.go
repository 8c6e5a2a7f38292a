package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/authoring"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

func newPolicyCheck() *cobra.Command {
	var path string
	var fix bool
	cmd := &cobra.Command{
		Use:   "check DIR | -c tollgate.yaml",
		Short: "Check the syntax, types, functions and format of policies",
		Long: `Compiles policies like the gateway: in strict mode, type-checked against the schema
of the input, and without the built-in functions that are not available to policies.
Tests are compiled, too. Prints each fault with file, line and column, and exits with
1 if there is one.

With -c, checks all policies of a configuration; its secrets need not exist.`,
		Example: "  tollgate policy check policies/acme --fix",
		Args:    named(nil, "DIR"),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			switch {
			case (len(args) == 1) == (path != ""):
				return usagef("a directory or -c is required")
			case path != "":
				return checkConfig(cmd, path, fix)
			}
			return checkDirectory(cmd, args[0], fix)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", "", "configuration that contains the policies to check")
	cmd.Flags().BoolVar(&fix, "fix", false, "format the files first")
	return cmd
}

func checkDirectory(cmd *cobra.Command, dir string, fix bool) error {
	found, err := inspect(cmd, dir, fix)
	if err != nil {
		return faulty(cmd, dir, err)
	}
	var list []string
	for _, p := range found.Policies {
		list = append(list, fmt.Sprintf("%s (%s)", p.Name, strings.Join(p.Rules, ", ")))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: no faults; %s\n", dir, strings.Join(list, ", "))
	return err
}

// inspect checks one directory.
func inspect(cmd *cobra.Command, dir string, fix bool) (*authoring.Checked, error) {
	if fix {
		changed, err := authoring.Format(dir)
		if err != nil {
			return nil, err
		}
		for _, file := range changed {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s: formatted\n", file)
		}
	}
	if err := compiles(cmd.Context(), dir); err != nil {
		return nil, err
	}
	return authoring.Check(dir)
}

func checkConfig(cmd *cobra.Command, path string, fix bool) error {
	loaded, err := loadWithoutSecrets(path)
	if err != nil {
		return faulty(cmd, path, err)
	}
	var faults []*policyconfig.Error
	entries := 0
	for _, o := range loaded.Config.Orgs {
		entries += len(o.Policies.Policies)
		if b := o.Policies.Bundle; b != nil && !b.URL.IsZero() {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: org %s: bundle at %s not checked, because it is not fetched\n", o.ID, b.URL)
		}
		if dir := o.Policies.Directory; !dir.IsZero() {
			_, err := inspect(cmd, dir.String(), fix)
			for _, f := range authoring.Faults(err) {
				f.Org = o.ID
				faults = append(faults, f)
			}
		}
	}
	isolated, stop := isolation(cmd.Context())
	defer stop()
	_, err = policies.NewEngine(loaded.Config.Policies, orgsOf(loaded), policies.Deps{Isolate: isolated})
	if err := authoring.Join(append(faults, authoring.Faults(err)...)); err != nil {
		return faulty(cmd, path, placed(loaded, err))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: no faults; %s, %s enabled\n",
		path, counted(len(loaded.Config.Orgs), "organisation"), policyCount(entries))
	return err
}

func policyCount(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}
