package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

// policyReplay holds the flags of `policy replay`.
type policyReplay struct {
	adminClient
	decisions, policies string
	config, org, since  string
	out                 *output
	examples            int
	fail                bool
}

func newPolicyReplay() *cobra.Command {
	var p policyReplay
	cmd := &cobra.Command{
		Use:   "replay (--decisions FILE | --org ORG) --policies (tollgate.yaml | DIR)",
		Short: "Evaluate recorded calls with changed policies, and show the differences",
		Long: `Evaluates recorded calls again with other policies, and prints the differences: newly
denied calls, newly allowed calls, and calls refused for other reasons, by policy and
caller, with examples. The calls come from a decision log (one event per line, or a
batch as an array; gzip is accepted; - is standard input), or from a running gateway
(--org and, for example, --since 7d).

The policies come from a configuration, in which each call is evaluated by its
organisation's policies, or from a directory of Rego, either alone or, with -c, in
place of the directories and bundles of that configuration. Data missing from the log
is never guessed: a call whose verdict may depend on a masked value or on the price
list is not evaluated, and the output says why. The body is evaluated as recorded,
after the changes that policies made at that time.

Exits with 0 even if there are differences. With --fail-on-change, exits with 1 if a
verdict or its reasons would change.`,
		Example: `  tollgate policy replay --decisions decisions.log --policies next.yaml
  tollgate policy replay --org acme --since 7d --policies next.yaml -o markdown`,
		Args: named(nil),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			if err := p.validate(); err != nil {
				return usageError{err}
			}
			return p.do(cmd)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&p.decisions, "decisions", "", "decision log to read; - means standard input")
	f.StringVar(&p.policies, "policies", "", "configuration, or directory with Rego policies, that evaluates the calls")
	f.StringVarP(&p.config, "config", "c", "", "configuration that supplies the policies other than those in the directory")
	f.StringVar(&p.org, "org", "", "only calls of this organisation")
	f.IntVar(&p.examples, "examples", 3, "number of calls of each kind to show in full")
	adminFlag(cmd, &p.base)
	f.StringVar(&p.since, "since", "", "maximum age of the decisions, such as 7d or 12h")
	p.out = outputFlag(cmd, "table", "json", "yaml", "markdown")
	complete(cmd, "org", orgNames)
	f.BoolVar(&p.fail, "fail-on-change", false, "exit with 1 if a verdict or its reasons would change")
	must(cmd.MarkFlagRequired("policies"))
	return cmd
}

// validate returns an error if flags are missing, invalid or exclude each other.
func (p *policyReplay) validate() error {
	_, err := p.span()
	switch {
	case p.examples < 0:
		return errors.New("--examples must not be negative")
	case p.decisions == "" && p.org == "":
		return errors.New("pass a decision log with --decisions, or an organisation of a running gateway with --org")
	case p.decisions != "" && p.since != "":
		return errors.New("--since cannot be combined with --decisions, because it applies only to a running gateway")
	}
	return err
}

// span returns the value of --since, or 0 if the flag is not set.
func (p *policyReplay) span() (time.Duration, error) {
	if p.since == "" {
		return 0, nil
	}
	d, err := adminapi.ParseDuration(p.since)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--since %s: must be a duration such as 7d or 12h", p.since)
	}
	return d, nil
}

// asDirectory is the name under which the engine evaluates the policies of a directory. It contains a space, so that it cannot be the ID of
// an organisation.
const asDirectory = "the directory"

// replayDeadline is the time limit of one decision. It is long enough for slow machines, because a replay does not measure evaluation
// times.
const replayDeadline = 5 * time.Second

func (p *policyReplay) do(cmd *cobra.Command) error {
	opts := replay.Options{Org: p.org, Examples: p.examples}
	if p.examples == 0 {
		opts.Examples = -1
	}
	info, err := os.Stat(p.policies)
	if err != nil {
		return err
	}
	if info.IsDir() && p.config == "" {
		opts.As = asDirectory
	}
	isolated, stop := isolation(cmd.Context())
	defer stop()
	engine, err := p.engine(info.IsDir(), isolated)
	if err != nil {
		return faulty(cmd, p.policies, err)
	}
	r, err := p.run(cmd.Context(), cmd.InOrStdin(), engine, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", p.source(), err)
	}
	switch p.out.format {
	case "table":
		err = printReplay(cmd.OutOrStdout(), r)
	case "markdown":
		err = writeMarkdown(cmd.OutOrStdout(), r)
	default:
		err = p.out.write(cmd.OutOrStdout(), r)
	}
	switch {
	case err != nil:
		return err
	case r.Read > 0 && r.Other+r.Unreadable == r.Read:
		return fmt.Errorf("%s: contains no decisions", p.source())
	case p.fail && r.Changed():
		return errReported
	}
	return nil
}

