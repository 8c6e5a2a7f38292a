package strictyaml_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

func TestShowMasks(t *testing.T) {
	t.Parallel()
	type part struct {
		Name   string            `yaml:"name"`
		Digest string            `yaml:"sha256"`
		Proxy  string            `yaml:"proxy"`
		Secret strictyaml.Secret `yaml:"secret"`
		Empty  []string          `yaml:"empty"`
	}
	got, err := strictyaml.Show(part{"a: b", "00ff", "http://ann:pw@proxy.example:80/x@y", strictyaml.NewSecret("hush"), nil}, "sha256")
	const want = "name: 'a: b'\nsha256: '[masked]'\nproxy: http://[masked]@proxy.example:80/x@y\nsecret: '[redacted]'\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// A zero that means that there is no limit is not shown: it would read as a limit of zero.
func TestShowOmitsZerosThatMeanNone(t *testing.T) {
	t.Parallel()
	type budget struct {
		GPUs int64 `yaml:"gpus" zero:"omit"`
		Pods int64 `yaml:"pods" zero:"omit"`
		Days int64 `yaml:"days"`
		Open int64 `yaml:"open" zero:"no bound"`
	}
	got, err := strictyaml.Show(budget{Pods: 3})
	if want := "pods: 3\ndays: 0\nopen: 0 # no bound\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// item is an item of a list, whose text can be remembered.
type item struct {
	Name   string                `yaml:"name"`
	Digest string                `yaml:"sha256"`
	Text   *strictyaml.TextCache `yaml:"-"`
}

// An item whose text is remembered is shown so again, where it stood so far and with the same masks, and as it is anywhere else.
func TestShowRemembers(t *testing.T) {
	t.Parallel()
	type list struct {
		Items []item `yaml:"items"`
	}
	type deeper struct {
		Lists []list `yaml:"lists"`
	}
	was := list{[]item{{"a", "00ff", new(strictyaml.TextCache)}, {"b", "11ff", nil}}}
	const first = "items:\n  - name: a\n    sha256: '[masked]'\n  - name: b\n    sha256: '[masked]'\n"
	show := func(v any, want string, masked ...string) {
		t.Helper()
		if got, err := strictyaml.Show(v, masked...); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	show(&was, first, "sha256")
	changed := list{[]item{{"c", "22ff", was.Items[0].Text}, {"d", "33ff", nil}}}
	show(&changed, "items:\n  - name: a\n    sha256: '[masked]'\n  - name: d\n    sha256: '[masked]'\n", "sha256")
	show(&changed, "items:\n  - name: c\n    sha256: 22ff\n  - name: d\n    sha256: 33ff\n")
	show(&deeper{[]list{changed}}, "lists:\n  - items:\n      - name: c\n        sha256: 22ff\n      - name: d\n        sha256: 33ff\n")
}
