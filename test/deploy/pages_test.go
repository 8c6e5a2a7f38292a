package deploy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/redistest"
)

// step is a block of commands of a page and the output that the page shows; "..." stands
// for anything. Without output, anything may be printed.
type step struct {
	line             int
	commands, output string
}

// steps reads the commands of a page.
func steps(page string) (all []step) {
	for _, b := range fences(page) {
		switch {
		case b.reason != "":
		case b.language == "sh":
			all = append(all, step{line: b.line, commands: b.text, output: "..."})
		case b.output:
			all[len(all)-1].output = b.text
		}
	}
	return all
}

// tableRow is a row of a table, and tableCommand a command of tollgate in a row.
var (
	tableRow     = regexp.MustCompile(`(?m)^ *\|.*\|$`)
	tableCommand = regexp.MustCompile("`(tollgate [^`]+)`")
)

// tableCommands reads the commands of tollgate in the tables of a page.
func tableCommands(page string) (all []step) {
	for _, row := range tableRow.FindAllStringIndex(page, -1) {
		for _, m := range tableCommand.FindAllStringSubmatch(page[row[0]:row[1]], -1) {
			all = append(all, step{line: 1 + strings.Count(page[:row[0]], "\n"), commands: m[1] + "\n", output: "..."})
		}
	}
	return all
}

// named reports whether a command only names one: it has no arguments, or has placeholders for them.
func (s step) named() bool {
	return !regexp.MustCompile(` -|"`).MatchString(s.commands) || regexp.MustCompile(`\b[A-Z]{2,}\b`).MatchString(s.commands)
}

// installed stands before pages that do not begin from nothing: a platform, a gateway that
// has done something, and a key for a caller. Commands that ask the admin listener
// find it.
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

// ended makes the programs that a page starts end with it. A job may be a function, with
// the program below it, which may write to the page's directory until it is gone: all of
// its group is waited for.
const ended = `
set -m 2> /dev/null
trap 'for job in $(jobs -p); do
  kill -- -$job
  for i in {1..200}; do kill -0 -- -$job || break; sleep 0.05; done
  kill -9 -- -$job
done 2> /dev/null' EXIT
`

// scenes are the pages whose commands are run, by path, and the script before each.
func scenes() map[string]string {
	return map[string]string{
		"README.md": demonstrated, "docs/dev.md": developed, "docs/spend.md": budgeted(), "docs/isolation.md": budgeted(),
		"docs/tasks/first-gateway.md": "", "docs/tasks/first-policy.md": "", "docs/tasks/budgets.md": "", "docs/tasks/oidc.md": "",
		"docs/tasks/kubernetes.md": "", "docs/tasks/tools.md": installed, "docs/tasks/refused.md": installed, "docs/tasks/old-scripts.md": installed,
		"docs/tasks/upgrade.md": installed,
		"docs/approvals.md":     installed, "docs/explain.md": installed, "docs/graphql.md": installed, "docs/identity.md": installed,
		"docs/keys.md": installed, "docs/operations.md": installed, "docs/policies.md": installed, "docs/repeats.md": installed,
		"docs/procedures.md": stored, "docs/v1.md": installed, "docs/run.md": demonstrated, "docs/sandboxes.md": installed, "docs/ratelimits.md": installed,
	}
}

// budgeted stands before the page of the ledger: the same with budgets, labels and a look
// at what idles.
func budgeted() string {
	return strings.NewReplacer(
		"teams: [{id: research}]", "teams: [{id: research, budget: {per_hour: 1.50, per_month: 300}}]\n    idle: {for: 30m}\n    labels: [{name: project, values: [llm, vision]}, {name: cost_center}]",
	).Replace(installed)
}

// stored stands before the procedures: a Redis whose user has a password.
const stored = `
redis=127.0.0.1:6379
redis-server --bind 127.0.0.1 --port ${redis##*:} --save '' --user tollgate on '>old-password' '~*' '&*' +@all > redis.log 2>&1 &
redis-cli() { command redis-cli -p ${redis##*:} "$@"; }
until redis-cli PING > /dev/null 2>&1; do sleep 0.05; done
OLD=old-password NEW=new-password
`

