package policies_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// An engine takes over unchanged organisations, with their remembered verdicts, and
// compiles sources that several organisations share once. Changed ones are compiled.
func TestReloadTakesOver(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "mine.rego"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rego = "package policies.mine\n\ndeny contains \"no\" if input.request.operation == \"deletePod\"\n"
	write(rego)
	entries := func(most int) []policies.Entry {
		return []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": most}}}
	}
	orgs := func() map[string]policies.Config {
		return map[string]policies.Config{
			"acme": {Policies: entries(1)}, "alike": {Policies: entries(1)}, "other": {Policies: entries(2)},
			"own": {Policies: entries(1), Directory: files.UnrestrictedPath(dir)},
		}
	}
	engine := func(limits policies.Limits, orgs map[string]policies.Config, before *policies.Engine) *policies.Engine {
		e, err := policies.NewEngine(limits, orgs, policies.Deps{Previous: before})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	limits := policyconfig.DefaultLimits()
	first := engine(limits, orgs(), nil)
	if compiled, memory := policies.Shared(first, "acme", first, "alike"); !compiled || memory {
		t.Errorf("alike organisations: compiled once %t, one memory %t", compiled, memory)
	}
	if compiled, memory := policies.Shared(first, "acme", first, "other"); !compiled || memory {
		t.Errorf("an organisation of other parameters: compiled once %t, one memory %t", compiled, memory)
	}
	if compiled, _ := policies.Shared(first, "acme", first, "own"); compiled {
		t.Error("own Rego shares what acme is made from")
	}
	for org, most := range map[string]int{"acme": 1, "other": 2, "own": 1} {
		for count := 1; count <= 3; count++ {
			d, err := first.Decide(t.Context(), org, call(t, "createPod", fmt.Sprintf(`{"gpu":{"id":"NVIDIA L4","count":%d}}`, count)))
			if err != nil || (len(d.Deny) > 0) != (count > most) {
				t.Errorf("%s, at most %d: %d GPUs get %v (%v)", org, most, count, d.Deny, err)
			}
		}
	}
	same := engine(limits, orgs(), first)
	for org := range orgs() {
		if compiled, memory := policies.Shared(first, org, same, org); !compiled || !memory {
			t.Errorf("%s, of which nothing changed: taken over %t, with its memory %t", org, compiled, memory)
		}
	}
	for name, change := range map[string]func(map[string]policies.Config){
		"a parameter": func(m map[string]policies.Config) {
			m["own"] = policies.Config{Policies: entries(7), Directory: files.UnrestrictedPath(dir)}
		},
		"its Rego": func(map[string]policies.Config) { write(rego + "\nwarn contains \"well\" if false\n") },
		"an exception": func(m map[string]policies.Config) {
			m["own"] = policies.Config{Policies: entries(1), Directory: files.UnrestrictedPath(dir), Exceptions: []policies.Exception{{
				ID: "x", Policy: "gpu_count", Teams: []string{"a"}, Until: noon().AddDate(1, 0, 0), Reason: "r", GrantedBy: "g",
			}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(rego)
			m := orgs()
			change(m)
			next := engine(limits, m, same)
			if compiled, memory := policies.Shared(same, "own", next, "own"); memory || compiled != (name != "its Rego") {
				t.Errorf("compiled form taken over %t, with its memory %t", compiled, memory)
			}
			if compiled, memory := policies.Shared(same, "acme", next, "acme"); !compiled || !memory {
				t.Errorf("another organisation: taken over %t, with its memory %t", compiled, memory)
			}
		})
	}
	write(rego)
	limits.Remember = 8
	if compiled, memory := policies.Shared(same, "acme", engine(limits, orgs(), same), "acme"); !compiled || memory {
		t.Errorf("with a smaller memory: taken over %t, with its memory %t", compiled, memory)
	}
}

// A policy that only changes its mode decides by the new one, also of calls whose verdict
// was remembered.
func TestReloadChangesModes(t *testing.T) {
	config := func(mode policies.Mode) map[string]policies.Config {
		return map[string]policies.Config{"acme": {Policies: []policies.Entry{{Policy: "kill_switch", Mode: mode}}}}
	}
	in := call(t, "createPod", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)
	var before *policies.Engine
	for _, mode := range []policies.Mode{policies.ModeShadow, policies.ModeEnforce, policies.ModeWarn, policies.ModeEnforce} {
		e, err := policies.NewEngine(policyconfig.DefaultLimits(), config(mode), policies.Deps{Previous: before})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			d, err := e.Decide(t.Context(), "acme", in)
			if err != nil || d.Allowed() != (mode != policies.ModeEnforce) {
				t.Errorf("with mode %s: allowed %t, %v", mode, d.Allowed(), err)
			}
		}
		if before, err = policies.NewEngine(policyconfig.DefaultLimits(), config(policies.ModeShadow), policies.Deps{Previous: e}); err != nil {
			t.Fatal(err)
		}
		if d, err := before.Decide(t.Context(), "acme", in); err != nil || !d.Allowed() {
			t.Errorf("replaced with mode shadow: %+v, %v", d.Deny, err)
		}
	}
}

// A directory that no longer contains a policy in force is refused by a new engine, unless the configuration allows it or names another
// directory.
func TestDirectoriesMayNotDropPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		mayDrop, elsewhere bool
		want               string // in the error, "" for none
	}{
		"by default":        {false, false, "no longer contains policies.other; set rego_may_drop to allow this"},
		"if allowed":        {true, false, ""},
		"another directory": {false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "mine.rego", denyAbove("2"))
			write(t, dir, "other.rego", other)
			first := newEngine(t, policies.Config{Directory: files.UnrestrictedPath(dir)})
			if err := os.Remove(filepath.Join(dir, "other.rego")); err != nil {
				t.Fatal(err)
			}
			if tc.elsewhere {
				dir = t.TempDir()
				write(t, dir, "mine.rego", denyAbove("2"))
			}
			orgs := map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir), MayDrop: tc.mayDrop}}
			next, err := policies.NewEngine(unhurried(), orgs, policies.Deps{Previous: first})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, cmp.Or(tc.want, "no error"))
			}
			want := "above 2, other"
			if err != nil {
				next = first
			} else {
				want = "above 2"
			}
			if got := denials(t, next, "3"); got != want {
				t.Errorf("after the new engine: denied by %q, want %q", got, want)
			}
		})
	}
}
