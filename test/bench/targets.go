package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is one way from callers to the platform.
type target struct {
	name string
	// base is the bare proxy that ratios are taken to.
	base string
	// tls encrypts the listener.
	tls bool
	// gateway is how tollgate stands in it; nil is no tollgate.
	gateway *gateway
	envoy   envoy
	// further are as many gateways beside the first, on the same Redis.
	further int
	// kinds are the requests that are sent; nil is all kinds.
	kinds []string
	// idle measures connections that are held.
	idle bool
	// lite is LiteLLM.
	lite bool
}

// Names of the bare proxies.
const (
	plainProxy = "proxy"
	tlsProxy   = "proxy-tls"
)

// targets lists the measured targets.
func targets() []target {
	few := []string{"read", "create", "create-open", "read-open"}
	over := []string{"read", "list-1MB", "create"}
	judged := []string{"read", "create", "create-401", "create-422", "create-403", "create-429", "create-open"}
	return []target{
		{name: plainProxy, base: plainProxy, idle: true},
		{name: "budgets", base: plainProxy, gateway: &gateway{budgets: true}, kinds: append(judged, "read-open")},
		{name: "exact", base: plainProxy, gateway: &gateway{}, idle: true},
		{name: "leased", base: plainProxy, gateway: &gateway{leased: true}, kinds: few},
		{name: tlsProxy, base: tlsProxy, tls: true, kinds: few},
		{name: "tls", base: tlsProxy, tls: true, gateway: &gateway{}, kinds: few},
		{name: "platform-tls", base: plainProxy, gateway: &gateway{over: true}, kinds: over},
		{name: "traced", base: plainProxy, gateway: &gateway{traced: true}, kinds: few},
		{name: "cold", base: plainProxy, gateway: &gateway{cold: true}, kinds: []string{"create", "create-403", "create-open"}},
		{name: "ten", base: plainProxy, gateway: &gateway{ten: true}, kinds: []string{"create", "create-403", "create-422", "create-open"}},
		{name: "ten-cold", base: plainProxy, gateway: &gateway{ten: true, cold: true}, kinds: []string{"create"}},
		{name: "envoy", base: plainProxy, envoy: envoyAlone, kinds: few},
		{name: "inline", base: plainProxy, gateway: &gateway{}, envoy: envoyInline, kinds: few},
		{name: "extproc", base: plainProxy, gateway: &gateway{}, envoy: envoyExtProc, kinds: few},
		{name: "inline-2", base: plainProxy, gateway: &gateway{}, further: 1, envoy: envoyInline, kinds: few},
		{name: "inline-4", base: plainProxy, gateway: &gateway{}, further: 3, envoy: envoyInline, kinds: few},
		{name: "extproc-2", base: plainProxy, gateway: &gateway{}, further: 1, envoy: envoyExtProc, kinds: few},
		{name: "extproc-4", base: plainProxy, gateway: &gateway{}, further: 3, envoy: envoyExtProc, kinds: few},
		{name: "rival", base: plainProxy, envoy: envoyRival, kinds: judged},
		{name: "rival-library", base: plainProxy, envoy: envoyLibrary, kinds: judged},
		{name: "litellm", base: plainProxy, lite: true, kinds: []string{"read", "create", "chat"}},
	}
}

// binary is one tollgate.
type binary struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// binaries reads name=path, or path alone, whose name is that of the file.
func binaries(list []string) ([]binary, error) {
	var out []binary
	for _, text := range list {
		name, path, ok := strings.Cut(text, "=")
		if !ok {
			name, path = filepath.Base(text), text
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("binary %s: %w", name, err)
		}
		out = append(out, binary{name, path, info.Size()})
	}
	return out, nil
}

// instance is a target that runs.
type instance struct {
	// addr is where callers connect, and ca the certificate they find there.
	addr, ca string
	// way are the processes that requests pass; envoy is the one of them that is Envoy, if
	// any, and gateways are those that are tollgate. Redis is asked by them.
	way, gateways []*process
	envoy, redis  *process
	// store is the address of Redis, "" without one.
	store string
	// data and extproc are where gateways listen.
	data, extproc []string
}

// pass starts a process that requests pass, and waits until it is ready.
func (r *runner) pass(ctx context.Context, i *instance, name string, cmd *exec.Cmd, ready func(context.Context) error) error {
	p, err := r.machine.start(name, cmd, nil)
	if err != nil {
		return err
	}
	i.way = append(i.way, p)
	return p.ready(ctx, ready)
}

// took is how long the slowest of its processes took to be ready.
func (i *instance) took() (slowest time.Duration) {
	for _, p := range i.way {
		slowest = max(slowest, p.took)
	}
	return slowest
}

