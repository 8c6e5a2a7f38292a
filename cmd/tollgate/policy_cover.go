package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/policies/authoring"
)

// policyTest holds the flags of `policy test`.
type policyTest struct {
	threshold float64
	held      bool // a threshold was requested
	run       string
	out       *output
	verbose   bool
	timeout   time.Duration
}

func newPolicyTest() *cobra.Command {
	var t policyTest
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run the tests of an organisation's own policies, with coverage",
		Long: `Runs the rules named test_... in the files named *_test.rego below DIR, with the
library loaded and data.tollgate.testing for inputs. Prints each failure with the
expression that failed, and the test coverage of each policy.

Exits with 1 if a test fails, if there are no tests, or if the coverage is below the
threshold. With --run, the threshold applies only if it is set explicitly.`,
		Example: "  tollgate policy test policies/acme --threshold 90",
		Args:    named([]string{"DIR"}),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			filter, err := regexp.Compile(t.run)
			if err != nil {
				return usagef("--run: %w", err)
			}
			if t.threshold < 0 || t.threshold > 100 {
				return usagef("--threshold must be between 0 and 100, got %v", t.threshold)
			}
			t.held = t.run == "" || cmd.Flags().Changed("threshold")
			return t.do(cmd, args[0], filter)
		}),
	}
	cmd.Flags().Float64Var(&t.threshold, "threshold", 80, "minimum test coverage, in percent of the lines of the policies")
	cmd.Flags().StringVar(&t.run, "run", "", "run only tests whose name (data.PACKAGE.RULE) matches this regular expression")
	t.out = outputFlag(cmd, "table", "json", "yaml")
	cmd.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "also list the tests that pass")
	cmd.Flags().DurationVar(&t.timeout, "timeout", 5*time.Second, "time limit of one test")
	return cmd
}

func (t *policyTest) do(cmd *cobra.Command, dir string, filter *regexp.Regexp) error {
	opts := authoring.Options{Timeout: t.timeout}
	if t.run != "" {
		opts.Run = filter
	}
	if err := compiles(cmd.Context(), dir); err != nil {
		return faulty(cmd, dir, err)
	}
	r, err := authoring.Run(cmd.Context(), dir, opts)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return faulty(cmd, dir, authoring.Join(authoring.Faults(err)))
	}
	if t.out.people() {
		err = t.print(cmd.OutOrStdout(), r)
	} else {
		err = t.printValue(cmd.OutOrStdout(), r)
	}
	if err != nil {
		return err
	}
	switch {
	case len(r.Results) == 0:
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: no test ran\n", dir)
	case !r.Passed():
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s failed\n", dir, counted(r.Count(authoring.Fail)+r.Count(authoring.Error), "test"))
	case t.held && r.Coverage() < t.threshold:
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: coverage is %.1f %%, must be at least %g %%\n", dir, r.Coverage(), t.threshold)
	default:
		return nil
	}
	return errReported
}

func (t *policyTest) printValue(w io.Writer, r *authoring.Report) error {
	return t.out.write(w, struct {
		*authoring.Report
		Coverage  float64 `json:"coverage"`
		Threshold float64 `json:"threshold"`
		Passed    bool    `json:"passed"`
	}{r, r.Coverage(), t.threshold, r.Passed() && (!t.held || r.Coverage() >= t.threshold)})
}

func (t *policyTest) print(w io.Writer, r *authoring.Report) error {
	var b strings.Builder
	for _, res := range r.Results {
		if res.Outcome == authoring.Pass && !t.verbose {
			continue
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", res.Place, strings.ToUpper(string(res.Outcome)), res.Name)
		if res.FailedAt != nil {
			fmt.Fprintf(&b, "  %s: expression failed with these values:\n    %s\n",
				res.FailedAt.Place, indented(cmp.Or(res.FailedAt.Values, res.FailedAt.Text)))
		}
		for _, c := range res.Cases {
			fmt.Fprintf(&b, "  case %s\n", c)
		}
		if res.Message != "" {
			fmt.Fprintf(&b, "  %s\n", indented(res.Message))
		}
		if out := strings.TrimSpace(res.Output); out != "" {
			fmt.Fprintf(&b, "  printed: %s\n", indented(out))
		}
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%6.1f %%  %s", f.Percent(), f.Name)
		before := "  not covered: "
		for _, l := range f.NotCovered {
			b.WriteString(before + l.String())
			before = ", "
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%6.1f %%  of all policies; %d passed, %d failed, %d skipped\n", r.Coverage(),
		r.Count(authoring.Pass), r.Count(authoring.Fail)+r.Count(authoring.Error), r.Count(authoring.Skip))
	_, err := io.WriteString(w, b.String())
	return err
}

// indented indents all lines of a text except the first.
func indented(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") }
