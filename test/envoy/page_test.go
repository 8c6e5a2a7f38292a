package envoy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// harness is the test's script around the commands of docs/tasks/envoys.md, in one shell: it
// waits where a reader looks, and kills and stops gateways while curl calls.
const harness = `set -u
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT
both() { for n in 1 2; do test 2 = "$(curl -s "http://127.0.0.1:990$n/clusters" | grep -c '^tollgate::.*::health_flags::healthy')" || return 1; done; }
call() { curl -s -o body -w '%{http_code}\n' -H "Authorization: Bearer $KEY" http://127.0.0.1:10000/v2/pods; }
COMMANDS
jobs=($(jobs -p))
until both && test 200 = "$(call)"; do sleep 0.1; done
CURL
for turn in 'KILL a 2' 'KILL b 3' 'TERM a 2'; do
  read -r signal gateway i <<< "$turn"
  for n in $(seq 80); do
    test $n = 20 && kill -$signal ${jobs[i]}
    echo "$signal $gateway: $(call)"
  done
  wait ${jobs[i]} 2> /dev/null
  tollgate serve -c $gateway.yaml >> $gateway.log 2>&1 &
  jobs[i]=$!
  until both; do sleep 0.1; done
done
echo played
`

// What docs/tasks/envoys.md says to type, in at most ten lines, gives two Envoys before two
// gateways; either gateway can be killed or stopped, and a loop of curl sees nothing.
func TestThePage(t *testing.T) {
	t.Parallel()
	for _, topology := range settings.Topology("").Values() {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			playPage(t, topology)
		})
	}
}

func playPage(t *testing.T, topology string) {
	t.Helper()
	envoy := program(t)
	for program, require := range map[string]string{"redis-server": "TOLLGATE_REQUIRE_REDIS", "curl": "TOLLGATE_REQUIRE_CURL"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv(require) != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	page, err := os.ReadFile("../../docs/tasks/envoys.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```sh\n")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 10 || !strings.HasPrefix(lines[len(lines)-1], "curl -i ") {
		t.Fatalf("%d lines, want at most 10 of which the last is curl:\n%s", len(lines), text)
	}
	script := strings.NewReplacer("COMMANDS", strings.Join(lines[:len(lines)-1], "\n"), "CURL", lines[len(lines)-1]).Replace(harness)
	config, err := os.ReadFile("../../deploy/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// A machine that is busy with other tests takes longer over a verdict than callers wait.
	patient := "overload: {working: 10000}\nlimits: {timeout: 10s}\npolicies: {deadline: 10s}\n" +
		strings.Replace(string(config), "{id: edge,", "{id: edge, topology: "+topology+",", 1)
	ports := freePorts(t)
	dir := t.TempDir()
	for file, text := range map[string]string{"run.sh": ports.Replace(script), "deploy/fleet.yaml": ports.Replace(patient)} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "run.sh")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+strings.Join([]string{filepath.Dir(tollgate.Path(t)), filepath.Dir(envoy), os.Getenv("PATH")}, ":"))
	out, err := cmd.CombinedOutput()
	said := string(out)
	for _, want := range []string{"HTTP/1.1 200 OK", "x-tollgate-decision: ", `{"pods":[],"pagination":{"nextCursor":null,"hasNextPage":false}}`, "\nplayed\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q was not printed", want)
		}
	}
	for _, turn := range []string{"KILL a", "KILL b", "TERM a"} {
		if got := strings.Count(said, turn+": 200\n"); got != 80 {
			t.Errorf("%s: %d of 80 calls are answered with 200, want all", turn, got)
		}
	}
	if err != nil || t.Failed() {
		for line := range strings.Lines(said) {
			if !strings.HasSuffix(line, ": 200\n") {
				t.Log(strings.TrimSuffix(line, "\n"))
			}
		}
		t.Errorf("the script ended with %v", err)
		for _, log := range []string{"a.log", "b.log", "e1.log", "e2.log"} {
			text, err := os.ReadFile(filepath.Join(dir, log))
			t.Logf("%s: %v\n%s", log, err, text[max(0, len(text)-4000):])
		}
	}
}

// given are the tens of the ports that freePorts has given.
var given sync.Map //nolint:gochecknoglobals // the ports of one machine

// freePorts replaces the ports of docs/tasks/envoys.md by free ones. Those of a gateway, and
// those of the Envoys' admin interfaces, differ in their last digit only.
func freePorts(t *testing.T) *strings.Replacer {
	t.Helper()
	port := func() string {
		for {
			n, err := redistest.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(":", n)
			if _, twice := given.LoadOrStore(text[:5], true); !twice {
				return text
			}
		}
	}
	ten := func() string {
		for {
			prefix, free := port()[:5], true
			for n := range 3 {
				l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1", prefix, n))
				if free = free && err == nil; err == nil {
					_ = l.Close()
				}
			}
			if free {
				return prefix
			}
		}
	}
	store := port()
	return strings.NewReplacer(":808", ten(), ":818", ten(), ":990", ten(), ":9000", port(), ":10000", port(),
		":6379", store, "redis-server", "redis-server --port "+store[1:])
}
