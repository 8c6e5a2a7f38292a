package deploy_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// tool returns the path of a program that a test runs. Without it the test is
// skipped, or fails if TOLLGATE_REQUIRE_NAME is set.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("TOLLGATE_REQUIRE_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))) != "" {
		t.Fatalf("%s is required and not installed: .ci/install-tools", name)
	}
	t.Skipf("%s is not installed: .ci/install-tools", name)
	return ""
}

// runTool runs a program in the repository's root and returns its output.
func runTool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, name), args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// failing runs a program that must fail and returns its output.
func failing(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, name), args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s %s succeeded:\n%s", name, strings.Join(args, " "), out)
	}
	return string(out)
}
