// Command bench measures what the gateway costs: requests per second and CPU
// time per request of the emulator alone, of a bare httputil.ReverseProxy in
// front of it, and of the whole gateway, side by side in one run, as figures
// and as ratios to the bare proxy. Then it measures what the retired v1 and
// GraphQL interfaces cost beside the same intent in v2. Figures depend on the
// machine; ratios hold better.
//
// Every server is a process of its own, so that its CPU time can be told from
// the load's. Redis is real when redis-server is installed, else embedded in
// the gateway's process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"
)

func main() {
	role := flag.String("role", "", "internal: the server this process is")
	upstream := flag.String("upstream", "", "internal: address of the emulator")
	store := flag.String("store", "", "internal: address of Redis")
	requests := flag.Int("requests", 6000, "requests per measurement")
	rounds := flag.Int("rounds", 3, "measurements of each kind, interleaved")
	connections := flag.Int("connections", 32, "connections that send at once")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *role != "" {
		err = serve(ctx, *role, *upstream, *store)
	} else {
		p := plan{requests: *requests, rounds: *rounds, connections: *connections}
		if err = measure(ctx, p); err == nil {
			err = measureDialects(ctx, p)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to release
	}
}

// plan is how much is measured.
type plan struct{ requests, rounds, connections int }

// result sums the measurements of one target and kind of request.
type result struct {
	requests int
	wall     time.Duration
	cpu      time.Duration
}

func (r result) perSecond() float64 { return float64(r.requests) / r.wall.Seconds() }
func (r result) cpuPerRequest() time.Duration {
	return (r.cpu / time.Duration(max(r.requests, 1))).Round(100 * time.Nanosecond)
}

func measure(ctx context.Context, p plan) (err error) {
	f, err := startFleet(ctx)
	defer func() { err = errors.Join(err, f.stop()) }()
	if err != nil {
		return err
	}
	kinds := []string{"GET", "POST"}
	results := make(map[string]map[string]*result)
	for _, s := range f.targets {
		results[s.name] = map[string]*result{}
		for _, kind := range kinds {
			results[s.name][kind] = new(result)
			if err := load(ctx, s.addr, requestOf(kind), p.requests/4, p.connections); err != nil { // warm up
				return fmt.Errorf("%s %s: %w", s.name, kind, err)
			}
		}
	}
	for range p.rounds {
		for _, kind := range kinds {
			for _, s := range f.targets {
				if err := one(ctx, s, requestOf(kind), p, results[s.name][kind]); err != nil {
					return fmt.Errorf("%s %s: %w", s.name, kind, err)
				}
			}
		}
	}
	return report(f, kinds, results, p)
}

func one(ctx context.Context, s *process, request string, p plan, sum *result) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := load(ctx, s.addr, request, p.requests, p.connections); err != nil {
		return err
	}
	sum.wall += time.Since(begin)
	after, err := s.cpu()
	if err != nil {
		return err
	}
	sum.cpu += after - before
	sum.requests += p.requests
	return nil
}

// baseline is what ratios are taken to.
const baseline = "httputil.ReverseProxy"

func report(f *fleet, kinds []string, results map[string]map[string]*result, p plan) error {
	fmt.Printf("%d requests x %d rounds, %d connections, store: %s\n\n", p.requests, p.rounds, p.connections, f.storeKind)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, kind := range kinds {
		_, _ = fmt.Fprintf(w, "%s\trequests/s\tratio\tCPU/request\tratio\t\n", kind)
		base := results[baseline][kind]
		for _, s := range f.targets {
			r := results[s.name][kind]
			_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%v\t%.2f\t\n", s.name, r.perSecond(), r.perSecond()/base.perSecond(),
				r.cpuPerRequest(), float64(r.cpu)/float64(r.requests)/(float64(base.cpu)/float64(base.requests)))
		}
		_, _ = fmt.Fprintln(w, "\t\t\t\t\t")
	}
	return w.Flush()
}
