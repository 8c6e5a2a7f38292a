package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/policies/authoring"
)

func newPolicyExport() *cobra.Command {
	return &cobra.Command{
		Use:   "export DIR",
		Short: "Write the files that OPA's tools and editors need",
		Long: `Writes the library, its test inputs, the schema of the policy input and the
capabilities of the engine into a directory, which is created if necessary:

  opa check --strict --schema DIR/input.schema.json --capabilities DIR/capabilities.json DIR/library my
  opa test DIR/library my`,
		Example: "  tollgate policy export opa",
		Args:    named([]string{"DIR"}),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			files := authoring.Export()
			if err := writePages(args[0], files); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s in %s\n", counted(len(files), "file"), args[0])
			return err
		}),
	}
}
