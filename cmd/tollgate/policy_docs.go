package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies/authoring"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

func newPolicyDocs() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "docs [POLICY | DIR]",
		Short: "List built-in policies, or show and write their documentation",
		Long: `Without arguments, lists the built-in policies. With the name of a policy, shows its
page. With a directory (a path that contains a slash or is not the name of a policy),
shows the pages of an organisation's own policies, generated from their METADATA. With
--out, writes a Markdown page per policy and an index to files.`,
		Example: "  tollgate policy docs gpu_count",
		Args:    named(nil, "POLICY"),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return policyDocs(cmd, append(args, "")[0], out)
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "directory for the pages, created if necessary")
	cmd.ValidArgsFunction = policyNames
	return cmd
}

func policyDocs(cmd *cobra.Command, what, out string) error {
	pages := authoring.Library()
	if page, ok := pages[what+".md"]; ok {
		pages = map[string][]byte{what + ".md": page}
	} else if what != "" {
		if info, err := os.Stat(what); err != nil || !info.IsDir() {
			names, _ := policyNames(cmd, nil, "")
			return errors.New(adminapi.UnknownName("policy or directory", what, names))
		}
		own, err := compiler.ReadWorkspace(what)
		if err == nil {
			pages, err = authoring.OwnPolicies(own)
		}
		if err != nil {
			return faulty(cmd, what, authoring.Join(authoring.Faults(err)))
		}
	}
	switch {
	case out != "":
		if err := writePages(out, pages); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s in %s\n", counted(len(pages), "page"), out)
		return err
	case what != "":
		return printPages(cmd.OutOrStdout(), pages)
	default:
		return listLibrary(cmd.OutOrStdout())
	}
}

// listLibrary writes one line for each built-in policy.
func listLibrary(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range compiler.Library() {
		var params []string
		for _, param := range p.Params {
			params = append(params, param.Name)
		}
		slices.Sort(params)
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", p.Name, p.Title, strings.Join(params, ", "))
	}
	return t.Flush()
}

// printPages writes the index, followed by the pages in the order of their names.
func printPages(w io.Writer, pages map[string][]byte) error {
	for i, name := range slices.Sorted(maps.Keys(pages)) { // README.md comes first, because names of policies begin in lower case
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		if _, err := w.Write(pages[name]); err != nil {
			return err
		}
	}
	return nil
}

func writePages(dir string, pages map[string][]byte) error {
	for name, text := range pages {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // the documentation is readable by everyone
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}
