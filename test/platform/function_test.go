package platform

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// python is an interpreter for workers; without one the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	const name = "python3"
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("TOLLGATE_REQUIRE_PYTHON") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return name
}

// newCalls is a rig with an endpoint that has a worker up, which runs functions.
// The clock stands.
func newCalls(t *testing.T, w Worker, members string) *jobs {
	t.Helper()
	w.Python = python(t)
	t.Setenv("TMPDIR", t.TempDir())
	r := newRig(t, Options{Worker: w, Timing: Timing{ColdStart: -1}})
	return &jobs{rig: r, h: r.RunHandler(), base: "http://localhost:8090/v2/" + r.newEndpoint(`{"name":"e","image":"i","workers":{"min":1,"max":1},`+members+`}`)}
}

const (
	queueMembers    = `"type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`
	balancedMembers = `"type":"LOAD_BALANCER","gpu":{"pools":["ADA_24"]},"scaling":{"type":"REQUEST_COUNT","requestCount":4}`
)

// input is a job that calls f of source, with further members.
func input(t *testing.T, source string, members ...any) string {
	t.Helper()
	m := map[string]any{"function_name": "f", "function_code": source, "serialization_format": "json"}
	for i := 0; i < len(members); i += 2 {
		m[members[i].(string)] = members[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nothingLeft fails the test if a directory of a function is still there.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %q (error %v)", left, err)
	}
}

func TestFunctions(t *testing.T) {
	t.Setenv("TOLLGATE_TEST", "the emulator's")
	j := newCalls(t, Worker{}, queueMembers+`,"env":{"MODEL":"small"}`)
	tests := map[string]struct {
		source  string
		members []any
		want    any // the result, as JSON
	}{
		"arguments":          {"def f(a, b, *, c=1):\n  return [a, b, c]", []any{"args", []any{1, "x"}, "kwargs", map[string]any{"c": nil}}, []any{1.0, "x", nil}},
		"asynchronous":       {"async def f():\n  import asyncio\n  await asyncio.sleep(0)\n  return {'done': True}", nil, map[string]any{"done": true}},
		"nothing":            {"def f():\n  pass", nil, nil},
		"local modules":      {"def f():\n  from near.by import one\n  return one()", []any{"modules", map[string]string{"near/by.py": "def one():\n  return 1"}}, 1.0},
		"its environment":    {"def f():\n  import os\n  return [os.environ['MODEL'], os.environ.get('TOLLGATE_TEST')]", nil, []any{"small", nil}},
		"its directory":      {"def f():\n  open('x', 'w').write('1')\n  import tempfile\n  return [open('x').read(), len(tempfile.mkdtemp()) > 0]", nil, []any{"1", true}},
		"its own processes":  {"def f():\n  import subprocess\n  return subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout", nil, "hi\n"},
		"a process of two":   {"def f():\n  import os\n  pid = os.fork()\n  if pid: os.waitpid(pid, 0)\n  return pid > 0", nil, true},
		"numbers as sent":    {"def f(n):\n  return n + 1", []any{"args", []any{json.Number("9007199254740993")}}, 9007199254740994.0},
		"a class's method":   {"", []any{"execution_type", "class", "class_name", "C", "class_code", "class C:\n  def __init__(self, n):\n    self.n = n\n  def add(self, m):\n    return self.n + m", "method_name", "add", "constructor_args", []int{1}, "kwargs", map[string]int{"m": 2}, "instance_id", "C_1"}, 3.0},
		"a class's own call": {"", []any{"execution_type", "class", "class_name", "C", "class_code", "class C:\n  async def __call__(self):\n    return 4"}, 4.0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := j.ask(200, "POST", "/runsync", `{"input":`+input(t, tt.source, tt.members...)+`}`)
			if diff := cmp.Diff(tt.want, a.at("output.json_result")); diff != "" || a.text("status") != "COMPLETED" || a.at("output.success") != true {
				t.Errorf("got %s (-want +got):\n%s", a.raw, diff)
			}
		})
	}
	nothingLeft(t)
}

// Without serialization_format, arguments and results are base64 of pickles.
func TestPickledFunctions(t *testing.T) {
	j := newCalls(t, Worker{}, queueMembers)
	const two, hi = "STIKLg==", "UydoaScKLg==" // 2 and "hi"
	pickled := func(source string, args ...any) answer {
		return j.ask(200, "POST", "/runsync", `{"input":`+input(t, source, "serialization_format", "cloudpickle", "args", args)+`}`)
	}
	a := pickled("def f(n, s):\n  return {s: n * 3}", two, hi)
	result := a.text("output.result")
	if result == "" {
		t.Fatalf("got %s", a.raw)
	}
	if shown := pickled("def f(v):\n  print(v)", result); shown.text("output.stdout") != "{'hi': 6}\n" {
		t.Errorf("got %s", shown.raw)
	}
	if bad := pickled("def f(v):\n  pass", "bm8="); bad.text("status") != "FAILED" || !strings.Contains(bad.text("error"), "UnpicklingError") {
		t.Errorf("no pickle: got %s", bad.raw)
	}
}

