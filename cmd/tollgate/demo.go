package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
)

func newDemo() *cobra.Command {
	var listen, adminListen string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run everything on loopback, with sample organisations",
		Long: `Runs the platform emulator, an embedded store and the gateway on loopback, with
two sample organisations and fixed keys. Nothing is rented and nothing is kept.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), listen, adminListen, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address of the gateway; the next free port if it is taken")
	cmd.Flags().StringVar(&adminListen, "admin-listen", "127.0.0.1:8081", "address of the admin listener; likewise")
	return cmd
}

// Platform keys of the demo's organisations; the emulator's accounts have them.
const (
	demoAcmeKey   = "platform-demo-acme"
	demoGlobexKey = "platform-demo-globex"
)

func demo(ctx context.Context, listen, adminListen string, stdout, stderr io.Writer) error {
	emulator, err := newEmulator(platform.Options{Accounts: []platform.Account{{ID: "acme", Key: demoAcmeKey}, {ID: "globex", Key: demoGlobexKey}}})
	if err != nil {
		return err
	}
	upstream, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // opened once, at start
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	data, err := listenNear(listen, stdout)
	if err != nil {
		return err
	}
	admin, err := listenNear(adminListen, stdout)
	if err != nil {
		return err
	}
	loaded, err := demoConfig(upstream.Addr().String(), data.Addr().String())
	if err != nil {
		return err
	}
	if err := greet(stdout, data.Addr().String(), admin.Addr().String(), upstream.Addr().String()); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveUntil(ctx, upstream, emulator.CombinedHandler(), emulator.Close) })
	group.Go(func() error {
		return runGateway(ctx, loaded, runOptions{logger: newLogger(stderr, loaded.Config.Log), sockets: sockets{data: data, admin: admin}})
	})
	return group.Wait()
}

// demoConfig reads the demo's configuration for an emulator and a gateway at these
// addresses.
func demoConfig(emulator, gateway string) (*config.Loaded, error) {
	_, port, err := net.SplitHostPort(emulator)
	if err != nil {
		return nil, fmt.Errorf("address of the emulator: %w", err)
	}
	text := strings.NewReplacer("PLATFORM\n", "http://"+emulator+"\n", "PORT\n", port+"\n", "GATEWAY\n", "http://"+gateway+"\n").Replace(demoYAML)
	for _, key := range config.DemoKeys() {
		text = strings.ReplaceAll(text, "SHA256("+key+")", identity.DigestOf(key).String())
	}
	secrets := map[string]string{"DEMO_ACME_PLATFORM_KEY": demoAcmeKey, "DEMO_GLOBEX_PLATFORM_KEY": demoGlobexKey}
	return config.Parse("demo.yaml", []byte(text), config.Sources{
		Env:      func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
		DemoKeys: true,
	})
}

// portsTried bounds the search for a free port.
const portsTried = 100

// listenNear listens on addr or, if its port is taken, on the next free one,
// and says so.
func listenNear(addr string, stdout io.Writer) (net.Listener, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: want host:port", addr)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("address %q: want a numeric port", addr)
	}
	for i := range portsTried {
		try := net.JoinHostPort(host, strconv.Itoa(port+i))
		l, err := net.Listen("tcp", try) //nolint:noctx // opened once, at start
		switch {
		case err == nil && i > 0:
			_, err = fmt.Fprintf(stdout, "Port %d is taken, using %d.\n", port, port+i)
			return l, err
		case err == nil:
			return l, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	return nil, fmt.Errorf("no free port from %d to %d", port, port+portsTried-1)
}

// greet prints where everything is and what to try.
func greet(w io.Writer, data, admin, emulator string) error {
	_, err := fmt.Fprintf(w, `tollgate demo

  gateway   http://%[1]s   (v2 and the run interface at /v2, v1 at /v1, GraphQL at /graphql)
  admin     http://%[2]s   (readyz, metrics, admin/status, admin/limits?org=acme, admin/spend?org=acme)
  platform  http://%[3]s   (the emulator; callers never need it)

Keys
  tg_demo_research   acme, team research: RTX 4090 and L4 only, at most 2 per pod, 1.50 USD per hour
  tg_demo_platform   acme, team platform, admin: every GPU
  tg_demo_tiny       acme, team tiny: 5 calls a minute
  tg_demo_exempt     acme, admin, not limited
  tg_demo_globex     globex, another organisation with its own platform account

Try
  # rent a pod the team may have, then look at it
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}' http://%[1]s/v2/pods
  curl -sS -H 'Authorization: Bearer tg_demo_research' http://%[1]s/v2/pods
  # one it may not: 403, naming the policy
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"b","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}' http://%[1]s/v2/pods
  # fifty at once: no more than the team's budget has room for, the others are 402
  seq 50 | xargs -P50 -I{} curl -sS -o /dev/null -w '%%{http_code}\n' -H 'Authorization: Bearer tg_demo_research' --json '{"name":"n{}","image":"img:1","gpu":{"id":"NVIDIA L4"}}' http://%[1]s/v2/pods | sort | uniq -c
  tollgate spend show acme --admin http://%[2]s
  # run a job on a public model, and one that asks for too much: 403
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"input":{"prompt":"a lighthouse"}}' http://%[1]s/v2/p-image-t2i/runsync
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"input":{"prompt":"a lighthouse","max_tokens":4096}}' http://%[1]s/v2/p-image-t2i/runsync
  # the retired v1 API, translated
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}' http://%[1]s/v1/pods
  # the legacy GraphQL API, translated
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"d\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id desiredStatus machine { podHostId } } }"}' http://%[1]s/graphql

Press Ctrl-C to stop.
`, data, admin, emulator)
	return err
}
