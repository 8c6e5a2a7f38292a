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
	for _, r := range p.Routes() {
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

// Constants of the project stand for their values, and only names that come from the
// toolkit are members of its enumerations. Nothing else that looks like either is a value.
func TestNamesStandForWhatTheyAre(t *testing.T) {
	t.Parallel()
	const given = "import os, cfg, other\nimport pkg.cfg\nimport runpod_flash as flash\nfrom cfg import DEPS as mine, Settings\nfrom pkg import cfg as inner\n" +
		"from runpod_flash import CpuInstanceType, CudaVersion, DataCenter, Endpoint, GpuGroup as G, PodTemplate, ServerlessScalerType\n" +
		"IMAGE = 'img:own'\nPICKED = G.ADA_24\nif os.environ.get('X'): SOMETIMES = 'x'\nGROWS = ['a']\nGROWS.append('b')\nSETS = {'A': 'b'}\n" +
		"def change(): SETS['C'] = 'd'\nclass Own:\n  ADA_24 = 'img:class'\nclass Read(Own):\n  ADA_24 = 'no'\nclass NetworkVolume:\n  def __init__(self, id): ...\n"
	for options, want := range map[string]string{
		// Constants, of this file and of others.
		"image=IMAGE": `image: img:own`, "image=cfg.IMAGE": `image: img:cfg`, "image=pkg.cfg.IMAGE": `image: img:pkg`, "image=inner.IMAGE": `image: img:pkg`,
		"image=Settings.IMAGE": `image: img:settings`, "image=cfg.Settings.IMAGE": `image: img:settings`, "image=Own.ADA_24": `image: img:class`,
		"image=inner.ALIAS": `image: img:cfg`, "image=mine[0]": "image: must be a literal",
		// Members of enumerations.
		"image='i', gpu=PICKED": `gpu: ADA_24`, "image='i', gpu=[flash.GpuGroup.ADA_24, G.ADA_24.value]": `gpu: ADA_24 ADA_24`,
		"image='i', cpu=CpuInstanceType.CPU3C_2_4": `cpu: cpu3c-2-4`, "image='i', datacenter=DataCenter.EU_RO_1, gpu=G.ANY": `gpu: ANY`,
		// Names nobody chose.
		"image=cfg.MISSING":                       "image: cfg.MISSING is not a constant of the project",
		"image=cfg.COMPUTED":                      "image: cfg.COMPUTED, at cfg.py:3:12: must be a literal",
		"image=os.IMAGE":                          "image: os is not a constant of the project",
		"image=nowhere.IMAGE":                     "image: nowhere is not a constant of a.py",
		"image=G.ADA_24":                          "image: G.ADA_24 is not a value of this option",
		"image=SOMETIMES":                         "image: SOMETIMES is not a constant: line 9 of a.py may set or change it",
		"image=Read.ADA_24":                       "image: Read.ADA_24 is not a constant of the project",
		"image=cfg.Settings":                      "image: cfg.Settings is a class, not a value",
		"image=other.IMAGE":                       "image: IMAGE is not a constant: line 2 of other.py may set or change it",
		"image='i', cpu=G.ADA_24":                 "cpu: G.ADA_24 is not a value of this option, want a member of CpuInstanceType",
		"image='i', gpu=DataCenter.EU_RO_1":       "gpu: DataCenter.EU_RO_1 is not a value of this option, want a member of GpuGroup or GpuType",
		"image='i', dependencies=[cfg.X]":         "dependencies: cfg.X is not a constant of the project",
		"image='i', dependencies=GROWS":           "dependencies: GROWS is not a constant: line 11 of a.py may set or change it",
		"image='i', env=SETS":                     "env: SETS is not a constant: line 13 of a.py may set or change it",
		"image='i', volume=NetworkVolume(id='v')": "volume: must be a literal",
	} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			p := read(t, write(t, map[string]string{
				"a.py": given + "v = Endpoint(name='v', " + options + ")\n", "cfg.py": "import os\nIMAGE = 'img:cfg'\nCOMPUTED = os.environ['X']\nDEPS = ['torch']\nclass Settings:\n  IMAGE = 'img:settings'\n",
				"pkg/__init__.py": "", "pkg/cfg.py": "from cfg import IMAGE as ALIAS\nIMAGE = 'img:pkg'\n",
				"other.py": "IMAGE = 'a'\ntry:\n  IMAGE = 'b'\nexcept OSError: ...\n",
			}))
			got := strings.Join(faults(p), "\n")
			if len(p.Endpoints) == 1 {
				c := p.Endpoints[0].Config
				got = fmt.Sprintf("image: %s\ngpu: %s\ncpu: %s\n", c.Image, strings.Join(c.GPU, " "), strings.Join(c.CPU, " "))
			} else if !strings.HasPrefix(got, "a.py:20:") {
				t.Errorf("the fault %q is not at the option", got)
			}
			if !strings.Contains(got+"\n", want) || strings.Contains(want, "img:") && !strings.Contains(got, want+"\n") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Code that must fail on a worker is a fault with its place, whether it fails in a
// function or in what the function takes along.
func TestCodeThatMustFailIsAFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"relative import":           {"@E\ndef f():\n  from .near import x\n", "a.py:4:3: `from .near import x` fails on a worker"},
		"relative import above":     {"from . import near\n@E\ndef f(): return near\n", "a.py:2:1: `from . import near` fails on a worker"},
		"relative import of a part": {"@E\ndef f():\n  import near\n", "a.py:4:3: near.py:1:1: `from . import other` fails on a worker"},
		"beyond the package":        {"@E\ndef f():\n  import pkg.up\n", "a.py:4:3: pkg/up.py:1:1: `from ... import x` fails on a worker"},
		"no such module":            {"@E\ndef f():\n  import pkg.lost\n", "a.py:4:3: pkg/lost.py:1:1: `from .lost_too import x` does not name a module"},
		"nested import":             {"@E\ndef f():\n  if True:\n    import pkg.wants\n", "a.py:5:5: pkg/wants.py:1:1: `import sibling` fails on a worker"},
		"module with a fault":       {"@E\ndef f():\n  import broken\n", "a.py:4:3: broken.py, which is imported, has a fault: invalid syntax"},
		"generator":                 {"@E\ndef f():\n  for i in range(3):\n    yield i\n", "a.py:5:5: f is a generator"},
		"asynchronous generator":    {"@E\nasync def f():\n  yield 1\n", "a.py:4:3: f is a generator"},
		"generator of a class":      {"@E\nclass C:\n  def f(self): yield from []\n", "a.py:4:16: f is a generator"},
		"undefined name":            {"@E\ndef f(x):\n  return x + missing\n", "a.py:4:14: missing is not defined"},
		"undefined default":         {"@E\ndef f(x=MISSING): ...\n", "a.py:3:9: MISSING is not defined"},
		"undefined base":            {"@E\nclass C(Missing):\n  def f(self): ...\n", "a.py:3:9: Missing is not defined"},
		"undefined in a helper":     {"def g(): return missing\n@E\ndef f(): return g()\n", "a.py:2:17: missing is not defined"},
		"the file's own path":       {"@E\ndef f(): return __file__\n", "a.py:3:17: __file__ is not defined"},
		"another endpoint":          {"@E\ndef f(): return g()\n@Endpoint(name='g')\ndef g(): ...\n", "a.py:3:17: g belongs to another endpoint"},
		"another file's endpoint":   {"@E\ndef f():\n  from b import g\n  return g()\n", "a.py:4:3: g belongs to another endpoint, in b.py"},
		"await outside":             {"@E\ndef f(): await g()\n", "a.py:3:10: invalid syntax: 'await' outside async function"},
		"unread part of a route":    {"api = Endpoint(name='api')\n@api.get('/x/{id}')\ndef f(): ...\n", "a.py:4:1: f has no parameter id"},
		"no parentheses":            {"@Endpoint\ndef f(): ...\n", "a.py:2:2: Endpoint requires parentheses"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := read(t, write(t, map[string]string{
				"a.py": from + strings.Replace(c.text, "@E\n", "@Endpoint(name='a')\n", 1), "near.py": "from . import other\n", "broken.py": "def (\n",
				"b.py":            from + "@Endpoint(name='b')\ndef g(): ...\n",
				"pkg/__init__.py": "", "pkg/wants.py": "import sibling\n", "pkg/sibling.py": "", "pkg/up.py": "from ... import x\n", "pkg/lost.py": "from .lost_too import x\n",
			}))
			got := strings.Join(faults(p), "\n")
			if diff := cmp.Diff([]string{"POST /b/runsync"}, routes(p)); !strings.HasPrefix(got, c.want) || diff != "" {
				t.Errorf("got fault %q, want %q; routes (-want +got):\n%s", got, c.want, diff)
			}
		})
	}
}

