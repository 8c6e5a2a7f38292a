package strictyaml_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

const located = `# line 1
listen: a
orgs:
  - id: acme
    keys: []
  -
    id: globex
limits: {minute: {quota: 1}, "per day": {quota: 2}}
nested:
  b: 1
tags: [x,
  y]
`

func TestPositionsOf(t *testing.T) {
	t.Parallel()
	pos, err := strictyaml.Load("t.yaml", []byte(located), &sample{})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		path      string
		line, col int
	}{
		{"listen", 2, 9},
		{"orgs", 3, 1},
		{"orgs[0]", 4, 5},
		{"orgs[0].id", 4, 9},
		{"orgs[0].keys", 5, 5},
		{"orgs[1]", 7, 5},
		{"orgs[1].id", 7, 9},
		{"limits", 8, 1},
		{"limits.minute", 8, 10},
		{"limits.minute.quota", 8, 26},
		{`limits["per day"].quota`, 8, 49},
		{"nested.b", 10, 6},
		{"tags[1]", 12, 3},
		// Not in the file: the nearest that is.
		{"orgs[0].name", 4, 5},
		{"orgs[7].keys[0].sha256", 3, 1},
		{`limits["a.b[0]"].quota`, 8, 1},
		{"nested.c.d[0]", 9, 1},
		{"timeout", 1, 1},
		{"", 1, 1},
	}
	for _, c := range cases {
		if _, line, col := pos.Lookup(c.path); line != c.line || col != c.col {
			t.Errorf("Of(%q) = %d, %d, want %d, %d", c.path, line, col, c.line, c.col)
		}
	}
	if _, line, col := (*strictyaml.Positions)(nil).Lookup("a"); line != 0 || col != 0 {
		t.Errorf("Of on nil = %d, %d, want 0, 0", line, col)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	pos, err := strictyaml.Load("t.yaml", []byte(located), &sample{})
	if err != nil {
		t.Fatal(err)
	}
	plain := errors.New("no organisation is an administrator")
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"one path", fault.Errorf("listen", "no port"), "t.yaml:2:9: listen: no port"},
		{"no path", plain, "t.yaml: no organisation is an administrator"},
		{"joined, put in the order of the file", errors.Join(
			fault.Errorf("nested.b", "too small"),
			nil,
			fault.Errorf("orgs[1].id", "taken"),
			errors.Join(fault.Errorf("listen", "no port"), plain),
		), `t.yaml: no organisation is an administrator
t.yaml:2:9: listen: no port
t.yaml:7:9: orgs[1].id: taken
t.yaml:10:6: nested.b: too small`},
		{
			"prefixed twice", fault.At("orgs", fault.At(fault.Index("", 0), errors.Join(
				fault.Errorf("keys", "none"), fault.Errorf("id", "reserved"), errors.New("odd")))),
			`t.yaml:4:5: orgs[0]: odd
t.yaml:4:9: orgs[0].id: reserved
t.yaml:5:5: orgs[0].keys: none`,
		},
		{"wrapped", fmt.Errorf("check: %w", fault.Errorf("listen", "no port")), "t.yaml:2:9: listen: no port"},
		{"wrapped without a path", fmt.Errorf("check: %w", plain), "t.yaml: check: no organisation is an administrator"},
		{"cause wrapped inside", fault.At("listen", fmt.Errorf("try it: %w", fs.ErrExist)), "t.yaml:2:9: listen: try it: file already exists"},
		{"quoted key", fault.At(fault.Key("limits", "per day"), errors.New("no")), `t.yaml:8:30: limits["per day"]: no`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := strictyaml.Locate(pos, c.err)
			if err == nil {
				t.Fatal("Locate returned nil")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocateKeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	if err := strictyaml.Locate(nil, nil); err != nil {
		t.Errorf("Locate of nil = %v, want nil", err)
	}
	faults := strictyaml.Errors{{File: "f", Line: 1, Column: 2, Path: "p", Message: "m"}}
	if diff := cmp.Diff(error(faults), strictyaml.Locate(nil, faults)); diff != "" {
		t.Errorf("Locate of Errors (-want +got):\n%s", diff)
	}
	err := strictyaml.Locate(nil, fault.At("a", fmt.Errorf("read: %w", fs.ErrNotExist)))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap its cause", err)
	}
	if got, want := err.Error(), "a: read: file does not exist"; got != want {
		t.Errorf("located without positions: %q, want %q", got, want)
	}
}

func TestAtOfNothing(t *testing.T) {
	t.Parallel()
	if err := fault.At("a", nil); err != nil {
		t.Errorf("At of nil = %v, want nil", err)
	}
	if err := fault.At("a", errors.Join(nil, nil)); err != nil {
		t.Errorf("At of joined nils = %v, want nil", err)
	}
}
