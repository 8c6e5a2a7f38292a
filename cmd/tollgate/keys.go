package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, replace and list keys for callers",
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
			key := identity.NewKey()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "key for the caller:       %s\nline for the configuration: sha256: \"%s\"\n",
				key, identity.DigestOf(key))
			return err
		}),
	}, newKeysRotate(), newKeysList())
	return cmd
}

func newKeysRotate() *cobra.Command {
	var path string
	var overlap time.Duration
	cmd := &cobra.Command{
		Use:   "rotate -c tollgate.yaml ORG/KEY",
		Short: "Make another secret for a key, and the lines that admit both for a while",
		Long: `Makes a random key that takes the place of the one a caller has. It prints the
digests that the configuration is to have for the key instead of its sha256 or
digests: what is accepted now goes on being accepted for the overlap. Both are
one caller, with the same id, quotas and history. The file is not changed.`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			k, err := findKey(path, args[0])
			if err != nil {
				return err
			}
			return rotate(cmd.OutOrStdout(), k, time.Now().UTC().Truncate(time.Second), overlap)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", "tollgate.yaml", "configuration file")
	cmd.Flags().DurationVar(&overlap, "overlap", 7*24*time.Hour, "how long the present secret is accepted beside the new one")
	return cmd
}

// findKey returns the key that a configuration has under ORG/KEY.
func findKey(path, name string) (gateway.Key, error) {
	org, id, ok := strings.Cut(name, "/")
	if !ok {
		return gateway.Key{}, errors.New("name the key as ORG/KEY")
	}
	loaded, err := config.Load(path, config.Sources{WithoutSecrets: true})
	if err != nil {
		return gateway.Key{}, err
	}
	for _, o := range loaded.Config.Orgs {
		if i := slices.IndexFunc(o.Keys, func(k gateway.Key) bool { return k.ID == id }); o.ID == org && i >= 0 {
			return o.Keys[i], nil
		}
	}
	return gateway.Key{}, fmt.Errorf("%s has no key %s", path, name)
}

// rotate prints a new secret for a key, and all its digests from now on: those whose
// time has passed are left out, and the others end with the overlap at the latest.
func rotate(w io.Writer, k gateway.Key, now time.Time, overlap time.Duration) error {
	key := identity.NewKey()
	end := now.Add(overlap)
	var lines strings.Builder
	lines.WriteString("digests:\n")
	for _, d := range append(k.Secrets(), gateway.Digest{Digest: identity.DigestOf(key)}) {
		if !d.NotAfter.IsZero() && !d.NotAfter.After(now) {
			continue
		}
		fmt.Fprintf(&lines, "  - sha256: \"%s\"\n", d.Digest)
		if !d.NotBefore.IsZero() {
			fmt.Fprintf(&lines, "    not_before: %s\n", d.NotBefore.Format(time.RFC3339))
		}
		if d.Digest != identity.DigestOf(key) && (d.NotAfter.IsZero() || d.NotAfter.After(end)) {
			d.NotAfter = end
		}
		if !d.NotAfter.IsZero() {
			fmt.Fprintf(&lines, "    not_after: %s\n", d.NotAfter.Format(time.RFC3339))
		}
	}
	_, err := fmt.Fprintf(w, "key for the caller: %s\nlines for the configuration, instead of the key's sha256 or digests:\n%s", key, &lines)
	return err
}

func newKeysList() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "list -c tollgate.yaml",
		Short: "List the keys of a configuration and when they are accepted",
		Args:  cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			loaded, err := config.Load(path, config.Sources{WithoutSecrets: true})
			if err != nil {
				return err
			}
			return listKeys(cmd.OutOrStdout(), loaded.Config.Orgs, time.Now())
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", "tollgate.yaml", "configuration file")
	return cmd
}

// listKeys prints each digest of each key, and whether it is accepted at now.
func listKeys(w io.Writer, orgs []gateway.Org, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ORG\tTEAM\tKEY\tSHA-256\tACCEPTED\tNOW") // Flush reports
	for _, o := range orgs {
		for _, k := range o.Keys {
			for _, d := range k.Accepted() {
				state := "yes"
				if now.Before(d.NotBefore) {
					state = "not yet"
				} else if !d.NotAfter.IsZero() && !now.Before(d.NotAfter) {
					state = "no longer"
				}
				_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%.8s...\t%s\t%s\n", o.ID, k.Team, k.ID, d.Digest, identity.Period(d.NotBefore, d.NotAfter), state)
			}
		}
	}
	return t.Flush()
}
