package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policycheck"
	"github.com/tollgate-dev/tollgate/policies/policytest"
)

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Test, check, measure, read about and replay policies",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyTest(), newPolicyCheck(), newPolicyDocs(), newPolicyBench(), newPolicyReplay())
	return cmd
}

// testFlags is what the command line of policy test says.
type testFlags struct {
	threshold       float64
	run             string
	timeout         time.Duration
	verbose, asJSON bool
}

func newPolicyTest() *cobra.Command {
	f := &testFlags{}
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run the tests of an organisation's own Rego, with their coverage",
		Long: `Runs the rules named test_... of the files *_test.rego below DIR, compiled as the
gateway compiles policies, with the library loaded. Exits with 1 when a test
fails, when there is none, or when less is covered than --threshold.`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return testPolicies(cmd.Context(), args[0], f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.threshold, "threshold", 0, "least coverage in percent")
	flags.StringVar(&f.run, "run", "", "only tests whose package and name match this pattern")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "bound of each test")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "list every test and every line not covered")
	flags.BoolVar(&f.asJSON, "json", false, "write JSON")
	return cmd
}

func testPolicies(ctx context.Context, dir string, f *testFlags, stdout, stderr io.Writer) error {
	opts := policytest.Options{Timeout: f.timeout}
	if f.run != "" {
		pattern, err := regexp.Compile(f.run)
		if err != nil {
			return fmt.Errorf("--run: %w", err)
		}
		opts.Run = pattern
	}
	r, err := policytest.Run(ctx, dir, opts)
	if err != nil {
		return faults(stderr, dir, err)
	}
	if f.asJSON {
		err = writeJSON(stdout, r)
	} else {
		err = writeTests(stdout, r, f.verbose)
	}
	if err != nil {
		return err
	}
	covered := r.Coverage()
	switch {
	case len(r.Results) == 0:
		_, _ = fmt.Fprintf(stderr, "%s: no tests\n", dir)
	case covered < f.threshold:
		_, _ = fmt.Fprintf(stderr, "%s: %.1f %% covered, less than %.1f %%\n", dir, covered, f.threshold)
	case r.Passed():
		return nil
	}
	return errReported
}

func writeTests(w io.Writer, r *policytest.Report, verbose bool) error {
	for _, t := range r.Results {
		if t.Outcome == policytest.Pass && !verbose {
			continue
		}
		_, _ = fmt.Fprintf(w, "%-5s %s (%s) %v\n", t.Outcome, t.Name, t.Place, t.Took.Round(10*time.Microsecond))
		if t.FailedAt != nil {
			_, _ = fmt.Fprintf(w, "      %s: %s does not hold\n", t.FailedAt.Place, t.FailedAt.Text)
		}
		for _, line := range []string{strings.Join(t.Cases, ", "), t.Message, strings.TrimSpace(t.Output)} {
			if line != "" {
				_, _ = fmt.Fprintf(w, "      %s\n", strings.ReplaceAll(line, "\n", "\n      "))
			}
		}
	}
	for _, file := range r.Files {
		if !verbose || file.Missed == 0 {
			continue
		}
		var lines []string
		for _, l := range file.NotCovered {
			lines = append(lines, l.String())
		}
		_, _ = fmt.Fprintf(w, "%s: %.1f %% covered, not: %s\n", file.Name, file.Percent(), strings.Join(lines, " "))
	}
	_, err := fmt.Fprintf(w, "%s, %d passed, %d failed, %d in error, %d skipped; %.1f %% covered\n",
		counted(len(r.Results), "test"), r.Count(policytest.Pass), r.Count(policytest.Fail), r.Count(policytest.Error),
		r.Count(policytest.Skip), r.Coverage())
	return err
}

// faults writes the faults of a directory, one a line.
func faults(stderr io.Writer, dir string, err error) error {
	list := policycheck.Faults(err)
	for _, f := range list {
		_, _ = fmt.Fprintln(stderr, f)
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", dir, counted(len(list), "fault"))
	return errReported
}

func newPolicyCheck() *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Find what is wrong with an organisation's own Rego",
		Long: `Parses and compiles the Rego below DIR as the gateway does: strictly, without the
built-in functions policies may not use, with types checked against the input's
schema. Looks at the formatting too; --fix mends that.`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return checkPolicies(args[0], fix, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "format the files first")
	return cmd
}

func checkPolicies(dir string, fix bool, stdout, stderr io.Writer) error {
	if fix {
		changed, err := policycheck.Format(dir)
		if err != nil {
			return faults(stderr, dir, err)
		}
		for _, name := range changed {
			_, _ = fmt.Fprintf(stdout, "formatted %s\n", name)
		}
	}
	r, err := policycheck.Directory(dir)
	if err != nil {
		return faults(stderr, dir, err)
	}
	for i := range r.Notes {
		_, _ = fmt.Fprintf(stdout, "note: %v\n", &r.Notes[i])
	}
	names := make([]string, len(r.Policies))
	for i, p := range r.Policies {
		names[i] = p.Name
	}
	_, err = fmt.Fprintf(stdout, "%s: no faults; policies: %s\n", dir, strings.Join(names, ", "))
	return err
}

func newPolicyDocs() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "docs [POLICY]",
		Short: "List the built-in policies, show the page of one, or write them all",
		Args:  cobra.MaximumNArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return policyDocs(args, out, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "directory to write a Markdown page per policy into")
	return cmd
}

func policyDocs(args []string, out string, stdout io.Writer) error {
	pages, err := policies.Docs()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		page, ok := pages[args[0]+".md"]
		if !ok {
			return fmt.Errorf("there is no built-in policy %q", args[0])
		}
		_, err := stdout.Write(page)
		return err
	}
	if out != "" {
		if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // documentation is for everybody
			return err
		}
		for name, page := range pages {
			if err := os.WriteFile(filepath.Join(out, name), page, 0o644); err != nil { //nolint:gosec // as above
				return err
			}
		}
		_, err := fmt.Fprintf(stdout, "%s in %s\n", counted(len(pages), "page"), out)
		return err
	}
	list, err := policies.Library()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, p := range list {
		var params []string
		for _, param := range p.Params {
			params = append(params, param.Name)
		}
		slices.Sort(params)
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", p.Name, p.Title, strings.Join(params, ", "))
	}
	return t.Flush()
}
