package runs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// TestCurl: a stream of curl --no-buffer shows each event before the next is made.
func TestCurl(t *testing.T) {
	program, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("TOLLGATE_REQUIRE_CURL") != "" {
			t.Fatal("curl is required and not installed: .ci/install-tools")
		}
		t.Skip("curl is not installed: .ci/install-tools")
	}
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, upstream(t, events(given, ended)))
	curl := exec.CommandContext(t.Context(), program, "--no-buffer", "--silent", "--show-error", "--fail-with-body",
		"--header", "Authorization: Bearer key_research", "--header", "Content-Type: application/json", "--data", asksToStream,
		"http://"+r.addr+"/v2/llm/openai/v1/chat/completions")
	out, err := curl.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := curl.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for i := range 20 {
		want := fmt.Sprintf("data: %d\n", i)
		given <- want + "\n"
		got, err := lines.ReadString('\n')
		if err != nil || got != want {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	given <- "data: [DONE]\n\n"
	close(given)
	rest, err := io.ReadAll(lines)
	if err != nil || string(rest) != "data: [DONE]\n\n" {
		t.Errorf("the end: %q, %v", rest, err)
	}
	if err := curl.Wait(); err != nil {
		t.Error(err)
	}
}
