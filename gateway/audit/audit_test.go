package audit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

func at() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }

func open(t *testing.T, file logfile.File) *audit.Log {
	t.Helper()
	l, err := audit.Open(&settings.Audit{File: &file}, at, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// change writes an intent and its result.
func change(t *testing.T, l *audit.Log, name string) {
	t.Helper()
	seq, err := l.Intent(audit.Record{Operation: "createPod", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Result(seq, audit.Record{Status: 201}); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, files ...string) (*audit.Chain, error) {
	t.Helper()
	c := new(audit.Chain)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Verify(filepath.Base(name), strings.NewReader(string(text)), func(string) {}); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Any change of a line, or of their order, is detected.
func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, logfile.File{Path: path})
	for i := range 3 {
		change(t, l, fmt.Sprint("pod-", i))
	}
	c, err := verify(t, path)
	if err != nil || c.First != 1 || c.Last != 6 || len(c.Unfinished()) != 0 || c.Incomplete != 0 {
		t.Fatalf("as written: %+v, %v, want lines 1 to 6", c, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")[:6]
	for name, tc := range map[string]struct {
		change func(lines []string) []string
		where  string
	}{
		"a name is another":    {func(l []string) []string { l[2] = strings.Replace(l[2], "pod-1", "pod-9", 1); return l }, "audit.log:4"},
		"a status is another":  {func(l []string) []string { l[1] = strings.Replace(l[1], "201", "403", 1); return l }, "audit.log:3"},
		"a line is missing":    {func(l []string) []string { return slices.Delete(l, 3, 4) }, "audit.log:4"},
		"the first is missing": {func(l []string) []string { return append(l[4:5:5], l[0]) }, "audit.log:2"},
		"a line stands twice":  {func(l []string) []string { return slices.Insert(l, 3, l[2]) }, "audit.log:4"},
		"two change places":    {func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, "audit.log:4"},
		"a line is garbage":    {func(l []string) []string { l[3] = "garbage\n"; return l }, "audit.log:5"},
		"a number is another":  {func(l []string) []string { l[5] = strings.Replace(l[5], `"seq":6`, `"seq":7`, 1); return l }, "audit.log:6"},
		"the first has one before": {func(l []string) []string {
			return []string{strings.Replace(l[0], `"prev":""`, `"prev":"00"`, 1)}
		}, "audit.log:1"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := filepath.Join(t.TempDir(), "audit.log")
			if err := os.WriteFile(changed, []byte(strings.Join(tc.change(slices.Clone(lines)), "")), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := verify(t, changed)
			broken, ok := errors.AsType[*audit.BrokenError](err)
			if !ok || !strings.HasPrefix(broken.Error(), tc.where+": ") {
				t.Errorf("verify = %v, want an error at %s", err, tc.where)
			}
		})
	}
}

// A log goes on behind its last line: by another process, into another
// file, and after a crash in the middle of a line.
func TestTheChainGoesOn(t *testing.T) {
	file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1200, Keep: 20}
	for i := range 4 {
		l := open(t, file)
		for j := range 3 {
			change(t, l, fmt.Sprint(i, j))
		}
		if i == 2 {
			if _, err := l.Intent(audit.Record{Operation: "deletePod"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			f, err := os.OpenFile(file.Path, os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(`{"seq":13,"time":"2026-07-0`); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := []string{file.Path}
	for n := 1; ; n++ {
		if _, err := os.Stat(file.RotatedName(n)); err != nil {
			break
		}
		files = append(files, file.RotatedName(n))
	}
	if len(files) < 3 {
		t.Fatalf("%d files, want it put aside several times", len(files))
	}
	slices.Reverse(files)
	c, err := verify(t, files...)
	if err != nil {
		t.Fatal(err)
	}
	if c.First != 1 || c.Last != 26 || c.Incomplete != 1 || !cmp.Equal(c.Unfinished(), []int64{20}) {
		t.Errorf("lines %d to %d, %d incomplete, %v open; want 1 to 26, 1 and 20", c.First, c.Last, c.Incomplete, c.Unfinished())
	}
	if _, err := verify(t, slices.Delete(files, 1, 2)...); err == nil {
		t.Error("a file that is missing is not noticed")
	}
}

// A crash in the first line of a file leaves no whole line in it: the chain goes on from
// the file before.
func TestACrashInTheFirstLine(t *testing.T) {
	file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1 << 20, Keep: 20}
	l := open(t, file)
	change(t, l, "before")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file.Path, file.RotatedName(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file.Path, []byte(`{"seq":3,"time":"2026-07-0`), 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, file)
	change(t, l, "behind")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := verify(t, file.RotatedName(1), file.Path)
	if err != nil {
		t.Fatal(err)
	}
	if c.First != 1 || c.Last != 5 || c.Incomplete != 1 {
		t.Errorf("lines %d to %d, %d incomplete; want 1 to 5 and 1", c.First, c.Last, c.Incomplete)
	}
}

// Writers take turns.
func TestWritersTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, logfile.File{Path: path})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 20 {
				change(t, l, fmt.Sprint(i, " ", j))
			}
		})
	}
	group.Wait()
	if c, err := verify(t, path); err != nil || c.Last != 320 || len(c.Unfinished()) != 0 {
		t.Errorf("%d lines, %v, %v; want 320", c.Last, c.Unfinished(), err)
	}
}

// A record that cannot be written has no number, and the chain goes on without it.
func TestAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	l := open(t, logfile.File{Path: "/dev/full"})
	if seq, err := l.Intent(audit.Record{}); err == nil || seq != 0 {
		t.Errorf("Intent = %d, %v, want an error", seq, err)
	}
}

// Changes go on while the file cannot be rotated, and the status says so.
func TestAFileThatCannotBeRotated(t *testing.T) {
	file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1, Keep: 1}
	if err := os.Mkdir(file.RotatedName(1), 0o700); err != nil { // a file cannot replace a directory
		t.Fatal(err)
	}
	l := open(t, file)
	change(t, l, "a")
	change(t, l, "b")
	if c, err := verify(t, file.Path); err != nil || c.Last != 4 {
		t.Errorf("%d lines, %v; want 4", c.Last, err)
	}
	if got := (&audit.Shipping{Log: l}).Undelivered(); len(got) != 1 || !strings.Contains(got[0], "cannot be rotated") {
		t.Errorf("status %q", got)
	}
}
