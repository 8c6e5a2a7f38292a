package strictyaml_test

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// sample has a field of every kind the decoder knows.
type sample struct {
	Listen  string             `yaml:"listen" doc:"The address to listen on."`
	Timeout time.Duration      `yaml:"timeout"`
	Debug   bool               `yaml:"debug"`
	Level   level              `yaml:"level"`
	Small   uint8              `yaml:"small"`
	Signed  int8               `yaml:"signed"`
	Count   int                `yaml:"count"`
	Big     uint64             `yaml:"big"`
	Ratio   float64            `yaml:"ratio"`
	Price   money              `yaml:"price"`
	Amount  amount             `yaml:"amount"`
	Tags    []string           `yaml:"tags"`
	Limits  map[string]limit   `yaml:"limits"`
	Levels  map[level]int      `yaml:"levels"`
	Orgs    []org              `yaml:"orgs"`
	Params  map[string]any     `yaml:"params"`
	Max     *int               `yaml:"max"`
	Default *limit             `yaml:"default"`
	Key     strictyaml.Secret  `yaml:"key"`
	Spare   *strictyaml.Secret `yaml:"spare"`
	Nested  nested             `yaml:"nested"`
	Common  common             `yaml:",inline"`
	Skipped string             `yaml:"-"`
	private string
}

type common struct {
	Name string `yaml:"name"`
}

type nested struct {
	A int     `yaml:"a"`
	B int     `yaml:"b"`
	C *nested `yaml:"c"`
}

type org struct {
	ID   string `yaml:"id,required"`
	Keys []key  `yaml:"keys"`
}

type key struct {
	SHA256 string `yaml:"sha256,required"`
	Team   string `yaml:"team"`
}

type limit struct {
	Quota  int           `yaml:"quota"`
	Window time.Duration `yaml:"window"`
}

type level string

func (level) Values() []string { return []string{"debug", "info", "warn"} }

// money is written as a number and kept in cents.
type money int64

func (m *money) UnmarshalNumber(text string) error {
	whole, cents, _ := strings.Cut(text, ".")
	if len(cents) != 2 {
		return errors.New("expected an amount with cents, such as 2.50")
	}
	_, err := fmt.Sscan(whole+cents, (*int64)(m))
	return err
}

// amount is written as text.
type amount struct{ text string }

func (a *amount) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("expected an amount")
	}
	a.text = "text " + string(text)
	return nil
}

func (a *amount) Equal(o *amount) bool { return a.text == o.text }

var compare = cmp.Options{cmp.AllowUnexported(sample{}, amount{})}

