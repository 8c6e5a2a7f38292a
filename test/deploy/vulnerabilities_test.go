package deploy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A release looks for known vulnerabilities where the database can be had, fails for
// those, and says where it could not look.
func TestAReleaseLooksForVulnerabilities(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index/db.json" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(there.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	for name, tc := range map[string]struct {
		database string
		found    int // the exit code of make vuln
		want     int
		says     string
	}{
		"none":                    {there.URL, 0, 0, "made --no-print-directory vuln"},
		"some":                    {there.URL, 2, 2, "made --no-print-directory vuln"},
		"a database that is away": {away.URL, 2, 0, "NOT looked for: " + away.URL + " cannot be reached"},
		"another's pages":         {there.URL + "/else", 2, 0, "NOT looked for"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\necho \"made $*\"\nexit %d\n", tc.found)
			if err := os.WriteFile(filepath.Join(bin, "make"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, "deploy/release/vulnerabilities"))
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GOVULNDB="+tc.database, "no_proxy=127.0.0.1")
			out, _ := cmd.CombinedOutput() // its exit code is judged
			if got := cmd.ProcessState.ExitCode(); got != tc.want || !strings.Contains(string(out), tc.says) {
				t.Errorf("exit code %d, %q; want %d and %q", got, out, tc.want, tc.says)
			}
		})
	}
	steps, err := exec.CommandContext(t.Context(), "make", "-n", "-C", root, "release", "VERSION=v1.2.3").CombinedOutput()
	if look, build := strings.Index(string(steps), "deploy/release/vulnerabilities"), strings.Index(string(steps), "deploy/release/build"); err != nil || look < 0 || build < look {
		t.Errorf("make release: %v, %s; want the search, and then the build", err, steps)
	}
}
