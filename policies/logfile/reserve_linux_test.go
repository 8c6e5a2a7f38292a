package logfile_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// blocks returns how much of the disk a file has, in bytes.
func blocks(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("a file is described by a %T", info.Sys())
	}
	return of.Blocks * 512
}

// A reserve is room on the disk, of which readers see nothing, and moves on to the next
// file.
func TestReserve(t *testing.T) {
	const reserve, line = 1 << 20, 1 << 10
	cfg := logfile.File{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 3 * line}
	f, err := logfile.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	f.Reserve(reserve)
	text := []byte(strings.Repeat("x", line-1) + "\n")
	for n := 1; n <= 4; n++ { // the fourth does not fit into the first file
		write := f.WriteLines
		if n%2 == 0 {
			write = f.WriteReserved
		}
		if err := write(text); err != nil {
			t.Fatal(err)
		}
		if n == 1 && blocks(t, cfg.Path) < reserve {
			t.Skip("the file system has no such thing")
		}
		if got := blocks(t, cfg.Path); got < reserve {
			t.Errorf("after %d lines the file has %d bytes of the disk, want %d in reserve", n, got, reserve)
		}
	}
	for name, want := range map[string]string{cfg.RotatedName(1): strings.Repeat(string(text), 3), cfg.Path: string(text)} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %d bytes, %v; want %d", filepath.Base(name), len(got), err, len(want))
		}
	}
	if got := blocks(t, cfg.RotatedName(1)); got >= reserve {
		t.Errorf("the file that was put aside keeps %d bytes of the disk", got)
	}
}
