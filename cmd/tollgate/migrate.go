package main

import "github.com/spf13/cobra"

func newMigrate() *cobra.Command {
	return group("migrate", "Migrate from the retired interfaces: list their callers", "  tollgate migrate report --org acme")
}
