package limits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
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

// making is how long the platform takes to make something in these tests.
const making = 400 * time.Millisecond

// newMakers starts gateways on default settings. The first one finds Redis by way of
// another address, if there is one.
func newMakers(t *testing.T, n int, budget string, way func(addr string) string) *spenders {
	t.Helper()
	server := redistest.Run(t)
	s := &spenders{
		fleet: &fleet{
			server: server, redis: redistest.Client(t, server.Addr()),
			client: &http.Client{Transport: &http.Transport{}, Timeout: patience},
		},
		platform: platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential, Exempt: true, Balance: 1e9})),
	}
	t.Cleanup(s.client.CloseIdleConnections)
	s.platform.SetLatency("createPod", making)
	s.platform.SetLatency("createEndpoint", making)
	s.file = fmt.Sprintf(`listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: {url: {env: REDIS_URL}}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
%s    keys: [{id: ann, roles: [admin], sha256: %q}, {id: bob, roles: [admin], sha256: %q}]
`, s.platform.URL, budget, identity.DigestOf("secret_ann").String(), identity.DigestOf("secret_bob").String())
	for i := range n {
		addr := server.Addr()
		if i == 0 && way != nil {
			addr = way(addr)
		}
		url, p := serve(t, i, s.file, "redis://"+addr)
		s.gateways, s.processes = append(s.gateways, url), append(s.processes, p)
	}
	return s
}

const withBudget, withoutBudget = "    budget: {gpus: 1000}\n", ""

// make asks gateway g for something with a key, and leaves after a time, if that is not 0.
func (s *spenders) make(g int, key string, c create, stay time.Duration) (status int, answer string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	if stay > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), stay)
	}
	defer cancel()
	return s.post(ctx, g, key, c)
}

// post asks gateway g for something with a key until ctx ends; the status is 0 without an answer.
func (s *spenders) post(ctx context.Context, g int, key string, c create) (status int, answer string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.gateways[g]+c.path, strings.NewReader(c.body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header = http.Header{"Authorization": {"Bearer secret_" + key}, "Content-Type": {"application/json"}}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || bytes.Contains(text, []byte(`"errors"`)) {
		return 0, string(text)
	}
	return res.StatusCode, string(text)
}

type create struct{ path, body string }

// creates makes a pod with a name, in each dialect.
func creates(name string) map[string]create {
	return map[string]create{
		"v2":      {"/v2/pods", fmt.Sprintf(`{"name":%q,"image":"img:1","gpu":{"id":"NVIDIA L4"}}`, name)},
		"v1":      {"/v1/pods", fmt.Sprintf(`{"name":%q,"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"gpuCount":1}`, name)},
		"graphql": {"/graphql", fmt.Sprintf(`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"%s\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1}) { id } }"}`, name)},
	}
}

// want fails unless the platform was asked so often to carry an operation out.
func (s *spenders) want(t *testing.T, operation string, n int) {
	t.Helper()
	if got := len(s.platform.CallsTo(operation)); got != n {
		t.Errorf("%d times %s, want %d", got, operation, n)
	}
	s.platform.ResetCalls()
}

// again leaves after a time, and repeats after another until it is answered.
func (s *spenders) again(t *testing.T, c create, stay, pause time.Duration) {
	if status, answer := s.make(0, "ann", c, stay); status != 0 {
		t.Errorf("answered %d %s before the caller left", status, answer)
	}
	world.Pause(pause) // the caller's own pause
	if status, answer := s.make(0, "ann", c, 0); status/100 != 2 {
		t.Errorf("repeat of %s: %d %s", c.body, status, answer)
	}
}

// TestCallersThatLeaveAndRepeat get one pod each, in every dialect, whether they come back
// before the first one is made or behind it.
func TestCallersThatLeaveAndRepeat(t *testing.T) {
	const callers = 20
	for name, budget := range map[string]string{"budget": withBudget, "no budget": withoutBudget} {
		t.Run(name, func(t *testing.T) {
			s := newMakers(t, 1, budget, nil)
			for dialect := range creates("") {
				for _, pause := range []time.Duration{300 * time.Millisecond, 10 * time.Millisecond} {
					var wg sync.WaitGroup
					for i := range callers {
						c := creates(fmt.Sprintf("%s-%d-%d", dialect, pause, i))[dialect]
						wg.Go(func() { s.again(t, c, making/2, pause) })
					}
					wg.Wait()
					s.want(t, "createPod", callers)
				}
			}
			s.again(t, create{"/graphql", `{"query":"mutation { saveEndpoint(input: {name: \"e\", gpuIds: \"ADA_24\", workersMax: 1, template: {name: \"t\", imageName: \"img:1\", dockerArgs: \"\", containerDiskInGb: 10, volumeInGb: 0, env: []}}) { id } }"}`}, making/2, 0)
			s.want(t, "createEndpoint", 1)
		})
	}
}

// TestCallersThatLeaveDuringTheSettlement leave when the pod exists and Redis, which stands still, has yet to hear of it. They get that pod.
func TestCallersThatLeaveDuringTheSettlement(t *testing.T) {
	t.Parallel()
	s := newMakers(t, 1, withBudget, nil)
	for dialect, c := range creates("settled") {
		var still sync.WaitGroup
		still.Go(func() {
			world.Pause(making / 2) // the reservation is made, and the pod is not
			if err := s.redis.ClientPause(t.Context(), 2*making).Err(); err != nil {
				t.Errorf("%s: %v", dialect, err)
			}
		})
		s.again(t, c, making*3/2, 2*making)
		still.Wait()
		s.want(t, "createPod", 1)
	}
}

// TestEqualCreatesOfCallersWhoWait are as many as they are, at one gateway or two, and the
// one that leaves and repeats gets its own. Another key's neither wait nor are repeats.
func TestEqualCreatesOfCallersWhoWait(t *testing.T) {
	const several = 50
	s := newMakers(t, 2, withBudget, nil)
	all := func(n int, one func(i int)) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { one(i) })
		}
		wg.Wait()
	}
	made := func(g int, key string, c create) {
		if status, answer := s.make(g, key, c, 0); status != http.StatusCreated {
			t.Errorf("%d %s", status, answer)
		}
	}
	all(several, func(int) { made(0, "ann", creates("equal")["v2"]) })
	s.want(t, "createPod", several)
	all(several, func(i int) {
		if i == 0 {
			s.again(t, creates("leave")["v2"], making/4, 0) // before any but the first is noted
			return
		}
		made(0, "ann", creates("leave")["v2"])
	})
	if n := s.pods(t, "leave"); n != several {
		t.Errorf("%d pods of %d callers, one of whom left and came back", n, several)
	}
	s.platform.ResetCalls()
	all(2, func(i int) { made(0, []string{"ann", "bob"}[i], creates("keys")["v2"]) })
	s.want(t, "createPod", 2)
	all(2, func(i int) { made(i, "ann", creates("gateways")["v2"]) })
	s.want(t, "createPod", 2)
}

