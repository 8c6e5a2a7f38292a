package envoy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// making is how long the platform takes to make a pod for callers that leave, and leaving how many of them there are.
const making, leaving = 400 * time.Millisecond, 15

// lane is a gateway as it comes, with a budget, and an Envoy that callers reach it by.
type lane struct {
	gateway *exec.Cmd
	envoy   *process
}

// lanes opens as many of a topology, before one platform and one Redis. shape, unless nil, makes an operator's own changes to an Envoy,
// given the addresses of all gateways.
func lanes(t *testing.T, n int, inLine bool, shape func(b *bootstrap, gateways []string)) (*platform.Instance, []lane) {
	t.Helper()
	program(t)
	p := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: canary, Exempt: true, Balance: 1e9}))
	redis := "redis://" + redistest.Start(t)
	all, gateways := make([]lane, n), make([]string, n)
	for i := range gateways {
		gateways[i] = fmt.Sprint("127.0.0.1:", port(t))
	}
	for i := range all {
		plain, door := gateways[i], fmt.Sprint("127.0.0.1:", port(t))
		file := filepath.Join(t.TempDir(), "tollgate.yaml")
		text := fmt.Sprintf(`listen: %q
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: {url: {env: REDIS_URL}}
envoy: {listen: %q}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    budget: {gpus: 1000}
    keys: [{id: ann, roles: [admin], sha256: %q}]
`, plain, p.URL, door, identity.DigestOf("secret_ann"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		log := new(world.Buffer)
		cmd := exec.CommandContext(t.Context(), tollgate.Path(t), "serve", "-c", file)
		cmd.Env, cmd.Stderr = append(os.Environ(), "REDIS_URL="+redis, "ACME_KEY="+canary), log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
			if t.Failed() {
				t.Logf("gateway %d said:\n%s", i, log.Last(40))
			}
		})
		world.Until(t, "a gateway serves", func() bool { return strings.Contains(log.String(), `"msg":"serving"`) })
		b := shipped(t)
		b.local()
		b.point("tollgate", door)
		b.point("platform", host(t, p.URL))
		if inLine {
			b.point("platform", plain)
			filters, _ := b.manager()["http_filters"].([]any)
			b.manager()["http_filters"] = filters[1:]
		}
		if shape != nil {
			shape(b, gateways)
		}
		all[i] = lane{cmd, start(t, b)}
	}
	return p, all
}

// post asks for a pod until ctx ends; the status is 0 without an answer.
func (l lane) post(ctx context.Context, dialect, name string, keyed bool) (status int, answer string) {
	path, body := "/v2/pods", fmt.Sprintf(`{"name":%q,"image":"img:1","gpu":{"id":"NVIDIA L4"}}`, name)
	switch dialect {
	case "v1":
		path, body = "/v1/pods", fmt.Sprintf(`{"name":%q,"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"gpuCount":1}`, name)
	case "graphql":
		path, body = "/graphql", fmt.Sprintf(`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"%s\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1}) { id } }"}`, name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.envoy.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer secret_ann")
	req.Header.Set("Content-Type", "application/json")
	if keyed {
		req.Header.Set("Idempotency-Key", strconv.Quote(name))
	}
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

// all has each caller ask for a pod of its own.
func (l lane) all(ctx context.Context, dialect, scene string, keyed bool, answered func(status int, answer string)) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range leaving {
		wg.Go(func() {
			status, answer := l.post(ctx, dialect, fmt.Sprintf("%s-%s-%d", dialect, scene, i), keyed)
			for status == http.StatusConflict { // the first one with this key is under way
				world.Pause(making / 8) // the caller's own
				status, answer = l.post(ctx, dialect, fmt.Sprintf("%s-%s-%d", dialect, scene, i), keyed)
			}
			answered(status, answer)
		})
	}
	return &wg
}

// TestStandstillsBehindEnvoy: callers that leave while their gateway stands still, and come back, by the same way or by another gateway, before
// they left or after, get one pod each. If Envoy stands still, nobody but it knows that they have left: their idempotency keys tell then.
func TestStandstillsBehindEnvoy(t *testing.T) {
	t.Parallel()
	for topology, inLine := range map[string]bool{"in line": true, "ext_proc": false} {
		for _, frozen := range []string{"gateway", "Envoy"} {
			t.Run(topology+"/"+frozen, func(t *testing.T) {
				t.Parallel()
				p, l := lanes(t, 2, inLine, nil)
				stand := func(signal syscall.Signal) {
					pid := l[0].gateway.Process.Pid
					if frozen == "Envoy" {
						pid = l[0].envoy.pid
					}
					if err := syscall.Kill(pid, signal); err != nil {
						t.Fatal(err)
					}
				}
				dialects := []string{"v2", "v1", "graphql"}
				if frozen == "Envoy" {
					dialects = dialects[:1] // the one that has such keys
				}
				for _, dialect := range dialects {
					for _, back := range []struct {
						name  string
						lane  int
						early bool // back before the first call is left
						takes time.Duration
					}{
						{"at once", 0, false, making},
						{"before", 0, true, 4 * making},
						{"before elsewhere", 1, true, 4 * making},
						{"at once elsewhere", 1, false, making},
					} {
						p.SetLatency("createPod", back.takes)
						ctx, leave := context.WithCancel(t.Context())
						left := l[0].all(ctx, dialect, back.name, frozen == "Envoy", func(status int, answer string) {
							if status != 0 {
								t.Errorf("%s %s: answered %d %s before the caller left", dialect, back.name, status, answer)
							}
						})
						var stayed *sync.WaitGroup
						come := func() {
							stayed = l[back.lane].all(t.Context(), dialect, back.name, frozen == "Envoy", func(status int, answer string) {
								if status/100 != 2 {
									t.Errorf("%s %s: repeat: %d %s", dialect, back.name, status, answer)
								}
							})
						}
						world.Pause(making / 2) // the callers' own
						if back.early {
							come()
							world.Pause(making / 4)
						}
						stand(syscall.SIGSTOP)
						leave()
						left.Wait()
						if !back.early {
							come()
						}
						world.Pause(making) // that is how long it stands still
						stand(syscall.SIGCONT)
						stayed.Wait()
						if n := len(p.CallsTo("createPod")); n != leaving {
							t.Errorf("%s, back %s: %d pods for %d wishes", dialect, back.name, n, leaving)
						}
						p.ResetCalls()
					}
				}
			})
		}
	}
}
