package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/bundle"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

const good = "package policies.own\n\ndeny contains \"x\" if input.resource.after.gpu.count > 1\n"

// directory writes a directory with one file of Rego.
func directory(t *testing.T, rego string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.rego"), []byte(rego), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// archive writes a bundle with one file of Rego.
func archive(t *testing.T, rego string) string {
	t.Helper()
	text, _, err := bundle.Build(directory(t, rego), "", &bundle.Signing{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func engine(deps policies.Deps, orgs map[string]policies.Config) (*policies.Engine, error) {
	return policies.NewEngine(policyconfig.DefaultLimits(), orgs, deps)
}

// Rego that never finishes compiling is a fault with its file, its organisation and the setting,
// whether it is in a directory or in a bundle.
func TestEndlessRegoIsAFault(t *testing.T) {
	dir, file := directory(t, endless("own")), archive(t, endless("own"))
	r := runner(t, isolate.Config{Compile: 300 * time.Millisecond})
	for name, c := range map[string]struct {
		cfg        policies.Config
		file, path string
	}{
		"directory": {policies.Config{Directory: files.UnrestrictedPath(dir)}, filepath.Join(dir, "own.rego"), "rego"},
		"bundle":    {policies.Config{Bundle: &policies.Bundle{File: files.UnrestrictedPath(file), AllowUnsigned: true}}, file, "bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine(policies.Deps{Isolate: r}, map[string]policies.Config{"acme": c.cfg, "globex": {}})
			f, ok := errors.AsType[*policyconfig.Error](err)
			if !ok || !errors.Is(err, isolate.ErrDeadline) || f.Org != "acme" || f.File != c.file || f.Path != c.path {
				t.Errorf("got %+v (%v), want the deadline at %s of acme's %s", f, err, c.file, c.path)
			}
		})
	}
}

// A reload does not wait for an organisation's Rego: the organisation keeps its last good
// policies, and others change.
func TestReloadDoesNotWait(t *testing.T) {
	r := runner(t, isolate.Config{Compile: time.Minute})
	dir := directory(t, good)
	before, err := engine(policies.Deps{Isolate: r}, map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}, "globex": {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own.rego"), []byte(endless("own")), 0o600); err != nil {
		t.Fatal(err)
	}
	deps := policies.Deps{Isolate: r, Previous: before, CompileWait: 10 * time.Millisecond}
	began := time.Now()
	if _, err = engine(deps, map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}, "globex": {}}); !errors.Is(err, isolate.ErrCompiling) {
		t.Fatalf("got %v, want %v", err, isolate.ErrCompiling)
	}
	changed := policies.Config{Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 1}}}}
	after, err := engine(deps, map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir), KeepOnFailure: true}, "globex": changed})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("two reloads took %s beside a compilation of a minute", took)
	}
	for org, same := range map[string]bool{"acme": true, "globex": false} {
		was, _ := before.Revision(org)
		if is, ok := after.Revision(org); !ok || (is == was) != same {
			t.Errorf("%s: revision %q after %q, want the same: %v", org, is, was, same)
		}
	}
}

// A bundle that never finishes compiling does not replace the last good one, and a persisted
// bundle stays while a child compiles it anew.
func TestEndlessBundle(t *testing.T) {
	var file atomic.Pointer[string]
	serve := func(path string) { file.Store(&path) }
	serve(archive(t, good))
	persisted := filepath.Join(t.TempDir(), "kept.tar.gz")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { http.ServeFile(w, q, *file.Load()) }))
	t.Cleanup(server.Close)
	cfg := policies.Config{Bundle: &policies.Bundle{URL: egress.UnrestrictedURL(server.URL), AllowUnsigned: true, Poll: 20 * time.Millisecond, Persist: files.UnrestrictedTarget(persisted)}}
	taken, logged := make(chan struct{}, 1), make(chan string, 16)
	deps := policies.Deps{
		Isolate: runner(t, isolate.Config{Compile: 2 * time.Second}),
		Logger:  slog.New(slog.NewTextHandler(lines(logged), nil)),
		OnChange: func() {
			select {
			case taken <- struct{}{}:
			default: // the first is waited for
			}
		},
	}
	e, err := engine(deps, map[string]policies.Config{"acme": cfg})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	<-taken
	first := e.Status()[0]
	serve(archive(t, endless("own")))
	if line := <-logged; !strings.Contains(line, "rejected") {
		t.Errorf("logged %q", line)
	}
	refused := e.Status()[0]
	if !errors.Is(refused.Err, isolate.ErrDeadline) || refused.Revision != first.Revision {
		t.Errorf("got %+v, want the deadline and revision %s", refused, first.Revision)
	}
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	// Other entries are compiled anew: the kept bundle is not taken for a broken one meanwhile.
	cfg.Policies = []policies.Entry{{Policy: "own", Mode: policies.ModeWarn, Teams: []string{"research"}}}
	deps.Previous, deps.CompileWait = e, time.Nanosecond
	if _, err := engine(deps, map[string]policies.Config{"acme": cfg}); !errors.Is(err, isolate.ErrCompiling) {
		t.Errorf("got %v, want %v", err, isolate.ErrCompiling)
	}
	<-deps.Isolate.CompileEnded()
	next, err := engine(deps, map[string]policies.Config{"acme": cfg})
	if err != nil {
		t.Fatal(err)
	}
	if revision, ok := next.Revision("acme"); !ok || revision == first.Revision {
		t.Errorf("revision %q, want the kept bundle with other entries", revision)
	}
}

// lines is a writer of a logger's lines to a channel.
type lines chan<- string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
