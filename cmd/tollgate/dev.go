package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/dev"
	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// devFlags are the flags of 'tollgate dev'.
type devFlags struct {
	gateway, keyEnv, keyFile string
	platform                 string
	port                     int
	noReload                 bool
	session                  dev.Settings
	options                  dev.Options
	output                   *output
	all, stale               bool
}

func newDev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Serve the functions of a directory, and run them on the platform",
		Long: `Serves the functions of a directory's Python files on a local port, and runs them on
the platform, through a gateway. The gateway checks, prices and attributes the
resources like all others, and they remain until you remove them. The files are read,
but not run, on this machine. Without python3, only the images listed in
tollgate-dev.yaml are served. See docs/dev.md.`,
		Example: `  tollgate dev .
  tollgate dev --platform emulator .     # without any account`,
		Args: named(nil, "DIR"),
		RunE: action(func(cmd *cobra.Command, args []string) error { return f.serve(cmd, args) }),
	}
	p := cmd.PersistentFlags()
	p.StringVar(&f.gateway, "gateway", defaultGateway,
		"address of the gateway, or with --platform emulator the address to listen on; $"+gatewayEnv+" overrides the default")
	p.StringVar(&f.keyEnv, "key-env", "TOLLGATE_KEY", "variable that contains your key, in the environment or in the directory's .env file")
	p.StringVar(&f.keyFile, "key-file", "", "file that contains your key, used if the variable of --key-env is not set (default: tollgate/key in the user's configuration directory)")
	flags := cmd.Flags()
	flags.StringVar(&f.platform, "platform", "", "set to 'emulator' to also run a gateway and an emulator of the platform")
	flags.StringVar(&f.options.Host, "host", "localhost", "address to serve on")
	flags.IntVarP(&f.port, "port", "p", 8888, "port to serve on; if the port is in use, the next free port is used")
	flags.BoolVar(&f.options.Reload, "reload", true, "reload when files change")
	flags.BoolVar(&f.noReload, "no-reload", false, "do not reload when files change")
	flags.BoolVar(&f.options.Provision, "auto-provision", false, "create all endpoints at startup; ask for confirmation if there are more than five")
	flags.BoolVar(&f.options.Agreed, "yes", false, "create any number of endpoints without asking")
	flags.BoolVar(&f.options.Remove, "rm", false, "delete the session's endpoints when the session ends")
	flags.StringToStringVar(&f.session.Images, "worker-image", nil, "worker images by kind (gpu, cpu, lb, lb-cpu), in place of the toolkit's images")
	flags.Float64Var(&f.session.MaxUSD, "max-usd", 0,
		"maximum cost of the session in USD, assuming that all workers run; at this cost, the session's endpoints are removed")
	flags.DurationVar(&f.session.Cold, "cold-start", 10*time.Minute, "maximum time that a call waits for the first worker")
	list := &cobra.Command{
		Use: "list [DIR]", Short: "List the endpoints created for a directory", Args: named(nil, "DIR"),
		Example: "  tollgate dev list",
		RunE:    action(func(cmd *cobra.Command, args []string) error { return f.list(cmd, args) }),
	}
	f.output = outputFlag(list)
	undeploy := &cobra.Command{
		Use: "undeploy [NAME]", Short: "Remove endpoints created for this directory", Args: named(nil, "NAME"),
		Example: "  tollgate dev undeploy --all",
		RunE:    action(func(cmd *cobra.Command, args []string) error { return f.undeploy(cmd, args) }),
	}
	undeploy.Flags().BoolVar(&f.all, "all", false, "remove all endpoints")
	undeploy.Flags().BoolVar(&f.stale, "cleanup-stale", false, "remove endpoints that no longer exist from the list")
	cmd.AddCommand(list, undeploy)
	return cmd
}

// devEnd limits the time of a shutdown, which removes resources and stops the emulator and its gateway.
const devEnd = time.Minute

