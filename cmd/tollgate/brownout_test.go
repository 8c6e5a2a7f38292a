package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that asks a running gateway has a line in the story that runs them in a
// brownout of the retired interfaces. Those that are rows ask the admin listener alone.
func TestEveryCommandIsRunInABrownout(t *testing.T) {
	story, err := os.ReadFile("../../test/script/testdata/brownout.txtar")
	if err != nil {
		t.Fatal(err)
	}
	asking, rows := 0, rowNames()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		asks := cmd.Flag("gateway") != nil || cmd.InheritedFlags().Lookup("admin") != nil || cmd.Flags().Lookup("admin") != nil
		if cmd.HasSubCommands() || !asks || rows[strings.TrimPrefix(cmd.CommandPath(), "tollgate ")] {
			return
		}
		asking++
		if !regexp.MustCompile(`(?m)^(! )?exec ` + cmd.CommandPath() + ` `).Match(story) {
			t.Errorf("%s asks a gateway and is not in the story", cmd.CommandPath())
		}
	}
	walk(newRoot())
	if asking < 14 {
		t.Errorf("%d commands ask a gateway, want those that there are", asking)
	}
}
