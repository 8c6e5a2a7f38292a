package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// demoFlags are the flags of the demo.
type demoFlags struct {
	listen, admin, platform, redis, envoy string
	// history adds a week of past calls at the start.
	history bool
	// worker runs the functions deployed to endpoints.
	worker platform.Worker
	// started, if not nil, receives the addresses when the demo is ready, and no greeting is printed.
	started chan<- demoAddresses
}

// demoAddresses holds the addresses of the listeners and the URL of the emulator.
type demoAddresses struct{ data, admin, emulator string }

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a complete demo on loopback, with sample organisations",
		Long: `Runs the platform emulator, an embedded store and the gateway on loopback, with two
sample organisations and fixed keys. No real resources are rented, and nothing is
stored. With --platform and --redis only the gateway runs, which can be killed and
restarted; start the emulator with 'tollgate platform --demo'. With --envoy, an Envoy
from PATH runs in front, configured by the gateway. With --history, the console shows
a week of calls. The audit log and the decision log, which the playground of the
console needs, are in a temporary directory. TOLLGATE_BRAND sets the platform's name
in identifiers of the retired interfaces (legacy.brand).`,
		Example: demoExamples,
		Args:    named(nil),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the gateway; if the port is in use, the next free port is used")
	cmd.Flags().StringVar(&f.admin, "admin-listen", "127.0.0.1:8081",
		"address of the admin listener; if the port is in use, the next free port is used")
	cmd.Flags().StringVar(&f.platform, "platform", "", "URL of a running emulator to use")
	cmd.Flags().StringVar(&f.redis, "redis", "", "URL of a Redis to use in place of the embedded store")
	cmd.Flags().StringVar(&f.envoy, "envoy", "", "run an Envoy in front of the gateway; Envoy listens at this address or at the next free port")
	cmd.Flags().Lookup("envoy").NoOptDefVal = "127.0.0.1:10000"
	cmd.Flags().BoolVar(&f.history, "history", false, "start with a week of past calls; cannot be combined with --platform or --redis")
	return cmd
}

// Platform keys of the demo's organisations and of the emulator's accounts.
const (
	demoAcmeKey   = "platform-demo-acme"
	demoGlobexKey = "platform-demo-globex"
)

// demoAccounts returns the emulator's accounts for the demo.
func demoAccounts() []platform.Account {
	return []platform.Account{{ID: "acme", Key: demoAcmeKey}, {ID: "globex", Key: demoGlobexKey}}
}

func demo(ctx context.Context, f demoFlags, stdout, stderr io.Writer) error {
	var past *history
	if f.history {
		if f.platform != "" || f.redis != "" {
			return usagef("--history cannot be combined with --platform or --redis")
		}
		past = newHistory(time.Now())
	}
	group, ctx := errgroup.WithContext(ctx)
	if f.platform == "" {
		opts := platform.Options{Accounts: demoAccounts(), Worker: f.worker}
		if past != nil {
			opts.Clock = past.clock
		}
		emulator, err := newEmulator(opts)
		if err != nil {
			return err
		}
		upstream, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // opened once, at start
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		f.platform = "http://" + upstream.Addr().String()
		group.Go(func() error { return serveUntil(ctx, upstream, emulator.CombinedHandler(), emulator.Close) })
	}
	group.Go(func() error { return demoGateway(ctx, f, past, stdout, stderr) })
	return group.Wait()
}