// developed stands before the page of tollgate dev: its example, and commands that find
// the ports there are.
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

// demonstrated stands before the README: the demo runs. Commands ask the listeners that it
// has here.
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

// The calls in the demo's help work in that order: nothing meets a budget but the fifty pods
// that are meant to.
func TestDemoFromTopToBottom(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `trap 'kill $(jobs -p) 2> /dev/null' EXIT
tollgate demo --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 > demo.log 2>&1 &
until grep -q Ctrl-C demo.log; do sleep 0.1; done
address() { sed -n "s|^  $1 *\(http://[0-9.:]*\).*|\1|p" demo.log; }
tollgate demo --help | sed -n '/^Examples/,/^Flags/s/^  \([^# -]\)/\1/p' | sed "/^tollgate demo/d
s|http://127.0.0.1:8080|$(address gateway)|; s|tollgate billing|& --gateway $(address gateway)|" > try.sh
export TOLLGATE_ADMIN=$(address admin)
. ./try.sh`)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(binary.Path(t))+":"+os.Getenv("PATH"))
	raw, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	out := string(raw)
	for _, want := range []string{
		" 3 201\n", " 47 402\n", `"status":404`, "may make POST /v2/pods once", `"name":"big"`, `"name":"c"`, `"podHostId"`, "Idempotent-Replayed: true", "run_limits: 4096 exceeds the limit of", "\ntotal ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what it prints:\n%s", want, out)
		}
	}
	for _, unwanted := range []string{" exceeded: limit ", "Unauthorized", "tollgate: "} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is in what it prints:\n%s", unwanted, out)
		}
	}
}

// TestPages runs pages block by block, each page in one shell. The program is built
// already, and ports are free ones.
func TestPages(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	for page, before := range scenes() {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			if before == stored {
				redistest.Start(t) // skips the page where there is no redis-server
			}
			for _, fault := range runPage(t, page, before, read(t, page)) {
				t.Error(fault)
			}
		})
	}
}

// The commands and flags that tables name exist. Tables of tasks are run, too, where their commands are complete.
func TestCommandsInTables(t *testing.T) {
	t.Parallel()
	checked := 0
	for path, page := range documents(t) {
		for _, s := range tableCommands(page) {
			checked++
			words := strings.Fields(s.commands)
			out, err := exec.CommandContext(t.Context(), binary.Path(t), append(words[1:], "--help")...).CombinedOutput()
			_, usage, _ := strings.Cut(string(out), "Usage:\n")
			usage, _, _ = strings.Cut(strings.TrimSpace(usage), "\n")
			command := regexp.MustCompile(`^tollgate( [a-z][a-z-]*)*`).FindString(usage)
			named := strings.Join(words, " ")
			if err != nil || command == "" || named != command && (strings.Contains(usage, "[command]") || !strings.HasPrefix(named, command+" ")) {
				t.Errorf("%s:%d: %s is no command (%v): %s", path, s.line, named, err, usage)
			}
		}
	}
	if checked < 8 {
		t.Errorf("%d commands in tables, want the many there are", checked)
	}
}

// The page of upgrades holds for gateways without Envoys, too.
func TestUpgradeWithoutEnvoys(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	const page = "docs/tasks/upgrade.md"
	before := regexp.MustCompile(`(?m)^envoy: .*\n`).ReplaceAllLiteralString(installed, "")
	for _, fault := range runPage(t, page, before, read(t, page)) {
		t.Error(fault)
	}
}

