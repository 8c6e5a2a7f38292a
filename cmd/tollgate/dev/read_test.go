package dev_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/dev"
)

// write makes a project of files by name.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, dir, name, text)
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// python is the interpreter, which every test but those without one requires.
func python(t *testing.T) dev.Python {
	t.Helper()
	p := dev.FindPython(t.Context())
	if p == (dev.Python{}) {
		t.Skip("no python3 in PATH")
	}
	return p
}

func read(t *testing.T, dir string) *dev.Project {
	t.Helper()
	p, err := python(t).Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// routes are the routes of a project as text.
func routes(p *dev.Project) []string {
	list := []string{}
	for _, r := range p.Routes {
		list = append(list, r.Method+" "+r.Path)
	}
	return list
}

func faults(p *dev.Project) []string {
	list := []string{}
	for _, f := range p.Faults {
		list = append(list, f.Error())
	}
	return list
}

const from = "from runpod_flash import Endpoint, GpuGroup, GpuType, NetworkVolume, PodTemplate\n"

// Routes have the path of their file. A file with several jobs has their names in the
// path, and a class those of its methods.
func TestRoutesFollowTheFiles(t *testing.T) {
	t.Parallel()
	p := read(t, write(t, map[string]string{
		"one.py":      from + "@Endpoint(name='one')\nasync def f(a: int): ...\n",
		"deep/two.py": "import runpod_flash as flash\n@flash.Endpoint()\ndef f(): ...\n@flash.Endpoint(name='g')\ndef g(): ...\n",
		"class.py":    from + "@Endpoint(name='class')\nclass C:\n  def __init__(self, size=1): ...\n  def run(self, x): ...\n  def stop(self): ...\n  def _own(self): ...\n",
		"web.py":      from + "api = Endpoint(name='web', cpu='cpu3c-2-4')\n@api.get('/items/{id}')\ndef item(id: int): ...\n@api.patch('/items')\ndef change(x: dict): ...\n",
		"image.py":    from + "vllm = Endpoint(name='vllm', image='vllm:1')\nunused = Endpoint(name='unused')\n",
		"helper.py":   "def Endpoint(**options): ...\n@Endpoint(name='other')\ndef f(): ...\n",
	}))
	want := []string{
		"POST /class/run/runsync", "POST /class/stop/runsync", "POST /image/runsync", "POST /one/runsync",
		"GET /web/items/{id}", "PATCH /web/items", "POST /deep/two/f/runsync", "POST /deep/two/g/runsync",
	}
	if diff := cmp.Diff(want, routes(p)); diff != "" || len(p.Faults) > 0 {
		t.Errorf("routes (-want +got):\n%s\nfaults %v", diff, faults(p))
	}
}

// Options are what their literals say, also by a constant or a member of an enumeration.
func TestOptionsAreRead(t *testing.T) {
	t.Parallel()
	p := read(t, write(t, map[string]string{"a.py": from + `
NAME = "a"
@Endpoint(name=NAME, gpu=[GpuGroup.ADA_24, GpuType.NVIDIA_L4], gpu_count=2, workers=3, idle_timeout=5, dependencies=["torch"],
    system_dependencies=["ffmpeg"], env={"A": "b"}, execution_timeout_ms=1000, scaler_type="REQUEST_COUNT", scaler_value=2,
    template=PodTemplate(containerDiskInGb=20), python_version="3.11", accelerate_downloads=False, flashboot=False,
    volume=NetworkVolume(id="v1"), datacenter="EU_RO_1", min_cuda_version="V12_4")
def f(): ...
`}))
	if len(p.Endpoints) != 1 {
		t.Fatalf("faults %v", faults(p))
	}
	want := dev.Config{
		Name: "a", GPU: []string{"ADA_24", "NVIDIA_L4"}, GPUCount: 2, Workers: []int{0, 3}, IdleTimeout: 5, Dependencies: []string{"torch"},
		SystemDependencies: []string{"ffmpeg"}, Env: map[string]string{"A": "b"}, ExecutionTimeout: 1000, ScalerType: "REQUEST_COUNT", ScalerValue: 2,
		Template: dev.Template{Disk: 20, Env: map[string]string{}}, PythonVersion: "3.11", Volumes: []string{"v1"}, DataCenters: []string{"EU-RO-1"}, MinCUDA: "12.4",
	}
	if diff := cmp.Diff(want, p.Endpoints[0].Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// Every fault has its file and line, and takes its file out, not others.
func TestFaultsHaveFileAndLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"syntax":           {"def (:\n", "a.py:1:5: invalid syntax"},
		"unknown option":   {from + "@Endpoint(name='a', gpus=1)\ndef f(): ...\n", "a.py:2:26: gpus: unknown option"},
		"wrong type":       {from + "@Endpoint(name='a',\n  idle_timeout='5')\ndef f(): ...\n", "a.py:3:16: idle_timeout: must be a whole number from 1 to 3600, not '5'"},
		"cpu and gpu":      {from + "@Endpoint(name='a', cpu='cpu3c-2-4', gpu='ANY')\ndef f(): ...\n", "a.py:2:2: cpu and gpu cannot be combined"},
		"no shape":         {from + "@Endpoint(name='a', cpu='cpu3c-2')\ndef f(): ...\n", "a.py:2:25: cpu: cpu3c-2 is not a shape"},
		"environment":      {from + "import os\n@Endpoint(name='a', env={'K': os.environ['K']})\ndef f(): ...\n", "a.py:3:31: env: must be a literal"},
		"computed":         {from + "@Endpoint(name=open('/etc/passwd').read())\ndef f(): ...\n", "a.py:2:16: name: must be a literal"},
		"name as a path":   {from + "@Endpoint(name='../../b')\ndef f(): ...\n", "a.py:2:16: name: must match"},
		"route as a path":  {from + "a = Endpoint(name='a')\n@a.get('/../docs')\ndef f(): ...\n", "a.py:3:2: a route requires a path"},
		"worker's route":   {from + "a = Endpoint(name='a')\n@a.post('/execute')\ndef f(): ...\n", "a.py:3:2: route /execute is reserved for the worker"},
		"local route":      {from + "a = Endpoint(name='a')\n@a.get('/x', local=True)\ndef f(): ...\n", "a.py:3:2: local routes are not served"},
		"constructor":      {from + "@Endpoint(name='a')\nclass C:\n  def __init__(self, x): ...\n  def f(self): ...\n", "a.py:4:3: C is created without arguments"},
		"taken name":       {from + "@Endpoint(name='a')\ndef f(): ...\n@Endpoint(name='a')\ndef g(): ...\n", "a.py:4:2: the name a is already used by a.py:2"},
		"taken route":      {from + "a = Endpoint(name='a')\n@a.get('/{x}')\ndef f(x): ...\n@a.get('/{y}')\ndef g(y): ...\n", "a.py:6:1: GET /a/{y} is already a route of a.py:2"},
		"deep":             {"x = " + strings.Repeat("(", 5000) + "\n", "a.py"},
		"too large":        {"#" + strings.Repeat("x", 256<<10) + "\n", "a.py: exceeds 262144 bytes"},
		"scaled by delay":  {from + "a = Endpoint(name='a', scaler_type='QUEUE_DELAY')\n@a.get('/x')\ndef f(): ...\n", "a.py:2:5: scaler_type: load-balanced endpoints scale by REQUEST_COUNT"},
		"route of a class": {from + "a = Endpoint(name='a')\n@a.get('/x')\nclass C: ...\n", "a.py:3:2: get does not define a route"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := read(t, write(t, map[string]string{"a.py": c.text, "good.py": from + "@Endpoint(name='good')\ndef f(): ...\n"}))
			if got := strings.Join(faults(p), "\n"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got fault %q, want %q", got, c.want)
			}
			if diff := cmp.Diff([]string{"POST /good/runsync"}, routes(p)); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
		})
	}
}

