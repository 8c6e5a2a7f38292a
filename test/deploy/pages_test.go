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

// steps reads the commands of a page: lines that begin with $, which > continues. A
// block may be indented, as one of a list is.
func steps(text string) (all []step) {
	for _, block := range regexp.MustCompile("(?sm)^( *)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[2]) {
			line = strings.TrimPrefix(line, block[1])
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

// installed is what stands before pages that do not begin from nothing: a platform, a
// gateway that has done something, and a key for a caller. Commands that ask the
// operators' listener find it.
const installed = `
tollgate-new() { tollgate "$@"; }
cat > tollgate.yaml <<EOF
listen: 127.0.0.1:8080
admin: {listen: "127.0.0.1:8081"}
platform: {base_url: "http://127.0.0.1:8090"}
redis: {embedded: true}
limits: {timeout: 10s}
policies: {deadline: 10s}
audit: {file: {path: audit.log}}
decisions: {file: {path: decisions.log}, inputs: true}
envoy: {listen: "127.0.0.1:8082", xds: {groups: [{id: edge, topology: ext_proc, listen: "127.0.0.1:8083"}]}}
issuers:
  - {id: corp, url: "https://id.example.com/realms/main", jwks_url: "http://127.0.0.1:8090/keys", audiences: [gpu], orgs: [acme], role: operator}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    teams: [{id: research}]
    policies: [{policy: price_ceiling, approvable: true, params: {max_usd_per_hour: 10}}]
    keys: [{id: ci, team: research, sha256: "$(printf ci | sha256sum | cut -c 1-64)"}]
EOF
printf 'id,sha256\nnightly,%s\n' "$(printf nightly | sha256sum | cut -c 1-64)" > old.csv
export ACME_KEY=platform-test-key
tollgate platform --listen 127.0.0.1:8090 > platform.log 2>&1 &
until curl -s -o /dev/null http://127.0.0.1:8090; do sleep 0.05; done
tollgate serve -c tollgate.yaml > gateway.log 2>&1 &
until tollgate health -c tollgate.yaml 2> /dev/null; do sleep 0.1; done
KEY=$(tollgate keys create acme/ann --team research | awk '/caller/ {print $NF}')
curl -sS -H "Authorization: Bearer $KEY" --json '{"name":"first","image":"img:1","gpu":{"id":"NVIDIA L4"}}' http://127.0.0.1:8080/v2/pods
head -n 2 audit.log > audit.log.1
tail -n +3 audit.log > rest; mv rest audit.log
`

// ended makes what a page starts end with it. A job may be a function, with the program
// below it, which may write to the page's directory until it is gone: all of its group is
// waited for.
const ended = `
set -m 2> /dev/null
trap 'for job in $(jobs -p); do
  kill -- -$job
  for i in {1..200}; do kill -0 -- -$job || break; sleep 0.05; done
  kill -9 -- -$job
done 2> /dev/null' EXIT
`

// pages are those whose commands are run, by name, and what stands before each.
func pages() map[string]string {
	return map[string]string{
		"quickstart": "", "budgets": "", "dev": developed,
		"approvals": installed, "graphql": installed, "identity": installed, "keys": installed, "operations": installed,
		"repeats": installed, "upgrade": installed, "v1": installed,
	}
}

// developed is what stands before the page of tollgate dev: its example, and commands that
// find the ports there are.
const developed = `
cp -r "$EXAMPLES" docs
mv bin/tollgate bin/built
top=$PWD gateway=127.0.0.1:8080 server=127.0.0.1:8888
tollgate() {
  case "$1 $2" in
    "dev --platform") command built "$@" --gateway http://$gateway --port ${server##*:} ;;
    "dev "*) command built "$@" --gateway http://$gateway ;;
    *) command built "$@" --admin $(sed -n 's/^admin *//p' "$top/dev.log") ;;
  esac
}
`

// demonstrated is what stands before the README: the demo runs. Commands ask the
// listeners that it has here.
const demonstrated = `
mv bin/tollgate bin/built
cat > bin/tollgate <<'EOF'
#!/bin/sh
case "$1" in
  billing) exec bin/built "$@" --gateway http://127.0.0.1:8080 ;;
  *) exec bin/built "$@" ;;
esac
EOF
chmod +x bin/tollgate
bin/built demo --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:8081 > demo.log 2>&1 &
until grep -q Ctrl-C demo.log; do sleep 0.1; done
`

// TestReadme plays the session of the README from its beginning to its end.
func TestReadme(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	runPage(t, "README.md", demonstrated)
}

// What the demo says to try works in that order: nothing meets a budget but the fifty
// pods that are meant to.
func TestDemoFromTopToBottom(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `trap 'kill $(jobs -p) 2> /dev/null' EXIT
tollgate demo --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 > demo.log 2>&1 &
until grep -q Ctrl-C demo.log; do sleep 0.1; done
sed -n '/^Try/,/^Press/s/^  \([^#]\)/\1/p' demo.log > try.sh
wc -l < try.sh
. ./try.sh`)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"))
	raw, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	out := string(raw)
	for _, want := range []string{
		" 3 201\n", " 47 402\n", `"status":404`, "may make POST /v2/pods once", `"name":"big"`, `"name":"c"`, `"podHostId"`, "Idempotent-Replayed: true", "run_limits: 4096 is more", "\ntotal ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what it prints:\n%s", want, out)
		}
	}
	for _, unwanted := range []string{"no room in the budget", "Unauthorized", "tollgate: "} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is in what it prints:\n%s", unwanted, out)
		}
	}
}