func TestFunctionsThatFail(t *testing.T) {
	j := newCalls(t, Worker{Memory: 512 << 20}, queueMembers)
	outside := filepath.Join(t.TempDir(), "outside")
	tests := map[string]struct{ source, says string }{
		"raises":               {"def f():\n  raise ValueError('no such shape')", "ValueError: no such shape\n  File \"<f>\", line 2, in f\n    raise ValueError('no such shape')"},
		"does not compile":     {"def f(:", "SyntaxError"},
		"is another":           {"def g(): pass", "NameError: the source has no 'f'"},
		"lacks a package":      {"import no_such_package\ndef f(): pass", "No module named 'no_such_package'"},
		"leaves":               {"def f():\n  import sys\n  sys.exit(3)", "SystemExit: 3"},
		"leaves at once":       {"def f():\n  import os\n  os._exit(3)", "exited with code 3 before the function returned"},
		"kills itself":         {"def f():\n  import os\n  os.kill(os.getpid(), 9)", "ended by signal 9"},
		"kills what watches":   {"def f():\n  import os\n  os.kill(os.getppid(), 9)\n  while True: pass", "the worker could not run the function: signal: killed"},
		"returns no JSON":      {"def f():\n  return {1, 2}", "TypeError: Object of type set is not JSON serializable"},
		"returns no number":    {"def f():\n  return float('nan')", "ValueError: Out of range float values are not JSON compliant"},
		"fills memory":         {"def f():\n  kept = []\n  while True: kept.append(bytearray(1 << 20))", "MemoryError"},
		"fills it by several":  {"def f():\n  import os, time\n  for _ in range(3):\n    if os.fork() == 0: break\n  kept = b'x' * (200 << 20)\n  time.sleep(60)", "hold more than 536870912 bytes"},
		"forks":                {"def f():\n  import os, time\n  for _ in range(40):\n    if os.fork() == 0:\n      os.setsid()\n      time.sleep(60)\n  time.sleep(60)", "started more than 32 processes"},
		"prints without end":   {"def f():\n  while True: print('x' * 1000)", "printed more than 1048576 bytes"},
		"writes elsewhere":     {"def f():\n  open(" + strconv.Quote(outside) + ", 'w')", "may write only in its own directory, not to " + outside},
		"by a link":            {"def f():\n  import os\n  os.symlink('/', 'root')\n  open('root' + " + strconv.Quote(outside) + ", 'w')", "may write only in its own directory"},
		"makes a directory":    {"def f():\n  import os\n  os.mkdir(" + strconv.Quote(outside) + ")", "may write only in its own directory"},
		"has modules outside":  {"def f(): pass", "leads out of the job's directory"},
		"reads an environment": {"def f():\n  return open('/proc/" + strconv.Itoa(os.Getpid()) + "/environ').read()", "may not read the environment of other processes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var members []any
			if name == "has modules outside" {
				members = []any{"modules", map[string]string{"../m.py": ""}}
			}
			a := j.ask(200, "POST", "/runsync", `{"input":`+input(t, tt.source, members...)+`}`)
			if a.text("status") != "FAILED" || !strings.Contains(a.text("error"), tt.says) || a.at("output.success") != false {
				t.Errorf("got %s, want FAILED with %q", a.raw[:min(len(a.raw), 2000)], tt.says)
			}
		})
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a function wrote outside of its directory")
	}
	nothingLeft(t)
	// What a function starts ends with it, even in a session of its own.
	a := j.ask(200, "POST", "/runsync", `{"input":`+input(t, "def f():\n  import subprocess\n  return subprocess.Popen(['sleep', '600'], start_new_session=True).pid")+`}`)
	pid, _ := a.at("output.json_result").(float64)
	if text, err := os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/cmdline"); pid == 0 || strings.Contains(string(text), "sleep") {
		t.Errorf("the function's process goes on: %s %s (error %v)", a.raw, text, err)
	}
}