// Files that look served and are not have a notice with the reason.
func TestUnservedFilesHaveANotice(t *testing.T) {
	t.Parallel()
	const decorated = "@Endpoint(name='a')\ndef f(): ...\n"
	for name, c := range map[string]struct{ text, want string }{
		"try":             {"try:\n  from runpod_flash import Endpoint\nexcept ImportError: ...\n" + decorated, "a.py:4:2: not served: the toolkit's import at line 2 is not at the top level"},
		"if":              {"import os\nif os.name:\n  import runpod_flash as rf\n@rf.Endpoint(name='a')\ndef f(): ...\n", "a.py:4:2: not served: the toolkit's import at line 3"},
		"function in if":  {from + "if True:\n  @Endpoint(name='a')\n  def f(): ...\n", "a.py:3:4: not served: it is inside the statement of line 2"},
		"route in if":     {from + "api = Endpoint(name='a')\nif True:\n  @api.get('/x')\n  def f(): ...\n", "a.py:4:4: not served: only decorators of functions at the top level"},
		"factory":         {from + "def make():\n  @Endpoint(name='a')\n  def f(): ...\n", "a.py:3:4: not served: it is inside the statement of line 2"},
		"called":          {from + "def f(): ...\ng = Endpoint(name='a')(f)\n", "a.py:3:5: not served: only `name = Endpoint(...)` and decorators are read"},
		"pair":            {from + "a, b = Endpoint(name='a'), 1\n", "a.py:2:8: not served: only `name = Endpoint(...)`"},
		"former":          {"from runpod_flash import remote\n@remote(resource_config=None)\ndef f(): ...\n", "a.py:2:2: not served: remote is not supported; use Endpoint"},
		"another's":       {"from b import api\n@api.get('/x')\ndef f(): ...\n", "a.py:2:2: not served: api is an endpoint of b.py"},
		"without a route": {from + "api = Endpoint(name='a')\n", "a.py:2:7: not served: no function, route or image of this file uses the endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := read(t, write(t, map[string]string{"a.py": c.text, "b.py": from + "api = Endpoint(name='b')\n@api.get('/b')\ndef f(): ...\n"}))
			if len(p.Notices) == 0 || !strings.HasPrefix(p.Notices[0].Error(), c.want) || len(p.Faults) > 0 || len(p.Endpoints) != 1 {
				t.Errorf("got notices %v and faults %v, want %q", p.Notices, p.Faults, c.want)
			}
		})
	}
	// What is certain to be the toolkit's is served by any name.
	p := read(t, write(t, map[string]string{
		"alias.py": "from runpod_flash import Endpoint as EP\nE = EP\n@E(name='alias')\ndef f(): ...\n", "star.py": "from runpod_flash import *\n@Endpoint(name='star', gpu=GpuGroup.ANY)\ndef f(): ...\n",
		"again.py": "from lib import Endpoint\n@Endpoint(name='again')\ndef f(): ...\n", "lib.py": "from runpod_flash.endpoint import Endpoint\n",
		"client.py": "def main():\n  import runpod_flash\n  runpod_flash.Endpoint(id='x').run({})\n", "web.py": "from fastapi import FastAPI\napp = FastAPI()\n@app.get('/')\ndef f(): ...\n",
	}))
	if diff := cmp.Diff([]string{"POST /again/runsync", "POST /alias/runsync", "POST /star/runsync"}, routes(p)); diff != "" || len(p.Faults)+len(p.Notices) > 0 {
		t.Errorf("routes (-want +got):\n%s\nfaults %v, notices %v", diff, p.Faults, p.Notices)
	}
}

