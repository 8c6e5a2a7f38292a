package clients

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/world"
)

// rows returns the rows of the table of docs/tasks/tools.md by their first column, without the remarks in parentheses.
func rows(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/tasks/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(page), -1) {
		name := strings.TrimSpace(regexp.MustCompile(` ?\([^)]*\)`).ReplaceAllString(m[1], ""))
		if name != "tool" && !strings.HasPrefix(name, "---") {
			found[name] = m[2]
		}
	}
	return found
}

// page is the address of the gateway on the page.
const page = "https://gateway.example"

// settings returns the variables that the page sets for a program, with the address of a stack in place of the page's.
func settings(t *testing.T, program string, s *stack) []string {
	t.Helper()
	row, known := rows(t)[program]
	if !known {
		t.Fatalf("the page has no row of %s", program)
	}
	var env []string
	for _, m := range regexp.MustCompile("`([A-Z_]+_API_KEY)`").FindAllStringSubmatch(row, -1) {
		env = append(env, m[1]+"="+key)
	}
	for _, m := range regexp.MustCompile("`([A-Z0-9_]+)="+page+"([^`]*)`").FindAllStringSubmatch(row, -1) {
		env = append(env, m[1]+"="+s.gateway+m[2])
	}
	return env
}

// code returns the lines that the page shows for a program and that contain a text, with the address of a stack and a caller's key.
func code(t *testing.T, program, contains string, s *stack) string {
	t.Helper()
	var lines []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(rows(t)[program], -1) {
		if strings.Contains(m[1], contains) {
			lines = append(lines, strings.NewReplacer(page, s.gateway, `"KEY"`, `"`+key+`"`).Replace(m[1]))
		}
	}
	if lines == nil {
		t.Fatalf("the row of %s shows no code with %s", program, contains)
	}
	return strings.Join(lines, "\n")
}

// trap stands for every host but loopback, the platform's among them: names resolve to it in programs of Python and Node, and others take it
// for their proxy.
type trap struct {
	calls atomic.Int64
	env   []string
}

// newTrap listens until the test ends.
func newTrap(t *testing.T) *trap {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr, done := new(trap), make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tr.calls.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	directory, err := filepath.Abs("trap")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	tr.env = []string{
		"TRAP=" + at, "PYTHONPATH=" + directory, "NODE_OPTIONS=--require=" + filepath.Join(directory, "trap.cjs"),
		"HTTPS_PROXY=http://" + at, "NO_PROXY=127.0.0.1,localhost",
	}
	return tr
}

// sends reports whether a program calls a host other than loopback within a few seconds.
func (tr *trap) sends(t *testing.T, interpreter, script string, env []string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	path, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, interpreter, path)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "PYTHONDONTWRITEBYTECODE=1"}, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for tr.calls.Load() == 0 {
		select {
		case <-ended:
			return tr.calls.Load() > 0
		case <-tick.C:
		}
	}
	cancel()
	<-ended
	return true
}

