// Command bench measures the cost of the gateway as users run it: the built binary with
// its listeners, its log in a file and a real Redis, beside a bare httputil.ReverseProxy
// and Envoy, in one run. docs/benchmarks.md says what each row means.
//
// A run is several rounds. In each, every target is started anew, in random
// order, with a Redis of its own; binaries and the bare proxy run at the same time and take
// turns of a tenth of a second. Samples are written as JSON; -text turns such a file into the
// format of benchstat.
//
// The program is also its own servers and its own load: "bench platform", "bench
// proxy", "bench authorizer" and "bench load" read their task from standard input
// and end with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to release
	}
}

// run is main, apart from the process. A first argument that names a role makes
// this process a part of another's run.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	roles := map[string]func(context.Context, io.Reader, io.Writer) error{
		"platform": servePlatform, "proxy": serveProxy, "load": sendLoad, "authorizer": serveAuthorizer,
	}
	if len(args) > 0 && roles[args[0]] != nil {
		return roles[args[0]](ctx, stdin, stdout)
	}
	s, text, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if text != "" {
		r, err := readReport(text)
		if err != nil {
			return err
		}
		return r.benchmarks(stdout)
	}
	r, err := measure(ctx, s, stderr)
	if r != nil && len(r.Samples) > 0 { // an interrupted run is reported as far as it came
		err = errors.Join(err, r.write(s.JSON), r.print(stdout))
	}
	return err
}

// settings is the command line of a run.
type settings struct {
	// Tollgate are the binaries measured: name=path, or path alone.
	Tollgate []string `json:"tollgate"`
	// Rounds is how often every target is started.
	Rounds int `json:"rounds"`
	// Time is how long one kind of request is sent to one target in a round.
	Time time.Duration `json:"time_ns"`
	// Connections is how many send at once.
	Connections int `json:"connections"`
	// Rate is that of the open load, in requests per second.
	Rate int `json:"rate"`
	// Idle is how many connections are held for their memory.
	Idle int `json:"idle"`
	// Streams is how many event streams are held for their memory.
	Streams int `json:"streams"`
	// Targets and Kinds choose by name; empty are all.
	Targets []string `json:"targets,omitempty"`
	Kinds   []string `json:"kinds,omitempty"`
	// Pin gives the measured processes a core of their own.
	Pin bool `json:"pin"`
	// Envoy is deploy/envoy.yaml.
	Envoy string `json:"envoy"`
	// JSON is the file that samples are written to; empty writes none.
	JSON string `json:"-"`
}

func parse(args []string, stderr io.Writer) (s settings, text string, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	list := func(to *[]string) func(string) error {
		return func(v string) error { *to = strings.Split(v, ","); return nil }
	}
	s.Tollgate = []string{"bin/tollgate"}
	f.Func("tollgate", "binaries to measure, such as old=/path,new=/path (default bin/tollgate)", list(&s.Tollgate))
	f.IntVar(&s.Rounds, "rounds", 4, "how often every target is started and measured")
	f.DurationVar(&s.Time, "time", time.Second, "time for one kind of request in one round")
	f.IntVar(&s.Connections, "connections", 32, "connections that send at once")
	f.IntVar(&s.Rate, "rate", 300, "requests per second of the open load")
	f.IntVar(&s.Idle, "idle", 10000, "connections that are held for their memory")
	f.IntVar(&s.Streams, "streams", 400, "event streams that are held for their memory")
	f.Func("targets", "targets to measure (default all)", list(&s.Targets))
	f.Func("kinds", "kinds of requests to measure (default all)", list(&s.Kinds))
	f.BoolVar(&s.Pin, "pin", true, "give what is measured one core and all else the others, where taskset is found")
	f.StringVar(&s.Envoy, "envoy", "deploy/envoy.yaml", "Envoy's bootstrap")
	f.StringVar(&s.JSON, "json", "bench.json", "file to write samples to")
	f.StringVar(&text, "text", "", "print the samples of a JSON file as benchstat reads them, and measure nothing")
	if err := f.Parse(args); err != nil {
		return s, "", err
	}
	if f.NArg() > 0 {
		return s, "", fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if s.Rounds < 1 || s.Time <= 0 || s.Connections < 1 || s.Rate < 1 || s.Idle < 0 || s.Streams < 0 {
		return s, "", errors.New("rounds, time, connections and rate must be positive")
	}
	return s, text, nil
}
