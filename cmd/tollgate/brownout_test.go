package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that asks a running gateway has a line in the story that runs them in a
// brownout of the retired interfaces.
func TestEveryCommandIsRunInABrownout(t *testing.T) {
	story, err := os.ReadFile("../../test/script/testdata/brownout.txtar")
	if err != nil {
		t.Fatal(err)
	}
	asking := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		asks := cmd.Flag("gateway") != nil || cmd.InheritedFlags().Lookup("admin") != nil || cmd.Flags().Lookup("admin") != nil
		if cmd.HasSubCommands() || !asks {
			return
		}
		asking++
		if !regexp.MustCompile(`(?m)^(! )?exec ` + cmd.CommandPath() + ` `).Match(story) {
			t.Errorf("%s asks a gateway and is not in the story", cmd.CommandPath())
		}
	}
	walk(newRoot())
	if asking < 30 {
		t.Errorf("%d commands ask a gateway, want those that there are", asking)
	}
}
