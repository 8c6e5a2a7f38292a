package dev_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/dev"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// until waits for something that happens soon.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(time.Minute); !happened(); {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s did not happen", what)
		}
	}
}

// lossy loses the answer of the first create, as a process does that is killed.
type lossy struct {
	http.RoundTripper
	lost atomic.Bool
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") != "" && l.lost.CompareAndSwap(false, true) {
		return nil, errors.Join(errors.New("killed"), res.Body.Close())
	}
	return res, err
}

// A create whose answer is lost, with the process or with the state, leaves no second
// endpoint, also if the configuration has changed meanwhile.
func TestLostCreatesLeaveNoSecondEndpoint(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, dir string){
		"killed": func(*testing.T, string) {},
		"killed and changed": func(t *testing.T, dir string) {
			put(t, dir, "q.py", strings.Replace(queue, "ADA_24)", "ADA_24, idle_timeout=9)", 1))
		},
		"state lost": func(t *testing.T, dir string) { _ = os.RemoveAll(filepath.Join(dir, ".tollgate")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, "")
			dir := write(t, map[string]string{"q.py": queue})
			kept := s.gateway.HTTP
			s.gateway.HTTP = &http.Client{Transport: &lossy{RoundTripper: kept.Transport}}
			s.serve(t, dir).wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 502, "killed")
			s.gateway.HTTP = kept
			between(t, dir)
			d := s.serve(t, dir)
			d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
			if got := s.endpoints(t); got != "live-q" {
				t.Errorf("endpoints %q\n%s", got, d.console)
			}
		})
	}
}

// An endpoint that was removed is made anew, although its first create's key is kept, and
// the state with it lost.
func TestRemovedEndpointsAreMadeAnew(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"q.py": queue})
	for range 2 {
		d := s.serve(t, dir)
		d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
		if err := d.Remove(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, ".tollgate", "dev.json")); err != nil {
			t.Fatal(err)
		}
	}
	s.serve(t, dir).wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	if got := s.endpoints(t); got != "live-q" {
		t.Errorf("endpoints %q", got)
	}
}

// Two processes serve a directory one after the other only.
func TestSecondServerOfADirectory(t *testing.T) {
	t.Parallel()
	dir := write(t, nil)
	release, err := state(t, dir).Serve()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state(t, dir).Serve(); !errors.Is(err, dev.ErrServed) {
		t.Errorf("the second got %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = state(t, dir).Serve()
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	_ = release()
}

// The state of another directory, as a checkout may bring along, is refused, and so is
// one outside of the project.
func TestForeignStates(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"q.py": queue})
	s.serve(t, dir).wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	text, err := os.ReadFile(filepath.Join(dir, ".tollgate", "dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := s.serve(t, write(t, map[string]string{"q.py": queue, ".tollgate/dev.json": string(text)}))
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 502, "written in another directory")
	if err := d.Remove(t.Context(), "q"); err == nil || s.endpoints(t) != "live-q" {
		t.Errorf("%v; endpoints %q", err, s.endpoints(t))
	}
	outside, linked := t.TempDir(), write(t, nil)
	if err := os.Symlink(outside, filepath.Join(linked, ".tollgate")); err != nil {
		t.Fatal(err)
	}
	kept, err := dev.OpenState(linked, "me@here")
	if err == nil {
		_, err = kept.Serve()
		_ = kept.Close()
	}
	if entries, _ := os.ReadDir(outside); err == nil || len(entries) > 0 {
		t.Errorf("a link out of the project: %v, %d files", err, len(entries))
	}
}

// An id in the state leads to no endpoint of another name, whoever wrote it there.
func TestIdsLeadToOwnEndpointsOnly(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"q.py": queue, "c.py": classes})
	d := s.serve(t, dir)
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	d.wants(t, "POST", "/c/zero/runsync", ``, 200, "0")
	list, err := d.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %+v", err, list)
	}
	path := filepath.Join(dir, ".tollgate", "dev.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), list[1].ID, list[0].ID, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.serve(t, dir).Remove(t.Context(), "q"); err != nil || s.endpoints(t) != "live-q live-c" && s.endpoints(t) != "live-c live-q" {
		t.Errorf("%v; endpoints %q", err, s.endpoints(t))
	}
}

// --max-usd ends the session's rented resources when they may have cost that much.
func TestMaxUSD(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	var passed atomic.Int64 // hours
	start := time.Now()
	d := s.serve(t, write(t, map[string]string{"q.py": queue}), func(set *dev.Settings) {
		set.MaxUSD = 2
		set.Now = func() time.Time { return start.Add(time.Duration(passed.Load()) * time.Hour) }
	})
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	if !strings.Contains(d.console.String(), "--max-usd has 2 of 2 USD left: 1h48m") {
		t.Errorf("console:\n%s", d.console)
	}
	passed.Store(2)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Guard(ctx) }()
	until(t, "the removal", func() bool { return strings.Contains(d.console.String(), "live-q removed") })
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 402, "--max-usd")
	cancel()
	if err := <-ended; err != nil || s.endpoints(t) != "" {
		t.Errorf("%v; endpoints %q", err, s.endpoints(t))
	}
}