// pods counts the platform's pods with a name.
func (s *spenders) pods(t *testing.T, name string) int {
	t.Helper()
	_, list, err := s.call(t.Context(), 0, http.MethodGet, "/v2/pods", "")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, fmt.Sprintf(`"name":%q`, name))
}

// TestARepeatOfAKilledGatewaysCreate gets the pod that it has made, and there is room for
// the next one at once.
func TestARepeatOfAKilledGatewaysCreate(t *testing.T) {
	t.Parallel()
	s := newMakers(t, 2, "    budget: {gpus: 2}\n", nil)
	s.platform.SetLatency("createPod", 0)
	s.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultHang, After: true, Times: 1})
	first := make(chan struct{})
	go func() {
		defer close(first)
		s.make(0, "ann", creates("a")["v2"], 0) // the gateway dies before it answers
	}()
	world.Until(t, "the platform has made the pod", func() bool { return len(s.platform.CallsTo("createPod")) == 1 })
	s.kill(t, 0)
	<-first
	if status, answer := s.make(1, "ann", creates("a")["v2"], 0); status != http.StatusCreated {
		t.Errorf("repeat: %d %s", status, answer)
	}
	s.want(t, "createPod", 1)
	if status, answer := s.make(1, "ann", creates("b")["v2"], 0); status != http.StatusCreated {
		t.Errorf("the next create: %d %s, want 201: there is room", status, answer)
	}
}

// TestAGatewayThatWasFrozenSendsNothing: it is stopped between its note and its call, and
// is taken for dead meanwhile.
func TestAGatewayThatWasFrozenSendsNothing(t *testing.T) {
	t.Parallel()
	h := &holder{word: []byte(`"name":"frozen"`), noted: make(chan struct{}), release: make(chan struct{})}
	s := newMakers(t, 2, withBudget, func(addr string) string { return h.listen(t, addr) })
	if status, answer := s.make(0, "ann", creates("before")["v2"], 0); status != http.StatusCreated { // Redis knows the scripts
		t.Fatalf("%d %s", status, answer)
	}
	s.platform.ResetCalls()
	answers := make(chan string, 2)
	ask := func(g int) {
		status, answer := s.make(g, "ann", creates("frozen")["v2"], 0)
		answers <- fmt.Sprintf("gateway %d: %d %s", g, status, answer)
	}
	go ask(0)
	<-h.noted
	s.freeze(t, s.processes[0])
	close(h.release)
	go ask(1)
	world.Pause(8 * time.Second) // that is how long it stands still
	if err := s.processes[0].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := <-answers
		if want := map[bool]string{true: "gateway 0: 503", false: "gateway 1: 201"}[strings.HasPrefix(a, "gateway 0")]; !strings.HasPrefix(a, want) {
			t.Errorf("%s, want %s", a, want)
		}
	}
	s.want(t, "createPod", 1)
}

