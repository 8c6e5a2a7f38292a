package clients

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The keys of callers whose GPUs a policy, and whose money a budget refuses.
const fenced, poor = "key_of_a_fenced_one", "key_of_a_poor_one"

// newDevStack is a gateway for flash dev over an emulator that runs functions with an
// interpreter, and the environment in which flash finds it: load-balanced endpoints have
// host names of their own, by https.
func newDevStack(t *testing.T, python string) (s *stack, env []string) {
	t.Helper()
	// A worker is up in half a second, and a function may take 30.
	clock := platform.NewClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), 10)
	p := platform.RunT(t, platform.WithOptions(platform.Options{
		Strict: true, Clock: clock, Worker: platform.Worker{Python: python},
		Accounts: []platform.Account{{ID: "default", Key: platform.DefaultKey}, {ID: "fence", Key: "platform-key-of-fence"}},
	}))
	runs, err := url.Parse(p.RunURL)
	if err != nil {
		t.Fatal(err)
	}
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`", run_url: "`+p.RunURL+`", lb_url: "http://{id}.localhost:`+runs.Port()+`"}
public_lb_url: "https://{id}.example.com"
redis: {embedded: true}
orgs:
  - id: acme
    credential: {env: KEY}
    keys:
      - {id: client, sha256: SHA256(`+key+`)}
      - {id: poor, sha256: SHA256(`+poor+`), budget: {per_hour: 0.001}}
  - id: fence
    credential: {env: FENCE}
    policies:
      - {policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}
    keys:
      - {id: fenced, sha256: SHA256(`+fenced+`)}
`, map[string]string{"KEY": platform.DefaultKey, "FENCE": "platform-key-of-fence"})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	plain, secure := httptest.NewServer(g.Handler()), httptest.NewTLSServer(g.Handler())
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &stack{gateway: plain.URL, platform: p}, []string{
		"RUNS=https://example.com", "HTTPS_PROXY=" + newTunnel(t, secure.Listener.Addr().String()),
		"SSL_CERT_FILE=" + trusted, "REQUESTS_CA_BUNDLE=" + trusted,
	}
}

// newTunnel is a proxy for https that leads every name of the gateway to addr: this
// machine has no DNS for the hosts of endpoints.
func newTunnel(t *testing.T, addr string) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		if r.Method != http.MethodConnect || host != "example.com" && !strings.HasSuffix(host, ".example.com") {
			t.Errorf("flash calls %s %s", r.Method, r.Host)
			http.Error(w, "not here", http.StatusForbidden)
			return
		}
		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", addr)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			_ = there.Close()
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		for from, to := range map[net.Conn]net.Conn{here: there, there: here} {
			both.Go(func() {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			})
		}
		both.Wait()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The command dev of flash, on the project of its command init: its server provisions
// endpoints, their workers run the functions, and undeploy removes them.
func TestFlashDev(t *testing.T) {
	t.Parallel()
	python := installed(t, "runpod-flash-1.21.0/bin/python")
	s, env := newDevStack(t, python)
	drive[report](t, s, python, "flash_dev.py", env...).check(t, "flash_dev.json")
}

// A refusal of the gateway is in the console of flash dev, and in its server's answer.
func TestFlashDevRefusals(t *testing.T) { //nolint:tparallel // one stack, which one toolkit uses at a time
	t.Parallel()
	python := installed(t, "runpod-flash-1.21.0/bin/python")
	s, env := newDevStack(t, python)
	for _, tt := range []struct{ key, says, balanced string }{
		{fenced, `gpu_allow_list: pool "ADA_24" contains GPU types that are not on the allow-list; add them to gpu.excludedTypes: "NVIDIA GeForce RTX 4090" (allowed: "NVIDIA L4")`, "200"},
		{poor, "budget key poor per_hour exceeded: limit 0.001 USD per hour, used 0, reserved 0", "503"},
	} {
		t.Run(tt.key, func(t *testing.T) {
			got := drive[report](t, s, python, "flash_dev.py", append(env, "REFUSED="+tt.says, "KEY="+tt.key)...)
			gpu, _ := at(got.Calls["dev: queue, GPU"].Result, "output.error").(string)
			if !strings.Contains(gpu, tt.says) {
				t.Errorf("the queue: got %v, want %q", got.Calls["dev: queue, GPU"], tt.says)
			}
			balanced := got.Calls["dev: load-balanced, GET"].Result
			if status := fmt.Sprint(at(balanced, "status")); status != tt.balanced {
				t.Errorf("the load-balanced endpoint: got %v, want %s", balanced, tt.balanced)
			}
			if n, _ := at(got.Calls["dev"].Result, "refusals").(float64); n == 0 {
				t.Errorf("the console does not say %q", tt.says)
			}
		})
	}
}
