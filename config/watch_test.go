package config_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/test/world"
)

// watched is a configuration in a directory of its own, and a watch over it.
type watched struct {
	t       *testing.T
	dir     string
	signals chan os.Signal
	// told receives the result of loading, after each change: no fault, or one.
	told chan error
}

const watchedFile = `platform: {base_url: "https://platform.test"}
redis: {embedded: true}
orgs:
  - {id: acme, credential: {file: DIR/acme.key}, rego: ./rego}
`

func watch(t *testing.T, before func(w *watched)) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), signals: make(chan os.Signal, 1), told: make(chan error, 100)}
	w.write("tollgate.yaml", watchedFile)
	w.write("acme.key", "pk-1")
	w.write("rego/mine.rego", "package policies.mine\n")
	load := func() (config.Inputs, error) {
		l, err := config.Load(filepath.Join(w.dir, "tollgate.yaml"), config.Sources{}, nil)
		if err != nil {
			return config.Inputs{}, err
		}
		return l.Inputs, nil
	}
	in, err := load()
	if err != nil {
		t.Fatal(err)
	}
	before(w)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		config.Watch(ctx, in, config.ReloadRequests{Signals: w.signals}, slog.New(slog.DiscardHandler), func(bool) config.Inputs {
			in, err := load()
			w.told <- err
			return in
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

// write replaces a file as deployments do.
func (w *watched) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "DIR", w.dir)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		w.t.Fatal(err)
	}
}

// next waits for the next call, and returns its result.
func (w *watched) next(after string, want string) {
	w.t.Helper()
	switch err := <-w.told; {
	case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		w.t.Errorf("%s: told of %v, want %q", after, err, want)
	}
}

func TestWatch(t *testing.T) {
	w := watch(t, func(w *watched) { w.write("tollgate.yaml", watchedFile+"# changed since it was loaded\n") })
	w.next("a change before the watch stood", "")
	w.signals <- os.Interrupt
	w.next("a signal", "")
	w.write("tollgate.yaml", watchedFile+"listn: x\n")
	w.next("a fault", "listn: unknown key")
	w.write("tollgate.yaml", watchedFile)
	w.next("the fault mended", "")
	w.write("acme.key", " ")
	w.next("an empty secret", "is empty")
	w.write("acme.key", "pk-2")
	w.next("another secret", "")
	w.write("rego/mine.rego", "package policies.mine\n\ndeny := set()\n")
	w.next("another policy", "")
	if err := os.RemoveAll(filepath.Join(w.dir, "rego")); err != nil {
		t.Fatal(err)
	}
	w.next("the policies gone", "")
	w.write("rego/mine.rego", "package policies.mine\n")
	w.next("the policies back", "")
}

// TestWatchSeesRevocations: authorities of callers and their lists are read again when
// their files change, and one that cannot be read is a fault.
func TestWatchSeesRevocations(t *testing.T) {
	mesh := world.NewAuthority(t, "mesh", time.Now())
	chain, key := newCertificate(t)
	w := watch(t, func(w *watched) {
		for name, text := range map[string]string{"chain": chain, "key": key, "ca": mesh.PEM(), "crl": mesh.Revoked(t, time.Now())} {
			w.write(name, text)
		}
		w.write("tollgate.yaml", watchedFile+`tls: {certificate: {file: DIR/chain}, key: {file: DIR/key}}
certificates: {authorities: [{id: mesh, ca: {file: DIR/ca}, crl: {file: DIR/crl}, orgs: [acme], role: viewer}]}
`)
	})
	w.next("certificates", "")
	w.write("crl", mesh.Revoked(t, time.Now().Add(time.Hour)))
	w.next("another list", "")
	w.write("crl", "half a li")
	w.next("a list that is none", "certificates.authorities[0].crl: contains no PEM block")
	w.write("crl", mesh.Revoked(t, time.Now()))
	w.next("a list again", "")
	w.write("ca", world.NewAuthority(t, "mesh", time.Now()).PEM())
	w.next("another authority", "")
}

