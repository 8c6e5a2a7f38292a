package logfile_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// A full file that cannot be rotated stays in use. The failure is logged once, and is over as soon as the file can be rotated.
func TestRotationFails(t *testing.T) {
	cfg := logfile.File{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 10, Keep: 2}
	obstacle := cfg.RotatedName(2) // a file cannot replace a directory
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	w, err := logfile.Open(cfg, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	w.Reserve(1 << 10)
	write := func(line string) {
		t.Helper()
		for _, f := range []func([]byte) error{w.WriteLines, w.WriteReserved} {
			if err := f([]byte(line)); err != nil {
				t.Error(err)
			}
		}
	}
	want := func(name, content string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("%s holds %q, %v; want %q", filepath.Base(name), got, err, content)
		}
	}
	write("11111111\n")
	write("22222222\n")
	want(cfg.RotatedName(1), "11111111\n")
	want(cfg.Path, "11111111\n22222222\n22222222\n")
	if w.RotateError() == nil || strings.Count(logged.String(), "level=ERROR") != 1 {
		t.Errorf("failure %v, log %s; want one error", w.RotateError(), logged.String())
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	write("33333333\n")
	want(cfg.RotatedName(2), "11111111\n22222222\n22222222\n")
	want(cfg.RotatedName(1), "33333333\n")
	if w.RotateError() != nil || strings.Count(logged.String(), "level=INFO") != 1 {
		t.Errorf("failure %v, log %s; want a recovery", w.RotateError(), logged.String())
	}
}
