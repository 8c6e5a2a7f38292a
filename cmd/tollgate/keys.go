package main

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make keys for callers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "create",
		Short: "Make a key and the line that admits it",
		Long: `Makes a random key. The key is shown once and stored nowhere; the configuration
gets its SHA-256 only.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			key := "tg_" + rand.Text() + rand.Text()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "key for the caller:       %s\nline for the configuration: sha256: \"%s\"\n",
				key, identity.DigestOf(key))
			return err
		}),
	})
	return cmd
}