// engine compiles the policies for the replay: from a configuration, from a directory, or from a configuration in which a directory
// replaces some policies.
func (p *policyReplay) engine(isDir bool, isolated *policies.Isolator) (*policies.Engine, error) {
	unhurried := func(l *policies.Limits) { l.Deadline, l.Remember = max(l.Deadline, replayDeadline), 0 }
	if isDir && p.config == "" {
		limits := policyconfig.DefaultLimits()
		unhurried(&limits)
		return policies.NewEngine(limits, map[string]policies.Config{asDirectory: {Directory: files.UnrestrictedPath(p.policies)}},
			policies.Deps{Isolate: isolated})
	}
	path := p.policies
	if isDir {
		path = p.config
	}
	loaded, err := loadWithoutSecrets(path)
	if err != nil {
		return nil, err
	}
	limits, orgs := loaded.Config.Policies, orgsOf(loaded)
	unhurried(&limits)
	for org, cfg := range orgs {
		if isDir {
			cfg.Directory, cfg.Bundle = files.UnrestrictedPath(p.policies), nil
			orgs[org] = cfg
		}
	}
	e, err := policies.NewEngine(limits, orgs, policies.Deps{Isolate: isolated})
	if err != nil {
		return nil, placed(loaded, err)
	}
	return e, nil
}

func (p *policyReplay) run(ctx context.Context, stdin io.Reader, engine *policies.Engine, opts replay.Options) (*replay.Report, error) {
	switch p.decisions {
	case "":
		return p.ask(ctx, engine, opts)
	case "-":
		return replay.Run(ctx, stdin, engine, opts)
	}
	f, err := os.Open(p.decisions)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return replay.Run(ctx, f, engine, opts)
}

// source returns the source of the decisions.
func (p *policyReplay) source() string { return cmp.Or(p.decisions, p.base) }

// ask replays decisions recorded by a gateway.
func (p *policyReplay) ask(ctx context.Context, engine *policies.Engine, opts replay.Options) (*replay.Report, error) {
	query := url.Values{"org": {p.org}}
	if span, err := p.span(); err == nil && span > 0 {
		query.Set("since", time.Now().Add(-span).UTC().Format(time.RFC3339))
	}
	res, err := p.open(ctx, http.MethodGet, "/admin/decisions/log?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return replay.Run(ctx, res.Body, engine, opts)
}

func printReplay(w io.Writer, r *replay.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s read", counted(r.Read, "event"))
	for _, n := range []struct {
		count int
		what  string
	}{{r.Skipped, "of other organisations"}, {r.Other, "not decisions of a gateway"}, {r.Unreadable, "damaged"}} {
		if n.count > 0 {
			fmt.Fprintf(&b, ", %d %s", n.count, n.what)
		}
	}
	b.WriteByte('\n')
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	for _, org := range slices.Sorted(maps.Keys(r.Revisions)) {
		fmt.Fprintf(&b, "evaluated with revision %s of %s\n", r.Revisions[org], org)
	}
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "%7d  %s\n", g.Calls, strings.ReplaceAll(string(g.Kind), "_", " "))
	}
	for _, g := range r.Groups {
		if g.Calls > 0 && g.Kind != replay.Same {
			printGroup(&b, g)
		}
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// printable removes control characters from s, which a caller may have written.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func printGroup(b *strings.Builder, g *replay.Group) {
	fmt.Fprintf(b, "\n%s\n", strings.ToUpper(strings.ReplaceAll(string(g.Kind), "_", " ")))
	for _, name := range byCount(g.Policies) {
		fmt.Fprintf(b, "%7d  policy %s\n", g.Policies[name], name)
	}
	for _, what := range byCount(g.Missing) {
		fmt.Fprintf(b, "%7d  not in the log: %s\n", g.Missing[what], what)
	}
	for _, c := range g.Callers {
		fmt.Fprintf(b, "%7d  caller %s\n", c.Calls, callerName(c.Org, c.Team, c.Key))
	}
	for _, x := range g.Examples {
		fmt.Fprintf(b, "  e.g. %s  %s  %s  %s\n", x.DecisionID, x.Time, x.Operation, callerName(x.Org, x.Team, x.Key))
		printReasons(b, "was", x.Was)
		printReasons(b, "now", x.Now)
		for _, m := range x.Missing {
			fmt.Fprintf(b, "       not in the log: %s\n", m)
		}
	}
}

func printReasons(b *strings.Builder, when string, reasons []replay.Reason) {
	for _, r := range reasons {
		fmt.Fprintf(b, "       %s: ", when)
		if r.Policy != "" {
			b.WriteString(r.Policy + ": ")
		}
		b.WriteString(indented(r.Message))
		if r.Pointer != "" {
			fmt.Fprintf(b, " (%s)", r.Pointer)
		}
		b.WriteByte('\n')
	}
}

// callerName joins the non-empty parts of org/team/key.
func callerName(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

// byCount returns the names sorted by count, highest first.
func byCount(counts map[string]int) []string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	return names
}
