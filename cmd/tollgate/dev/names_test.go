package dev_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		// Names that the project does not define.
		"image=cfg.MISSING":                       "image: cfg.MISSING is not a constant of the project",
		"image=cfg.COMPUTED":                      "image: cfg.COMPUTED, at cfg.py:3:12: must be a literal",
		"image=os.IMAGE":                          "image: os is not a constant of the project",
		"image=nowhere.IMAGE":                     "image: nowhere is not a constant of a.py",
		"image=G.ADA_24":                          "image: G.ADA_24 is not a value of this option",
		"image=SOMETIMES":                         "image: SOMETIMES is not a constant: line 9 of a.py may set or change it",
		"image=Read.ADA_24":                       "image: Read.ADA_24 is not a constant of the project",
		"image=cfg.Settings":                      "image: cfg.Settings is a class, not a value",
		"image=other.IMAGE":                       "image: IMAGE is not a constant: line 2 of other.py may set or change it",
		"image='i', cpu=G.ADA_24":                 "cpu: G.ADA_24 is not a value of this option, must be a member of CpuInstanceType",
		"image='i', gpu=DataCenter.EU_RO_1":       "gpu: DataCenter.EU_RO_1 is not a value of this option, must be a member of GpuGroup or GpuType",
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
		"no such name":              {"@E\ndef f():\n  from pkg.sibling import nothere\n", "a.py:4:3: `from pkg.sibling import nothere` fails on a worker: pkg/sibling.py has no nothere"},
		"no such name of a package": {"from pkg import nothere\n@E\ndef f(): return nothere\n", "a.py:2:1: `from pkg import nothere` fails on a worker: pkg/__init__.py has no nothere"},
		"no such part":              {"@E\ndef f():\n  import pkg.missing\n", "a.py:4:3: `import pkg.missing` does not name a module of the project"},
		"part of a module":          {"@E\ndef f():\n  import near.part\n", "a.py:4:3: `import near.part` does not name a module of the project"},
		"no such part of a space":   {"@E\ndef f():\n  from space import missing\n", "a.py:4:3: `from space import missing` fails on a worker: space has no missing"},
		"no such name of a part":    {"@E\ndef f():\n  import pkg.asks\n", "a.py:4:3: pkg/asks.py:1:1: `from .sibling import x` fails on a worker"},
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
		"unread part of a route":    {"api = Endpoint(name='api')\n@api.get('/x/{id}')\ndef f(): ...\n", "a.py:4:1: f must have the parameter id of its route"},
		"no parentheses":            {"@Endpoint\ndef f(): ...\n", "a.py:2:2: Endpoint requires parentheses"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := read(t, write(t, map[string]string{
				"a.py": from + strings.Replace(c.text, "@E\n", "@Endpoint(name='a')\n", 1), "near.py": "from . import other\n", "broken.py": "def (\n",
				"b.py":            from + "@Endpoint(name='b')\ndef g(): ...\n",
				"pkg/__init__.py": "", "pkg/wants.py": "import sibling\n", "pkg/sibling.py": "", "pkg/up.py": "from ... import x\n", "pkg/lost.py": "from .lost_too import x\n",
				"pkg/asks.py": "from .sibling import x\n", "space/part.py": "",
			}))
			got := strings.Join(faults(p), "\n")
			if diff := cmp.Diff([]string{"POST /b/runsync"}, routes(p)); !strings.HasPrefix(got, c.want) || diff != "" {
				t.Errorf("got fault %q, want %q; routes (-want +got):\n%s", got, c.want, diff)
			}
		})
	}
}

// An import that may find its name is no fault: by a star import, a global statement, a
// submodule, code that binds names as it runs, a dependency, or a handler.
func TestImportsThatMayBeFound(t *testing.T) {
	t.Parallel()
	p := read(t, write(t, map[string]string{
		"deep/a.py": from + `
from pkg.star import anything
@Endpoint(name="a", dependencies=["vendored"])
def f():
    from pkg import leaf, LEAF, __name__ as name
    from pkg.lazy import late
    from pkg.sets import SET, MAYBE, LATER
    from space import part, folder
    from both import here, there
    import vendored.core, data.core, outside.core
    try:
        from pkg.leaf import never
    except ImportError: ...
    return [anything, leaf, LEAF, name, late, SET, MAYBE, LATER, part, folder, here, there]
`,
		"pkg/__init__.py": "from .leaf import LEAF\n", "pkg/leaf.py": "LEAF = 1\n", "pkg/star.py": "from os import *\n",
		"pkg/lazy.py":   "def __getattr__(name): return 1\n",
		"pkg/sets.py":   "def later():\n  global LATER\n  LATER = 1\nif later():\n  MAYBE = 1\nfor SET in range(3): ...\n",
		"space/part.py": "", "space/folder/x.py": "", "both/there.py": "", "deep/both/here.py": "", "vendored/README.py": "", "data/rows.csv": "",
	}))
	if diff := cmp.Diff([]string{"POST /deep/a/runsync"}, routes(p)); diff != "" || len(p.Faults)+len(p.Notices) > 0 {
		t.Errorf("routes (-want +got):\n%s\nfaults %v, notices %v", diff, faults(p), p.Notices)
	}
}

