package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tollgate-dev/tollgate/test/built"
)

// A signal ends any command, whatever holds it up: Rego that never finishes compiling, or output
// that nobody reads.
func TestSignalsEnd(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "tollgate")
	if err := built.Tollgate(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	dir := endless(t)
	for name, c := range map[string]struct {
		args []string
		// started returns when the command hangs.
		started func(t *testing.T, out io.Reader, pid int)
	}{
		"check compiles": {[]string{"check", "-c", "tollgate.yaml"}, compiling},
		"serve compiles": {[]string{"serve", "-c", "tollgate.yaml"}, compiling},
		"check writes": {[]string{"check", "--print-schema"}, func(t *testing.T, out io.Reader, _ int) {
			t.Helper()
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = out.Close() }()
			cmd := exec.CommandContext(context.Background(), binary, c.args...)
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), "ACME_KEY=platform-test-key"), in, in
			err = cmd.Start()
			_ = in.Close()
			if err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
			c.started(t, out, cmd.Process.Pid)
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			failed, ok := errors.AsType[*exec.ExitError](err)
			if took := time.Since(began); !ok || failed.ExitCode() != 1 || took > 20*time.Second {
				t.Errorf("it ended with %v after %s, want exit code 1 within seconds", err, took)
			}
		})
	}
}

// endless writes a configuration whose organisation has Rego that never finishes compiling, and
// returns its directory.
func endless(t *testing.T) string {
	t.Helper()
	story, err := txtar.ParseFile("testdata/rego_endless.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rego"), 0o750); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"tollgate.yaml": []byte(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
orgs: [{id: acme, credential: {env: ACME_KEY}, rego: rego}]
`)}
	for _, f := range story.Files {
		if f.Name == "endless.rego" {
			files["rego/own.rego"] = f.Data
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compiling waits until a process has a child.
func compiling(t *testing.T, _ io.Reader, pid int) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); time.Since(began) < patience; <-look.C {
		out, _ := exec.CommandContext(t.Context(), "pgrep", "-P", fmt.Sprint(pid)).Output() // it fails without a child
		if len(strings.TrimSpace(string(out))) > 0 {
			return
		}
	}
	t.Fatal("no child was started")
}