// serve runs the local server for the functions of a directory.
func (f *devFlags) serve(cmd *cobra.Command, args []string) (err error) {
	if f.platform != "" && f.platform != "emulator" {
		return usagef("--platform %s: expected emulator", f.platform)
	}
	for kind := range f.session.Images {
		if kinds := []string{"gpu", "cpu", "lb", "lb-cpu"}; !slices.Contains(kinds, kind) {
			return usagef("--worker-image %s: expected %s", kind, strings.Join(kinds, ", "))
		}
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	allowToEnd(ctx, devEnd)
	python := dev.FindPython(ctx)
	project, err := python.Read(ctx, append(args, ".")[0])
	if err != nil {
		return err
	}
	state, err := openState(project.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	release, err := state.Serve()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	listener, err := listenNear(net.JoinHostPort(f.options.Host, strconv.Itoa(f.port)), out)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // already closed by the server
	var access *dev.Gateway
	if f.platform == "emulator" {
		stack, stop, err := startStack(ctx, demoFlags{listen: f.gateway, worker: platform.Worker{Python: python.Path()}}, out, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, state.Drop(stack.URL), stop()) }()
		if err := state.Drop(stack.URL); err != nil {
			return err
		}
		access = stack
	} else if access, err = f.access(cmd, project.Dir); err != nil {
		return err
	}
	f.session.User, f.session.Emulated, f.session.Now, f.session.Out = labelOf(userName()), f.platform != "", time.Now, out
	f.options.Listener, f.options.Logger = listener, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	f.options.Reload = f.options.Reload && !f.noReload
	if in := cmd.InOrStdin(); isTerminal(in) {
		f.options.Ask = bufio.NewReader(in)
	}
	return dev.NewSession(access, state, python, f.session).Run(ctx, project, f.options)
}

// openState opens the state of a directory for the current user and machine.
func openState(dir string) (*dev.State, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return dev.OpenState(dir, userName()+"@"+host)
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// labelOf converts a user name to a label value. It returns "" if the name contains no valid character.
func labelOf(name string) string {
	name = regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(name, "-")
	return strings.TrimLeft(name[:min(len(name), 63)], "._-")
}

// access finds the gateway and the developer's key in the environment, in .env or in a file.
func (f *devFlags) access(cmd *cobra.Command, dir string) (*dev.Gateway, error) {
	address := f.gateway
	if set := os.Getenv(gatewayEnv); set != "" && !cmd.Flags().Changed("gateway") {
		address = set
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, usagef("--gateway %s: expected an address such as https://tollgate.example", address)
	}
	key := os.Getenv(f.keyEnv)
	if key == "" {
		if key, err = dotEnv(dir, f.keyEnv); err != nil {
			return nil, err
		}
	}
	file := f.keyFile
	if base, err := os.UserConfigDir(); file == "" && err == nil {
		file = filepath.Join(base, "tollgate", "key")
	}
	if key == "" && file != "" {
		text, err := files.Read(file, files.MaxToken)
		if err != nil && (f.keyFile != "" || !errors.Is(err, os.ErrNotExist)) {
			return nil, fmt.Errorf("key file: %w", err)
		}
		key = strings.TrimSpace(strings.TrimPrefix(string(text), byteOrderMark))
	}
	if key == "" {
		return nil, fmt.Errorf("key required: set %s, or write the key to .env in the current directory or to %s", f.keyEnv, file)
	}
	return &dev.Gateway{URL: strings.TrimSuffix(address, "/"), Key: key, HTTP: new(http.Client)}, nil
}

// dotEnv returns the value of one variable in the file .env of a directory. The file must not be a symbolic link out of the directory.
func dotEnv(dir, name string) (string, error) {
	text, err := files.ConfinedPath(dir, ".env").Read(files.MaxToken)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), byteOrderMark)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == name {
			return dotEnvValue(strings.TrimSpace(value)), nil
		}
	}
	return "", nil
}

// byteOrderMark is a character that some editors write at the beginning of a file.
const byteOrderMark = "\ufeff"

// dotEnvComment matches a comment after a value.
var dotEnvComment = regexp.MustCompile(`(^|\s)#.*`)

