package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

// step is a command of a page and what the page says it prints; "..." stands for
// anything.
type step struct{ command, output string }

// steps reads the commands of a page: lines that begin with $, which > continues.
func steps(text string) (all []step) {
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			command, isCommand := strings.CutPrefix(line, "$ ")
			more, continues := strings.CutPrefix(line, "> ")
			switch {
			case isCommand:
				all = append(all, step{command: command})
			case continues:
				all[len(all)-1].command += more
			default:
				all[len(all)-1].output += line
			}
		}
	}
	return all
}

// TestQuickstart runs pages line by line, each in one shell. The program is built
// already, and ports are free ones.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	for _, page := range []string{"quickstart", "budgets"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runPage(t, "docs/"+page+".md")
		})
	}
}

func runPage(t *testing.T, page string) {
	t.Helper()
	text := read(t, page)
	for _, port := range []string{"8080", "8081", "8090"} {
		free, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "127.0.0.1:"+port, fmt.Sprintf("127.0.0.1:%d", free))
		if port == "8081" {
			text = strings.ReplaceAll(text, "limits show acme", fmt.Sprintf("limits show acme --admin http://127.0.0.1:%d", free))
		}
	}
	// A machine busy with other tests takes longer over a verdict than callers wait.
	text = strings.Replace(text, "> orgs:", "> policies: {deadline: 10s}\n> limits: {timeout: 10s}\n> orgs:", 1)
	checkout := t.TempDir()
	if err := os.Mkdir(filepath.Join(checkout, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary(t), filepath.Join(checkout, "bin/tollgate")); err != nil {
		t.Fatal(err)
	}
	const mark = "---- exit "
	var script strings.Builder
	script.WriteString("set -m 2> /dev/null; make() { test -e Makefile || test \"$1\" = build; }; trap 'kill $(jobs -p) 2> /dev/null' EXIT\n")
	all := steps(text)
	for _, s := range all {
		fmt.Fprintf(&script, "%secho \"%s$?\"\n", s.command, mark)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), "TMPDIR="+t.TempDir(), "PATH="+filepath.Join(checkout, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	rest := string(out)
	for _, s := range all {
		got, after, found := strings.Cut(rest, mark)
		if !found {
			t.Fatalf("%s was not run:\n%s", s.command, out)
		}
		code, next, _ := strings.Cut(after, "\n")
		rest = next
		want := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(s.output)), `\.\.\.`, `(?s:.*)`)
		if code != "0" || !regexp.MustCompile(`^`+want+`\s*$`).MatchString(got) {
			t.Errorf("$ %sexits with %s and prints\n%s\nwant\n%s", s.command, code, got, s.output)
		}
	}
}