// endpoint makes an endpoint without workers and returns its id.
func (s *stack) endpoint(t *testing.T) string {
	t.Helper()
	a := s.ask(t, "POST", s.gateway+"/v2/serverless", `{"name":"llm","image":"i","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(a.Body), &made); err != nil || made.ID == "" {
		t.Fatalf("no endpoint: %d %s", a.Status, a.Body)
	}
	return made.ID
}

// ask sends a request with the caller's key to an address.
func (s *stack) ask(t *testing.T, method, address, body string) world.Answer {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return world.Ask(t, u.Host, world.Request(method, u.RequestURI(), key, body))
}

// aRow says how the tests run the program of a row.
type aRow struct {
	interpreter func(*testing.T) string
	script      string
	// env are variables of the script. SERVER and SDK are paths below .tools/clients.
	env map[string]string
	// shown is part of the code that the row shows, "" for a row of variables alone.
	shown string
}

func ofPython(program string) func(*testing.T) string {
	return func(t *testing.T) string { t.Helper(); return installed(t, program+"/bin/python") }
}

func ofNode(t *testing.T) string {
	t.Helper()
	installed(t, "runpod-js-1.1.2/complete")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// ofRust returns the program of testdata/rust, which is built where cargo is installed.
func ofRust(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("cargo"); err != nil && os.Getenv("TOLLGATE_REQUIRE_CLIENTS") != "" {
		t.Skip("cargo is not installed")
	}
	return installed(t, "runpod-sdk-rust-0.8.0/client")
}

// runs are the rows of the page whose programs are run. The page's calls by curl are run with the commands of all pages, and dstack and
// SkyPilot have no settings.
func runs() map[string]aRow {
	server := func(version string) map[string]string {
		return map[string]string{"REST_VERSION": "v1", "SERVER": "mcp-server-" + version + "/node_modules/@runpod/mcp-server/dist/stdio.mjs"}
	}
	return map[string]aRow{
		"Python SDK, 1.7 and newer": {ofPython("runpod-1.12.0"), "tools.py", map[string]string{"PROGRAM": "sdk"}, "runpod."},
		"Python SDK, older":         {ofPython("runpod-1.6.2"), "tools.py", map[string]string{"PROGRAM": "sdk"}, "runpod."},
		"JavaScript SDK":            {ofNode, "tools.mjs", map[string]string{"SDK": "runpod-js-1.1.2/node_modules/runpod-sdk/dist/src/index.js"}, "runpodSdk("},
		"OpenAI clients":            {ofPython("openai-3.54.0"), "tools.py", map[string]string{"PROGRAM": "openai"}, "/openai/v1"},
		"`flash`":                   {ofPython("runpod-flash-1.21.0"), "flash.py", nil, ""},
		"MCP server, 4.0 and newer": {ofNode, "mcp4.mjs", server("4.0.0"), ""},
		"MCP server, older":         {ofNode, "mcp.mjs", server("3.4.0"), ""},
		"price collector":           {ofPython("gpuhunt-0.1.34"), "tools.py", map[string]string{"PROGRAM": "prices"}, "API_URL"},
		"Rust SDK":                  {ofRust, "tools.py", nil, ""},
	}
}

// Each program of the page, set up by its row and nothing else, reaches the gateway with its calls, and no other host. Without the row it
// calls the platform, whose names lead to the trap.
func TestEveryRowOfThePage(t *testing.T) {
	t.Parallel()
	for name := range rows(t) {
		if _, known := runs()[name]; !known && !slices.Contains([]string{"`runpodctl`", "dstack, SkyPilot", "`curl` and your own programs"}, name) {
			t.Errorf("no test runs the row of %s", name)
		}
	}
	for name, tt := range runs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			interpreter, s := tt.interpreter(t), newStack(t, standing())
			without, with := newTrap(t), newTrap(t) // the last calls of a program that was ended may be late
			env := []string{"ENDPOINT=" + s.endpoint(t)}
			for variable, value := range tt.env {
				if variable == "SERVER" || variable == "SDK" {
					value = installed(t, value)
				}
				env = append(env, variable+"="+value)
			}
			set := settings(t, name, s)
			if tt.shown != "" {
				set = append(set, "CODE="+code(t, name, tt.shown, s))
			}
			if !without.sends(t, interpreter, tt.script, slices.Concat(without.env, env, []string{"RUNPOD_API_KEY=" + key, "OPENAI_API_KEY=" + key, "KEY=" + key, "GATEWAY=" + s.gateway, "CONTROL=" + s.platform.ControlURL})) {
				t.Error("without the row it calls no host: the trap would not notice a call of the platform")
			}
			got := drive[report](t, s, interpreter, tt.script, slices.Concat(with.env, env, set)...)
			if n := with.calls.Load(); n > 0 {
				t.Errorf("%d calls of hosts other than the gateway, with the caller's key", n)
			}
			for label, call := range got.Calls {
				if call.Error != "" && strings.HasPrefix(tt.script, "tools.") { // the others make calls that must be refused
					t.Errorf("%s: %s", label, call.Error)
				}
			}
		})
	}
}

// The command line client is in no registry. Each address of its row is one where the gateway serves what the client asks for there.
func TestTheRowOfTheCommandLine(t *testing.T) {
	installed(t, "runpod-js-1.1.2/complete")
	s := newStack(t, standing())
	id := s.endpoint(t)
	asks := map[string]struct{ method, path, body, says string }{
		"RUNPOD_API_URL":     {"GET", "/pods?includeMachine=true", "", "[]"},
		"RUNPOD_GRAPHQL_URL": {"POST", "", `{"query":"{ myself { pods { id } } }"}`, `"pods":[]`},
		"RUNPOD_REST_V2_URL": {"GET", "/serverless/" + id + "/workers", "", `"workers":[]`},
		"RUNPOD_INVOKE_URL":  {"GET", "/" + id + "/health", "", `"jobs":`},
	}
	for _, setting := range settings(t, "`runpodctl`", s) {
		name, address, _ := strings.Cut(setting, "=")
		if name == "RUNPOD_API_KEY" {
			continue
		}
		ask, known := asks[name]
		if !known {
			t.Errorf("the client has no variable %s", name)
			continue
		}
		delete(asks, name)
		if a := s.ask(t, ask.method, address+ask.path, ask.body); a.Status != 200 || !strings.Contains(a.Body, ask.says) {
			t.Errorf("%s: %d %s, want 200 with %s", setting, a.Status, a.Body, ask.says)
		}
	}
	if len(asks) > 0 {
		t.Errorf("the row leaves calls to the platform: %v", asks)
	}
}
