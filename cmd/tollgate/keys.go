package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

func newKeys() *cobra.Command {
	cmd := group("keys", "Create, rotate, list and revoke keys for callers", "  tollgate keys create acme/batch --team research",
		newKeysCreate(), newKeysRotate(), newKeysList(), newKeysImport())
	cmd.Long = `Creates, rotates, lists and revokes keys for callers at a running gateway. A change
takes effect there immediately, and at all other gateways within two seconds.

With -c, rotate and list use the keys of a configuration file instead. They print
entries for the file and do not change the file.`
	return cmd
}

func newKeysRotate() *cobra.Command {
	var c *adminClient
	var path string
	overlap := span(7 * 24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "rotate ORG/KEY",
		Short: "Create a new secret for a key, and keep the old secret valid for a while",
		Long: `Creates a new random secret for a key. The old secret is accepted until the overlap
ends. The key keeps its ID, limits and history. The secret is shown once.

With -c, prints the digests to write into the configuration in place of the key's
sha256 or digests. The file is not changed.`,
		Example: `  tollgate keys rotate acme/batch --overlap 24h
  tollgate keys rotate -c tollgate.yaml acme/ci`,
		Args: named([]string{"ORG/KEY"}),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if path == "" {
				return rotateMade(cmd, c, args[0], time.Duration(overlap))
			}
			k, err := findKey(path, args[0])
			if err != nil {
				return err
			}
			return rotate(cmd.OutOrStdout(), k, time.Now().UTC().Truncate(time.Second), time.Duration(overlap))
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", "", "configuration file that contains the key")
	cmd.Flags().Var(&overlap, "overlap", "time that the old secret stays valid, such as 24h or 7d")
	c = newAdminClient(cmd)
	completeArguments(cmd, []string{"ORG/KEY"})
	return cmd
}

// findKey returns the key ORG/KEY of a configuration.
func findKey(path, name string) (settings.Key, error) {
	org, id, err := cutKey(name)
	if err != nil {
		return settings.Key{}, err
	}
	loaded, err := config.Load(path, config.Sources{WithoutSecrets: true}, operator.Validator{})
	if err != nil {
		return settings.Key{}, err
	}
	for _, o := range loaded.Config.Orgs {
		if i := slices.IndexFunc(o.Keys, func(k settings.Key) bool { return k.ID == id }); o.ID == org && i >= 0 {
			return o.Keys[i], nil
		}
	}
	return settings.Key{}, fmt.Errorf("%s: key %s is not defined", path, name)
}

// cutKey splits ORG/KEY.
func cutKey(name string) (org, id string, err error) {
	org, id, ok := strings.Cut(name, "/")
	if !ok || org == "" || id == "" {
		return "", "", usagef("expected a key as ORG/KEY, got %q", name)
	}
	return org, id, nil
}

// rotate prints a new secret for a key and the resulting list of digests. It drops expired digests, and makes the remaining old digests
// expire after overlap at the latest.
func rotate(w io.Writer, k settings.Key, now time.Time, overlap time.Duration) error {
	key := identity.NewKey()
	var lines strings.Builder
	lines.WriteString("digests:\n")
	for _, d := range k.Rotated(identity.DigestOf(key), now, overlap) {
		fmt.Fprintf(&lines, "  - sha256: \"%s\"\n", d.Digest)
		if !d.NotBefore.IsZero() {
			fmt.Fprintf(&lines, "    not_before: %s\n", d.NotBefore.Format(time.RFC3339))
		}
		if !d.NotAfter.IsZero() {
			fmt.Fprintf(&lines, "    not_after: %s\n", d.NotAfter.Format(time.RFC3339))
		}
	}
	_, err := fmt.Fprintf(w, "key for the caller: %s\nlines for the configuration, instead of the key's sha256 or digests:\n%s", key, &lines)
	return err
}

func newKeysList() *cobra.Command {
	var c *adminClient
	var out *output
	var path, search, order string
	cmd := &cobra.Command{
		Use:   "list ORG | list -c FILE",
		Short: "List keys and their state",
		Long: `Lists the keys of an organisation: keys created at run time, then keys of the
configuration, which are marked as created by "configuration". The list shows the last
use of each key and the cost of its resources. With -c, lists the keys of a
configuration file, and the validity period of each secret.`,
		Example: `  tollgate keys list acme
  tollgate keys list acme --search batch --sort unused
  tollgate keys list -c tollgate.yaml -o json`,
		Args: named(nil, "ORG"),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if (path == "") == (len(args) == 0) {
				return usagef("specify an organisation, or a configuration file with -c")
			}
			if path == "" {
				return listMade(cmd, c, url.Values{"org": {args[0]}, "search": {search}, "sort": {order}}, out)
			}
			loaded, err := config.Load(path, config.Sources{WithoutSecrets: true}, operator.Validator{})
			if err != nil {
				return err
			}
			return listKeys(cmd.OutOrStdout(), out, loaded.Config.Orgs, time.Now())
		}),
	}
	cmd.Flags().StringVar(&search, "search", "", "only keys with this text in their ID, team or owner")
	cmd.Flags().StringVar(&order, "sort", "", "sort order: made, id, used, unused, expires or spend (default made)")
	cmd.Flags().StringVarP(&path, "config", "c", "", "configuration file")
	out = outputFlag(cmd)
	c = newAdminClient(cmd)
	completeArguments(cmd, []string{"ORG"})
	return cmd
}

// listedDigest is a digest of a configured key.
type listedDigest struct {
	Org      string `json:"org"`
	Team     string `json:"team,omitempty"`
	Key      string `json:"key"`
	SHA256   string `json:"sha256"`
	Accepted string `json:"accepted"`
	Now      string `json:"now"`
}

// listKeys prints the digests of all keys, and whether each is accepted at now.
func listKeys(w io.Writer, out *output, orgs []settings.Org, now time.Time) error {
	list := []listedDigest{}
	t := sheet{{"org", "team", "key", "sha-256", "accepted", "now"}}
	for _, o := range orgs {
		for _, k := range o.Keys {
			for _, d := range k.Accepted() {
				state := "yes"
				if now.Before(d.NotBefore) {
					state = "not yet"
				} else if !d.NotAfter.IsZero() && !now.Before(d.NotAfter) {
					state = "no longer"
				}
				list = append(list, listedDigest{o.ID, k.Team, k.ID, fmt.Sprint(d.Digest), identity.Period(d.NotBefore, d.NotAfter), state})
				t.add(o.ID, k.Team, k.ID, fmt.Sprintf("%.8s...", d.Digest), identity.Period(d.NotBefore, d.NotAfter), state)
			}
		}
	}
	return out.write(w, list, t)
}
