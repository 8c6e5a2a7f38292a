package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// runner is one run.
type runner struct {
	settings settings
	machine  machine
	platform recording
	// certificate and key are the files of the listeners with TLS.
	certificate, key string
	report           *report
	// left are the targets and kinds that were left out.
	left map[string]bool
	// runs is set if the run interface is measured: a binary that does not know it is
	// not asked to serve it otherwise.
	runs   bool
	stderr io.Writer
}

// measure does a run. The report beside an error has the samples until then.
func measure(ctx context.Context, s settings, stderr io.Writer) (*report, error) {
	ts, ks, err := chosen(s)
	if err != nil {
		return nil, err
	}
	bs, err := binaries(s.Tollgate)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_, missing := exec.LookPath("taskset")
	s.Pin = s.Pin && missing == nil && runtime.NumCPU() > 1
	r := &runner{settings: s, machine: machine{dir: dir, pin: s.Pin}, report: newReport(s, bs), left: map[string]bool{}, stderr: stderr}
	r.runs = slices.ContainsFunc(ks, func(k kind) bool { return k.runs })
	if r.certificate, r.key, err = certify(dir); err != nil {
		return nil, err
	}
	if r.platform, err = record(); err != nil {
		return nil, err
	}
	for _, to := range []*string{&r.platform.Addr, &r.platform.Secure} {
		if *to, err = port(ctx); err != nil {
			return nil, err
		}
	}
	r.platform.Certificate, r.platform.Key = r.certificate, r.key
	platform, err := r.machine.role(ctx, around, "platform", r.platform)
	if err != nil {
		return nil, err
	}
	defer platform.stop()
	if err := platform.ready(ctx, accepts(r.platform.Addr)); err != nil {
		return nil, err
	}
	for n := range s.Rounds {
		if err := r.round(ctx, n, ts, ks, bs); err != nil {
			return r.report, err
		}
	}
	return r.report, nil
}

// turn is one target by one binary.
type turn struct {
	target
	binary
	round int
}

func (t turn) sample(kind string, values map[string]float64) sample {
	return sample{Round: t.round, Target: t.target.name, Binary: t.Name, Kind: kind, Values: values}
}

// round starts and measures every target once, in random order. Those that differ in
// their binary alone run at the same time, beside the bare proxy.
func (r *runner) round(ctx context.Context, n int, ts []target, ks []kind, bs []binary) error {
	for i, at := range rand.Perm(len(ts)) {
		t := ts[at]
		turns := []turn{{t, binary{}, n}}
		if t.gateway != nil {
			turns = nil
			for _, b := range bs {
				turns = append(turns, turn{t, b, n})
			}
		}
		_, _ = fmt.Fprintf(r.stderr, "round %d of %d, %d of %d: %s\n", n+1, r.settings.Rounds, i+1, len(ts), t.name)
		if err := r.heat(ctx, turns, ks); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// takes reports whether a kind is sent to a target.
func (t target) takes(k kind) bool {
	if k.judged && t.gateway == nil && t.envoy != envoyRival && t.envoy != envoyLibrary {
		return false
	}
	return t.kinds == nil || slices.Contains(t.kinds, k.name)
}

func (t turn) key(kind string) string {
	return strings.Join([]string{t.target.name, t.Name, kind}, "/")
}

// leave notes a target or kind that cannot be measured, for the rest of the run: a program
// or an interface that is not there. Other errors end the run.
func (r *runner) leave(ctx context.Context, t turn, kind string, err error) error {
	_, unexpected := errors.AsType[*unexpectedError](err)
	if ctx.Err() != nil || kind != "" && !unexpected {
		return err
	}
	r.left[t.key(kind)] = true
	r.report.Left = append(r.report.Left, left{t.target.name, t.Name, kind, err.Error()})
	return nil
}

// spent is what was used so far, by unit: CPU time, switches and commands. Processes on the way
// of a request count as the target's; Redis and, once more, Envoy and all gateways apart.
func (i *instance) spent(ctx context.Context) (map[string]float64, error) {
	sum := map[string]float64{}
	add := func(unit string, of func(*process) (float64, error), ps ...*process) error {
		for _, p := range ps {
			if p == nil {
				continue
			}
			n, err := of(p)
			if err != nil {
				return err
			}
			sum[unit] += n
		}
		return nil
	}
	err := errors.Join(add(cpu, (*process).cpu, i.way...), add(switches, (*process).switches, i.way...),
		add(envoyCPU, (*process).cpu, i.envoy), add(gatewayCPU, (*process).cpu, i.gateways...), add(redisCPU, (*process).cpu, i.redis))
	if i.store != "" && err == nil {
		sum[redisCommands], err = processed(ctx, i.store)
	}
	return sum, err
}

// processed is how many commands a Redis has processed, this question not among them.
func processed(ctx context.Context, addr string) (float64, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	info, err := client.InfoMap(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["Stats"]["total_commands_processed"], 64)
}

// said is the end of what those on the way of a request logged.
func (i *instance) said() (all string) {
	for _, p := range i.way {
		if text := p.said(); text != "" {
			all += "; " + p.name + ": " + text
		}
	}
	return all
}

// held is connections that are held open, whose memory is measured.
type held struct {
	task
	// all and each are the units of the memory of a target that holds them, and of
	// one of them.
	all, each string
}

// holds are the connections that a target holds, in turn.
func (r *runner) holds(t turn) (all []held) {
	if !t.idle {
		return nil
	}
	read := kinds()[0]
	if n := r.settings.Idle; n > 0 {
		all = append(all, held{task{Request: strings.ReplaceAll(read.request, "{pod}", r.platform.Pod), Status: read.status, Connections: n}, connectedMemory, perConnection})
	}
	if n := r.settings.Streams; n > 0 && r.runs {
		all = append(all, held{task{Request: liveRequest, Status: http.StatusOK, Live: true, Connections: n}, streamingMemory, perStream})
	}
	return all
}

// hold measures the memory of an idle target, a second after its start, and of one
// that has held connections for a second: those that wait for their next request, or
// streams of events.
func (r *runner) hold(ctx context.Context, t turn, i *instance, h held) error {
	if err := settle(ctx); err != nil {
		return err
	}
	before, err := i.memory()
	if err != nil {
		return err
	}
	h.Addr, h.CA = i.addr, i.ca
	load, err := r.machine.warm(ctx, h.task)
	if err != nil {
		return err
	}
	defer load.stop()
	if err := settle(ctx); err != nil {
		return err
	}
	with, err := i.memory()
	if err == nil {
		r.report.add(t.sample(lifeKind, map[string]float64{
			ready: i.took().Seconds(), idleMemory: float64(before), h.all: float64(with), h.each: float64(with-before) / float64(h.Connections),
		}))
	}
	return err
}

// settle waits a second.
func settle(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
