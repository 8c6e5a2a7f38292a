package deploy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// newPod is a create.
const newPod = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`

// ample is a platform that does not count requests.
func ample(t *testing.T) *platform.Instance {
	t.Helper()
	return platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: platform.DefaultKey, Exempt: true}))
}

// serve starts the program on a configuration, behind the shell commands that come first,
// and returns the address of its data listener.
func serve(t *testing.T, first, config string, env ...string) (p *process, addr string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", first+` exec "$0" serve -c "$1"`, binary.Path(t), config)
	cmd.Env = append(append(os.Environ(), "ACME_KEY="+platform.DefaultKey), env...)
	p = start(t, cmd)
	p.wait(t, `"msg":"serving"`)
	_, rest, _ := strings.Cut(p.written(), `"msg":"serving","listen":"`)
	addr, _, _ = strings.Cut(rest, `"`)
	return p, addr
}

// A gateway that has no descriptors left takes no connections until it has some again. It
// judges and records the calls that it still serves, probes and scrapes are answered, and
// it does not end. That it may have fewer connections than are configured, it says at its
// start.
func TestDescriptorsRunOut(t *testing.T) {
	t.Parallel()
	upstream := platform.RunT(t)
	log := filepath.Join(t.TempDir(), "audit.log")
	p, addr := serve(t, "ulimit -n 64;", configure(t, "127.0.0.1:0", "127.0.0.1:0", upstream.URL,
		"redis: {embedded: true}\nlimits: {timeout: 10s}\npolicies: {deadline: 10s}\naudit: {file: {path: "+log+"}}\n"))
	open := &traffic{addr: addr}
	var kept net.Conn
	ask := func(key string) int {
		status, err := open.ask(&kept, world.Request(http.MethodPost, "/v2/pods", key, newPod))
		if err != nil {
			t.Fatalf("on a connection that was open: %v", err)
		}
		return status
	}
	if got := ask(callerKey); got != http.StatusCreated {
		t.Fatalf("before: status %d, want 201", got)
	}
	var idle []net.Conn
	for range 100 { // more than it may have open; the kernel takes the others
		idle = append(idle, world.Dial(t, addr))
	}
	p.wait(t, "too many open files")
	if !strings.Contains(p.written(), "connections.total: 10000 connections require as many file descriptors, but this process can open only 64") {
		t.Errorf("the log does not tell of too few descriptors:\n%s", p.written())
	}
	_, rest, _ := strings.Cut(p.written(), `"admin":"`)
	adminAddr, _, _ := strings.Cut(rest, `"`)
	for range 3 {
		for _, path := range []string{"/livez", "/metrics"} {
			if a := world.Ask(t, adminAddr, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"); a.Status != http.StatusOK {
				t.Errorf("%s without descriptors: status %d %s, want 200", path, a.Status, a.Body)
			}
		}
	}
	told := int64(1)
	for range 10 {
		if got := ask("wrong_key_of_ours"); got != http.StatusUnauthorized {
			t.Errorf("a wrong key meanwhile: status %d, want 401", got)
		}
		switch got := ask(callerKey); got {
		case http.StatusCreated:
			told++
		case http.StatusBadGateway, http.StatusServiceUnavailable: // it cannot call the platform
		default:
			t.Errorf("a create meanwhile: status %d, want 201, 502 or 503", got)
		}
	}
	for _, c := range idle {
		_ = c.Close()
	}
	if got := world.Ask(t, addr, world.Request(http.MethodPost, "/v2/pods", callerKey, newPod)); got.Status != http.StatusCreated {
		t.Errorf("on a new connection when there are descriptors again: status %d %s, want 201", got.Status, got.Body)
	}
	if got := created(upstream); got != told+1 {
		t.Errorf("the platform created %d pods, callers were told of %d", got, told+1)
	}
	p.stop(t)
	if out, err := exec.CommandContext(t.Context(), binary.Path(t), "audit", "verify", log).CombinedOutput(); err != nil {
		t.Errorf("audit verify: %v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if intents := int64(strings.Count(string(text), `"phase":"intent"`)); intents < told+1 {
		t.Errorf("the audit log has %d intents, the platform created %d pods", intents, told+1)
	}
}

// The certificate's file is replaced again and again under load: no call is lost, and
// every new connection gets one that was there, in the end the last.
func TestCertificatesChangeUnderLoad(t *testing.T) {
	t.Parallel()
	path := certificate(t)
	p, addr := serve(t, "", configure(t, "127.0.0.1:0", "127.0.0.1:0", ample(t).URL,
		fmt.Sprintf("redis: {embedded: true}\nlimits: {timeout: 10s}\npolicies: {deadline: 10s}\ntls: {certificate: {file: %[1]s}, key: {file: %[1]s}}\n", path)))
	var trusted atomic.Pointer[x509.CertPool]
	pool := x509.NewCertPool()
	trust(t, pool, path)
	trusted.Store(pool)
	var calls, lost atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { end(); group.Wait() })
	for i := range callers {
		group.Go(func() {
			for ctx.Err() == nil {
				err := greet(addr, &tls.Config{RootCAs: trusted.Load(), ServerName: "gateway.test"}, 1+i)
				if calls.Add(1); err != nil && lost.Add(1) == 1 {
					t.Errorf("the first call that is lost: %v", err)
				}
			}
		})
	}
	wait := func(n int64) {
		t.Helper()
		enough := calls.Load() + n
		world.Until(t, fmt.Sprintf("%d calls more are answered", n), func() bool { return calls.Load() >= enough })
	}
	wait(20)
	for range 3 {
		next := certificate(t)
		pool = pool.Clone()
		last := trust(t, pool, next)
		trusted.Store(pool)
		wait(2 * callers) // all callers trust it, before it is there
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
		only := x509.NewCertPool()
		only.AddCert(last)
		world.Until(t, "the new certificate is served", func() bool {
			return greet(addr, &tls.Config{RootCAs: only, ServerName: "gateway.test"}, 1) == nil
		})
		wait(20)
	}
	if err := os.WriteFile(path, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.wait(t, `"msg":"configuration refused, keeping the previous configuration"`)
	wait(20)
	end()
	group.Wait()
	if lost.Load() > 0 {
		t.Errorf("%d of %d calls were lost", lost.Load(), calls.Load())
	}
}

// trust adds the certificate of a file to a pool.
func trust(t *testing.T, pool *x509.CertPool, path string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(pair.Leaf)
	return pair.Leaf
}

// greet makes some calls on a connection of its own.
func greet(addr string, cfg *tls.Config, n int) error {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var open net.Conn = conn
	for range n {
		status, err := (&traffic{}).ask(&open, world.Request(http.MethodGet, "/v2/pods", callerKey, ""))
		if err != nil || status != http.StatusOK || open == nil {
			return fmt.Errorf("status %d, connection kept: %t, error %w", status, open != nil, err)
		}
	}
	return nil
}

// At twenty times its bound of work the program goes on doing about as much as it can, in
// bounded memory; it refuses with a time to come back, and never a call that lowers cost.
func TestOverloadOfTheProgram(t *testing.T) {
	t.Parallel()
	const open, latency, most = 16, 50 * time.Millisecond, 256 << 10 // KiB
	upstream := ample(t)
	p, addr := serve(t, "", configure(t, "127.0.0.1:0", "127.0.0.1:0", upstream.URL,
		fmt.Sprintf("redis: {embedded: true}\nlimits: {timeout: 10s}\npolicies: {deadline: 10s}\noverload: {open: %d}\n", open)), "GOMEMLIMIT=128MiB")
	var lowering []string
	for range 10 {
		made := world.Ask(t, addr, world.Request(http.MethodPost, "/v2/pods", callerKey, newPod))
		var pod struct{ ID string }
		if err := json.Unmarshal([]byte(made.Body), &pod); err != nil || made.Status != http.StatusCreated {
			t.Fatalf("create: %d %s", made.Status, made.Body)
		}
		lowering = append(lowering, world.Request(http.MethodPost, "/v2/pods/"+pod.ID+"/action", callerKey, `{"action":"stop"}`), world.Request(http.MethodDelete, "/v2/pods/"+pod.ID, callerKey, ""))
	}
	upstream.SetLatency("listPods", latency)
	at := newReaders(t, addr, open).rate(1500 * time.Millisecond)
	over := newReaders(t, addr, 20*open) // the last would wait twice as long as any may
	stopped := make(chan error, 1)
	go func() {
		var errs []error
		for _, raw := range lowering {
			if status, err := askOnce(addr, raw); err != nil || status >= http.StatusMultipleChoices {
				errs = append(errs, fmt.Errorf("%.20s: status %d, error %w", raw, status, err))
			}
		}
		stopped <- errors.Join(errs...)
	}()
	under := over.rate(3 * time.Second)
	if err := <-stopped; err != nil {
		t.Errorf("stops and deletes under overload: %v", err)
	}
	if under < at/3 {
		t.Errorf("%.0f reads a second at twenty times the load, %.0f at what it can do: want more than a third", under, at)
	}
	if over.refused.Load() == 0 || over.wrong.Load() > 0 {
		t.Errorf("%d were refused and %d answered otherwise, want some and none", over.refused.Load(), over.wrong.Load())
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var peak int
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &peak); err != nil || peak > most {
		t.Errorf("it took %d KiB of memory at most (%v), want %d", peak, err, most)
	}
	if got := world.Ask(t, addr, world.Request(http.MethodGet, "/v2/pods", callerKey, "")); got.Status != http.StatusOK {
		t.Errorf("after that: status %d, want 200", got.Status)
	}
	t.Logf("%.0f reads a second at what it can do, %.0f at twenty times, %d refused, %d KiB", at, under, over.refused.Load(), peak)
}

// readers read on connections of their own, one call after the other.
type readers struct {
	good, refused, wrong atomic.Int64

	end   context.CancelFunc
	group sync.WaitGroup
}

func newReaders(t *testing.T, addr string, n int) *readers {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r := &readers{end: end}
	for range n {
		r.group.Go(func() {
			client := &http.Client{Transport: new(http.Transport), Timeout: patience}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				r.read(ctx, client, "http://"+addr+"/v2/pods")
			}
		})
	}
	t.Cleanup(func() { end(); r.group.Wait() })
	return r
}

func (r *readers) read(ctx context.Context, client *http.Client, url string) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url, http.NoBody)
	if err != nil {
		r.wrong.Add(1)
		return
	}
	req.Header.Set("Authorization", "Bearer "+callerKey)
	res, err := client.Do(req)
	if err != nil {
		r.wrong.Add(1)
		return
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	switch {
	case err == nil && res.StatusCode == http.StatusOK:
		r.good.Add(1)
	case err == nil && res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
		r.refused.Add(1)
	default:
		r.wrong.Add(1)
	}
}

// rate reads for a time, and returns how many reads a second were answered well.
func (r *readers) rate(length time.Duration) float64 {
	begun := time.Now()
	<-time.After(length)
	n := r.good.Load()
	took := time.Since(begun)
	r.end()
	r.group.Wait()
	return float64(n) / took.Seconds()
}

// askOnce sends a request on a connection of its own.
func askOnce(addr, raw string) (status int, err error) {
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	return (&traffic{addr: addr}).ask(&conn, raw)
}