// A hostile project is read and not run, and files outside it are not read.
func TestHostileProjectsRunNothing(t *testing.T) {
	t.Parallel()
	outside := write(t, map[string]string{"secret.py": from + "@Endpoint(name='secret')\ndef f(): ...\n", "deep/x.py": from + "@Endpoint(name='x')\ndef f(): ...\n"})
	proof := filepath.Join(outside, "ran")
	effect := "open(" + fmt.Sprintf("%q", proof) + ", 'w').close()\n"
	dir := write(t, map[string]string{
		"a.py":               effect + from + "@Endpoint(name='a')\ndef f():\n  import helper, secret, os\n  " + effect,
		"helper.py":          effect + "import more\n",
		"more.py":            effect,
		"ast.py":             effect, // would stand in for the library's
		"json.py":            effect,
		"sitecustomize.py":   effect,
		".hidden/h.py":       from + "@Endpoint(name='h')\ndef f(): ...\n",
		"venv/v.py":          from + "@Endpoint(name='v')\ndef f(): ...\n",
		"mine/pyvenv.cfg":    "",
		"mine/m.py":          from + "@Endpoint(name='m')\ndef f(): ...\n",
		"a b.py":             from + "@Endpoint(name='space')\ndef f(): ...\n",
		"%2e%2e/up.py":       from + "@Endpoint(name='up')\ndef f(): ...\n",
		"tollgate-dev.x.yml": "",
	})
	for link, target := range map[string]string{"secret.py": "secret.py", "linked": "deep"} {
		if err := os.Symlink(filepath.Join(outside, target), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	p := read(t, dir)
	if diff := cmp.Diff([]string{"POST /a/runsync"}, routes(p)); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"helper.py": "helper.py", "more.py": "more.py"}, p.Endpoints[0].Functions[0].Modules); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	want := []string{"%2e%2e/up.py: not served: routes contain the file's path, which must consist of letters, digits, _, . and -", "a b.py: not served: routes contain the file's path, which must consist of letters, digits, _, . and -"}
	if diff := cmp.Diff(want, faults(p)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("the project was run")
	}
}

