package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

func list(t *testing.T, l *audit.Log, q audit.Query) audit.Page {
	t.Helper()
	p, err := l.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// walk follows the pages to the end, and returns the names and the number of pages.
func walk(t *testing.T, l *audit.Log, q audit.Query) (names []string, pages int) {
	t.Helper()
	for {
		p := list(t, l, q)
		pages++
		for _, c := range p.Changes {
			if c.Ended.IsZero() || c.Status != 201 {
				t.Fatalf("%s has no end: %+v", c.Name, c)
			}
			names = append(names, c.Name)
		}
		if p.Next == 0 {
			return names, pages
		}
		if q.Before > 0 && p.Next >= q.Before {
			t.Fatalf("the page before %d leads to %d", q.Before, p.Next)
		}
		q.Before = p.Next
	}
}

// With any size of pages and files, each change is listed once, newest first, with its end.
func TestListThroughFiles(t *testing.T) {
	t.Parallel()
	for _, max := range []int64{0, 700, 5000} {
		l := open(t, logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: max, Keep: 200})
		if p := list(t, l, audit.Query{Limit: 5}); len(p.Changes) != 0 || p.Next != 0 {
			t.Errorf("an empty log: %+v", p)
		}
		var want []string
		for i := range 100 {
			change(t, l, fmt.Sprint("pod-", i))
			want = append([]string{fmt.Sprint("pod-", i)}, want...)
		}
		for _, limit := range []int{1, 7, 100, 500} {
			if got, _ := walk(t, l, audit.Query{Limit: limit}); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("files of %d bytes, pages of %d: %q", max, limit, got)
			}
		}
	}
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	now := at()
	file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log")}
	l, err := audit.Open(&settings.Audit{File: &file}, func() time.Time { now = now.Add(time.Minute); return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	intent := func(r audit.Record) int64 {
		seq, err := l.Intent(r)
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	if err := l.Loaded("r1"); err != nil {
		t.Fatal(err)
	}
	made := intent(audit.Record{Org: "acme", Key: "ann", Operation: "createPod", Name: "a"})
	deleted := intent(audit.Record{Org: "globex", Key: "ann", Operation: "deletePod", Resource: "p1"})
	if err := errors.Join(l.Result(deleted, audit.Record{Status: 204, Carried: "answered"}), l.Result(made, audit.Record{Status: 201, Resource: "p1"})); err != nil {
		t.Fatal(err)
	}
	intent(audit.Record{Who: "ada", Operation: "POST /admin/keys/revoke", Query: "id=bob&org=acme"})
	intent(audit.Record{Who: "ada", Operation: "POST /admin/tokens/revoke", Query: "issuer=corp"})
	intent(audit.Record{Who: "ada", Operation: "POST /admin/tokens/revoke", Query: "%%%;org=acme"})
	intent(audit.Record{Org: "globex", Key: "bob", Operation: "createPod", Query: "org=acme"})
	for _, tc := range []struct {
		name string
		q    audit.Query
		want string
	}{
		{"all", audit.Query{}, "9 8 7 6 3 2 1"},
		{"an organisation", audit.Query{Org: "acme"}, "6 2"},
		{"another", audit.Query{Org: "globex"}, "9 3"},
		{"a key of two", audit.Query{By: "ann"}, "3 2"},
		{"an admin of one", audit.Query{By: "ada", Org: "acme"}, "6"},
		{"an operation", audit.Query{Operation: "createPod"}, "9 2"},
		{"a resource, made or named", audit.Query{Resource: "p1"}, "3 2"},
		{"a name", audit.Query{Resource: "a"}, "2"},
		{"a time", audit.Query{Since: at().Add(6 * time.Minute)}, "9 8 7 6"},
		{"a number", audit.Query{Before: 6}, "3 2 1"},
		{"a number that is not there yet", audit.Query{Before: 1 << 40}, "9 8 7 6 3 2 1"},
		{"the first", audit.Query{Before: 1}, ""},
	} {
		var got []string
		tc.q.Limit = 10
		for _, c := range list(t, l, tc.q).Changes {
			got = append(got, fmt.Sprint(c.Seq))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	c := list(t, l, audit.Query{Operation: "createPod", Before: 9, Limit: 1}).Changes[0]
	if c.Status != 201 || c.Resource != "p1" || !c.Ended.Equal(at().Add(5*time.Minute)) {
		t.Errorf("the end of a change: %+v", c)
	}
}

// However long the log is, a page reads a bounded part of it, and its next one goes on there.
func TestListOfALongLog(t *testing.T) {
	t.Parallel()
	l := open(t, logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 9 << 20})
	labels := strings.Repeat("x", 30_000)
	const many = 1000 // 30 MB
	for i := range many {
		seq, err := l.Intent(audit.Record{Name: fmt.Sprint(i), Labels: labels, Org: []string{"acme", "globex"}[min(1, i)]})
		if err == nil {
			err = l.Result(seq, audit.Record{Status: 201})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if p := list(t, l, audit.Query{Org: "acme", Limit: 50}); len(p.Changes) != 0 || p.Incomplete == "" || p.Next < 1200 || p.Next > 1600 {
		t.Errorf("%d changes, incomplete %q, next %d", len(p.Changes), p.Incomplete, p.Next)
	}
	if names, pages := walk(t, l, audit.Query{Org: "acme", Limit: 50}); len(names) != 1 || pages != 4 {
		t.Errorf("%q on %d pages", names, pages)
	}
	if names, _ := walk(t, l, audit.Query{Limit: 500}); len(names) != many {
		t.Errorf("%d changes", len(names))
	}
}

// A log of gigabytes without lines, as a disk's fault leaves it, ends a page as a long log does.
func TestListOfAHole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, logfile.File{Path: path, MaxBytes: 1 << 40})
	change(t, l, "before")
	if err := os.Truncate(path, 3<<30); err != nil {
		t.Skip(err)
	}
	change(t, l, "behind")
	began := time.Now()
	if p := list(t, l, audit.Query{Limit: 50}); len(p.Changes) != 0 || p.Incomplete == "" { // the intent stands in one line with the hole
		t.Errorf("%+v", p)
	}
	for _, before := range []int64{1, 2, 3, 1000} {
		list(t, l, audit.Query{Limit: 50, Before: before})
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Lines that a crash left incomplete hide no others.
func TestListOfACrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, logfile.File{Path: path})
	change(t, l, "one")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"seq\":3,\"ti\n" + strings.Repeat("z", 1<<20) + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, l, "two")
	if names, _ := walk(t, l, audit.Query{Limit: 1}); strings.Join(names, " ") != "two one" {
		t.Errorf("%q", names)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, logfile.File{Path: pipe})
	ctx, cancel := context.WithCancel(t.Context())
	change(t, l, "one")
	cancel()
	if _, err := l.List(ctx, audit.Query{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("whose asker is gone: %v", err)
	}
	if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Skip(err)
	}
	if _, err := l.List(t.Context(), audit.Query{Limit: 1}); !errors.Is(err, audit.ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
}

// A look is written once in a quarter of an hour for each who, what and about whom, and is listed apart from changes.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	l, err := audit.Open(&settings.Audit{File: &logfile.File{Path: filepath.Join(t.TempDir(), "audit.log")}}, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	change(t, l, "pod-1")
	look := func(who, query string) {
		t.Helper()
		if err := l.Read(audit.Record{Who: who, Operation: "GET /admin/decisions", Query: query}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		look("ada", "org=acme")
		now = now.Add(time.Second)
	}
	look("ada", "key=ann&org=acme")
	look("bob", "org=acme")
	now = now.Add(15 * time.Minute)
	look("ada", "org=acme")
	p := list(t, l, audit.Query{Org: "acme", Reads: true, Limit: 10})
	var got []string
	for _, c := range p.Changes {
		got = append(got, c.Who+" "+c.Query)
	}
	if diff := cmp.Diff([]string{"ada org=acme", "bob org=acme", "ada key=ann&org=acme", "ada org=acme"}, got); diff != "" {
		t.Errorf("looks (-want +got):\n%s", diff)
	}
	if p := list(t, l, audit.Query{Limit: 10}); len(p.Changes) != 1 || p.Changes[0].Name != "pod-1" {
		t.Errorf("changes: %+v, want the one", p.Changes)
	}
}
