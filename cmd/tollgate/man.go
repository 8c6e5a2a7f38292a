package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan returns the command that writes the manual pages of all visible commands. The date in the pages is SOURCE_DATE_EPOCH if set, or
// the current date.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write manual pages to a directory",
		Args:   named([]string{"DIR"}),
		Hidden: true,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o750); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "tollgate " + version(), Manual: "tollgate"}, args[0])
		}),
	}
}