// A page that is wrong is found wrong, and a block that is not to be run is not.
func TestPagesThatAreWrong(t *testing.T) {
	t.Parallel()
	const page = "```sh\nn=4\necho \"$n boxes\"\n```\n\n```text\n... boxes\n```\n\n" +
		"```sh\nfalse\necho on\n```\n\n" +
		"1. A list:\n\n   ```sh\n   printf '%s\\n' one \\\n     two\n   ```\n\n   ```text\n   one\n   three\n   ```\n\n" +
		"<!-- not run: ends the shell -->\n```sh\nexit 1\n```\n\n```text\nnothing\n```\n"
	faults := runPage(t, "page", "", page)
	if len(faults) != 2 || !strings.HasPrefix(faults[0], "page:10:") || !strings.HasPrefix(faults[1], "page:17:") {
		t.Errorf("faults:\n%s\nwant those of lines 10 and 17", strings.Join(faults, "\n"))
	}
}

// mark ends the output of a block, before the commands of it that failed.
const mark = "---- failed: "

// script has the shell's commands for a page: its blocks as they are pasted, and behind each
// a mark. A command that fails is remembered, and the next one is run, as when they are
// pasted.
func script(before string, all []step) string {
	var text strings.Builder
	text.WriteString(ended + "make() { test -e Makefile || test \"$1\" = build; }\n")
	fmt.Fprintf(&text, "%s\necho \"%s\"\ntrap 'failed+=\"$BASH_COMMAND; \"' ERR\n", before, mark)
	for _, s := range all {
		fmt.Fprintf(&text, "failed=\n%secho \"%s$failed\"\n", s.commands, mark)
	}
	return text.String()
}

// runPage returns the faults of a page: blocks of which a command fails, or which print
// something else than the page says. Of the commands before it nothing is expected.
func runPage(t *testing.T, name, before, page string) (faults []string) {
	t.Helper()
	const separator = "\x00"
	text := before + separator + page
	admin := ""
	for _, port := range []string{"8080", "8081", "8082", "8083", "8090", "8888", "6379"} {
		free, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer("127.0.0.1:"+port, fmt.Sprintf("127.0.0.1:%d", free), "localhost:"+port, fmt.Sprintf("localhost:%d", free)).Replace(text)
		if port == "8081" {
			admin = fmt.Sprintf("TOLLGATE_ADMIN=http://127.0.0.1:%d", free)
		}
	}
	checkout := t.TempDir()
	if err := os.Mkdir(filepath.Join(checkout, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary.Path(t), filepath.Join(checkout, "bin/tollgate")); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs(root + "docs")
	if err != nil {
		t.Fatal(err)
	}
	before, text, _ = strings.Cut(text, separator)
	all := steps(text)
	if strings.HasPrefix(name, "docs/tasks/") {
		all = append(all, slices.DeleteFunc(tableCommands(text), step.named)...)
	}
	for i := range all {
		// A machine busy with other tests takes longer over a verdict than callers wait.
		all[i].commands = strings.Replace(all[i].commands, "\norgs:\n", "\npolicies: {deadline: 10s}\nlimits: {timeout: 10s}\norgs:\n", 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script(before, all))
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), admin, "EXAMPLES="+examples, "TMPDIR="+t.TempDir(), "PATH="+filepath.Join(checkout, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Error(err)
	}
	_, rest, _ := strings.Cut(string(out), mark+"\n")
	for _, s := range all {
		got, after, found := strings.Cut(rest, mark)
		if !found {
			t.Fatalf("%s:%d was not run:\n%s%s", name, s.line, s.commands, out)
		}
		failed, next, _ := strings.Cut(after, "\n")
		rest, got = next, strings.TrimSpace(strings.ReplaceAll(got, "\r", ""))
		want := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(s.output)), `\.\.\.`, `(?s:.*)`)
		if failed != "" || !regexp.MustCompile(`^`+want+`\s*$`).MatchString(got) {
			faults = append(faults, fmt.Sprintf("%s:%d:\n%sfailed: %s\nprints\n%s\nwant\n%s", name, s.line, s.commands, failed, got, s.output))
		}
	}
	return faults
}