// Each decorator that a worker does not apply has a notice, also of a class or a route. A
// request for a path without a route is not answered with it.
func TestDroppedDecoratorsHaveANotice(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"a.py": from + `import functools
def log(f): return f
@Endpoint(name="a")
@log
def f(): return 1
@log
def helper(): ...
@Endpoint(name="c")
@functools.lru_cache(maxsize=1)
class C:
    @staticmethod
    def g(): return helper()
api = Endpoint(name="w")
@api.get("/x")
@api.get("/y")
@log
def h(): ...
`})
	var got []string
	p := read(t, dir)
	for _, n := range p.Notices {
		got = append(got, n.Error())
	}
	want := []string{
		"a.py:5:2: @log is not applied: a worker runs f without its decorators",
		"a.py:10:2: @functools.lru_cache(maxsize=1) is not applied: a worker runs C without its decorators",
		"a.py:17:2: @log is not applied: a worker runs h without its decorators",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(p.Faults) > 0 {
		t.Errorf("notices (-want +got):\n%s\nfaults %v", diff, faults(p))
	}
	s.serve(t, dir).wants(t, "GET", "/a/none", "", 404, "no route")
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
		"star of a file":  {"from c import *\n@Endpoint(name='a')\ndef f(): ...\n", "a.py:2:2: not served: where Endpoint comes from is uncertain"},
		"try of a file":   {"from c import Endpoint\n@Endpoint(name='a')\ndef f(): ...\n", "a.py:2:2: not served: where Endpoint comes from is uncertain"},
		"without a route": {from + "api = Endpoint(name='a')\n", "a.py:2:7: not served: no function, route or image of this file uses the endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := read(t, write(t, map[string]string{"a.py": c.text, "b.py": from + "api = Endpoint(name='b')\n@api.get('/b')\ndef f(): ...\n", "c.py": "try:\n  from runpod_flash import Endpoint\nexcept ImportError: ...\n"}))
			if len(p.Notices) == 0 || !strings.HasPrefix(p.Notices[0].Error(), c.want) || len(p.Faults) > 0 || len(p.Endpoints) != 1 {
				t.Errorf("got notices %v and faults %v, want %q", p.Notices, p.Faults, c.want)
			}
		})
	}
	// What is certain to be the toolkit's is served by any name.
	p := read(t, write(t, map[string]string{
		"alias.py": "from runpod_flash import Endpoint as EP\nE = EP\n@E(name='alias')\ndef f(): ...\n", "star.py": "from runpod_flash import *\n@Endpoint(name='star', gpu=GpuGroup.ANY)\ndef f(): ...\n",
		"again.py": "from lib import Endpoint\n@Endpoint(name='again')\ndef f(): ...\n", "lib.py": "from runpod_flash.endpoint import Endpoint\n",
		"own.py": "from mine import Endpoint\n@Endpoint()\ndef f(): ...\n", "mine.py": "def Endpoint(): ...\n", "strange.py": "from strange_lib import Endpoint\n@Endpoint()\ndef f(): ...\n",
		"client.py": "def main():\n  import runpod_flash\n  runpod_flash.Endpoint(id='x').run({})\n", "web.py": "from fastapi import FastAPI\napp = FastAPI()\n@app.get('/')\ndef f(): ...\n",
	}))
	if diff := cmp.Diff([]string{"POST /again/runsync", "POST /alias/runsync", "POST /star/runsync"}, routes(p)); diff != "" || len(p.Faults)+len(p.Notices) > 0 {
		t.Errorf("routes (-want +got):\n%s\nfaults %v, notices %v", diff, p.Faults, p.Notices)
	}
}