// memory is their resident memory together.
func (i *instance) memory() (sum int64, err error) {
	for _, p := range i.way {
		n, err := p.memory()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (i *instance) stop() {
	for _, p := range slices.Backward(i.way) {
		p.stop()
	}
	if i.redis != nil {
		i.redis.stop()
	}
}

// start starts a target, with a directory of its own. What did start is stopped if something
// did not.
func (r *runner) start(ctx context.Context, t target, b binary) (i *instance, err error) {
	own := *r
	if own.machine.dir, err = os.MkdirTemp(r.machine.dir, t.name); err != nil {
		return nil, err
	}
	r, i = &own, &instance{}
	defer func() {
		if err != nil {
			i.stop()
		}
	}()
	if t.tls {
		i.ca = r.certificate
	}
	if t.lite {
		return i, r.startLiteLLM(ctx, i)
	}
	if t.gateway == nil && t.envoy == noEnvoy {
		return i, r.startProxy(ctx, i)
	}
	if t.gateway != nil {
		if err = r.startGateways(ctx, t, b, i); err != nil {
			return i, err
		}
	}
	switch platform := []string{r.platform.Addr}; t.envoy {
	case envoyAlone:
		err = r.startEnvoy(ctx, i, front{filters: []any{}, clusters: map[string][]string{"platform": platform}})
	case envoyInline:
		err = r.startEnvoy(ctx, i, front{filters: []any{}, clusters: map[string][]string{"platform": i.data}})
	case envoyExtProc:
		err = r.startEnvoy(ctx, i, front{clusters: map[string][]string{"platform": platform, "tollgate": i.extproc}})
	case envoyRival:
		err = r.startRival(ctx, i, r.startPlugin)
	case envoyLibrary:
		err = r.startRival(ctx, i, r.startLibrary)
	case noEnvoy:
	}
	return i, err
}

func (r *runner) startProxy(ctx context.Context, i *instance) (err error) {
	if i.addr, err = port(ctx); err != nil {
		return err
	}
	told := bareProxy{Addr: i.addr, Upstream: r.platform.Addr}
	if i.ca != "" {
		told.Certificate, told.Key = r.certificate, r.key
	}
	p, err := r.machine.role(ctx, measured, "proxy", told)
	if err != nil {
		return err
	}
	i.way = append(i.way, p)
	return p.ready(ctx, accepts(i.addr))
}

// startRedis starts a Redis that keeps nothing.
func (r *runner) startRedis(ctx context.Context, i *instance) (addr string, err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", err
	}
	if addr, err = port(ctx); err != nil {
		return "", err
	}
	at, number := split(addr)
	i.redis, err = r.machine.start("redis", r.machine.command(ctx, around, program,
		"--bind", at, "--port", number, "--save", "", "--appendonly", "no", "--dir", r.machine.dir), nil)
	if err != nil {
		return "", err
	}
	i.store = addr
	return addr, i.redis.ready(ctx, accepts(addr))
}

// startGateways starts as many gateways as a target has, on one Redis.
func (r *runner) startGateways(ctx context.Context, t target, b binary, i *instance) error {
	store, err := r.startRedis(ctx, i)
	if err != nil {
		return err
	}
	for range 1 + t.further {
		if err := r.startGateway(ctx, t, b, i, store); err != nil {
			return err
		}
	}
	i.addr = i.data[0]
	return nil
}

func (r *runner) startGateway(ctx context.Context, t target, b binary, i *instance, store string) (err error) {
	a := addresses{platform: r.platform.Addr, secure: r.platform.Secure, runs: r.runs}
	for _, to := range []*string{&a.data, &a.admin, &a.extproc} {
		if *to, err = port(ctx); err != nil {
			return err
		}
	}
	if t.tls {
		a.certificate, a.key = r.certificate, r.key
	}
	if t.envoy != envoyExtProc {
		a.extproc = ""
	}
	name := fmt.Sprint("tollgate", len(i.data))
	// Not beside the log: a gateway watches the directory of its configuration.
	file := filepath.Join(r.machine.dir, name, "tollgate.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(t.gateway.configuration(a)), 0o600); err != nil {
		return err
	}
	cmd := r.machine.command(ctx, measured, b.Path, "serve", "-c", file)
	cmd.Env = []string{"BENCH_REDIS=redis://" + store, "BENCH_PLATFORM_KEY=bench-platform-key", "SSL_CERT_FILE=" + r.certificate}
	i.data, i.extproc = append(i.data, a.data), append(i.extproc, a.extproc)
	err = r.pass(ctx, i, name, cmd, answers("http://"+a.admin+"/readyz"))
	i.gateways = i.way
	return err
}

// errNoKind is a name on the command line that is no target's or kind's.
var errNoKind = errors.New("no such name")

// chosen returns the targets and kinds of a run.
func chosen(s settings) (ts []target, ks []kind, err error) {
	if ts, err = choose(s.Targets, targets(), func(t target) string { return t.name }); err != nil {
		return nil, nil, fmt.Errorf("-targets: %w", err)
	}
	for _, t := range ts { // there is no ratio without what it is taken to
		if !slices.ContainsFunc(ts, func(o target) bool { return o.name == t.base }) {
			base, err := choose([]string{t.base}, targets(), func(t target) string { return t.name })
			if err != nil {
				return nil, nil, err
			}
			ts = append(ts, base...)
		}
	}
	if ks, err = choose(s.Kinds, kinds(), func(k kind) string { return k.name }); err != nil {
		return nil, nil, fmt.Errorf("-kinds: %w", err)
	}
	return ts, ks, nil
}

func choose[T any](names []string, all []T, name func(T) string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []T
	for _, n := range names {
		found := false
		for _, t := range all {
			if name(t) == n {
				out, found = append(out, t), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%q: %w", n, errNoKind)
		}
	}
	return out, nil
}
