package dev_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// A gateway that does not pass on an endpoint's calls is found before anything is rented,
// and the missing setting is named.
func TestRunsAreServedBeforeAnythingIsRented(t *testing.T) {
	t.Parallel()
	p := platform.RunT(t)
	for name, c := range map[string]struct{ runs, queue, balanced string }{
		"neither": {"", "set platform.run_url in the configuration of the gateway", "set platform.lb_url in the configuration of the gateway"},
		"jobs":    {`, run_url: "` + p.RunURL + `"`, "", "set platform.lb_url in the configuration of the gateway"},
		"calls":   {`, lb_url: "http://{id}.localhost:1"`, "set platform.run_url in the configuration of the gateway", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStackOf(t, p, c.runs, "")
			d := s.serve(t, write(t, map[string]string{"q.py": queue, "w.py": web, "x.py": from + "v = Endpoint(id='abcdefgh')\n"}))
			if c.queue != "" {
				d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 502, c.queue)
				d.wants(t, "POST", "/x/runsync", `{"input":{}}`, 502, c.queue)
			}
			if c.balanced != "" {
				d.wants(t, "GET", "/w/items/7", "", 502, c.balanced)
			}
			if n := len(p.CallsTo("createEndpoint")); n > 0 {
				t.Errorf("%d endpoints were rented", n)
			}
		})
	}
}

// What a function uses of its project reaches its worker: typing's names, constants,
// helpers and imports of its file, and modules beside it, below it and above it.
func TestFunctionsHaveWhatTheyUse(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	d := s.serve(t, write(t, map[string]string{
		"deep/a.py": "import math\nfrom typing import TYPE_CHECKING, List, Optional\nfrom runpod_flash import Endpoint\nimport near\nif TYPE_CHECKING:\n  from .types import Thing\n" + `
START = 3
TABLE = {"a": START}
TABLE["b"] = 4

def root(n: "Optional[int]") -> float:
    return math.sqrt(n) + near.ONE

@Endpoint(name="a", cpu="cpu3c-2-4")
def f(x: Optional[int] = START, *, names: List[str] = [], thing: "Thing" = None) -> "np.ndarray":
    y: Optional[int] = x + 1
    return [root(y), TABLE, names]

@Endpoint(name="p", cpu="cpu3c-2-4")
def placed(a, b=2, c=START, /, d=4): return [a, b, c, d]

@Endpoint(name="i", cpu="cpu3c-2-4")
def imports():
    import pkg.inner.leaf, importlib
    from shared import S
    from deep.near import ONE
    try:
        from .never import x
    except ImportError:
        x = importlib.import_module("late").L
    return [pkg.inner.leaf.LEAF, S, ONE, x]

@Endpoint(name="c", cpu="cpu3c-2-4")
class Counter:
    size: Optional[int] = START
    def __init__(self, start: Optional[int] = START): self.n = start
    def up(self, by: int, /) -> List[int]: return [self.n + by, self.size]
`,
		"deep/near.py": "ONE = 1\n", "deep/late.py": "L = 'late'\n", "shared.py": "S = 'shared'\n",
		"deep/pkg/__init__.py": "", "deep/pkg/inner/__init__.py": "from .leaf import LEAF\n", "deep/pkg/inner/leaf.py": "from ..side import SIDE\nLEAF = SIDE + 1\n", "deep/pkg/side.py": "SIDE = 6\n",
	}))
	for _, c := range []struct{ name, input, want string }{
		{"f", `{}`, `"output":[3.0,{"a":3,"b":4},[]]`},
		{"f", `{"x":8,"names":["n"]}`, `"output":[4.0,{"a":3,"b":4},["n"]]`},
		{"placed", `{"a":1}`, `"output":[1,2,3,4]`},
		{"placed", `{"a":1,"c":9,"d":0}`, `"output":[1,2,9,0]`},
		{"imports", `{}`, `"output":[7,"shared",1,"late"]`},
		{"up", `{"by":4}`, `"output":[7,3]`},
	} {
		d.wants(t, "POST", "/deep/a/"+c.name+"/runsync", `{"input":`+c.input+`}`, 200, c.want)
	}
}

// Flavors of CPUs are those of the price list, before anything is rented.
func TestFlavorsComeFromThePriceList(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	text := from
	for _, shape := range []string{"cpu5g-2-8", "CPU3C-1-2", "cpu9z-2-8", "cpu3c-2-8", "cpu3c-64-128"} {
		text += fmt.Sprintf("@Endpoint(name='%[1]s', cpu='%[1]s')\ndef %[2]s(): return 1\n", shape, strings.ReplaceAll(shape, "-", "_"))
	}
	d := s.serve(t, write(t, map[string]string{"a.py": text}))
	for name, want := range map[string]string{
		"cpu9z_2_8":    "a.py:6:2: cpu: cpu9z-2-8: flavor cpu9z is not in the price list (cpu3c, cpu3g, cpu5c, cpu5g)",
		"cpu3c_2_8":    "a.py:8:2: cpu: cpu3c-2-8: flavor cpu3c has at most 32 CPUs, with 2 GB each",
		"cpu3c_64_128": "a.py:10:2: cpu: cpu3c-64-128: flavor cpu3c has at most 32 CPUs",
	} {
		d.wants(t, "POST", "/a/"+name+"/runsync", `{"input":{}}`, 503, want)
	}
	if n := len(s.platform.CallsTo("createEndpoint")); n > 0 {
		t.Errorf("%d endpoints were rented", n)
	}
	d.wants(t, "POST", "/a/cpu5g_2_8/runsync", `{"input":{}}`, 200, `"output":1`)
	d.wants(t, "POST", "/a/CPU3C_1_2/runsync", `{"input":{}}`, 200, `"output":1`)
}

// A function that names no GPU may have any, so an allow-list refuses it, and says which it allows.
func TestRefusalsOfAnyGPUNameTheAllowed(t *testing.T) {
	t.Parallel()
	s := newStack(t, "policies: [{policy: gpu_allow_list, params: {gpus: [NVIDIA L4, NVIDIA A40]}}]")
	d := s.serve(t, write(t, map[string]string{"none.py": from + "@Endpoint(name='none')\ndef f(): ...\n", "any.py": from + "@Endpoint(name='any', gpu=GpuGroup.ANY)\ndef f(): ...\n"}))
	for _, name := range []string{"none", "any"} {
		code, got := d.ask(t, "POST", "/"+name+"/runsync", `{"input":{}}`)
		if code != 403 || strings.Count(got, "contains GPU types that are not on the allow-list") < 5 || strings.Count(got, `(allowed: \"NVIDIA A40\", \"NVIDIA L4\")`) != 1 {
			t.Errorf("%d %s", code, got)
		}
	}
}
