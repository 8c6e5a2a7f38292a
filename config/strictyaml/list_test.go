package strictyaml_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

func TestExtend(t *testing.T) {
	t.Parallel()
	var got sample
	pos, err := strictyaml.Load("main.yaml", []byte("listen: a\norgs:\n  - id: first\n"), &got)
	if err != nil {
		t.Fatal(err)
	}
	// Entries of every form of block lists, over more than one chunk.
	text := "# more\n\n- id: second\n- {id: third}\n-\n  id: fourth\n"
	want := []org{{ID: "first"}, {ID: "second"}, {ID: "third"}, {ID: "fourth"}}
	for i := range 1000 {
		id := fmt.Sprintf("o%d", i)
		text += "- id: " + id + "\n"
		want = append(want, org{ID: id})
	}
	if err := pos.Extend("more.yaml", []byte(text), "orgs", &got.Orgs, math.MaxInt); err != nil {
		t.Fatal(err)
	}
	if err := pos.Extend("last.yaml", []byte("- id: last"), "orgs", &got.Orgs, math.MaxInt); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want, org{ID: "last"}), got.Orgs, compare); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	for path, where := range map[string]string{
		"orgs[0].id": "main.yaml:3:9", "orgs[1]": "more.yaml:3:1", "orgs[2].id": "more.yaml:4:1", "orgs[3].keys": "more.yaml:6:1",
		"orgs[1003]": "more.yaml:1006:1", "orgs[1004].id": "last.yaml:1:1", "orgs[1005]": "main.yaml:2:1",
	} {
		err := strictyaml.Locate(pos, fault.Errorf(path, "wrong"))
		if got, want := err.Error(), where+": "+path+": wrong"; got != want {
			t.Errorf("Locate = %q, want %q", got, want)
		}
	}
}

func TestExtendReportsEveryFault(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"unknown key": {"- id: a\n- id: b\n  nope: 1\n", []string{"more.yaml:3:3: orgs[2].nope: unknown key (known: id, keys)"}},
		"far down": {
			strings.Repeat("- id: a\n", 700) + "- {}\n- id: 1\n",
			[]string{"more.yaml:701:3: orgs[701].id: is required", "more.yaml:702:7: orgs[702].id: expected a string, found an integer (quote it)"},
		},
		"no list":    {"id: a\n", []string{"more.yaml:1:1: orgs: expected a list, found a mapping (write - before each entry)"}},
		"not YAML":   {"- id: [\n", []string{"more.yaml:1:1: orgs: not valid YAML: did not find expected node content"}},
		"empty":      {"", []string{"more.yaml:1:1: orgs: the file is empty"}},
		"not UTF-8":  {"- id: \xff\n", []string{"more.yaml:1:7: byte 0xff is not valid UTF-8"}},
		"indented":   {" - id: a\n", nil},
		"no entries": {"[]\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := []org{{ID: "first"}}
			pos, err := strictyaml.Load("main.yaml", []byte("listen: a\n"), &sample{})
			if err != nil {
				t.Fatal(err)
			}
			err = pos.Extend("more.yaml", []byte(tc.text), "orgs", &list, math.MaxInt)
			faults, _ := errors.AsType[strictyaml.Errors](err)
			var got []string
			for _, f := range faults {
				got = append(got, f.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
