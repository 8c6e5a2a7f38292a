package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// units are the names of the units.
func units(t *testing.T) (names []string) {
	t.Helper()
	files, err := os.ReadDir(root + "deploy/systemd")
	if err != nil || len(files) < 5 {
		t.Fatalf("there are %d units, %v", len(files), err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// program is the command of a unit.
var program = regexp.MustCompile(`(?m)^(Exec\w+=)\S+ `)

// installUnits writes the units to where a package would put them, below root; the
// program that they start is one that systemd-analyze accepts.
func installUnits(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, "etc/systemd/system")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range units(t) {
		text := program.ReplaceAllString(read(t, "deploy/systemd/"+name), "$1/bin/true ")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func systemdAnalyze(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: units are not verified")
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestUnitsAreValid(t *testing.T) {
	t.Parallel()
	dir := installUnits(t, t.TempDir())
	for _, name := range units(t) {
		out := systemdAnalyze(t, "verify", "--man=no", "--recursive-errors=one", filepath.Join(dir, name))
		if strings.Contains(out, "tollgate") {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// The exposure that systemd-analyze computes is 0 (none) to 10; services of
// Debian without hardening have 9.6.
func TestServiceIsHardened(t *testing.T) {
	t.Parallel()
	dir := installUnits(t, t.TempDir())
	for name, most := range map[string]float64{"tollgate.service": 1.5, "tollgate-envoy.service": 1.8} {
		out := systemdAnalyze(t, "security", "--offline=yes", "--no-pager", filepath.Join(dir, name))
		m := regexp.MustCompile(`Overall exposure level for ` + name + `: ([0-9.]+)`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no exposure level in:\n%s", out)
		}
		if got, err := strconv.ParseFloat(m[1], 64); err != nil || got > most {
			t.Errorf("exposure level of %s is %s, want at most %v:\n%s", name, m[1], most, out)
		}
	}
}

// The units provide the things that the gateway must find: its paths, its names, its
// times.
func TestUnitsFitTheGateway(t *testing.T) {
	t.Parallel()
	service := read(t, "deploy/systemd/tollgate.service")
	limits := settings.Default().Timeouts
	stop, err := strconv.Atoi(regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(service)[1])
	if err != nil {
		t.Fatal(err)
	}
	if longest := limits.Notice + limits.Drain + time.Second; float64(stop) <= longest.Seconds() {
		t.Errorf("TimeoutStopSec is %d s, and stopping may take %v", stop, longest)
	}
	if !strings.Contains(service, "\nStateDirectory=tollgate\n") {
		t.Error("tollgate.service has no StateDirectory: owners of resources are not kept")
	}
	for unit, name := range map[string]string{"tollgate.socket": "data", "tollgate-admin.socket": "admin", "tollgate-grpc.socket": "envoy"} {
		if text := read(t, "deploy/systemd/"+unit); !strings.Contains(text, "\nFileDescriptorName="+name+"\n") {
			t.Errorf("%s does not name its socket %s", unit, name)
		}
		if name != "envoy" && !regexp.MustCompile(`(?m)^Sockets=.*\b`+regexp.QuoteMeta(unit)).MatchString(service) {
			t.Errorf("tollgate.service does not take %s", unit)
		}
	}
}