// dotEnvValue returns the value in the text after "=". It removes quotes or, from an unquoted value, a trailing comment.
func dotEnvValue(text string) string {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		if value, _, ok := strings.Cut(text[1:], text[:1]); ok {
			return value
		}
	}
	return strings.TrimSpace(dotEnvComment.ReplaceAllString(text, ""))
}

// manage calls do with a session that does not serve the endpoints of a directory, and with these endpoints.
func (f *devFlags) manage(cmd *cobra.Command, dir string, do func(s *dev.Session, all []dev.Standing) error) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	access, err := f.access(cmd, dir)
	if err != nil {
		return err
	}
	state, err := openState(dir)
	if err != nil {
		return err
	}
	s := dev.NewSession(access, state, dev.Python{}, dev.Settings{Now: time.Now, Out: cmd.OutOrStdout()})
	all, err := s.List(cmd.Context())
	if err == nil {
		err = do(s, all)
	}
	return errors.Join(err, state.Close())
}

func (f *devFlags) list(cmd *cobra.Command, args []string) error {
	return f.manage(cmd, append(args, ".")[0], func(_ *dev.Session, all []dev.Standing) error {
		t := sheet{{"name", "id", "status", "usd/h at most", "made", "gateway"}}
		for _, e := range all {
			t.add(e.Name, e.ID, e.Status, usd(strconv.FormatFloat(e.Hourly, 'f', -1, 64)), e.Made, e.Gateway)
		}
		return f.output.write(cmd.OutOrStdout(), all, t)
	})
}

func (f *devFlags) undeploy(cmd *cobra.Command, args []string) error {
	if (len(args) == 1) == (f.all || f.stale) || f.all && f.stale {
		return usagef("specify one endpoint, or use --all or --cleanup-stale")
	}
	return f.manage(cmd, ".", func(s *dev.Session, all []dev.Standing) error { return f.removeFrom(cmd, args, s, all) })
}

// removeFrom removes the endpoint in args or, without arguments, the endpoints that the flags select.
func (f *devFlags) removeFrom(cmd *cobra.Command, args []string, s *dev.Session, all []dev.Standing) error {
	var faults []error
	found := false
	for _, e := range all {
		name := strings.TrimPrefix(e.Name, "live-")
		if len(args) == 1 && strings.TrimPrefix(args[0], "live-") != name || f.stale && e.Status != "Inactive" || e.Elsewhere {
			continue
		}
		found = true
		if err := s.Remove(cmd.Context(), name); err != nil {
			faults = append(faults, err)
			continue
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s removed\n", e.Name); err != nil {
			return err
		}
	}
	if len(args) == 1 && !found {
		return fmt.Errorf("%s: endpoint not found for this directory at this gateway", args[0])
	}
	return errors.Join(faults...)
}

// startStack runs an emulator of the platform and a gateway in front of it, as the demo does, until stop is called. The gateway listens on
// the given address or the next free port.
func startStack(ctx context.Context, f demoFlags, stdout, stderr io.Writer) (access *dev.Gateway, stop func() error, err error) {
	parsed, err := url.Parse(f.listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--gateway: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started, ended := make(chan demoAddresses, 1), make(chan error, 1)
	f.listen, f.admin = parsed.Host, net.JoinHostPort(parsed.Hostname(), "8081")
	f.started = started
	go func() { ended <- demo(ctx, f, stdout, stderr) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	key := os.Getenv("TOLLGATE_KEY")
	if !slices.Contains(config.DemoKeys(), key) {
		key = "tg_demo_research"
	}
	select {
	case at := <-started:
		if _, err := fmt.Fprintf(stdout, "gateway   http://%s\nadmin     http://%s\nplatform  %s (the emulator)\n", at.data, at.admin, at.emulator); err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		return &dev.Gateway{URL: "http://" + at.data, Key: key, HTTP: new(http.Client)}, stop, nil
	case err := <-ended:
		cancel()
		return nil, nil, err
	}
}
