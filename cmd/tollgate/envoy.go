package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

func newEnvoy() *cobra.Command {
	return group("envoy", "Generate and inspect the configuration of Envoys", "  tollgate envoy status",
		newEnvoyBootstrap(), newEnvoySecrets(), newEnvoySnapshot())
}

// envoyFlags are the flags of commands that read a configuration.
type envoyFlags struct{ path, group string }

func (f *envoyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "tollgate.yaml", "configuration file")
	cmd.Flags().StringVar(&f.group, "node-group", "", "ID of a node group in envoy.xds.groups; optional if there is only one group")
}

// load reads the configuration, and returns it with the selected node group and the addresses of the gateways.
func (f *envoyFlags) load() (loaded *config.Loaded, group envoy.Group, gateways []envoy.Gateway, err error) {
	if loaded, err = config.Load(f.path, config.Sources{}, operator.Validator{}); err == nil {
		group, gateways, err = envoy.NodeGroup(&loaded.Config, f.group)
	}
	return loaded, group, gateways, err
}

func newEnvoyBootstrap() *cobra.Command {
	var f envoyFlags
	var b envoy.Bootstrap
	var adminAddress, serverName string
	var doors []string
	cmd := &cobra.Command{
		Use:   "bootstrap -c tollgate.yaml",
		Short: "Print the bootstrap configuration of an Envoy",
		Long: `Prints the bootstrap configuration for the Envoys of a node group. The output contains
the addresses of the gateways that serve all other configuration or, if the
configuration lists no gateways, the address of this gateway. If envoy.xds.token is
set, the output also contains the token, which is the only secret that the command
reads. Without --server-name, the command also reads envoy.tls.certificate.`,
		Example: `  tollgate envoy bootstrap -c tollgate.yaml > envoy.json && envoy -c envoy.json`,
		Args:    named(nil),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			loaded, err := config.LoadEnvoys(f.path, envoy.Validate)
			if err != nil {
				return err
			}
			group, gateways, err := envoy.NodeGroup(&loaded.Config, f.group)
			if err != nil {
				return err
			}
			b.Group, b.Listen, b.Connections = group.ID, group.Listen, int64(loaded.Config.Connections.Total)
			if !loaded.Config.Envoy.TLS.Certificate.IsZero() {
				b.Peer = envoy.Peer{Name: serverName, Secrets: loaded.Config.Envoy.XDS.Secrets}
				if serverName == "" {
					b.Peer.Name, err = loaded.EnvoyServerName()
				}
			}
			if err != nil {
				return fmt.Errorf("%w; pass the first DNS name in the gateways' certificate with --server-name", err)
			}
			b.Token = loaded.Config.Envoy.XDS.Token.Reveal()
			if b.Admin, err = netip.ParseAddrPort(adminAddress); err != nil {
				return fmt.Errorf("--envoy-admin: %w", err)
			}
			if err := addDoors(&b, doors, gateways); err != nil {
				return err
			}
			if b.Peer.Name != "" && b.Peer.Secrets == "" {
				if err := filesNamed(b.Files); err != nil {
					return err
				}
			}
			if host, err := os.Hostname(); err == nil {
				b.Node = cmp.Or(b.Node, host)
			}
			text, err := b.JSON()
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&b.Node, "node", "", "node ID of the Envoy, which envoy --service-node overrides (default: the host name)")
	cmd.Flags().StringVar(&adminAddress, "envoy-admin", "127.0.0.1:9901", "address of Envoy's admin interface, which fully controls Envoy")
	cmd.Flags().StringSliceVar(&doors, "gateway", nil,
		"IP address or DNS name and port of a gateway's envoy.listen; can be repeated, and a name can resolve to several gateways (default: the gateways in the configuration)")
	addFiles(cmd, &b.Files)
	cmd.Flags().StringVar(&serverName, "server-name", "",
		"first DNS name in the gateways' certificate (default: read from envoy.tls.certificate)")
	cmd.Flags().Uint64Var(&b.Heap, "heap", 0, "memory limit in bytes; Envoy sheds load as memory usage nears the limit (default: no limit)")
	return cmd
}

func addFiles(cmd *cobra.Command, f *envoy.Files) {
	cmd.Flags().StringVar(&f.Certificate, "cert", "", "path of Envoy's certificate on the machine that runs Envoy")
	cmd.Flags().StringVar(&f.Key, "key", "", "path of Envoy's private key on the machine that runs Envoy")
	cmd.Flags().StringVar(&f.CA, "ca", "", "path of the certificates of the gateways' certificate authority on the machine that runs Envoy")
}

func filesNamed(f envoy.Files) error {
	if f.Certificate == "" || f.Key == "" || f.CA == "" {
		return usagef("envoy.tls is configured: also pass --cert, --key and --ca, the paths of the files on the Envoys' machines")
	}
	return nil
}

func newEnvoySecrets() *cobra.Command {
	var f envoy.Files
	var dir string
	cmd := &cobra.Command{
		Use:   "secrets --dir DIR --cert FILE --key FILE --ca FILE",
		Short: "Write the files with the paths of the Envoys' certificates",
		Long: `Writes the files of the directory envoy.xds.secrets, which contain the paths of an
Envoy's certificate and of the gateways' certificate authority. Envoy reloads the
certificates when a file is moved into their directories.`,
		Example: `  tollgate envoy secrets --dir . --cert /etc/tls/tls.crt --key /etc/tls/tls.key --ca /etc/tls/ca.crt`,
		Args:    named(nil),
		RunE: action(func(*cobra.Command, []string) error {
			if err := filesNamed(f); err != nil {
				return err
			}
			files, err := f.Secrets()
			if err != nil {
				return err
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // contains file names, no secrets
					return err
				}
			}
			return nil
		}),
	}
	addFiles(cmd, &f)
	cmd.Flags().StringVar(&dir, "dir", ".", "directory to write to")
	return cmd
}