// Functions without end are a fault, in a time that is bounded.
func TestProjectsAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(from)
	for i := range 3000 {
		fmt.Fprintf(&text, "@Endpoint(name='f%d')\ndef f%d(): ...\n", i, i)
	}
	p := read(t, write(t, map[string]string{"a.py": text.String()}))
	if len(p.Endpoints) != 0 || !strings.Contains(strings.Join(faults(p), "\n"), "a.py:2003:1: the project has more than 1000 functions") {
		t.Errorf("%d endpoints, %d faults, the first %v", len(p.Endpoints), len(p.Faults), p.Faults[:1])
	}
}

// Without python3 the manifest describes endpoints, by the same names.
func TestManifest(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"tollgate-dev.yaml": `endpoints:
  - {name: llm, image: "vllm:1", gpu: [ADA_24], workers: [0, 2], execution_timeout_ms: 90000}
  - {name: web, image: "web:1", cpu: [cpu3c-2-4], routes: ["GET /models", "POST /v1/{name}"]}
  - {id: abc123}
`, "a.py": from + "@Endpoint(name='a')\ndef f(): ...\n"})
	p, err := dev.Python{}.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"POST /llm/runsync", "GET /web/models", "POST /web/v1/{name}", "POST /abc123/runsync"}, routes(p)); diff != "" || len(p.Faults) > 0 {
		t.Errorf("routes (-want +got):\n%s\nfaults %v", diff, faults(p))
	}
	put(t, dir, "tollgate-dev.yaml", "endpoints:\n  - {name: a, image: i, gpus: [ADA_24]}\n  - {name: b}\n  - {name: ../c, image: i}\n  - {name: d, image: i, routes: [GET /../x]}\n")
	if p, err = (dev.Python{}).Read(t.Context(), dir); err != nil || len(p.Endpoints) > 0 {
		t.Fatalf("%v, routes %v", err, routes(p))
	}
	if got := strings.Join(faults(p), "\n"); !strings.HasPrefix(got, "tollgate-dev.yaml:2:25: endpoints[0].gpus: unknown key") {
		t.Errorf("faults %s", got)
	}
	put(t, dir, "tollgate-dev.yaml", "endpoints:\n  - {name: b}\n  - {name: ../c, image: i}\n  - {name: d, image: i, routes: [GET /../x]}\n")
	if p, err = (dev.Python{}).Read(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got := faults(p); len(got) != 3 || !strings.HasPrefix(got[0], "tollgate-dev.yaml:2:5: ") || !strings.HasPrefix(got[2], "tollgate-dev.yaml:4:5: ") {
		t.Errorf("faults %v", got)
	}
}

// A project whose Python files are too large together is read in part, and says so. A named pipe or a link out of the project is not read.
func TestPythonIsBoundedTogether(t *testing.T) {
	t.Parallel()
	const function = from + "@Endpoint(name='%s')\ndef f(): ...\n"
	dir := write(t, map[string]string{"a.py": fmt.Sprintf(function, "a"), "z.py": fmt.Sprintf(function, "z")})
	for n := range 65 { // of 256 KiB
		put(t, dir, fmt.Sprintf("m%02d.py", n), "#"+strings.Repeat("x", 256<<10-2)+"\n")
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.py"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := read(t, dir)
	if got := strings.Join(faults(p), "\n"); !strings.Contains(got, "m63.py: not read: the Python files exceed 16777216 bytes in total") {
		t.Errorf("faults %q", got)
	}
	if diff := cmp.Diff([]string{"POST /a/runsync"}, routes(p)); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

// A manifest that is a named pipe, too large or a link out of the project is a fault, and holds nothing up.
func TestManifestsThatAreNotRead(t *testing.T) {
	t.Parallel()
	outside := write(t, map[string]string{"x.yaml": "endpoints: []\n"})
	for name, make := range map[string]func(path string) error{
		"pipe":  func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"large": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("#", 2<<20)), 0o600) },
		"link":  func(path string) error { return os.Symlink(filepath.Join(outside, "x.yaml"), path) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "tollgate-dev.yaml")); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "good.py", from+"@Endpoint(name='good')\ndef f(): ...\n")
		p := read(t, dir)
		if got := strings.Join(faults(p), "\n"); !strings.HasPrefix(got, "tollgate-dev.yaml: ") || len(p.Endpoints) != 1 {
			t.Errorf("%s: faults %q, %d endpoints", name, got, len(p.Endpoints))
		}
	}
}
