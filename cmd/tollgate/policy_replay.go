package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/policies"
)

// replayFlags is what the command line of policy replay says.
type replayFlags struct {
	decisions, policies, config, org string
	asJSON, exitCode                 bool
}

func newPolicyReplay() *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay --decisions FILE --policies CONFIG_OR_DIR",
		Short: "Show what other policies would have decided on recorded traffic",
		Long: `Judges every call of a decision log again, by the policies of a configuration or
by the Rego of a directory, and lists what would newly be denied and newly be
allowed, by policy and caller. The log is what the gateway writes: a JSON object
per line, or an array, gzipped or not.

A directory takes the place of all policies, or with -c of that configuration's
directories only. What a policy needs and the log does not hold (masked values,
the price list) leaves its verdict open, and it is listed so.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return replay(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.decisions, "decisions", "", "decision log; - is standard input")
	flags.StringVar(&f.policies, "policies", "", "configuration, or directory of Rego")
	flags.StringVarP(&f.config, "config", "c", "", "configuration whose other policies go with a directory")
	flags.StringVar(&f.org, "org", "", "only calls of this organisation")
	flags.BoolVar(&f.asJSON, "json", false, "write JSON")
	flags.BoolVar(&f.exitCode, "exit-code", false, "exit with 1 when something would newly be denied or allowed")
	for _, name := range []string{"decisions", "policies"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// replayed is what a replay came to.
type replayed struct {
	Calls int `json:"calls"`
	// Same are calls with the verdict they had.
	Same         int          `json:"same"`
	NewlyDenied  []replayLine `json:"newlyDenied"`
	NewlyAllowed []replayLine `json:"newlyAllowed"`
	// Open are calls whose new verdict hangs on what the log does not hold.
	Open []replayLine `json:"open"`
	// Failed are calls that got no verdict from the new policies, and would have
	// been refused for it.
	Failed []replayLine `json:"failed"`
	// Unreadable are lines that hold no decision.
	Unreadable int `json:"unreadable"`
}

// replayLine is a group of calls that differ in the same way.
type replayLine struct {
	Policy    string `json:"policy"`
	Org       string `json:"org"`
	Team      string `json:"team,omitempty"`
	Key       string `json:"key,omitempty"`
	Operation string `json:"operation"`
	Calls     int    `json:"calls"`
	// Example is the decision id of the first of them, Message what is said of it.
	Example string `json:"example"`
	Message string `json:"message"`
}

// loggedDecision is a line of a decision log, as far as a replay needs it.
type loggedDecision struct {
	DecisionID string         `json:"decision_id"`
	Input      map[string]any `json:"input"`
	Erased     []string       `json:"erased"`
	Masked     []string       `json:"masked"`
	Error      any            `json:"error"`
	Result     struct {
		Deny []struct{ Policy, Message string } `json:"deny"`
	} `json:"result"`
}

func replay(ctx context.Context, f *replayFlags, stdin io.Reader, stdout io.Writer) error {
	text, err := readFile(f.decisions, stdin)
	if err != nil {
		return err
	}
	events, unreadable, err := readDecisions(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.decisions, err)
	}
	engine, err := replayEngine(f, events)
	if err != nil {
		return err
	}
	r := &replayed{Unreadable: unreadable}
	groups := newReplayGroups()
	for i := range events {
		e := &events[i]
		if org, _, _, _ := e.caller(); f.org == "" || org == f.org {
			groups.judge(ctx, engine, e, r)
		}
	}
	groups.into(r)
	if f.asJSON {
		err = writeJSON(stdout, r)
	} else {
		err = writeReplay(stdout, r)
	}
	if err == nil && f.exitCode && len(r.NewlyDenied)+len(r.NewlyAllowed)+len(r.Failed) > 0 {
		return errReported
	}
	return err
}

// readDecisions reads a log: lines of objects, or one array, gzipped or not.
func readDecisions(text []byte) (events []loggedDecision, unreadable int, err error) {
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, 0, err
		}
		const most = 1 << 30
		if text, err = io.ReadAll(io.LimitReader(z, most)); err != nil {
			return nil, 0, err
		}
	}
	text = bytes.TrimSpace(text)
	if bytes.HasPrefix(text, []byte("[")) {
		return events, 0, decodeNumbers(text, &events)
	}
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		var e loggedDecision
		if decodeNumbers(line, &e) != nil || e.Input == nil {
			unreadable++
			continue
		}
		events = append(events, e)
	}
	if len(events) == 0 && unreadable > 0 {
		return nil, unreadable, errors.New("no line holds a decision")
	}
	return events, unreadable, sc.Err()
}

// decodeNumbers keeps numbers as they are written.
func decodeNumbers(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

func (e *loggedDecision) caller() (org, team, key, operation string) {
	c, _ := e.Input["caller"].(map[string]any)
	r, _ := e.Input["request"].(map[string]any)
	org, _ = c["org"].(string)
	team, _ = c["team"].(string)
	key, _ = c["key"].(string)
	operation, _ = r["operation"].(string)
	return org, team, key, operation
}

// hidden lists what the log does not hold of the input.
func (e *loggedDecision) hidden() []string {
	var out []string
	for _, p := range slices.Concat(e.Masked, e.Erased) {
		if at, ok := strings.CutPrefix(p, "/input"); ok {
			out = append(out, at)
		}
	}
	return out
}

// loadWithoutSecrets reads a configuration whose secrets are not needed.
func loadWithoutSecrets(path string) (*config.Loaded, error) {
	return config.Load(path, config.Sources{
		Env:      func(string) (string, bool) { return "unused", true },
		ReadFile: func(string) ([]byte, error) { return []byte("unused"), nil },
		DemoKeys: true,
	})
}

// replayEngine compiles the new policies for every organisation of the log.
func replayEngine(f *replayFlags, events []loggedDecision) (*policies.Engine, error) {
	info, err := os.Stat(f.policies)
	if err != nil {
		return nil, err
	}
	orgs := make(map[string]policies.Config)
	path, dir := f.policies, ""
	if info.IsDir() {
		path, dir = f.config, f.policies
	}
	if path != "" {
		loaded, err := loadWithoutSecrets(path)
		if err != nil {
			return nil, err
		}
		for _, o := range loaded.Gateway.Orgs {
			orgs[o.ID] = o.Policies
		}
	} else {
		for i := range events {
			org, _, _, _ := events[i].caller()
			orgs[org] = policies.Config{}
		}
	}
	for org, cfg := range orgs {
		if dir != "" {
			cfg.Directory, cfg.Bundle = dir, nil
			orgs[org] = cfg
		}
	}
	limits := policies.DefaultLimits()
	limits.Deadline = 5 * time.Second // nobody waits for these
	return policies.NewEngine(limits, orgs, policies.Deps{})
}

// replayGroups counts calls that differ in the same way.
type replayGroups struct {
	denied, allowed, open, failed map[replayLine]*replayLine
}

func newReplayGroups() *replayGroups {
	return &replayGroups{
		denied: make(map[replayLine]*replayLine), allowed: make(map[replayLine]*replayLine),
		open: make(map[replayLine]*replayLine), failed: make(map[replayLine]*replayLine),
	}
}

// judge decides one call again.
func (g *replayGroups) judge(ctx context.Context, engine *policies.Engine, e *loggedDecision, r *replayed) {
	r.Calls++
	org, team, key, operation := e.caller()
	note := func(group map[replayLine]*replayLine, policy, message string) {
		id := replayLine{Policy: policy, Org: org, Team: team, Key: key, Operation: operation}
		line := group[id]
		if line == nil {
			line = &replayLine{Policy: policy, Org: org, Team: team, Key: key, Operation: operation, Example: e.DecisionID, Message: message}
			group[id] = line
		}
		line.Calls++
	}
	recorded, err := policies.ReadInput(e.Input, e.hidden())
	if err != nil {
		note(g.failed, "", err.Error())
		return
	}
	d, open, err := engine.DecideRecorded(ctx, org, recorded)
	if err != nil {
		note(g.failed, "", err.Error())
		return
	}
	before := len(e.Result.Deny) > 0 || e.Error != nil
	enforced := slices.DeleteFunc(slices.Clone(open), func(o policies.Open) bool { return o.Mode != "" && o.Mode != policies.ModeEnforce })
	switch {
	case len(d.Deny) > 0 && !before:
		for _, v := range d.Deny {
			note(g.denied, v.Policy, v.Message)
		}
	case len(d.Deny) > 0:
		r.Same++
	case len(enforced) > 0:
		for _, o := range enforced {
			note(g.open, o.Policy, "looks at "+strings.Join(o.Hidden, ", "))
		}
	case before && e.Error != nil:
		note(g.allowed, "", "no verdict before")
	case before:
		for _, v := range e.Result.Deny {
			note(g.allowed, v.Policy, v.Message)
		}
	default:
		r.Same++
	}
}

// into puts the groups into the result, most calls first.
func (g *replayGroups) into(r *replayed) {
	sorted := func(group map[replayLine]*replayLine) []replayLine {
		out := make([]replayLine, 0, len(group))
		for _, line := range group {
			out = append(out, *line)
		}
		slices.SortFunc(out, func(a, b replayLine) int {
			return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Org, b.Org),
				cmp.Compare(a.Team, b.Team), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operation, b.Operation))
		})
		return out
	}
	r.NewlyDenied, r.NewlyAllowed, r.Open, r.Failed = sorted(g.denied), sorted(g.allowed), sorted(g.open), sorted(g.failed)
}

func writeReplay(w io.Writer, r *replayed) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d with the verdict they had\n", counted(r.Calls, "call"), r.Same)
	parts := map[string][]replayLine{
		"newly denied": r.NewlyDenied, "newly allowed": r.NewlyAllowed, "open: the log does not hold what the policy looks at": r.Open,
		"no verdict, which refuses": r.Failed,
	}
	for _, title := range slices.Sorted(maps.Keys(parts)) {
		lines := parts[title]
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, l := range lines {
			who := strings.Trim(strings.Join([]string{l.Org, l.Team, l.Key}, "/"), "/")
			fmt.Fprintf(&b, "  %4d  %s  %s %s: %s (e.g. %s)\n", l.Calls, cmp.Or(l.Policy, "-"), who, l.Operation, l.Message, l.Example)
		}
	}
	if r.Unreadable > 0 {
		fmt.Fprintf(&b, "\n%s could not be read\n", counted(r.Unreadable, "line"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
