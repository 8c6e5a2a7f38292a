package config_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
)

// A log that the current user cannot write or rotate is a warning. Root can write everything, so the test repeats itself as another user.
func TestUnwritableLogs(t *testing.T) {
	if os.Geteuid() == 0 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestUnwritableLogs$", "-test.v")
		cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	err := errors.Join(os.Mkdir(closed, 0o700), os.WriteFile(filepath.Join(dir, "read-only"), nil, 0o400),
		os.WriteFile(filepath.Join(closed, "log"), nil, 0o600), os.Chmod(closed, 0o500))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"new":        "",
		"read-only":  "cannot write " + dir + "/read-only: permission denied",
		"closed/log": "cannot create or rotate the log in " + closed + ": permission denied",
		"closed/new": "cannot create or rotate the log in " + closed + ": permission denied",
	} {
		text := "platform: {base_url: \"https://rest.acme.io\"}\nredis: {url: {env: REDIS_URL}}\norgs: [{id: acme, credential: {env: KEY}}]\n" +
			"audit: {file: {path: " + filepath.Join(dir, name) + "}}\n"
		src := config.Sources{Env: func(name string) (string, bool) {
			return map[string]string{"REDIS_URL": "redis://127.0.0.1", "KEY": "pk-1"}[name], true
		}}
		l, err := config.Parse("tollgate.yaml", []byte(text), src, nil)
		if err != nil {
			t.Fatal(err)
		}
		warnings := errors.Join(l.Warnings(time.Time{})...)
		if got := warnings != nil && strings.Contains(warnings.Error(), "audit.file.path"); got != (want != "") ||
			got && !strings.Contains(warnings.Error(), want) {
			t.Errorf("%s: warnings %v, want %q", name, warnings, want)
		}
	}
}
