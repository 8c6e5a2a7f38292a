package deploy_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// directive returns the value of the only line of a unit that sets a directive.
func directive(t *testing.T, unit, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(unit, -1)
	if len(found) != 1 {
		t.Fatalf("the unit has %d lines with %s:\n%s", len(found), name, unit)
	}
	return found[0][1]
}

// installContents installs the files of the repository that a package has, and the program, into a directory. Completions and manuals,
// which are made for a release, are left out.
func installContents(t *testing.T) (dir string) {
	t.Helper()
	var recipe struct {
		Contents []struct{ Src, Dst string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/release/nfpm.yaml")), &recipe); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, c := range recipe.Contents {
		path, from := filepath.Join(dir, c.Dst), root+c.Src
		if c.Dst == "/usr/bin/tollgate" {
			from = binary.Path(t)
		}
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		switch {
		case c.Src == "" && err == nil:
			err = os.MkdirAll(path, 0o700)
		case err == nil && (c.Dst == "/usr/bin/tollgate" || !strings.HasPrefix(c.Src, "$")):
			err = os.Symlink(absolute(t, from), path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is what the example and the README's sample refer to.
func environment(t *testing.T) []string {
	t.Helper()
	return []string{"TOLLGATE_ADMIN_TOKEN=a-token-of-thirty-two-characters", "REDIS_URL=redis://" + miniredis.RunT(t).Addr(), "ACME_PLATFORM_KEY=" + platform.DefaultKey}
}

// answers checks that a gateway serves callers and operators. The one key of the configuration is nobody's.
func answers(t *testing.T, data, admin string) {
	t.Helper()
	if got := world.Ask(t, data, world.Request(http.MethodGet, "/v2/pods", "", "")); got.Status != http.StatusUnauthorized {
		t.Errorf("a call without a key is answered with %d, want 401", got.Status)
	}
	if got := world.Ask(t, admin, world.Request(http.MethodGet, "/livez", "", "")); got.Status != http.StatusOK {
		t.Errorf("/livez is answered with %d, want 200", got.Status)
	}
}

// The package's service starts with the package's example of a configuration and the sockets of the package's socket units, as systemd
// passes them. Only the ports are others, in the units and the configuration alike, and the platform is the emulator.
func TestPackageStartsWithItsSockets(t *testing.T) {
	t.Parallel()
	installed := installContents(t)
	file := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(installed, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	example := strings.Replace(file("usr/share/doc/tollgate/tollgate.yaml"), "https://platform.example", platform.RunT(t).URL, 1)
	service, sockets := file("usr/lib/systemd/system/tollgate.service"), map[string]*net.TCPListener{}
	for unit := range strings.FieldsSeq(directive(t, service, "Sockets")) {
		text := file("usr/lib/systemd/system/" + unit)
		host, port, err := net.SplitHostPort(directive(t, text, "ListenStream"))
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(host)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		sockets[directive(t, text, "FileDescriptorName")] = l
		example = strings.ReplaceAll(example, ":"+port, fmt.Sprintf(":%d", l.Addr().(*net.TCPAddr).Port))
	}
	if err := os.WriteFile(filepath.Join(installed, "etc/tollgate/tollgate.yaml"), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	command := strings.Fields(directive(t, service, "ExecStart"))
	for i, word := range command {
		if strings.HasPrefix(word, "/") {
			command[i] = installed + word
		}
	}
	m := newManager(t, "", sockets)
	cmd := m.run(t, command[0], command[1:]...)
	cmd.Env = append(cmd.Env, environment(t)...)
	p := start(t, cmd)
	p.wait(t, `"msg":"serving"`)
	m.expect(t, "READY=1")
	answers(t, sockets["data"].Addr().String(), sockets["admin"].Addr().String())
}

// A configuration that names no listeners has those of the package's sockets, as the README's sample has.
func TestSocketsHaveTheDefaultAddresses(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	for unit, want := range map[string]string{"tollgate.socket": c.Listen, "tollgate-admin.socket": c.Admin.Listen} {
		if got := directive(t, read(t, "deploy/systemd/"+unit), "ListenStream"); got != want {
			t.Errorf("%s listens on %s, and the default is %s", unit, got, want)
		}
	}
}

// The README's sample, with a digest in the place that it leaves open, has no faults, and the gateway starts with it: by itself, and with
// the package's sockets.
func TestTheSampleOfTheREADMEStarts(t *testing.T) {
	t.Parallel()
	var sample string
	for _, b := range fences(read(t, "README.md")) {
		if strings.HasPrefix(b.text, "platform:") {
			sample += b.text
		}
	}
	text := strings.Replace(sample, "<64 hexadecimal digits>", strings.Repeat("1f", 32), 1)
	if text == sample {
		t.Fatalf("the sample is %q", sample)
	}
	data, admin := listen(t), listen(t)
	for name, sockets := range map[string]map[string]*net.TCPListener{"alone": nil, "sockets": {"data": data, "admin": admin}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addresses := []string{"127.0.0.1:0", "127.0.0.1:0"}
			if sockets != nil {
				addresses = []string{data.Addr().String(), admin.Addr().String()}
			}
			path := filepath.Join(t.TempDir(), "tollgate.yaml")
			whole := fmt.Sprintf("listen: %s\nadmin: {listen: %q}\n%s", addresses[0], addresses[1], text)
			if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			check := exec.CommandContext(t.Context(), binary.Path(t), "check", "-c", path)
			check.Env = append(os.Environ(), environment(t)...)
			if out, err := check.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := newManager(t, path, sockets).command(t)
			cmd.Env = append(cmd.Env, environment(t)...)
			p := start(t, cmd)
			p.wait(t, `"msg":"serving"`)
			found := regexp.MustCompile(`"msg":"serving","listen":"([^"]+)","admin":"([^"]+)"`).FindStringSubmatch(p.written())
			if found == nil {
				t.Fatal("the log has no addresses")
			}
			answers(t, found[1], found[2])
		})
	}
}