// addDoors adds the addresses of gRPC servers to a bootstrap configuration: those in given, from the command line, or those in known if
// given is empty.
func addDoors(b *envoy.Bootstrap, given []string, known []envoy.Gateway) error {
	for _, text := range given {
		if door, err := netip.ParseAddrPort(text); err == nil {
			b.Doors = append(b.Doors, door)
			continue
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			return usagef("--gateway: %w", err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || !dnsName.MatchString(host) {
			return usagef("--gateway %q must be an IP address or DNS name with a port, such as tollgate-envoy:8082", text)
		}
		b.NamedDoors = append(b.NamedDoors, envoy.NamedServer{Host: host, Port: uint16(n)})
	}
	if len(given) > 0 {
		return nil
	}
	for _, g := range known {
		b.Doors = append(b.Doors, g.Door)
	}
	if len(b.Doors) == 0 {
		return usagef("the configuration contains no addresses of gateways: pass the addresses with --gateway")
	}
	return nil
}

// dnsName matches host names that are not IP addresses: the last label begins with a letter.
var dnsName = regexp.MustCompile(`(?i)^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)*[a-z]([a-z0-9-]*[a-z0-9])?\.?$`)

func newEnvoySnapshot() *cobra.Command {
	var f envoyFlags
	var compare bool
	var c *adminClient
	cmd := &cobra.Command{
		Use:   "snapshot -c tollgate.yaml",
		Short: "Print the resources served to a node group",
		Long: `Prints all resources served to the Envoys of a node group as JSON, without private
keys. With --diff, prints what would change if a running gateway loaded this
configuration, and exits with 1 if anything would change. The comparison covers all
node groups, or only the group given by --node-group.`,
		Example: `  tollgate envoy snapshot -c tollgate.yaml --diff`,
		Args:    named(nil),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			if compare {
				return f.compare(cmd.Context(), c, cmd.OutOrStdout())
			}
			_, group, gateways, err := f.load()
			if err != nil {
				return err
			}
			resources, err := rendered(&group, gateways)
			if err != nil {
				return err
			}
			return printResources(cmd.OutOrStdout(), resources)
		}),
	}
	f.add(cmd)
	c = newAdminClient(cmd)
	cmd.Flags().BoolVar(&compare, "diff", false, "compare with the resources that a running gateway serves")
	return cmd
}

// rendered returns the resources of a group as text, by name.
func rendered(g *envoy.Group, gateways []envoy.Gateway) (map[string]string, error) {
	snapshot, err := g.Snapshot(gateways)
	if err != nil {
		return nil, err
	}
	return envoy.Render(snapshot)
}

// compare writes the differences between the configured groups and the groups that a running gateway serves. It returns errReported if it
// finds a difference.
func (f *envoyFlags) compare(ctx context.Context, c *adminClient, w io.Writer) error {
	loaded, err := config.Load(f.path, config.Sources{}, operator.Validator{})
	if err != nil {
		return err
	}
	var serving struct{ Groups []envoy.GroupStatus }
	if err := c.get(ctx, "/admin/envoy", nil, &serving); err != nil {
		return err
	}
	isServed, isConfigured := make(map[string]bool), make(map[string]bool)
	for _, g := range serving.Groups {
		isServed[g.Group] = true
	}
	for _, g := range loaded.Config.Envoy.XDS.Groups {
		isConfigured[g.ID] = true
	}
	ids := allKeys(isServed, isConfigured)
	if f.group != "" {
		ids = []string{f.group}
	}
	var differs error
	for _, id := range ids {
		var served envoy.GroupSnapshot
		if isServed[id] {
			if err := c.get(ctx, "/admin/envoy/snapshot", url.Values{"group": {id}}, &served); err != nil {
				return err
			}
		}
		next := map[string]string{}
		if isConfigured[id] || !isServed[id] {
			group, gateways, err := envoy.NodeGroup(&loaded.Config, id)
			if err != nil {
				return err
			}
			if isServed[id] {
				gateways = served.Gateways // the configuration does not list them
			}
			if next, err = rendered(&group, gateways); err != nil {
				return err
			}
		}
		if err := printDifference(w, served.Resources, next); err != nil {
			differs = err
		}
	}
	return differs
}

// printResources writes a JSON object with a member for each resource.
func printResources(w io.Writer, resources map[string]string) error {
	members := make(map[string]json.RawMessage, len(resources))
	for name, text := range resources {
		members[name] = json.RawMessage(text)
	}
	return writeJSON(w, members)
}

// printDifference writes the differences of each resource.
func printDifference(w io.Writer, served, next map[string]string) error {
	var differs error
	for _, name := range allKeys(served, next) {
		if out := diff.Diff("served "+name, []byte(served[name]), "configured "+name, []byte(next[name])); out != nil {
			differs = errReported
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
	}
	return differs
}

// allKeys returns the keys of two maps, sorted.
func allKeys[V any](a, b map[string]V) []string {
	all := make(map[string]V, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// oneLine prepares text from callers and other sources for a table cell, without control characters.
func oneLine(text string) string { return strings.ReplaceAll(printable(text), "\n", " ") }
