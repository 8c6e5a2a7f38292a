package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Every command that help shows has a page that names its flags, and a date makes the
// pages, whenever they are written.
func TestManualPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795347269")
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		var stderr bytes.Buffer
		if code := run(t.Context(), []string{"man", dir}, &stderr, &stderr); code != 0 {
			t.Fatalf("tollgate man: exit %d\n%s", code, &stderr)
		}
	}
	var want []string
	for _, c := range shown(newRoot()) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		want = append(want, name)
		page := readPage(t, dirs[0], name)
		if diff := cmp.Diff(page, readPage(t, dirs[1], name)); diff != "" {
			t.Errorf("%s differs when it is written again (-first +second):\n%s", name, diff)
		}
		for _, part := range []string{`"Nov 2026"`, c.Short} {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
	entries, err := os.ReadDir(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// shown are the commands of a tree that are not hidden.
func shown(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, shown(sub)...)
		}
	}
	return list
}

func readPage(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