// TestWatchFollowsLinks: a file and a directory that are links to others elsewhere,
// which are edited there, or which the links are turned away from.
func TestWatchFollowsLinks(t *testing.T) {
	w := watch(t, func(*watched) {})
	rename := func(from, to string) { // in one step, so that nothing in between is seen
		t.Helper()
		if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		t.Helper()
		if err := os.Symlink(filepath.Join(w.dir, target), filepath.Join(w.dir, "link")); err != nil {
			t.Fatal(err)
		}
		rename("link", name)
	}
	w.write("elsewhere/1/acme.key", "pk-2")
	link("acme.key", "elsewhere/1/acme.key")
	w.next("a link to another secret", "")
	w.write("elsewhere/1/acme.key", " ")
	w.next("an empty secret where the link goes", "is empty")
	w.write("elsewhere/1/acme.key", "pk-3")
	w.next("the secret mended", "")
	w.write("elsewhere/2/mine.rego", "package policies.mine\n")
	rename("rego", "old")
	w.next("the policies gone", "")
	link("rego", "elsewhere/2")
	w.next("a link to other policies", "")
	w.write("elsewhere/2/mine.rego", "package policies.mine\n\ndeny := set()\n")
	w.next("an edited policy where the link goes", "")
}

// TestWatchSeesNewDirectories: policies in a directory that did not exist when the
// watch began.
func TestWatchSeesNewDirectories(t *testing.T) {
	w := watch(t, func(*watched) {})
	if err := os.Mkdir(filepath.Join(w.dir, "rego", "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.next("a directory", "")
	w.write("rego/more/another.rego", "package policies.another\n")
	w.next("a file in it", "")
}

// TestWatchInANoisyDirectory: a file beside the configuration that is written all
// the time, such as a log, hides no change.
func TestWatchInANoisyDirectory(t *testing.T) {
	w := watch(t, func(*watched) {})
	log, err := os.Create(filepath.Join(w.dir, "decisions.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = log.WriteString("x\n")
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	w.write("acme.key", "pk-2")
	w.next("a secret", "")
}

// A tree is watched without the directories that are skipped, however they change.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".state/a")
	tree := func() config.Inputs {
		return config.Tree(dir, ".*")
	}
	told := make(chan []string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	in := tree()
	go func() {
		defer close(ended)
		config.Watch(ctx, in, config.ReloadRequests{}, slog.New(slog.DiscardHandler), func(bool) config.Inputs {
			now := tree()
			found, err := filepath.Glob(filepath.Join(dir, "below", "*"))
			if err != nil {
				t.Error(err)
			}
			told <- found
			return now
		})
	}()
	write(".state/b")
	write(".new/a")
	write("below/c.py")
	if got := <-told; len(got) != 1 { // not of skipped entries, before it
		t.Errorf("told of %v", got)
	}
	write(".state/c")
	write("below/d.py")
	if got := <-told; len(got) != 2 {
		t.Errorf("told of %v", got)
	}
	cancel()
	<-ended
}

// TestWatchTellsWhatWasAskedFor distinguishes requests of people, who have every file read, from what happens by itself.
func TestWatchTellsWhatWasAskedFor(t *testing.T) {
	signals, again, finished := make(chan os.Signal), make(chan chan<- struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan bool, 1), make(chan struct{})
	go func() {
		defer close(ended)
		requests := config.ReloadRequests{Signals: signals, Reload: again, Expired: finished}
		config.Watch(ctx, config.Inputs{}, requests, slog.New(slog.DiscardHandler), func(asked bool) config.Inputs {
			told <- asked
			return config.Inputs{}
		})
	}()
	for name, request := range map[string]func(){
		"a signal": func() { signals <- os.Interrupt }, "a call": func() { again <- make(chan struct{}) }, "an end": func() { finished <- struct{}{} },
	} {
		request()
		if asked, want := <-told, name != "an end"; asked != want {
			t.Errorf("%s: asked for is %t, want %t", name, asked, want)
		}
	}
	cancel()
	<-ended
}
