package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/effective"
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/policies/record"
)

// benchFlags is what the command line of policy bench says.
type benchFlags struct {
	config, org, input string
	length             time.Duration
	count              int
	json               bool
}

func newPolicyBench() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what decisions cost",
		Long: `Measures how long one decision takes and what it allocates: for each organisation
of a configuration, or without -c for each built-in policy with its example
parameters. A fresh decision is evaluated, a remembered one was made before about
an equal call; policies that read the time are evaluated all the same. The slowest
hundredth of decisions took p99 or longer.

The call is the create of a pod, or the one in --input: an event of a decision
log, or the input document of one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.count < 0 {
				return errors.New("--count: must not be negative")
			}
			return action(func(cmd *cobra.Command, _ []string) error { return f.bench(cmd) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "configuration whose policies are measured")
	flags.StringVar(&f.org, "org", "", "only this organisation")
	flags.StringVar(&f.input, "input", "", "file with the call to decide on")
	flags.DurationVar(&f.length, "for", time.Second, "how long each figure is measured")
	flags.IntVar(&f.count, "count", 0, "decisions each figure is measured over, instead of --for")
	flags.BoolVar(&f.json, "json", false, "write JSON")
	return cmd
}

func (f *benchFlags) bench(cmd *cobra.Command) error {
	sets, err := benchSets(f.config, f.org)
	if err != nil {
		return err
	}
	var rows []benchRow
	for _, set := range sets {
		row, err := f.row(cmd.Context(), set)
		if err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
		rows = append(rows, row)
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), rows)
	}
	return writeBench(cmd.OutOrStdout(), rows)
}

// benchSet is a set of policies to measure.
type benchSet struct {
	name, team string
	cfg        policies.Config
}

// benchSets are those of a configuration, or the library's one by one.
func benchSets(path, org string) ([]benchSet, error) {
	if path != "" {
		loaded, err := loadWithoutSecrets(path)
		if err != nil {
			return nil, err
		}
		return configSets(loaded, org), nil
	}
	library, err := load.Library()
	if err != nil {
		return nil, err
	}
	sets := make([]benchSet, len(library))
	for i, p := range library {
		sets[i] = benchSet{name: p.Name, cfg: policies.Config{Policies: []policies.Entry{{Policy: p.Name, Params: p.Example}}}}
	}
	return sets, nil
}

func configSets(loaded *config.Loaded, org string) []benchSet {
	var sets []benchSet
	for _, o := range loaded.Config.Orgs {
		if org != "" && o.ID != org {
			continue
		}
		set := benchSet{name: fmt.Sprintf("%s (%s)", o.ID, policyCount(len(o.Policies.Policies))), cfg: o.Policies}
		if len(o.Teams) > 0 {
			set.team = o.Teams[0].ID
		}
		sets = append(sets, set)
	}
	return sets
}

// call is what is decided on: the input in the file, or the one always at hand.
func (f *benchFlags) call(team string) (*policies.Input, error) {
	if f.input == "" {
		return benchInput(team)
	}
	text, err := os.ReadFile(f.input)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: %w", f.input, err)
	}
	if inner, ok := doc["input"].(map[string]any); ok { // an event of a log
		doc = inner
	}
	r, err := record.Read(doc, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.input, err)
	}
	return r.Input, nil
}

// benchInput is a decision about a new pod.
func benchInput(team string) (*policies.Input, error) {
	body := map[string]any{
		"name": "train-1", "image": "ghcr.io/acme/train:1.4", "gpu": map[string]any{"id": "NVIDIA L4", "count": json.Number("2")},
		"env": map[string]any{"MODE": "train", "EPOCHS": "3"}, "ports": []any{"8888/http"}, "disk": json.Number("40"),
		"dataCenterIds": []any{"EU-RO-1"},
	}
	after, err := effective.Create("createPod", body, nil)
	if err != nil {
		return nil, err
	}
	return &policies.Input{
		Request:  policies.Request{Operation: "createPod", Method: "POST", Path: "/v2/pods", Body: after, Dialect: "v2"},
		Caller:   policies.Caller{Org: "bench", Team: team, Key: "bench", Roles: []string{"operator"}},
		Resource: policies.Resource{After: after},
		Cost:     policies.Cost{Known: true, Hourly: 860_000, PerGPU: 430_000, GPUs: 2, Basis: "2 x NVIDIA L4 (SECURE) at 0.43"},
		Time:     time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC),
	}, nil
}

// benchCost is what one decision takes.
type benchCost struct {
	Mean        time.Duration `json:"mean_ns"`
	P99         time.Duration `json:"p99_ns"`
	Allocations uint64        `json:"allocations"`
	Bytes       uint64        `json:"bytes"`
}

// benchRow is a set of policies with its figures; Note says why there are none.
type benchRow struct {
	Policies   string     `json:"policies"`
	Verdict    string     `json:"verdict,omitempty"`
	Fresh      *benchCost `json:"fresh,omitempty"`
	Remembered *benchCost `json:"remembered,omitempty"`
	Note       string     `json:"note,omitempty"`
}

func writeBench(w io.Writer, rows []benchRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "policies\tverdict\tfresh\tp99\tallocs\tbytes\tremembered\tp99\tallocs\tbytes\t")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%s", r.Policies, r.Verdict)
		for _, c := range []*benchCost{r.Fresh, r.Remembered} {
			if c == nil {
				_, _ = fmt.Fprint(t, "\t-\t\t\t")
				continue
			}
			_, _ = fmt.Fprintf(t, "\t%v\t%v\t%d\t%d", rounded(c.Mean), rounded(c.P99), c.Allocations, c.Bytes)
		}
		_, _ = fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Note != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Policies, r.Note); err != nil {
				return err
			}
		}
	}
	return nil
}

// rounded keeps three digits.
func rounded(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// row measures one set of policies.
func (f *benchFlags) row(ctx context.Context, set benchSet) (benchRow, error) {
	row := benchRow{Policies: set.name}
	in, err := f.call(set.team)
	if err != nil {
		return row, err
	}
	engine := func(remember int) (*policies.Engine, error) {
		limits := policies.DefaultLimits()
		limits.Remember, limits.Deadline = remember, 10*time.Second
		return policies.NewEngine(limits, map[string]policies.Config{benchOrg: set.cfg}, policies.Deps{})
	}
	forgetting, err := engine(0)
	if err != nil {
		return row, err
	}
	d, err := forgetting.Decide(ctx, benchOrg, in)
	if errors.Is(err, policies.ErrPending) {
		row.Note = "its bundle is not fetched here"
		return row, nil
	}
	if err != nil {
		return row, err
	}
	row.Verdict = verdictWord(&d)
	if row.Fresh, err = f.measure(ctx, forgetting, in); err != nil {
		return row, err
	}
	remembering, err := engine(policies.DefaultLimits().Remember)
	if err != nil {
		return row, err
	}
	row.Remembered, err = f.measure(ctx, remembering, in)
	return row, err
}

func verdictWord(d *policies.Decision) string {
	switch {
	case len(d.Deny) > 0:
		return "denied"
	case len(d.Mutate) > 0:
		return "changed"
	default:
		return "allowed"
	}
}

// benchOrg is whose policies are measured.
const benchOrg = "bench"

// warmUp is how many decisions are made before they are measured.
const warmUp = 50

// measure makes decisions, for as long or as many as the flags say.
func (f *benchFlags) measure(ctx context.Context, engine *policies.Engine, in *policies.Input) (*benchCost, error) {
	for range warmUp {
		if _, err := engine.Decide(ctx, benchOrg, in); err != nil {
			return nil, err
		}
	}
	took := make([]time.Duration, 0, max(f.count, 1<<16)) // large enough that growing it is no part of the figures
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	for now := begin; (f.count > 0 && len(took) < f.count) || (f.count == 0 && now.Sub(begin) < f.length) || len(took) == 0; {
		if _, err := engine.Decide(ctx, benchOrg, in); err != nil {
			return nil, err
		}
		next := time.Now()
		took = append(took, next.Sub(now))
		now = next
	}
	total := time.Since(begin)
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	n := uint64(len(took))
	return &benchCost{
		Mean: total / time.Duration(n), P99: took[(n-1)*99/100],
		Allocations: (after.Mallocs - before.Mallocs) / n, Bytes: (after.TotalAlloc - before.TotalAlloc) / n,
	}, ctx.Err()
}
