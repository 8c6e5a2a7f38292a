package config_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// tree is a main file with organisations in files of their own, below a directory of the test.
type tree struct {
	t   *testing.T
	dir string
}

const mainFile = `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
orgs_files: conf.d/*.yaml
org_bounds:
  budget: {per_day: 100, gpus: 4}
  credential_env: ["KEY_{id}"]
  credential_files: []
  enforce: [gpu_count]
orgs:
  - id: main
    credential: {env: MAIN_KEY}
`

// orgText is an organisation that keeps within the bounds of mainFile, with one more line.
func orgText(id, more string) string {
	return fmt.Sprintf("id: %s\ncredential: {env: KEY_%s}\nbudget: {per_day: 50, gpus: 4}\npolicies: [{policy: gpu_count, params: {max: 2}}]\n%s\n", id, strings.ToUpper(id), more)
}

func newTree(t *testing.T, files map[string]string) tree {
	t.Helper()
	d := tree{t, t.TempDir()}
	d.write("tollgate.yaml", mainFile)
	if err := os.Mkdir(filepath.Join(d.dir, "conf.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		d.write(name, text)
	}
	return d
}

func (d tree) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}

func (d tree) remove(name string) {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

func (d tree) load(before *config.Loaded) (*config.Loaded, error) {
	return config.Load(filepath.Join(d.dir, "tollgate.yaml"), config.Sources{
		Env: func(name string) (string, bool) { return "pk-secret-of-" + name, true }, Previous: before,
	}, nil)
}

// faults are those of an error, without the directory of the test.
func (d tree) faults(err error) []string {
	found, _ := errors.AsType[strictyaml.Errors](err)
	list := make([]string, len(found))
	for i, f := range found {
		list[i] = strings.ReplaceAll(f.Error(), d.dir+"/", "")
	}
	return list
}

// served are the organisations by id, with the digests of their keys.
func served(l *config.Loaded) map[string]int64 {
	budgets := make(map[string]int64)
	for i := range l.Config.Orgs {
		budgets[l.Config.Orgs[i].ID] = int64(l.Config.Orgs[i].Budget.PerDay) / 1e6
	}
	return budgets
}

// At start, an error in a file of an organisation is a fault with file, line and column, and nothing outside of the bounds or of
// the directory is read.
func TestFaultsOfOrgFiles(t *testing.T) {
	digest := identity.DigestOf("tg_live_0001").String()
	for name, tt := range map[string]struct {
		files map[string]string
		links map[string]string
		want  []string
	}{
		"none": {files: map[string]string{"conf.d/acme.yaml": orgText("acme", ""), "conf.d/.acme.yaml": "x", "conf.d/notes.txt": "x"}},
		"form": {
			files: map[string]string{"conf.d/acme.yaml": orgText("acme", "teams: [{id: a, weigth: 2}]")},
			want:  []string{`conf.d/acme.yaml:5:17: orgs[1].teams[0].weigth: unknown key (did you mean "weight"?)`},
		},
		"two of one id": {
			files: map[string]string{"conf.d/acme.yaml": orgText("acme", ""), "conf.d/other.yaml": orgText("acme", "")},
			want: []string{
				`conf.d/other.yaml:1:5: orgs[2].id: must be "other", like the name of the file`,
				`conf.d/other.yaml:1:5: orgs[2].id: organisation "acme" is already defined`,
			},
		},
		"that of the main file": {
			files: map[string]string{"conf.d/main.yaml": orgText("main", "")},
			want:  []string{`conf.d/main.yaml:1:5: orgs[1].id: organisation "main" is already defined`},
		},
		"beyond the bounds": {
			files: map[string]string{"conf.d/acme.yaml": `
id: acme
credential: {env: MAIN_KEY}
run_credential: {file: /dev/zero}
budget: {per_day: 500}
policies: [{policy: gpu_count, params: {max: 2}, mode: warn, teams: [a]}]
teams: [{id: a}]
`},
			want: []string{
				`conf.d/acme.yaml:3:1: orgs[1].credential: environment variable MAIN_KEY is not permitted for the organisation (org_bounds)`,
				`conf.d/acme.yaml:4:1: orgs[1].run_credential: file /dev/zero is not permitted for the organisation (org_bounds)`,
				`conf.d/acme.yaml:5:1: orgs[1].budget.gpus: must be set to at most 4 (org_bounds)`,
				`conf.d/acme.yaml:5:19: orgs[1].budget.per_day: must be at most 100 (org_bounds)`,
				`conf.d/acme.yaml:6:12: orgs[1].policies[0]: gpu_count must apply to all callers (org_bounds)`,
				`conf.d/acme.yaml:6:56: orgs[1].policies[0].mode: must be enforce (org_bounds)`,
			},
		},
		"an id that would be a pattern": {
			files: map[string]string{"conf.d/*.yaml": strings.Replace(orgText(`"*"`, ""), `KEY_"*"`, "KEY_OTHER", 1)},
			want:  []string{`conf.d/*.yaml:2:1: orgs[1].credential: environment variable KEY_OTHER is not permitted for the organisation (org_bounds)`},
		},
		"keys and policies elsewhere": {
			files: map[string]string{
				"conf.d/acme.yaml": orgText("acme", "key_files: [../keys.yaml, away.yaml, own.yaml]\nrego: ../rego"),
				"conf.d/own.yml":   "", "keys.yaml": "- {id: a, sha256: " + digest + "}\n",
			},
			links: map[string]string{"conf.d/away.yaml": "../keys.yaml", "conf.d/own.yaml": "own.yml"},
			want: []string{
				`conf.d/acme.yaml:5:13: orgs[1].key_files[0]: must stay in the directory of the organisation's file`,
				`conf.d/acme.yaml:5:27: orgs[1].key_files[1]: must stay in the directory of the organisation's file`,
				`conf.d/acme.yaml:6:7: orgs[1].rego: must stay in the directory of the organisation's file`,
				`conf.d/away.yaml: orgs[2]: must stay in the directory of the organisation's file`,
				`conf.d/own.yaml:1:1: orgs[3]: the file is empty`,
			},
		},
		"a link that leads out": {
			files: map[string]string{"secret.yaml": orgText("acme", "")},
			links: map[string]string{"conf.d/acme.yaml": "../secret.yaml"},
			want:  []string{`conf.d/acme.yaml: orgs[1]: must stay in the directory of the organisation's file`},
		},
		"too large": {
			files: map[string]string{"conf.d/acme.yaml": orgText("acme", "#"+strings.Repeat("x", 1<<20))},
			want:  []string{`conf.d/acme.yaml: orgs[1]: file too large: limit is 1048576 bytes`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTree(t, tt.files)
			for from, to := range tt.links {
				if err := os.Symlink(to, filepath.Join(d.dir, from)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := d.load(nil)
			if diff := cmp.Diff(tt.want, d.faults(err), cmp.Transformer("some", func(l []string) []string { return append([]string{}, l...) })); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// A pipe among the files is not read, which would wait for ever.
func TestOrgFileThatIsAPipe(t *testing.T) {
	d := newTree(t, nil)
	if err := syscall.Mkfifo(filepath.Join(d.dir, "conf.d", "acme.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := d.load(nil)
	if want := []string{"conf.d/acme.yaml: orgs[1]: not a regular file"}; !slices.Equal(d.faults(err), want) {
		t.Errorf("faults %q, want %q", d.faults(err), want)
	}
}

// When the configuration is loaded again, a file with a fault keeps the last good section of its organisation and is named; the others
// change, come and go.
func TestOrgFilesAlone(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", ""), "conf.d/beta.yaml": orgText("beta", "")})
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		change  func()
		want    map[string]int64
		refused []string // files and the organisations that stand
	}{
		{"nothing", func() {}, map[string]int64{"main": 0, "acme": 50, "beta": 50}, nil},
		{"one changes", func() { d.write("conf.d/beta.yaml", strings.Replace(orgText("beta", ""), "50", "60", 1)) }, map[string]int64{"main": 0, "acme": 50, "beta": 60}, nil},
		{"it is broken", func() { d.write("conf.d/beta.yaml", "id: beta\nbudget: [") }, map[string]int64{"main": 0, "acme": 50, "beta": 60}, []string{"beta.yaml beta"}},
		{"and another beyond its bounds", func() { d.write("conf.d/acme.yaml", strings.Replace(orgText("acme", ""), "50", "500", 1)) }, map[string]int64{"main": 0, "acme": 50, "beta": 60}, []string{"acme.yaml acme", "beta.yaml beta"}},
		{"a new one is broken", func() { d.write("conf.d/gamma.yaml", "id: 7") }, map[string]int64{"main": 0, "acme": 50, "beta": 60}, []string{"acme.yaml acme", "beta.yaml beta", "gamma.yaml "}},
		{"the new one is mended", func() { d.write("conf.d/gamma.yaml", orgText("gamma", "")) }, map[string]int64{"main": 0, "acme": 50, "beta": 60, "gamma": 50}, []string{"acme.yaml acme", "beta.yaml beta"}},
		{"a broken one goes", func() { d.remove("conf.d/beta.yaml") }, map[string]int64{"main": 0, "acme": 50, "gamma": 50}, []string{"acme.yaml acme"}},
		{"all is mended", func() { d.write("conf.d/acme.yaml", orgText("acme", "")) }, map[string]int64{"main": 0, "acme": 50, "gamma": 50}, nil},
		{
			"one takes the key of another, whose name comes later", func() {
				key := "keys: [{id: a, sha256: " + identity.DigestOf("tg_one").String() + "}]"
				d.write("conf.d/gamma.yaml", orgText("gamma", key))
				next, err := d.load(now)
				if err != nil {
					t.Fatal(err)
				}
				now = next
				d.write("conf.d/acme.yaml", orgText("acme", key))
			}, map[string]int64{"main": 0, "acme": 50, "gamma": 50}, []string{"acme.yaml acme"},
		},
	} {
		step.change()
		next, err := d.load(now)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var refused []string
		for _, f := range next.Config.RejectedFiles {
			refused = append(refused, filepath.Base(f.File)+" "+f.Org)
			if f.Fault == "" || !strings.Contains(f.Fault, filepath.Base(f.File)) {
				t.Errorf("%s: the fault is %q", step.name, f.Fault)
			}
		}
		if diff := cmp.Diff(step.want, served(next)) + cmp.Diff(step.refused, refused); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		now = next
	}
	if o := now.Config.Org("acme"); len(o.Keys) != 0 || o.Credential.Reveal() != "pk-secret-of-KEY_ACME" {
		t.Errorf("acme has %d keys and the credential of %s", len(o.Keys), o.Credential.Source())
	}
}

// A fault of the main file, or one that follows from it, is one of the whole; so is a directory that is gone, which would take all of its
// organisations away.
func TestOrgFilesAndFaultsOfTheWhole(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", "")})
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func()
		want   string
	}{
		{"bounds that what stands breaks", func() { d.write("tollgate.yaml", strings.Replace(mainFile, "KEY_{id}", "OTHER_{id}", 1)) }, ""},
		{"a fault", func() { d.write("tollgate.yaml", strings.Replace(mainFile, "id: main", "id: ''", 1)) }, "orgs[0].id"},
		{"the directory is gone", func() {
			d.write("tollgate.yaml", mainFile)
			d.remove("conf.d/acme.yaml")
			d.remove("conf.d")
		}, "orgs_files"},
	} {
		tt.change()
		next, err := d.load(now)
		if got := strings.Join(d.faults(err), "\n"); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want a fault of %q", tt.name, err, tt.want)
		}
		if err == nil && (len(next.Config.RejectedFiles) != 1 || next.Config.Org("acme") == nil) {
			t.Errorf("%s: %+v", tt.name, next.Config.RejectedFiles)
		}
	}
}

// A fault that only the gateway finds is one of the file that it is about.
func TestRefuse(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", "")})
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	d.write("conf.d/acme.yaml", strings.Replace(orgText("acme", ""), "50", "60", 1))
	next, err := d.load(now)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := next.WithoutFaultyFiles(&policyconfig.Error{Org: "acme", Message: "rego_type_error"})
	if err != nil || served(kept)["acme"] != 50 || len(kept.Config.RejectedFiles) != 1 || !kept.Config.Org("acme").Policies.KeepOnFailure {
		t.Errorf("acme has %v, %v, refused %v", served(kept), err, kept.Config.RejectedFiles)
	}
	if _, err := kept.WithoutFaultyFiles(&policyconfig.Error{Org: "acme", Message: "rego_type_error"}); err == nil {
		t.Error("what stands is refused without a fault")
	}
	if _, err := next.WithoutFaultyFiles(&policyconfig.Error{Org: "main", Message: "rego_type_error"}); err == nil {
		t.Error("a fault of the main file is none")
	}
}

// The watcher sees files that come, change and go.
func TestWatchOrgFiles(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", "")})
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	seen, ended := make(chan []settings.Org), make(chan struct{})
	go func() {
		defer close(ended)
		config.Watch(ctx, now.Inputs, config.ReloadRequests{}, slog.New(slog.DiscardHandler), func(bool) config.Inputs {
			next, err := d.load(now)
			if err != nil {
				t.Error(err)
				return config.Inputs{}
			}
			seen <- next.Config.Orgs
			return next.Inputs
		})
	}()
	defer func() { stop(); <-ended }()
	for _, step := range []struct {
		change func()
		want   []string
	}{
		{func() { d.write("conf.d/beta.yaml", orgText("beta", "")) }, []string{"acme", "beta", "main"}},
		{func() { d.write("conf.d/beta.yaml", "id: beta\n") }, []string{"acme", "main"}},
		{func() { d.write("conf.d/beta.yaml", orgText("beta", "labels: []")) }, []string{"acme", "beta", "main"}},
		{func() { d.remove("conf.d/beta.yaml") }, []string{"acme", "main"}},
	} {
		step.change()
		var ids []string
		for _, o := range <-seen {
			ids = append(ids, o.ID)
		}
		if slices.Sort(ids); !slices.Equal(ids, step.want) {
			t.Errorf("organisations %v, want %v", ids, step.want)
		}
	}
}

// A file that has not changed keeps its section as it is in memory, with its places, for as long as nothing has changed that it is made from
// or judged by.
func TestUnchangedOrgFilesStay(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", "teams: [{id: a}]"), "conf.d/beta.yaml": orgText("beta", ""), "conf.d/keys.yaml": orgText("keys", "key_files: [k.txt]"), "conf.d/k.txt": "[]\n"})
	value := "first-secret-value"
	load := func(before *config.Loaded) *config.Loaded {
		t.Helper()
		l, err := config.Load(filepath.Join(d.dir, "tollgate.yaml"), config.Sources{
			Env: func(name string) (string, bool) { return value + name, true }, Previous: before,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := load(nil)
	for _, tt := range []struct {
		name   string
		change func()
		stay   []string
	}{
		{"nothing", func() {}, []string{"acme", "beta"}},
		{"one file", func() { d.write("conf.d/beta.yaml", orgText("beta", "teams: [{id: b}]")) }, []string{"acme"}},
		{"another key", func() { d.write("conf.d/k.txt", "- {id: k, sha256: "+identity.DigestOf("tg_live_0001").String()+"}\n") }, []string{"acme", "beta"}},
		{"secrets", func() { value = "other-secret-value" }, nil},
		{"a fault", func() { d.write("conf.d/beta.yaml", orgText("beta", "teams: [{id: b}, {id: b}]")) }, []string{"acme"}},
		{"the fault's end", func() { d.write("conf.d/beta.yaml", orgText("beta", "teams: [{id: b}]")) }, []string{"acme", "beta"}},
		{"the main file", func() { d.write("tollgate.yaml", mainFile+"\n") }, nil},
		{"nothing again", func() {}, []string{"acme", "beta"}},
	} {
		before := l.Config
		tt.change()
		l = load(l)
		var stay []string
		for i := range l.Config.Orgs {
			o := &l.Config.Orgs[i]
			if o.Reused {
				stay = append(stay, o.ID)
				if was := before.Org(o.ID); &was.Policies.Policies[0] != &o.Policies.Policies[0] || o.Policies.KeepOnFailure {
					t.Errorf("%s: the section of %s is not that of before", tt.name, o.ID)
				}
			}
			if want := value + "KEY_" + strings.ToUpper(o.ID); o.ID != "main" && o.Credential.Reveal() != want {
				t.Errorf("%s: %s has the credential %q, want %q", tt.name, o.ID, o.Credential.Reveal(), want)
			}
			if err := l.Locate(fault.Errorf(fault.Index("orgs", i)+".budget", "x")); o.File != "" && !o.Policies.KeepOnFailure && !strings.Contains(err.Error(), o.ID+".yaml:3:1: ") {
				t.Errorf("%s: %v is not placed in its file", tt.name, err)
			}
		}
		slices.Sort(stay)
		if diff := cmp.Diff(tt.stay, stay); diff != "" {
			t.Errorf("%s: what stays (-want +got):\n%s", tt.name, diff)
		}
	}
	if keys := l.Config.Org("keys").Keys; len(keys) != 1 || keys[0].ID != "k" {
		t.Errorf("the key of a file is not there: %v", keys)
	}
	d.write("tollgate.yaml", strings.Replace(mainFile, "gpus: 4", "gpus: 3", 1))
	if l = load(l); len(l.Config.RejectedFiles) != 3 {
		t.Errorf("refused by narrower bounds are %v, want all three", l.Config.RejectedFiles)
	}
}

// A configuration is not kept once a newer one is in force, whether files changed or not, and whether the newer one was read in one
// reading or was refused a file.
func TestEarlierConfigurationsAreReleased(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", ""), "conf.d/globex.yaml": orgText("globex", "")})
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	var earlier []weak.Pointer[config.Loaded]
	for i := range 6 {
		earlier = append(earlier, weak.Make(now))
		switch i % 3 {
		case 0:
			d.write("conf.d/acme.yaml", orgText("acme", fmt.Sprintf("labels: [{name: l%d}]", i)))
		case 1:
			d.write("conf.d/globex.yaml", "id: globex\nwrong: 1\n")
		}
		if now, err = d.load(now); err != nil {
			t.Fatal(err)
		}
	}
	now.Commit()
	runtime.GC()
	for i, p := range earlier {
		if p.Value() != nil {
			t.Errorf("the configuration before reload %d is still in memory", i+1)
		}
	}
	runtime.KeepAlive(now)
}

// age sets the time of a file's last change. A file that changed within the last seconds is always read again.
func (d tree) age(name string, at time.Time) {
	d.t.Helper()
	if err := os.Chtimes(filepath.Join(d.dir, name), at, at); err != nil {
		d.t.Fatal(err)
	}
}

// TestOrgFilesAreReadWhenTheyChange reads a file again if its size, time or identity has changed, and does not read it otherwise.
func TestOrgFilesAreReadWhenTheyChange(t *testing.T) {
	const file = "conf.d/acme.yaml"
	d := newTree(t, map[string]string{file: orgText("acme", "contact: first")})
	written := time.Now().Add(-time.Hour)
	reload := func(before *config.Loaded) (now *config.Loaded, contact string) {
		now, err := d.load(before)
		if err != nil {
			t.Fatal(err)
		}
		return now, now.Config.Org("acme").Contact.Text
	}
	d.age(file, written)
	now, _ := reload(nil)
	d.write(file, orgText("acme", "contact: other"))
	d.age(file, written)
	if now, contact := reload(now); contact != "first" || !now.Config.Org("acme").Reused {
		t.Errorf("a file of the same size, time and identity was read: contact %q", contact)
	}
	anew, err := config.Load(filepath.Join(d.dir, "tollgate.yaml"), config.Sources{
		Env: func(name string) (string, bool) { return "pk-secret-of-" + name, true }, Previous: now, Reread: true,
	}, nil)
	if err != nil || anew.Config.Org("acme").Contact.Text != "other" {
		t.Errorf("read anew, contact is not the other one: %v", err)
	}
	now, _ = reload(nil)
	for name, change := range map[string]func(text string){
		"time":     func(text string) { d.write(file, text); written = written.Add(time.Second); d.age(file, written) },
		"identity": func(text string) { d.write(file+".new", text); d.age(file+".new", written); rename(t, d, file) },
		"size":     func(text string) { d.write(file, text+"\n\n\n"); d.age(file, written) },
	} {
		contact := "new " + name
		change(orgText("acme", "contact: "+contact))
		var got string
		if now, got = reload(now); got != contact {
			t.Errorf("after a change of its %s, contact is %q, want %q", name, got, contact)
		}
	}
}

func rename(t *testing.T, d tree, name string) {
	t.Helper()
	if err := os.Rename(filepath.Join(d.dir, name+".new"), filepath.Join(d.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedOrgFileStaysRefused reads a configuration twice with a file whose last good section stays.
func TestRefusedOrgFileStaysRefused(t *testing.T) {
	const file = "conf.d/acme.yaml"
	d := newTree(t, map[string]string{file: orgText("acme", "")})
	d.age(file, time.Now().Add(-2*time.Hour))
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	d.write(file, orgText("acme", "nonsense: 1"))
	d.age(file, time.Now().Add(-time.Hour))
	for n := range 3 {
		if now, err = d.load(now); err != nil {
			t.Fatal(err)
		}
		if len(now.Config.RejectedFiles) != 1 {
			t.Errorf("reload %d refuses %v, want the file with a fault", n, now.Config.RejectedFiles)
		}
	}
}

// TestRevertedMainFile breaks a file together with a change of the main file, and reverts both: what stood was compiled by the other main
// file, and is not kept.
func TestRevertedMainFile(t *testing.T) {
	const file = "conf.d/acme.yaml"
	d := newTree(t, map[string]string{file: orgText("acme", "")})
	load := func(before *config.Loaded) *config.Loaded {
		t.Helper()
		l, err := d.load(before)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := load(nil)
	d.write("tollgate.yaml", mainFile+"contact: help@example.test\n")
	d.write(file, orgText("acme", "nonsense: 1"))
	stood := load(first)
	d.write("tollgate.yaml", mainFile)
	d.write(file, orgText("acme", ""))
	reverted := load(stood)
	if o := reverted.Config.Org("acme"); o.EqualTo(stood.Config.Org("acme")) {
		t.Error("what was compiled by the other main file is kept")
	}
	if o := load(reverted).Config.Org("acme"); !o.EqualTo(reverted.Config.Org("acme")) {
		t.Error("without a change, nothing is kept")
	}
}
