package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// redisIn starts a Redis whose files are in dir.
func redisIn(t *testing.T, dir string, args ...string) (addr string, p *process) {
	t.Helper()
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", dir, "--save", ""}, args...)
	p = start(t, exec.CommandContext(context.WithoutCancel(t.Context()), tool(t, "redis-server"), args...))
	p.wait(t, "Ready to accept connections")
	return fmt.Sprintf("127.0.0.1:%d", port), p
}

// What docs/backup.md says of a restore holds when Redis and all gateways are gone: a key
// that was made at run time is accepted, one that was revoked is not, and budgets count
// what there was. The read value is in the append-only file, too.
func TestRestoreOfASnapshot(t *testing.T) {
	t.Parallel()
	upstream := platform.RunT(t)
	at, admin := freeAddr(t), freeAddr(t)
	path, control := configure(t, at, admin, upstream.URL, "    budget: {pods: 1}\nredis: {url: {env: REDIS_URL}}\n"), "http://"+admin
	serve := func(redis string) *process {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), "serve", "-c", path)
		cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey, "REDIS_URL=redis://"+redis)
		p := start(t, cmd)
		p.wait(t, `"msg":"serving"`)
		return p
	}
	change := func(what string, of url.Values) (made struct{ Secret string }) {
		t.Helper()
		of.Set("org", "acme")
		status, text := ask(t, http.MethodPost, control+"/admin/keys/"+what+"?"+of.Encode(), "", "")
		if status/100 != 2 {
			t.Fatalf("%s: status %d: %s", what, status, text)
		}
		if text != "" {
			if err := json.Unmarshal([]byte(text), &made); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
		}
		return made
	}
	before := t.TempDir()
	addr, server := redisIn(t, before)
	gateway := serve(addr)
	kept := change("create", url.Values{"spec": {`{"id":"kept","roles":["operator"]}`}})
	gone := change("create", url.Values{"spec": {`{"id":"gone","roles":["operator"]}`}})
	change("revoke", url.Values{"id": {"gone"}})
	pod := func(key string) int {
		return world.Ask(t, at, world.Request(http.MethodPost, "/v2/pods", key, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`)).Status
	}
	if got := pod(kept.Secret); got != http.StatusCreated {
		t.Fatalf("create: status %d, want 201", got)
	}
	gateway.stop(t)
	if err := redistest.Client(t, addr).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	server.stop(t)
	snapshot, err := os.ReadFile(filepath.Join(before, "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	after := t.TempDir()
	if err := os.WriteFile(filepath.Join(after, "dump.rdb"), snapshot, 0o600); err != nil {
		t.Fatal(err)
	}
	addr, _ = redisIn(t, after, "--appendonly", "no")
	if err := redistest.Client(t, addr).ConfigSet(t.Context(), "appendonly", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	serve(addr)
	status, text := ask(t, http.MethodPost, control+"/admin/spend/reconcile?org=acme", "", "")
	if status != http.StatusOK {
		t.Errorf("reconcile: status %d: %s", status, text)
	}
	for key, want := range map[string]int{kept.Secret: http.StatusPaymentRequired, gone.Secret: http.StatusUnauthorized} {
		if got := pod(key); got != want {
			t.Errorf("create: status %d, want %d", got, want)
		}
	}
	// A child of Redis writes it.
	world.Until(t, "the append-only file", func() bool {
		written, err := filepath.Glob(filepath.Join(after, "appendonlydir", "*base*"))
		return err == nil && len(written) > 0
	})
}