func TestDecodeFillsEveryKindOfField(t *testing.T) {
	t.Parallel()
	const file = `
# a comment
listen: "127.0.0.1:8080"
timeout: 1m30s
debug: true
level: warn
small: 255
signed: -128
count: 0x10
big: 18446744073709551615
ratio: 1e-3
price: 2.50
amount: "7"
tags: [a, "1", 'yes']
limits:
  minute: {quota: 60}
  "per day": {quota: 5, window: 24h}
levels: {info: 1}
orgs:
  - id: acme
    keys:
      - sha256: ab
        team: research
      - {sha256: cd}
  - id: globex
params:
  list: [1, -2, 3.5, true, null, text, "4"]
  deep: {a: {b: []}}
max: 3
default: {quota: 1}
key: {env: TG_KEY}
spare:
  file: ./spare
nested: {b: 20}
name: n
`
	got := sample{Tags: []string{"old", "old", "old", "old"}, Nested: nested{A: 1, B: 2}, Skipped: "kept", private: "kept"}
	if err := strictyaml.Decode("t.yaml", []byte(file), &got); err != nil {
		t.Fatal(err)
	}
	three := 3
	want := sample{
		Listen: "127.0.0.1:8080", Timeout: 90 * time.Second, Debug: true, Level: "warn",
		Small: 255, Signed: -128, Count: 16, Big: math.MaxUint64, Ratio: 0.001, Price: 250, Amount: amount{"text 7"},
		Tags: []string{"a", "1", "yes"},
		Limits: map[string]limit{
			"minute":  {Quota: 60},
			"per day": {Quota: 5, Window: 24 * time.Hour},
		},
		Levels: map[level]int{"info": 1},
		Orgs:   []org{{ID: "acme", Keys: []key{{"ab", "research"}, {"cd", ""}}}, {ID: "globex"}},
		Params: map[string]any{
			"list": []any{int64(1), int64(-2), 3.5, true, nil, "text", "4"},
			"deep": map[string]any{"a": map[string]any{"b": []any{}}},
		},
		Max: &three, Default: &limit{Quota: 1},
		Nested: nested{A: 1, B: 20}, Common: common{"n"}, Skipped: "kept", private: "kept",
	}
	if source := got.Key.Source(); source != "environment variable TG_KEY" {
		t.Errorf("key refers to %q, want the environment variable", source)
	}
	if got.Spare == nil || got.Spare.Source() != "file ./spare" {
		t.Errorf("spare refers to %v, want the file", got.Spare)
	}
	got.Key, got.Spare = strictyaml.Secret{}, nil
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestDecodeLeavesTheTargetAloneWhenItFails(t *testing.T) {
	t.Parallel()
	max := 1
	newDefaults := func() sample {
		return sample{Listen: "a", Tags: []string{"x"}, Max: &max, Limits: map[string]limit{"m": {Quota: 1}}, Default: &limit{Quota: 9}}
	}
	got := newDefaults()
	err := strictyaml.Decode("t.yaml", []byte("listen: b\ntags: [y]\nmax: 2\nlimits: {m: {quota: 2}}\ndefault: {quota: 8}\nnope: 1\n"), &got)
	if err == nil {
		t.Fatal("no error for an unknown key")
	}
	if diff := cmp.Diff(newDefaults(), got, compare); diff != "" {
		t.Errorf("target changed (-want +got):\n%s", diff)
	}
}

func TestDecodeKeepsWhatDefaultsPointTo(t *testing.T) {
	t.Parallel()
	shared := &limit{Quota: 9, Window: time.Hour}
	got := sample{Default: shared}
	if err := strictyaml.Decode("t.yaml", []byte("default: {quota: 1}"), &got); err != nil {
		t.Fatal(err)
	}
	if want := (limit{Quota: 1, Window: time.Hour}); *got.Default != want {
		t.Errorf("default is %+v, want %+v", *got.Default, want)
	}
	if want := (limit{Quota: 9, Window: time.Hour}); *shared != want {
		t.Errorf("the shared default became %+v, want %+v", *shared, want)
	}
}

// An element of a list gets the defaults of the settings that the file does not name, also where it names others with a zero value.
func TestFill(t *testing.T) {
	t.Parallel()
	var got struct {
		Limits []limit `yaml:"limits"`
	}
	pos, err := strictyaml.Load("t.yaml", []byte("limits: [{quota: 0}, {window: 2m}]"), &got)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Limits {
		strictyaml.Fill(pos, fmt.Sprintf("limits[%d]", i), &got.Limits[i], limit{Quota: 9, Window: time.Minute})
	}
	if diff := cmp.Diff([]limit{{0, time.Minute}, {9, 2 * time.Minute}}, got.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestDecodeReportsEveryFault(t *testing.T) {
	t.Parallel()
	const file = `listen: 80
timeot: 5s
orgs:
  - id: acme
    keys:
      - shaa256: ab
        team: [x]
  - keys: []
small: 256
small: 1
level: inf
`
	err := strictyaml.Decode("t.yaml", []byte(file), &sample{})
	const want = `t.yaml:1:9: listen: expected a string, found an integer (quote it)
t.yaml:2:1: timeot: unknown key (did you mean "timeout"?)
t.yaml:6:9: orgs[0].keys[0].shaa256: unknown key (did you mean "sha256"?)
t.yaml:6:9: orgs[0].keys[0].sha256: is required
t.yaml:7:15: orgs[0].keys[0].team: expected a string, found a list
t.yaml:8:5: orgs[1].id: is required
t.yaml:9:8: small: is out of range, expected 0 to 255
t.yaml:10:1: small: duplicate key, first at line 9
t.yaml:11:8: level: unknown value "inf" (did you mean "info"?)`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	all, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || len(all) != 9 {
		t.Errorf("error is %T with %d faults, want Errors with 9", err, len(all))
	}
}

// An IPv4-mapped network has the IPv4 form, because addresses are compared in this form. Other networks are unchanged.
func TestNetworksAreUnmapped(t *testing.T) {
	t.Parallel()
	type network struct{ netip.Prefix }
	var got struct {
		Plain []netip.Prefix `yaml:"plain"`
		Named []network      `yaml:"named"`
	}
	const list = `["::ffff:127.0.0.0/104", "::ffff:a00:5/128", "::ffff:10.1.2.3/104", "::ffff:0:0/96", "::ffff:0:0/95", "::/0", "2001:db8::/32", "10.0.0.0/8"]`
	if err := strictyaml.Decode("t.yaml", []byte("plain: "+list+"\nnamed: "+list+"\n"), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"127.0.0.0/8", "10.0.0.5/32", "10.1.2.3/8", "0.0.0.0/0", "::ffff:0.0.0.0/95", "::/0", "2001:db8::/32", "10.0.0.0/8"} {
		if got.Plain[i].String() != want || got.Named[i].String() != want {
			t.Errorf("%v and %v, want %s", got.Plain[i], got.Named[i], want)
		}
	}
}