// TestPages runs pages line by line, each in one shell. The program is built already,
// and ports are free ones.
func TestPages(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	for page, before := range pages() {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runPage(t, "docs/"+page+".md", before)
		})
	}
}

// runPage runs the commands of a page behind others, of which nothing is expected.
func runPage(t *testing.T, page, before string) {
	t.Helper()
	const separator = "\x00"
	text := before + separator + read(t, page)
	admin := ""
	for _, port := range []string{"8080", "8081", "8082", "8083", "8090", "8888"} {
		free, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer("127.0.0.1:"+port, fmt.Sprintf("127.0.0.1:%d", free), "localhost:"+port, fmt.Sprintf("localhost:%d", free)).Replace(text)
		if port == "8081" {
			admin = fmt.Sprintf("TOLLGATE_ADMIN=http://127.0.0.1:%d", free)
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
	examples, err := filepath.Abs(root + "docs")
	if err != nil {
		t.Fatal(err)
	}
	const mark = "---- exit "
	var script strings.Builder
	script.WriteString(ended + "make() { test -e Makefile || test \"$1\" = build; }\n")
	before, text, _ = strings.Cut(text, separator)
	all := steps(text)
	fmt.Fprintf(&script, "%s\necho \"%sbefore\"\n", before, mark)
	for _, s := range all {
		fmt.Fprintf(&script, "%secho \"%s$?\"\n", s.command, mark)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), admin, "EXAMPLES="+examples, "TMPDIR="+t.TempDir(), "PATH="+filepath.Join(checkout, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	_, rest, _ := strings.Cut(string(out), mark+"before\n")
	for _, s := range all {
		got, after, found := strings.Cut(rest, mark)
		if !found {
			t.Fatalf("%s was not run:\n%s", s.command, out)
		}
		code, next, _ := strings.Cut(after, "\n")
		rest, got = next, strings.TrimSpace(strings.ReplaceAll(got, "\r", ""))
		want := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(s.output)), `\.\.\.`, `(?s:.*)`)
		if code != "0" || !regexp.MustCompile(`^`+want+`\s*$`).MatchString(got) {
			t.Errorf("$ %sexits with %s and prints\n%s\nwant\n%s", s.command, code, got, s.output)
		}
	}
}

// Every command that a page shows is run, but those that cannot be.
func TestCommandsOfPagesAreRun(t *testing.T) {
	t.Parallel()
	others := map[string]string{
		"migrate": "its figures take callers of months; test/script tells the same story",
		"spend":   "its figures take hours and days; test/script tells the same stories",
	}
	files, err := filepath.Glob(root + "docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, file := range files {
		page := strings.TrimSuffix(filepath.Base(file), ".md")
		text := read(t, "docs/"+page+".md")
		shown, found := len(regexp.MustCompile(`(?m)^ *\$ `).FindAllString(text, -1)), len(steps(text))
		_, run := pages()[page]
		switch _, other := others[page]; {
		case other && run:
			t.Errorf("%s is run, and need not be excused", page)
		case !other && shown > 0 && !run:
			t.Errorf("%s shows %d commands, and is not run", page, shown)
		case run && shown != found:
			t.Errorf("%s shows %d commands, of which %d are in blocks of console", page, shown, found)
		}
	}
}
