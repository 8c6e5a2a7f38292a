package deploy_test

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

const root = "../../"

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compose is what we look at of a compose file.
type compose struct {
	Services map[string]struct {
		Build struct {
			Context, Dockerfile string
		}
		Ports           []string
		Environment     map[string]string
		Command         []string
		Volumes         []string
		DependsOn       map[string]map[string]string `yaml:"depends_on"`
		ReadOnly        bool                         `yaml:"read_only"`
		Image           string
		StopGracePeriod time.Duration `yaml:"stop_grace_period"`
	}
	Volumes map[string]any
}

func parse(t *testing.T) compose {
	t.Helper()
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "deploy/compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// load reads the configuration as the gateway's container would.
func load(t *testing.T, environment map[string]string) *config.Loaded {
	t.Helper()
	return loadText(t, read(t, "deploy/compose/tollgate.yaml"), environment)
}

// interpolated matches what compose replaces by a variable of the host.
var interpolated = regexp.MustCompile(`\$\{(\w+)[^}]*\}`) //nolint:gochecknoglobals // never changed

func loadText(t *testing.T, text string, environment map[string]string) *config.Loaded {
	t.Helper()
	pair := certificate(t)
	loaded, err := config.Parse("tollgate.yaml", []byte(text), config.Sources{
		Env: func(name string) (string, bool) {
			value, ok := environment[name]
			return interpolated.ReplaceAllString(value, "0123456789abcdef-$1"), ok
		},
		ReadFile: func(string) ([]byte, error) { return os.ReadFile(pair) },
	}, operator.Validator{})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestConfigurationLoadsWithWhatTheContainerGets(t *testing.T) {
	t.Parallel()
	services := parse(t).Services
	gateway := services["gateway-1"]
	published := slices.Concat(gateway.Ports, services["envoy"].Ports)
	loaded := load(t, gateway.Environment)
	for name, addr := range map[string]string{"listen": loaded.Config.Listen, "admin.listen": loaded.Config.Admin.Listen} {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		if ip := net.ParseIP(host); !ip.IsUnspecified() {
			t.Errorf("%s is %s: within a container nobody reaches it", name, addr)
		}
		if !slices.ContainsFunc(published, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
			t.Errorf("%s is on port %s, which compose.yaml does not publish: %v", name, port, published)
		}
		if !strings.Contains(read(t, "deploy/Dockerfile"), " "+port) {
			t.Errorf("%s is on port %s, which the image does not expose", name, port)
		}
	}
	timeouts := loaded.Config.Timeouts
	if longest := timeouts.Notice + timeouts.Drain + time.Second; gateway.StopGracePeriod <= longest {
		t.Errorf("stop_grace_period is %s, stopping may take %s", gateway.StopGracePeriod, longest)
	}
	if !gateway.ReadOnly {
		t.Error("the gateway's root file system can be written")
	}
	state := regexp.MustCompile(`(?m)^ENV STATE_DIRECTORY=(\S+)$`).FindStringSubmatch(read(t, "deploy/Dockerfile"))
	if state == nil || !slices.Contains(gateway.Volumes, "state:"+state[1]) {
		t.Errorf("the image keeps its state in %v, which is none of the volumes %v", state, gateway.Volumes)
	}
}

// Every variable that the container gets is referred to, so that none goes stale.
func TestContainerGetsNothingElse(t *testing.T) {
	t.Parallel()
	file := read(t, "deploy/compose/tollgate.yaml")
	for name := range parse(t).Services["gateway-1"].Environment {
		if !strings.Contains(file, "{env: "+name+"}") {
			t.Errorf("%s is handed to the gateway, and tollgate.yaml does not refer to it", name)
		}
	}
}

func TestComposeRefersToWhatIsThere(t *testing.T) {
	t.Parallel()
	c := parse(t)
	for name, service := range c.Services {
		if b := service.Build; b.Dockerfile != "" {
			read(t, b.Dockerfile)
			if b.Context != ".." {
				t.Errorf("%s is built in %q, want the repository's root", name, b.Context)
			}
		}
		for _, volume := range service.Volumes {
			source, target, _ := strings.Cut(volume, ":")
			if local, ok := strings.CutPrefix(source, "./"); ok {
				read(t, "deploy/"+local)
				path, _, _ := strings.Cut(target, ":")
				if service.Build.Dockerfile != "" && strings.HasSuffix(path, ".yaml") && !strings.Contains(read(t, "deploy/Dockerfile"), `"`+path+`"`) {
					t.Errorf("%s mounts %s, which the image's command does not read", name, path)
				}
			} else if _, ok := c.Volumes[source]; !ok {
				t.Errorf("%s mounts volume %s, which is not declared", name, source)
			}
		}
		if service.Build.Dockerfile == "" && !regexp.MustCompile(`:v?[0-9]+\.[0-9]+`).MatchString(service.Image) {
			t.Errorf("%s is of image %q, want a version", name, service.Image)
		}
		for other := range maps.Keys(service.DependsOn) {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
	}
}

func TestImageIsBuiltWithOurToolchain(t *testing.T) {
	t.Parallel()
	want := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	got := regexp.MustCompile(`(?m)^ARG GO_IMAGE=golang:([0-9.]+)`).FindStringSubmatch(read(t, "deploy/Dockerfile"))
	if want == nil || got == nil || want[1] != got[1] {
		t.Errorf("the image is built with Go %v, go.mod asks for %v", got, want)
	}
	if image := parse(t).Services["certificates"].Image; !strings.Contains(read(t, "deploy/Dockerfile"), "="+image+"\n") {
		t.Errorf("certificates are made by %s, which the gateway is not built with", image)
	}
}

// maxProgram bounds the program, in bytes. 15 MB of it are methods that nothing calls: the
// linker keeps them all beside html/template, which the console's pages are made with. Half
// a MB is the compression of responses, and two are the pages and charts of the console.
const maxProgram = 80_950_000

// The binary reports the version that make and the image stamp, and its size is bounded.
func TestBuild(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "tollgate")
	build := exec.CommandContext(t.Context(), "make", "-s", "-C", root, "build", "BIN="+binary, "VERSION=v9.8.7-test")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "version").Output()
	if got, want := string(out), "tollgate v9.8.7-test\n"; err != nil || got != want {
		t.Errorf("tollgate version = %q, %v, want %q", got, err, want)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if len(program) > maxProgram {
		t.Errorf("the binary has %d bytes, at most %d", len(program), maxProgram)
	}
	for _, file := range []string{"deploy/Dockerfile", "deploy/release/build"} {
		for _, flag := range []string{"-X main.stamp=$", "-tags grpcnotrace", "-s -w"} {
			if !strings.Contains(read(t, file), flag) {
				t.Errorf("%s does not build with %s", file, flag)
			}
		}
	}
}
