package platform

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The lines of docs/emulator.md are pasted into a shell, against an emulator
// like the one the document starts.
func TestDocumentedLines(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "grep", "cut"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	document, err := os.ReadFile("../../docs/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "## Ten lines to try")
	_, rest, _ = strings.Cut(rest, "```sh\n")
	lines, _, found := strings.Cut(rest, "```")
	if n := strings.Count(lines, "curl "); !found || n != 10 {
		t.Fatalf("the document has %d curl lines, want ten", n)
	}
	const bound, logged = "--max-time 1 ", `data: {"ts":`
	if strings.Count(lines, bound) != 1 {
		t.Fatalf("the document has not one line with %q", bound)
	}
	// On a busy machine the log may take longer to begin than the document allows.
	out := paste(t, lines)
	for seconds := 5; seconds < 200 && !strings.Contains(out, logged); seconds *= 5 {
		out = paste(t, strings.Replace(lines, bound, fmt.Sprintf("--max-time %d ", seconds), 1))
	}
	for _, want := range []string{
		`"gpu":{"id":"NVIDIA L4"`, logged, `"status":"EXITED"`, `"echo":{"prompt":"hello"}`, `"completed":1`, `"podGpuAmount":0.0`, `"availability":"HIGH"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no line shows %s\n%s", want, out)
		}
	}
}

// paste runs lines in a shell, against a new emulator, and returns what they show.
func paste(t *testing.T, lines string) string {
	t.Helper()
	s, err := New(Options{Clock: NewClock(start(), 60)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.CombinedHandler())
	defer server.Close()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	script := "set -eu -o pipefail\n" + strings.ReplaceAll(lines, "http://localhost:8090", server.URL)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the lines failed: %v\n%s", err, out)
	}
	return string(out)
}