// TestCallersThatLeaveAtAStandstill leave while the gateway stands still, as one does that
// has used up its share of processor time, and have come back before. The word of their
// leaving waits where the gateway has not looked yet, and nobody is taken for two.
func TestCallersThatLeaveAtAStandstill(t *testing.T) {
	t.Parallel()
	const callers = 20
	for second := range 2 {
		t.Run(fmt.Sprintf("back at gateway %d", second), func(t *testing.T) {
			t.Parallel()
			s := newMakers(t, 2, withBudget, nil)
			s.platform.SetLatency("createPod", 4*making)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var left, stayed sync.WaitGroup
			for i := range callers {
				left.Go(func() {
					if status, answer := s.post(ctx, 0, "ann", creates(fmt.Sprintf("standstill-%d", i))["v2"]); status != 0 {
						t.Errorf("answered %d %s before the caller left", status, answer)
					}
				})
			}
			world.Pause(making / 2) // the callers' own, before they come back
			for i := range callers {
				stayed.Go(func() {
					if status, answer := s.make(second, "ann", creates(fmt.Sprintf("standstill-%d", i))["v2"], 0); status != http.StatusCreated {
						t.Errorf("repeat: %d %s", status, answer)
					}
				})
			}
			world.Pause(making / 4) // less than it takes to tell repeats from other callers
			s.freeze(t, s.processes[0])
			leave()
			left.Wait()
			world.Pause(making) // that is how long it stands still
			if err := s.processes[0].Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			stayed.Wait()
			s.want(t, "createPod", callers)
		})
	}
}

// TestAnswersAtAStandstill come while the gateway stands still, after their callers have left:
// the resources made for them are there for their repeats.
func TestAnswersAtAStandstill(t *testing.T) {
	t.Parallel()
	const callers = 20
	s := newMakers(t, 1, withBudget, nil)
	for dialect := range creates("") {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		each := func(ctx context.Context, ask func(status int, answer string)) *sync.WaitGroup {
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() { ask(s.post(ctx, 0, "ann", creates(fmt.Sprintf("%s-%d", dialect, i))[dialect])) })
			}
			return &wg
		}
		left := each(ctx, func(status int, answer string) {
			if status != 0 {
				t.Errorf("%s: answered %d %s before the caller left", dialect, status, answer)
			}
		})
		world.Pause(making / 2) // the callers' own, before they leave
		s.freeze(t, s.processes[0])
		leave()
		left.Wait()
		stayed := each(t.Context(), func(status int, answer string) {
			if status/100 != 2 {
				t.Errorf("%s: repeat: %d %s", dialect, status, answer)
			}
		})
		world.Pause(making) // that is how long it stands still
		if err := s.processes[0].Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		stayed.Wait()
		s.want(t, "createPod", callers)
	}
}

// freeze stops a gateway, and returns when it stands still.
func (s *spenders) freeze(t *testing.T, p *process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
	world.Until(t, "the gateway stands still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("there is no /proc")
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(after, "T")
	})
}

// holder stands before a Redis and holds what that answers to a command with a word.
type holder struct {
	word           []byte
	once           sync.Once
	noted, release chan struct{}
}

func (h *holder) listen(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			var armed sync.WaitGroup // not 0 while an answer is held
			wg.Go(func() { relay(server, client, func(b []byte) { h.arm(b, &armed) }) })
			wg.Go(func() { relay(client, server, func([]byte) { armed.Wait() }) })
		}
	})
	return l.Addr().String()
}

// arm holds the answer to the first command with the word.
func (h *holder) arm(b []byte, armed *sync.WaitGroup) {
	if !bytes.Contains(b, h.word) {
		return
	}
	h.once.Do(func() {
		armed.Go(func() { <-h.release })
		time.AfterFunc(100*time.Millisecond, func() { close(h.noted) }) // Redis has carried it out
	})
}

// relay copies the bytes that come, once they were seen.
func relay(to, from net.Conn, see func([]byte)) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		see(buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
