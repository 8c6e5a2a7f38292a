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

// curl, whose manners are not those of our clients, walks pages, follows a log and lives
// through a sandbox.
func TestCurl(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "grep", "cut"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	out := paste(t, `
API=http://localhost:8090/v2; AUTH='Authorization: Bearer platform-test-key'
id() { grep -o '"id":"[^"]*"' | head -1 | cut -d '"' -f 4; }
for i in 1 2 3 4 5; do curl -sf -o /dev/null -H "$AUTH" --json '{"name":"p","image":"i","gpu":{"id":"NVIDIA L4"}}' $API/pods; done
CURSOR=; PAGES=0; PODS=0
while :; do
  PAGE=$(curl -sf -G -H "$AUTH" -d limit=2 ${CURSOR:+--data-urlencode} ${CURSOR:+"cursor=$CURSOR"} $API/pods)
  PAGES=$((PAGES + 1)); PODS=$((PODS + $(grep -o '"createdAt"' <<< "$PAGE" | wc -l)))
  CURSOR=$(grep -o '"nextCursor":"[^"]*"' <<< "$PAGE" | cut -d '"' -f 4) || true
  grep -q '"hasNextPage":true' <<< "$PAGE" || break
done
echo "pods: $PODS in $PAGES pages"
SANDBOX=$(curl -sf -H "$AUTH" --json '{"imageName":"alpine:3","labels":{"a":"b"}}' $API/sandboxes | id)
until curl -sf -H "$AUTH" --json '{"command":["echo","done"]}' $API/sandboxes/$SANDBOX/exec; do :; done
curl -sf -H "$AUTH" "$API/sandboxes?state=RUNNING&labels=a%3Db" | grep -o '"costPerHr":[0-9.]*'
{ curl -s --max-time 20 -H "$AUTH" -N "$API/sandboxes/$SANDBOX/logs?tail=1" || true; } | head -1
curl -sf -X DELETE -w 'deleted: %{http_code}\n' -H "$AUTH" $API/sandboxes/$SANDBOX
curl -s -o /dev/null -w 'unknown: %{http_code}\n' -H "$AUTH" --json '{"image":"i"}' $API/sandboxes
SECRET=$(curl -sf -H "$AUTH" --json '{"name":"s","value":"hidden"}' $API/account/secrets | id)
curl -sf -H "$AUTH" $API/account/secrets?name=S
curl -sf -X DELETE -w 'forgotten: %{http_code}\n' -H "$AUTH" $API/account/secrets/$SECRET
`)
	for _, want := range []string{
		"pods: 5 in 3 pages", `{"output":"done\n","error":null}`, `"costPerHr":0.026`, "id: 2026-", "deleted: 204", "unknown: 400", `"name":"s"`, "forgotten: 204",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no line shows %s\n%s", want, out)
		}
	}
	if strings.Contains(out, "hidden") {
		t.Errorf("a line shows the secret\n%s", out)
	}
}
