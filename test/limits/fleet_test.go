package limits

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// patience bounds every wait for a process or an answer. It is only there to end a
// test that hangs.
const patience = 3 * time.Minute

// credential is the platform key of the one organisation.
const credential = "platform-key-of-acme"

// fleet is a Redis, the emulated platform, and gateways in front of it.
type fleet struct {
	server    *redistest.Server
	redis     redistest.Conn
	gateways  []string
	processes []*process
	client    *http.Client
}

// newFleet starts n gateways whose organisation has the given keys.
func newFleet(t *testing.T, mode string, n int, keys ...string) *fleet {
	t.Helper()
	server := redistest.Run(t)
	addr := server.Addr()
	upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential}))
	f := &fleet{server: server, redis: redistest.Client(t, addr), client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	t.Cleanup(f.client.CloseIdleConnections)
	file := configuration(upstream.URL, "{url: {env: REDIS_URL}}", mode, keys...)
	for i := range n {
		url, p := serve(t, i, file, "redis://"+addr)
		f.gateways, f.processes = append(f.gateways, url), append(f.processes, p)
	}
	return f
}

// kill ends gateway g at once, as a crash would.
func (f *fleet) kill(t *testing.T, g int) {
	t.Helper()
	f.client.CloseIdleConnections()
	f.processes[g].kill()
}

// configuration is a gateway's file. A key is its identifier and its quotas; the
// secret of key a is secret_a.
func configuration(upstream, store, mode string, keys ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: %s
overload: {working: 10000}
limits: {mode: %s, timeout: 5s}
policies: {deadline: 10s}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    keys:
`, upstream, store, mode)
	for _, k := range keys {
		id, limits, _ := strings.Cut(k, " ")
		fmt.Fprintf(&b, "      - {id: %s, roles: [admin], sha256: %q, limits: %s}\n", id, identity.DigestOf("secret_"+id).String(), limits)
	}
	return b.String()
}

// process is that of a gateway. Its kill ends it at once.
type process struct {
	*os.Process

	log  *journal
	kill func()
}

// serve runs one gateway process until the test ends, when it must stop cleanly
// unless it was killed. It returns the gateway's address, too. Variables of env are set besides the secrets.
func serve(t *testing.T, n int, file, redisURL string, env ...string) (url string, p *process) {
	t.Helper()
	path := filepath.Join(t.TempDir(), fmt.Sprintf("tollgate-%d.yaml", n))
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), "serve", "-c", path)
	cmd.Env = append(cmd.Environ(), "ACME_KEY="+credential, "REDIS_URL="+redisURL)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := &journal{serving: make(chan string, 1), ended: make(chan struct{})}
	go log.read(out)
	killed := false
	p = &process{Process: cmd.Process, log: log, kill: func() {
		killed = true
		_ = cmd.Process.Kill()
		<-log.ended
		_ = cmd.Wait() // it was killed: that is its exit status
	}}
	t.Cleanup(func() {
		if killed {
			return
		}
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("gateway %d: %v", n, err)
		}
		<-log.ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("gateway %d ended with %v:\n%s", n, err, log)
		}
	})
	select {
	case addr := <-log.serving:
		return "http://" + addr, p
	case <-log.ended:
	case <-time.After(patience):
	}
	t.Fatalf("gateway %d does not serve:\n%s", n, log)
	return "", nil
}

// journal keeps a gateway's log, and tells when it serves.
type journal struct {
	serving chan string
	ended   chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) read(r io.Reader) {
	defer close(j.ended)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		j.mu.Lock()
		_, _ = fmt.Fprintln(&j.text, lines.Text()) // a Buffer does not fail
		j.mu.Unlock()
		var entry struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "serving" {
			j.serving <- entry.Listen
		}
	}
}

// String returns all that was logged.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// answer is a caller's answer.
type answer struct {
	Status int
	// Remaining and Reset are those of the one window told.
	Remaining, Reset int
	// RetryAfter is -1 if the header is absent.
	RetryAfter int
	Body       string
}

// state is the RateLimit field for one window.
var state = regexp.MustCompile(`^"[a-z]+";r=([0-9]+);t=([0-9]+)$`)

// ask makes a call to gateway g with a key.
func (f *fleet) ask(t *testing.T, g int, key string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.gateways[g]+"/v2/pods", nil)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	req.Header.Set("Authorization", "Bearer secret_"+key)
	res, err := f.client.Do(req)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return read(t, res.StatusCode, res.Header, string(body))
}

func read(t *testing.T, status int, h http.Header, body string) answer {
	t.Helper()
	a := answer{Status: status, RetryAfter: -1, Body: body}
	told := field(h, "RateLimit")
	m := state.FindStringSubmatch(told)
	if m == nil && status == http.StatusServiceUnavailable {
		return a // nothing is known of the window
	}
	if m == nil {
		t.Errorf("status %d with RateLimit %q, want one window: %s", status, told, body)
		return a
	}
	a.Remaining, _ = strconv.Atoi(m[1]) // digits, by the expression
	a.Reset, _ = strconv.Atoi(m[2])
	if text := field(h, "Retry-After"); text != "" {
		var err error
		if a.RetryAfter, err = strconv.Atoi(text); err != nil {
			t.Errorf("Retry-After: %q is no whole number", text)
		}
	}
	return a
}

// field is a header's value; a gateway in this process spells names as they go
// over the wire, not as Go does.
func field(h http.Header, name string) string {
	for spelt, values := range h {
		if strings.EqualFold(spelt, name) {
			return strings.Join(values, ", ")
		}
	}
	return ""
}

// now is the clock that decides.
func (f *fleet) now(t *testing.T) time.Time {
	t.Helper()
	now, err := f.redis.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.UTC()
}

// within plays a case with one key, and once more with another if a window turned
// meanwhile, which is then too young to turn again. Faults of the case are reported only
// if none turned.
func (f *fleet) within(t *testing.T, size time.Duration, keys [2]string, play func(key string) []string) {
	t.Helper()
	for _, key := range keys {
		before := f.now(t).Truncate(size)
		wrong := play(key)
		if !f.now(t).Truncate(size).Equal(before) {
			continue
		}
		for _, what := range wrong {
			t.Error(what)
		}
		return
	}
	t.Errorf("a window of %v turned in both attempts", size)
}

// scripts is how many scripts Redis was asked to run.
func (f *fleet) scripts(t *testing.T) int {
	t.Helper()
	info, err := f.redis.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, m := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=([0-9]+),`).FindAllStringSubmatch(info, -1) {
		n, _ := strconv.Atoi(m[1]) // digits, by the expression
		sum += n
	}
	return sum
}