func TestFunctionsEnd(t *testing.T) {
	const forever = "def f():\n  while True: pass"
	t.Run("by the worker's bound", func(t *testing.T) {
		j := newCalls(t, Worker{Timeout: time.Second}, queueMembers)
		a := j.ask(200, "POST", "/runsync", `{"input":`+input(t, forever)+`}`)
		if a.text("status") != "FAILED" || a.text("error") != "the function ran longer than 1s" {
			t.Errorf("got %s", a.raw)
		}
	})
	t.Run("by the execution timeout", func(t *testing.T) {
		j := newCalls(t, Worker{}, queueMembers)
		j.Clock().SetSpeed(10)
		a := j.ask(200, "POST", "/runsync", `{"input":`+input(t, forever)+`,"policy":{"executionTimeout":10000}}`)
		if a.text("status") != "TIMED_OUT" {
			t.Errorf("got %s", a.raw)
		}
		j.functions.running.Wait()
	})
	t.Run("by a cancel", func(t *testing.T) {
		j := newCalls(t, Worker{}, queueMembers)
		id := j.ask(200, "POST", "/run", `{"input":`+input(t, forever)+`}`).text("id")
		if got := j.status(id); got != "IN_PROGRESS" {
			t.Errorf("running: got %s", got)
		}
		j.ask(200, "POST", "/cancel/"+id, "{}")
		j.functions.running.Wait()
		if got := j.status(id); got != "CANCELLED" {
			t.Errorf("cancelled: got %s", got)
		}
		nothingLeft(t)
	})
	t.Run("with the endpoint", func(t *testing.T) {
		j := newCalls(t, Worker{}, queueMembers)
		j.ask(200, "POST", "/run", `{"input":`+input(t, forever)+`}`)
		j.want(204, "DELETE", "/v2/serverless/"+path.Base(j.base), "")
		j.functions.running.Wait()
	})
	t.Run("with the emulator, which begins again", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		o := Options{Worker: Worker{Python: python(t)}, Timing: Timing{ColdStart: -1}, Clock: ManualClock(start()), DataFile: filepath.Join(t.TempDir(), "data")}
		first, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{Server: first, t: t, key: DefaultKey}
		j := &jobs{rig: r, h: r.RunHandler(), base: "http://127.0.0.1/v2/" + r.newEndpoint(`{"name":"e","image":"i","workers":{"min":1,"max":1},`+queueMembers+`}`)}
		id := j.ask(200, "POST", "/run", `{"input":`+input(t, "def f():\n  import os, time\n  time.sleep(0 if os.path.exists("+strconv.Quote(o.DataFile+".second")+") else 600)\n  return 1")+`}`).text("id")
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.DataFile+".second", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r = newRig(t, o)
		j.rig, j.h = r, r.RunHandler()
		r.Clock().SetSpeed(10) // a worker must come up
		if a := j.ask(200, "GET", "/status-sync/"+id+"?wait=300000", ""); a.text("status") != "COMPLETED" || a.at("output.json_result") != 1.0 {
			t.Errorf("got %s", a.raw)
		}
	})
}

// A load-balanced worker takes functions at a path of its own; whatever becomes of
// them, the answer is a 200.
func TestBalancedFunctions(t *testing.T) {
	j := newCalls(t, Worker{}, balancedMembers)
	host := ".localhost"
	ask := func(at, body string) answer {
		req := httptest.NewRequest("POST", "http://"+path.Base(j.base)+host+at, bytes.NewReader([]byte(body)))
		req.Header.Set("Authorization", "Bearer "+DefaultKey)
		rec := httptest.NewRecorder()
		j.h.ServeHTTP(rec, req)
		a := answer{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
		if err := json.Unmarshal(rec.Body.Bytes(), &a.body); err != nil {
			t.Fatalf("got %d %s", rec.Code, rec.Body)
		}
		return a
	}
	body := input(t, "async def f(n):\n  print('at it')\n  return 10 / n", "args", []int{5})
	if a := ask("/execute", body); a.status != 200 || a.at("json_result") != 2.0 || a.text("stdout") != "at it\n" || a.header.Get(workerHeader) == "" {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	if a := ask("/execute", strings.Replace(body, "[5]", "[0]", 1)); a.status != 200 || a.at("success") != false || !strings.HasPrefix(a.text("error"), "ZeroDivisionError: division by zero") {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	host = ".evil.test"
	if a := ask("/execute", body); a.status != 403 || a.text("error") != "functions are run for calls to localhost only" {
		t.Errorf("by another name: got %d %s", a.status, a.raw)
	}
	for at, body := range map[string]string{"/other": body, "/execute": `{"function_name":"f"}`} {
		if a := ask(at, body); a.text("path") != at || a.text("body") != body {
			t.Errorf("without a function to run: got %s", a.raw)
		}
	}
}

// Without a worker, or without a source, a job's output is its input.
func TestNoFunction(t *testing.T) {
	j := newJobs(t, queueEndpoint)
	if a := j.waiting(200, "POST", "/runsync", `{"input":`+input(t, "def f(): pass")+`}`); a.text("output.echo.function_name") != "f" {
		t.Errorf("without a worker: got %s", a.raw)
	}
	if _, err := New(Options{Worker: Worker{Python: "no-such-python"}}); err == nil || !strings.Contains(err.Error(), "no-such-python") {
		t.Errorf("an interpreter that is not there: got %v", err)
	}
	j = newCalls(t, Worker{}, queueMembers)
	j.base = "http://evil.test" + strings.TrimPrefix(j.base, "http://localhost:8090")
	if a := j.ask(403, "POST", "/runsync", `{"input":`+input(t, "def f(): pass")+`}`); a.text("error") != "functions are run for calls to localhost only" {
		t.Errorf("by another name: got %s", a.raw)
	}
	if a := j.waiting(200, "POST", "/runsync", `{"input":{"function_name":"f","n":1}}`); a.at("output.echo.n") != 1.0 {
		t.Errorf("without a source: got %s", a.raw)
	}
}
