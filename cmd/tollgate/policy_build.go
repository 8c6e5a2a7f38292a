package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/policies/bundle"
)

func newPolicyBuild() *cobra.Command {
	var output, key, revision string
	var s bundle.Signing
	cmd := &cobra.Command{
		Use:   "build DIR",
		Short: "Build a signed policy bundle",
		Long: `Checks the policies in a directory like "policy check", and packs them with their
data, without tests, into an OPA bundle for orgs[].bundle. Do not use OPA's own
"build", which does not know the library's helpers. The default revision is a digest
of the files.`,
		Example: `  openssl ecparam -name prime256v1 -genkey -noout -out key.pem
  openssl ec -in key.pem -pubout -out bundle.pem
  tollgate policy build policies -o acme.tar.gz --sign key.pem`,
		Args: named([]string{"DIR"}),
		PreRunE: func(*cobra.Command, []string) error {
			if key == "" && (s.Algorithm != "" || s.ID != "") {
				return errors.New("--algorithm and --key-id require --sign")
			}
			return nil
		},
		RunE: action(func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if _, err := inspect(cmd, dir, false); err != nil {
				return faulty(cmd, dir, err)
			}
			if key != "" {
				var err error
				if s.Key, err = os.ReadFile(key); err != nil {
					return err
				}
			}
			archive, names, err := bundle.Build(dir, revision, &s)
			if err != nil {
				return err
			}
			if err := os.WriteFile(output, archive, 0o644); err != nil { //nolint:gosec // the archive is to be readable by others
				return err
			}
			signed := "signed"
			if key == "" {
				signed = "not signed: gateways accept it only with bundle.allow_unsigned"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s (%s), %s\n", output, policyCount(len(names)), strings.Join(names, ", "), signed)
			return err
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "bundle.tar.gz", "file to write")
	cmd.Flags().StringVar(&key, "sign", "", "file with the PEM private key, or the HMAC secret, that signs the bundle")
	cmd.Flags().StringVar(&s.Algorithm, "algorithm", "", "signature algorithm, such as ES256 (default: depends on the key)")
	cmd.Flags().StringVar(&s.ID, "key-id", "", "ID of the key that the signature contains (bundle.key.id)")
	cmd.Flags().StringVar(&revision, "revision", "", "revision of the bundle, such as a commit hash")
	return cmd
}
