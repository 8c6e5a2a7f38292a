package layering_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Reading a configuration brings no engine with it, so that the test of a setting is built
// in seconds.
func TestSettingsBringNoEngine(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./config")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), module+"/gateway/settings\n") {
		t.Fatalf("go list -deps ./config: %v\n%s", err, out)
	}
	for dep := range strings.Lines(string(out)) {
		for _, engine := range []string{"github.com/open-policy-agent/", "google.golang.org/grpc", "github.com/envoyproxy/", "go.opentelemetry.io/"} {
			if strings.HasPrefix(dep, engine) {
				t.Errorf("config brings %s", strings.TrimSpace(dep))
			}
		}
	}
}