// Every fault has its file and line, and takes its file out, not others.
func TestFaultsHaveFileAndLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"syntax":           {"def (:\n", "a.py:1:5: invalid syntax"},
		"unknown option":   {from + "@Endpoint(name='a', gpus=1)\ndef f(): ...\n", "a.py:2:26: gpus: unknown option"},
		"wrong type":       {from + "@Endpoint(name='a',\n  idle_timeout='5')\ndef f(): ...\n", "a.py:3:16: idle_timeout: want a whole number from 1 to 3600, not '5'"},
		"cpu and gpu":      {from + "@Endpoint(name='a', cpu='cpu3c-2-4', gpu='ANY')\ndef f(): ...\n", "a.py:2:2: cpu and gpu exclude each other"},
		"no shape":         {from + "@Endpoint(name='a', cpu='cpu3c-2')\ndef f(): ...\n", "a.py:2:25: cpu: cpu3c-2 is not a shape"},
		"environment":      {from + "import os\n@Endpoint(name='a', env={'K': os.environ['K']})\ndef f(): ...\n", "a.py:3:31: env: must be a literal"},
		"computed":         {from + "@Endpoint(name=open('/etc/passwd').read())\ndef f(): ...\n", "a.py:2:16: name: must be a literal"},
		"name as a path":   {from + "@Endpoint(name='../../b')\ndef f(): ...\n", "a.py:2:16: name: want"},
		"route as a path":  {from + "a = Endpoint(name='a')\n@a.get('/../docs')\ndef f(): ...\n", "a.py:3:2: a route requires a path"},
		"worker's route":   {from + "a = Endpoint(name='a')\n@a.post('/execute')\ndef f(): ...\n", "a.py:3:2: the route /execute is the worker's own"},
		"local route":      {from + "a = Endpoint(name='a')\n@a.get('/x', local=True)\ndef f(): ...\n", "a.py:3:2: local routes are not served"},
		"constructor":      {from + "@Endpoint(name='a')\nclass C:\n  def __init__(self, x): ...\n  def f(self): ...\n", "a.py:4:3: C is made without arguments"},
		"taken name":       {from + "@Endpoint(name='a')\ndef f(): ...\n@Endpoint(name='a')\ndef g(): ...\n", "a.py:4:2: the name a is taken by a.py:2"},
		"taken route":      {from + "a = Endpoint(name='a')\n@a.get('/{x}')\ndef f(x): ...\n@a.get('/{y}')\ndef g(y): ...\n", "a.py:6:1: GET /a/{y} is a route of a.py:2 already"},
		"deep":             {"x = " + strings.Repeat("(", 5000) + "\n", "a.py"},
		"too large":        {"#" + strings.Repeat("x", 256<<10) + "\n", "a.py: larger than 262144 bytes"},
		"scaled by delay":  {from + "a = Endpoint(name='a', scaler_type='QUEUE_DELAY')\n@a.get('/x')\ndef f(): ...\n", "a.py:2:5: scaler_type: load-balanced endpoints scale by REQUEST_COUNT"},
		"route of a class": {from + "a = Endpoint(name='a')\n@a.get('/x')\nclass C: ...\n", "a.py:3:2: get makes no route"},
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
	want := []string{"%2e%2e/up.py: not served: routes have the file's path, of letters, digits, _, . and -", "a b.py: not served: routes have the file's path, of letters, digits, _, . and -"}
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
	if got := strings.Join(faults(p), "\n"); !strings.Contains(got, "m63.py: not read: the Python files have more than 16777216 bytes together") {
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
