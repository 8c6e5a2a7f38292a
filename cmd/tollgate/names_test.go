package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the list of commands in test/prose/testdata") //nolint:gochecknoglobals // a flag

// The list of commands and flags, which test/prose compares with earlier names, is up to date.
func TestCommandNames(t *testing.T) {
	t.Parallel()
	const file = "../../test/prose/testdata/commands.txt"
	var names []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		names = append(names, c.CommandPath())
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { names = append(names, c.CommandPath()+" --"+f.Name) })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	slices.Sort(names)
	got := strings.Join(slices.Compact(names), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("commands differ from %s; run with -update (-want +got):\n%s", file, diff)
	}
}
