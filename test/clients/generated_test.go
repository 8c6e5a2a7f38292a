package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// A Python client generated from the gateway's own description makes its calls through the gateway.
func TestGeneratedPythonClient(t *testing.T) {
	t.Parallel()
	python := installed(t, "openapi-python-client-0.29.1/bin/python")
	drive[report](t, newStack(t, standing()), python, "generated.py").check(t, "generated_py.json")
}

// A Go client generated from the gateway's own description makes its calls through the gateway. Its program is testdata/generated.go.
func TestGeneratedGoClient(t *testing.T) {
	t.Parallel()
	module := installed(t, "oapi-codegen-2.8.2")
	s, dir := newStack(t, standing()), t.TempDir()
	for name, from := range map[string]string{"go.mod": filepath.Join(module, "go.mod"), "go.sum": filepath.Join(module, "go.sum"), "main.go": "testdata/generated.go"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(program string, arguments ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, arguments...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
	run(filepath.Join(module, "oapi-codegen"), "-generate", "types,client", "-package", "main", "-o", "client.go", s.gateway+"/v2/openapi.json")
	run("go", "build", "-o", "client", ".")
	drive[report](t, s, filepath.Join(dir, "client"), "testdata/generated.go").check(t, "generated_go.json")
}

// A client of another author than the platform's calls v2 and the run interface. It walks lists in pages, and accepts none without pagination.
func TestKestrel(t *testing.T) {
	t.Parallel()
	python := installed(t, "kestrel-cloud-runpod-0.15.1/bin/python")
	drive[report](t, newStack(t, hurried(), platform.WithPageSize(2)), python, "kestrel.py").check(t, "kestrel.json")
}