// A function that takes longer than its endpoint allows is 504, of a queue and of a
// load-balanced endpoint, and so is one that gets no worker.
func TestSlowFunctions(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	text := strings.NewReplacer(`ADA_24)`, `ADA_24, execution_timeout_ms=1000)`, `import os`, "import os, time; time.sleep(30)").Replace(queue)
	d := s.serve(t, write(t, map[string]string{"q.py": text, "w.py": from + `
api = Endpoint(name="w", cpu="cpu3c-2-4", execution_timeout_ms=1000)
@api.get("/slow")
def slow():
    import time
    time.sleep(30)
`}))
	cold := newStack(t, "", func(o *platform.Options) { o.Timing.ColdStart = time.Hour })
	none := cold.serve(t, write(t, map[string]string{"q.py": queue, "w.py": web}), func(set *dev.Settings) { set.Cold = time.Second })
	var group sync.WaitGroup
	group.Go(func() { d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 504, "no result in time") })
	group.Go(func() { d.wants(t, "GET", "/w/slow", "", 504, "no result in time") })
	group.Go(func() { none.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 504, "no worker within 1s") })
	group.Go(func() { none.wants(t, "GET", "/w/items/1", "", 504, "no worker within 1s") })
	group.Wait()
}

// A job that the platform ends for its time is 504, as a TIMED_OUT or a FAILED job, and is not sent again.
func TestJobsThatThePlatformEndsForTheirTime(t *testing.T) {
	t.Parallel()
	s := newStack(t, "", func(o *platform.Options) { o.Clock = platform.NewClock(time.Now(), 100) })
	d := s.serve(t, write(t, map[string]string{"v.py": from + "v = Endpoint(name='v', image='img:1', gpu=GpuGroup.ADA_24, execution_timeout_ms=20000)\n"}))
	d.wants(t, "POST", "/v/runsync", `{"input":{"emulator":{"delay_ms":60000}}}`, 504, "no result in time: the platform ended the job")
	d.wants(t, "POST", "/v/runsync", `{"input":{"emulator":{"delay_ms":20000,"error":"ran out"}}}`, 504, "no result in time: the platform ended the job")
	d.wants(t, "POST", "/v/runsync", `{"input":{"emulator":{"delay_ms":1,"error":"broke"}}}`, 500, "broke")
	if n := len(s.platform.CallsTo("runSync")) + len(s.platform.CallsTo("runsync")); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
}

// run runs a server as the command does, until stop is called.
func (s *stack) run(t *testing.T, dir string, o dev.Options) (out *console, stop func() error) {
	t.Helper()
	out = &console{}
	session := dev.NewSession(s.gateway, state(t, dir), python(t), dev.Settings{Cold: time.Minute, Now: time.Now, Out: out})
	o.Host, o.Listener, o.Logger = "127.0.0.1", world.Listen(t), slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := read(t, dir)
	go func() { ended <- session.Run(ctx, p, o) }()
	return out, func() error {
		cancel()
		return <-ended
	}
}

// Above five endpoints --auto-provision asks, and does not without anybody to ask.
func TestAutoProvisionAsks(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("f%d.py", i)] = strings.Replace(queue, `"q"`, fmt.Sprintf(`"f%d"`, i), 1)
	}
	dir := write(t, files)
	_, stop := s.run(t, dir, dev.Options{Provision: true})
	if err := stop(); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("nobody: %v", err)
	}
	_, stop = s.run(t, dir, dev.Options{Provision: true, Ask: bufio.NewReader(strings.NewReader(""))})
	if err := stop(); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("the end of the input: %v", err)
	}
	out, stop := s.run(t, dir, dev.Options{Provision: true, Ask: bufio.NewReader(strings.NewReader("n\n"))})
	until(t, "the question", func() bool { return strings.Contains(out.String(), "Create 6 endpoints?") })
	if err := stop(); err == nil || s.endpoints(t) != "" {
		t.Errorf("no: %v; endpoints %q", err, s.endpoints(t))
	}
	out, stop = s.run(t, dir, dev.Options{Provision: true, Ask: bufio.NewReader(strings.NewReader("y\n")), Remove: true})
	until(t, "the provisioning", func() bool { return strings.Count(out.String(), " created: ") == 6 })
	if err := stop(); err != nil || s.endpoints(t) != "" {
		t.Errorf("%v; endpoints %q\n%s", err, s.endpoints(t), out)
	}
}

// A change of a file is followed, and remaining resources are named at the end.
func TestRunFollowsFiles(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"q.py": queue})
	out, stop := s.run(t, dir, dev.Options{Reload: true, Provision: true})
	until(t, "the start", func() bool { return strings.Contains(out.String(), " created: ") })
	put(t, dir, "c.py", classes)
	until(t, "the change", func() bool { return strings.Contains(out.String(), "Reloaded: 3 routes.") })
	put(t, dir, "c.py", "def (")
	until(t, "the fault", func() bool { return strings.Contains(out.String(), "c.py:1:5: invalid syntax") })
	if err := stop(); err != nil || !strings.Contains(out.String(), "still exists: at most 1.109 USD an hour") {
		t.Errorf("%v\n%s", err, out)
	}
}
