package main

import "github.com/spf13/cobra"

func newMigrate() *cobra.Command {
	return group("migrate", "Leave the retired interfaces: who still calls them, and what they knew", "  tollgate migrate report --org acme", newMigrateImport())
}
