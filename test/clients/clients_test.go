package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the run of one client program.
const patience = 3 * time.Minute

// installed returns a path below .tools/clients, or skips the test: only make clients runs it.
func installed(t *testing.T, path string) string {
	t.Helper()
	if os.Getenv("TOLLGATE_REQUIRE_CLIENTS") == "" {
		t.Skip("make clients runs it")
	}
	full, err := filepath.Abs(filepath.Join("../../.tools/clients", path))
	if err == nil {
		_, err = os.Stat(full)
	}
	if err != nil {
		t.Fatalf("%v: .ci/install-tools clients installs it", err)
	}
	return full
}

// stack is a gateway over an emulator.
type stack struct {
	gateway  string
	platform *platform.Instance
}

// key is a caller's; once may call once in a minute.
const key, once = "key_of_a_client", "key_of_an_impatient_one"

// standing is a clock that moves when a script says so.
func standing() *platform.Clock {
	return platform.ManualClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
}

func newStack(t *testing.T, clock *platform.Clock, options ...platform.Option) *stack {
	t.Helper()
	p := platform.RunT(t, append(options, platform.WithClock(clock))...)
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`", run_url: "`+p.RunURL+`"}
redis: {embedded: true}
limits: {timeout: 30s}
policies: {deadline: 30s}
legacy: {keyless: {org: acme}}
orgs:
  - id: acme
    credential: {env: KEY}
    policies:
      - {policy: gpu_count, params: {max_per_pod: 4}}
      - {policy: run_limits, params: {max_tokens: 64}}
      - {policy: run_endpoints, params: {models: [small-chat]}}
    keys:
      - {id: client, sha256: SHA256(`+key+`)}
      - {id: impatient, sha256: SHA256(`+once+`), roles: [viewer], limits: {minute: 1}}
`, map[string]string{"KEY": platform.DefaultKey})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	s := httptest.NewServer(g.Handler())
	t.Cleanup(s.Close)
	return &stack{gateway: s.URL, platform: p}
}

// drive runs a script of this directory and decodes the JSON that it prints.
func drive[T any](t *testing.T, s *stack, interpreter, script string, env ...string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	path, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, interpreter, path)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "PYTHONDONTWRITEBYTECODE=1",
		"GATEWAY=" + s.gateway, "CONTROL=" + s.platform.ControlURL, "KEY=" + key,
	}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, &stderr)
	}
	var report T
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%s: its report: %v\n%s\n%s", script, err, &stdout, &stderr)
	}
	if _, perHour, err := s.platform.Balance("default"); err != nil || perHour != 0 {
		t.Errorf("%s left something that costs %v USD per hour (error %v), want it to remove all that it made", script, perHour, err)
	}
	return report
}

// report is a script's account of its calls.
type report struct {
	Calls map[string]struct {
		Result any
		Error  string
	}
	Missing []string
}

// check holds the report against a file of testdata, which has the right result of each
// call: an object of values by the path that leads to them (list items by index, "#" for
// the length of a list), or a string that its error contains. A call of the file that was
// not made, one that was made and is not in the file, and public calls that the script
// does not know are faults.
func (r report) check(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var wanted map[string]any
	if err := json.Unmarshal(data, &wanted); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(r.Missing) > 0 {
		t.Errorf("the script does not make these calls: %q", r.Missing)
	}
	for label := range r.Calls {
		if _, known := wanted[label]; !known {
			t.Errorf("%s: was called, and %s says nothing of its result", label, file)
		}
	}
	for label, want := range wanted {
		got, made := r.Calls[label]
		fails, isFailure := want.(string)
		values, _ := want.(map[string]any)
		switch {
		case !made:
			t.Errorf("%s: was not called", label)
		case isFailure && (got.Error == "" || !strings.Contains(got.Error, fails)):
			t.Errorf("%s: got %v, error %q, want an error with %q", label, got.Result, got.Error, fails)
		case !isFailure && got.Error != "":
			t.Errorf("%s: got error %q", label, got.Error)
		}
		for path, value := range values {
			if diff := cmp.Diff(value, at(got.Result, path)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", label, path, diff)
			}
		}
	}
}

// at follows a dotted path into a decoded JSON value, "." being the value itself;
// nil when it leads nowhere.
func at(v any, path string) any {
	if path == "." {
		return v
	}
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			if name == "#" {
				return float64(len(x))
			}
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}
