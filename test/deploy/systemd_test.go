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

// installUnits writes the units to where a package would put them, below root; the
// program that they start is one that systemd-analyze accepts.
func installUnits(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, "etc/systemd/system")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tollgate.service", "tollgate.socket", "tollgate-admin.socket"} {
		text := strings.ReplaceAll(read(t, "deploy/systemd/"+name), "/usr/bin/tollgate", "/bin/true")
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
	for _, name := range []string{"tollgate.service", "tollgate.socket", "tollgate-admin.socket"} {
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
	out := systemdAnalyze(t, "security", "--offline=yes", "--no-pager", filepath.Join(dir, "tollgate.service"))
	m := regexp.MustCompile(`Overall exposure level for tollgate.service: ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no exposure level in:\n%s", out)
	}
	const most = 1.5
	if got, err := strconv.ParseFloat(m[1], 64); err != nil || got > most {
		t.Errorf("exposure level is %s, want at most %v:\n%s", m[1], most, out)
	}
}

// The units say what the gateway must find: its paths, its names, its times.
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
	for unit, name := range map[string]string{"tollgate.socket": "data", "tollgate-admin.socket": "admin"} {
		if text := read(t, "deploy/systemd/"+unit); !strings.Contains(text, "\nFileDescriptorName="+name+"\n") {
			t.Errorf("%s does not name its socket %s", unit, name)
		}
		if !regexp.MustCompile(`(?m)^Sockets=.*\b` + regexp.QuoteMeta(unit)).MatchString(service) {
			t.Errorf("tollgate.service does not take %s", unit)
		}
	}
}
