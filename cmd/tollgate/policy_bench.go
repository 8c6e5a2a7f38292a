package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/effective"
)

func newPolicyBench() *cobra.Command {
	var path, org string
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what decisions cost",
		Long: `Measures how long one decision about a new pod takes and what it allocates: for
each organisation of a configuration, or without -c for each built-in policy
with its example parameters. A fresh decision is evaluated, a remembered one was
made before about an equal call; policies that read the time are never
remembered.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			sets, err := benchSets(path, org)
			if err != nil {
				return err
			}
			return benchPolicies(cmd.Context(), sets, length, cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&path, "config", "c", "", "configuration whose policies are measured")
	flags.StringVar(&org, "org", "", "only this organisation")
	flags.DurationVar(&length, "for", time.Second, "how long each figure is measured")
	return cmd
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
	library, err := policies.Library()
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
	for _, o := range loaded.Gateway.Orgs {
		if org != "" && o.ID != org {
			continue
		}
		set := benchSet{name: fmt.Sprintf("%s (%d policies)", o.ID, len(o.Policies.Policies)), cfg: o.Policies}
		if len(o.Teams) > 0 {
			set.team = o.Teams[0].ID
		}
		sets = append(sets, set)
	}
	return sets
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

// cost is what one decision takes.
type cost struct {
	took   time.Duration
	allocs uint64
	bytes  uint64
}

func benchPolicies(ctx context.Context, sets []benchSet, length time.Duration, w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "policies\tfresh\tallocs\tbytes\tremembered\tallocs\tbytes\t")
	for _, set := range sets {
		fresh, err := benchSetCost(ctx, set, 0, length)
		if err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
		again, err := benchSetCost(ctx, set, policies.DefaultLimits().Remember, length)
		if err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
		_, _ = fmt.Fprintf(t, "%s\t%v\t%d\t%d\t%v\t%d\t%d\t\n", set.name, rounded(fresh.took), fresh.allocs, fresh.bytes,
			rounded(again.took), again.allocs, again.bytes)
	}
	return t.Flush()
}

// rounded keeps three digits.
func rounded(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// warmUp is how many decisions are made before they are measured.
const warmUp = 50

func benchSetCost(ctx context.Context, set benchSet, remember int, length time.Duration) (cost, error) {
	limits := policies.DefaultLimits()
	limits.Remember, limits.Deadline = remember, 10*time.Second
	cfg := set.cfg
	cfg.Bundle = nil // what it holds is not here
	engine, err := policies.NewEngine(limits, map[string]policies.Config{"bench": cfg}, policies.Deps{})
	if err != nil {
		return cost{}, err
	}
	in, err := benchInput(set.team)
	if err != nil {
		return cost{}, err
	}
	for range warmUp {
		if _, err := engine.Decide(ctx, "bench", in); err != nil {
			return cost{}, err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	n := uint64(0)
	for time.Since(begin) < length && ctx.Err() == nil {
		if _, err := engine.Decide(ctx, "bench", in); err != nil {
			return cost{}, err
		}
		n++
	}
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	n = max(n, 1)
	return cost{
		took: took / time.Duration(n), allocs: (after.Mallocs - before.Mallocs) / n, bytes: (after.TotalAlloc - before.TotalAlloc) / n,
	}, ctx.Err()
}