// demoGateway runs the gateway of the demo. If past is not nil, demoGateway first makes the calls of past.
func demoGateway(ctx context.Context, f demoFlags, past *history, stdout, stderr io.Writer) error {
	data, err := listenNear(f.listen, stdout)
	if err != nil {
		return err
	}
	admin, err := listenNear(f.admin, stdout)
	if err != nil {
		return err
	}
	deps := gateway.Deps{Data: data, Admin: admin}
	var envoy *demoEnvoy
	if f.envoy != "" {
		if envoy, err = newDemoEnvoy(f.envoy, data.Addr(), stdout); err != nil {
			return err
		}
		deps.Envoy = envoy.door
	}
	directory, err := os.MkdirTemp("", "tollgate-demo-")
	if err != nil {
		return fmt.Errorf("create directory for the demo's logs: %w", err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	loaded, err := demoConfig(f, "http://"+data.Addr().String(), directory, envoy)
	if err != nil {
		return err
	}
	if at := (demoAddresses{data.Addr().String(), admin.Addr().String(), f.platform}); f.started != nil {
		f.started <- at
	} else if err := greet(stdout, at); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if envoy != nil {
		group.Go(func() error { return envoy.run(ctx, stderr) })
	}
	group.Go(func() error {
		var stop func()
		deps.Isolate, stop = isolation(ctx)
		defer stop()
		deps.Logger = newLogger(stderr, loaded.Config.Log, new(slog.LevelVar))
		return runGateway(ctx, loaded, deps, nil, past)
	})
	return group.Wait()
}

// brandEnv is the environment variable with the platform's name as it appears in identifiers of the retired interfaces. The name cannot be
// derived from the emulator's address.
const brandEnv = "TOLLGATE_BRAND"

// demoConfig returns the demo's configuration. public is the URL of the gateway, directory the directory of its logs, and envoy the Envoy
// in front, or nil.
func demoConfig(f demoFlags, public, directory string, envoy *demoEnvoy) (*config.Loaded, error) {
	emulator, err := url.Parse(f.platform)
	if err != nil {
		return nil, fmt.Errorf("address of the emulator: %w", err)
	}
	text := strings.NewReplacer("PLATFORM\n", f.platform+"\n", "PORT\n", emulator.Port()+"\n", "GATEWAY\n", public+"\n", "BRAND\n",
		strconv.Quote(os.Getenv(brandEnv))+"\n").Replace(demoYAML)
	if f.redis != "" {
		text = strings.Replace(text, "embedded: true", "url: {env: DEMO_REDIS_URL}", 1)
	}
	for _, key := range config.DemoKeys() {
		text = strings.ReplaceAll(text, "SHA256("+key+")", identity.DigestOf(key).String())
	}
	if envoy != nil {
		text = envoy.configure(text)
	}
	text += fmt.Sprintf("audit: {file: {path: %q}}\ndecisions: {file: {path: %q}}\n",
		filepath.Join(directory, "audit.jsonl"), filepath.Join(directory, "decisions.jsonl"))
	secrets := map[string]string{"DEMO_ACME_PLATFORM_KEY": demoAcmeKey, "DEMO_GLOBEX_PLATFORM_KEY": demoGlobexKey, "DEMO_REDIS_URL": f.redis}
	return config.Parse("demo.yaml", []byte(text), config.Sources{
		Env:      func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
		DemoKeys: true,
	}, operator.Validator{})
}

// portsTried limits the search for a free port.
const portsTried = 100

// listenNear listens on addr. If the port is in use, listenNear uses the next free port and prints a notice.
func listenNear(addr string, stdout io.Writer) (net.Listener, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("address %q must have the form host:port", addr)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, usagef("address %q must have a numeric port", addr)
	}
	for i := range portsTried {
		try := net.JoinHostPort(host, strconv.Itoa(port+i))
		l, err := net.Listen("tcp", try) //nolint:noctx // opened once, at start
		switch {
		case err == nil && i > 0:
			_, err = fmt.Fprintf(stdout, "Port %d is in use, using port %d.\n", port, port+i)
			return l, err
		case err == nil:
			return l, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	return nil, fmt.Errorf("no free port from %d to %d", port, port+portsTried-1)
}

// greet prints keys, two calls to try and the addresses. The console comes last, because people open it first.
func greet(w io.Writer, at demoAddresses) error {
	_, err := fmt.Fprintf(w, `tollgate demo: two sample organisations; no resources are rented, and nothing is stored

Keys
  tg_demo_research   acme, team research: pods on RTX 4090 and L4, at most 2 GPUs each, 10 USD per hour
  tg_demo_lead       acme, lead of team research: approves its requests, up to 5 USD per hour
  tg_demo_platform   acme, team platform, admin: every GPU
  tg_demo_ml         acme, team ml: 1.50 USD per hour
  tg_demo_tiny       acme, team tiny: 5 calls a minute
  tg_demo_exempt     acme, admin, not limited
  tg_demo_globex     globex, with its own account at the platform: idle pods are stopped
Try an allowed call, and a call that a policy denies; "tollgate demo --help" lists more
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}' http://%[1]s/v2/pods
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"b","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}' http://%[1]s/v2/pods
Open
  gateway   http://%[1]s   (v2 and the run interface at /v2, v1 at /v1, GraphQL at /graphql)
  admin     http://%[2]s   (--admin of the command line; /metrics, /readyz)
  platform  %[3]s   (the emulator)
  my team   http://%[1]s/tollgate/ui/   (console for callers: log in with a key)
  console   http://%[2]s/ui/   (no login; Ctrl-C stops the demo)
`, at.data, at.admin, at.emulator)
	return err
}

// demoExamples are calls to try, for the help text.
const demoExamples = `  tollgate demo --envoy
  # rent a pod that the team is allowed to rent, then list it
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}' http://127.0.0.1:8080/v2/pods
  curl -sS -H 'Authorization: Bearer tg_demo_research' http://127.0.0.1:8080/v2/pods
  # a pod that the team is not allowed to rent: 403, with the name of the policy
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"b","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}' http://127.0.0.1:8080/v2/pods
  # fifty requests at once: only the pods that fit into the team's budget are created, the other requests get 402
  seq 50 | xargs -P50 -I{} curl -sS -o /dev/null -w '%{http_code}\n' -H 'Authorization: Bearer tg_demo_ml' --json '{"name":"n{}","image":"img:1","gpu":{"id":"NVIDIA L4"}}' http://127.0.0.1:8080/v2/pods | sort | uniq -c
  tollgate spend show acme
  # a dry run: the price of a pod and the resulting budget, without creating the pod
  curl -sS -H 'Authorization: Bearer tg_demo_research' -H 'Tollgate-Dry-Run: true' --json '{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}' http://127.0.0.1:8080/v2/pods
  # a caller that tries to change another team's pod gets 404
  id=$(curl -sS -H 'Authorization: Bearer tg_demo_ml' http://127.0.0.1:8080/v2/pods | sed 's/.*"id":"\([a-z0-9]*\)","name":"n.*/\1/')
  curl -sS -X DELETE -H 'Authorization: Bearer tg_demo_research' http://127.0.0.1:8080/v2/pods/$id
  # two requests with the same Idempotency-Key: one volume, and the same response twice
  for i in 1 2; do curl -sSi -H 'Authorization: Bearer tg_demo_platform' -H 'Idempotency-Key: try-1' --json '{"name":"v","size":10,"dataCenter":"EU-RO-1"}' http://127.0.0.1:8080/v2/network-volumes; done
  # run a job on a public model, and a job that exceeds a policy: 403
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"input":{"prompt":"a lighthouse"}}' http://127.0.0.1:8080/v2/p-image-t2i/runsync
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"input":{"prompt":"a lighthouse","max_tokens":4096}}' http://127.0.0.1:8080/v2/p-image-t2i/runsync
  # more GPUs than policy gpu_count allows: 403 with an approval request; once it is granted, the call passes once
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"big","image":"img:1","gpu":{"id":"NVIDIA L4","count":3}}' http://127.0.0.1:8080/v2/pods
  tollgate approvals list acme
  tollgate approvals grant acme $(tollgate approvals list acme | awk '$1 ~ /^ap-/ {print $1; exit}') --by me
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"big","image":"img:1","gpu":{"id":"NVIDIA L4","count":3}}' http://127.0.0.1:8080/v2/pods
  # a pod that only sleeps is found idle after a minute, and stopped a minute later
  curl -sS -H 'Authorization: Bearer tg_demo_globex' --json '{"name":"idle","image":"img:1","cmd":["sleep","infinity"],"gpu":{"id":"NVIDIA L4"}}' http://127.0.0.1:8080/v2/pods
  tollgate spend idle globex
  # the forecast of the spend, and the platform's bills
  tollgate spend forecast acme
  TOLLGATE_KEY=tg_demo_platform tollgate billing pods --org acme --grouping gpuId --plot
  # the retired v1 API, translated
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}' http://127.0.0.1:8080/v1/pods
  # the legacy GraphQL API, translated
  curl -sS -H 'Authorization: Bearer tg_demo_research' --json '{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"d\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id desiredStatus machine { podHostId } } }"}' http://127.0.0.1:8080/graphql
`
