package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/gateway"
)

// byHand lists the commands that are no view on a row of the admin listener, and why.
func byHand() map[string]string {
	const (
		local   = "it reads files, and no gateway"
		process = "it runs a process"
	)
	return map[string]string{
		"audit verify":    local,
		"billing pods":    "it asks with a caller's key, and groups what the platform cannot",
		"check":           local,
		"demo":            process,
		"dev":             process,
		"dev list":        "it reads what the server of a directory has noted",
		"dev undeploy":    "it asks with a caller's key",
		"envoy bootstrap": local,
		"envoy secrets":   local,
		"envoy snapshot":  "it compares a file with what a gateway serves",
		"explain":         "it reads captured requests, and with -c a configuration in the place of a gateway",
		"health":          "its answer is the exit code, for probes",
		"keys create":     "without a name it makes a line of a configuration",
		"keys import":     "it reads a file, and asks for each line",
		"keys list":       "with -c it is about a configuration",
		"keys rotate":     "with -c it is about a configuration",
		"platform":        process,
		"platform diff":   local,
		"policy audit":    "with -c it holds resources against a configuration",
		"policy build":    local,
		"policy check":    local,
		"policy docs":     local,
		"policy export":   local,
		"policy replay":   "it judges again, by a configuration, what a log or a gateway has",
		"policy test":     local,
		"serve":           process,
		"spend adopt":     "with --from-audit it reads a file, and asks for each line",
		"version":         local,
		"whoami":          "it asks with a caller's key",
		"login":           "it asks an issuer",
		"env":             local,
		"my spend":        "as whoami",
		"my resources":    "as whoami",
		"my decisions":    "as whoami",
		"my approvals":    "as whoami",
		"my keys":         "as whoami",

		"billing serverless":     "as billing pods",
		"billing network-volume": "as billing pods",
	}
}

// rowNames has the commands that are rows.
func rowNames() map[string]bool {
	rows := make(map[string]bool)
	for _, r := range gateway.AdminRows() {
		for _, c := range r.Commands {
			rows[nameOf(c.Use)] = true
		}
	}
	return rows
}

// Every command is a view on a row, or listed with the reason why it is none; and each row's name leads to its command.
func TestCommandsAreRows(t *testing.T) {
	t.Parallel()
	rows := rowNames()
	hand := byHand()
	var found []string
	for _, c := range shown(newRoot()) {
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "tollgate"), " ")
		isGroup := c.HasSubCommands() && len(argumentsOf(c.Use)) == 0 && hand[name] == ""
		switch {
		case isGroup || strings.HasPrefix(name, "completion"):
		case rows[name]:
			found = append(found, name)
			if hand[name] != "" {
				t.Errorf("%s is a row and listed as written by hand", name)
			}
		case hand[name] == "":
			t.Errorf("%s is no row of the admin listener: make it one, or list it with the reason", name)
		default:
			delete(hand, name)
		}
	}
	for name := range hand {
		t.Errorf("%s is listed as written by hand, and there is no such command", name)
	}
	if len(found) != len(rows) {
		t.Errorf("commands %v of the rows %v", found, rows)
	}
	for name := range views() {
		if !rows[name] {
			t.Errorf("the view %s has no row", name)
		}
	}
}

// Each command shows how it is used, by an example that begins with it.
func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	for _, c := range shown(newRoot()) {
		if strings.HasPrefix(c.CommandPath(), "tollgate completion") || c.Name() == "help" {
			continue
		}
		if !strings.Contains(c.Example, "  "+c.CommandPath()) {
			t.Errorf("%s has the example %q", c.CommandPath(), c.Example)
		}
		if strings.Contains(c.Long, "\n  tollgate") {
			t.Errorf("%s has an example in its description", c.CommandPath())
		}
	}
}

// Help lists each command under a heading, and --admin is explained there once.
func TestHelpIsGrouped(t *testing.T) {
	t.Parallel()
	for _, c := range newRoot().Commands() {
		if c.IsAvailableCommand() && c.GroupID == "" && c.Name() != "version" && c.Name() != "completion" {
			t.Errorf("%s is in no group of help", c.Name())
		}
	}
	_, help, _ := tell(t, "--help")
	for _, want := range []string{"\nRun:\n", "\nSpend:\n", "\nPolicy:\n", "\nAccess:\n", "\nOperate:\n", adminEnv + " ", tokenEnv + " "} {
		if strings.Count(help, want) != 1 {
			t.Errorf("help has %q %d times, want once", want, strings.Count(help, want))
		}
	}
}

// One grammar: -o writes answers, --admin names the gateway, and nothing else does.
func TestFlagsAreOfOneGrammar(t *testing.T) {
	t.Parallel()
	for _, c := range shown(newRoot()) {
		for _, name := range []string{"json", "format", "token-env", "key-id"} {
			if c.Flags().Lookup(name) != nil && c.CommandPath() != "tollgate policy build" {
				t.Errorf("%s has --%s", c.CommandPath(), name)
			}
		}
		if f := c.Flags().Lookup("admin"); f != nil && (f.DefValue != defaultAdmin || !strings.Contains(f.Usage, "see tollgate --help")) {
			t.Errorf("%s: --admin is %q by default: %s", c.CommandPath(), f.DefValue, f.Usage)
		}
		if f := c.Flags().Lookup("output"); f != nil && f.Shorthand != "o" {
			t.Errorf("%s has --output without -o", c.CommandPath())
		}
	}
}

// tell runs a command line and returns its output and its exit code.
func tell(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// A command line that is wrong names the right one.
func TestWrongCommandLines(t *testing.T) {
	t.Setenv(adminEnv, "http://127.0.0.1:1")
	for line, want := range map[string]string{
		"limts":                          `2 tollgate: unknown command of tollgate "limts", did you mean "limits"?; known: alerts, approvals, `,
		"limts --admin x":                `2 tollgate: unknown command of tollgate "limts", did you mean "limits"?; known: alerts, approvals, `,
		"limits shw acme --admin x":      `2 tollgate: unknown command of tollgate limits "shw", did you mean "show"?; known: reset, show`,
		"limits show":                    "2 tollgate: ORG is missing",
		"limits show acme x":             `2 tollgate: unexpected argument "x"`,
		"limits show acme --outptu csv":  "2 tollgate: unknown flag: --outptu, did you mean --output?",
		"limits show acme -o pdf":        `2 tollgate: invalid argument "pdf" for "-o, --output" flag: expected table, json, yaml, csv`,
		"limits show acme":               "1 tollgate: no gateway responded at http://127.0.0.1:1 (dial tcp 127.0.0.1:1: connect: connection refused): set the address of the admin listener with --admin or TOLLGATE_ADMIN",
		"policy docs gpu_cout":           `1 tollgate: unknown policy or directory "gpu_cout", did you mean "gpu_count"?`,
		"health --admin 127.0.0.1:1":     "1 tollgate: no gateway responded at http://127.0.0.1:1",
		"health":                         "1 tollgate: no gateway responded at http://127.0.0.1:1",
		"spend history acme --bucket x":  `2 tollgate: invalid argument "x" for "--bucket" flag: expected hour, day, month or total`,
		"spend snooze acme p --for soon": `2 tollgate: invalid argument "soon" for "--for" flag: expected a duration such as 90m or 7d`,
		"decisions --limit 0":            `2 tollgate: invalid argument "0" for "--limit" flag: expected a number from 1 to 1000`,
		"decisions --since -1h":          `2 tollgate: invalid argument "-1h" for "--since" flag: expected a duration before now`,
		"keys create --team research":    "2 tollgate: --team requires the argument ORG/KEY",
		"keys rotate a/b --overlap -2h":  `2 tollgate: invalid argument "-2h" for "--overlap" flag: must be at least 0s`,
		"completion foo":                 `2 tollgate: unknown command of tollgate completion "foo"; known: bash, fish, powershell, zsh`,
		"help nope":                      `2 tollgate: unknown command of tollgate "nope"; known: alerts, `,
		"help limits shw":                `2 tollgate: unknown command of tollgate limits "shw", did you mean "show"?; known: reset, show`,
		"billing pods --org acme":        "2 tollgate: --org requires --gpu-id, or --grouping by gpuId, team or label:NAME",
		"keys revoke acme":               `2 tollgate: expected a key as ORG/KEY, got "acme"`,
		"keys list":                      "2 tollgate: specify an organisation, or a configuration file with -c",
		"decisions acme":                 `2 tollgate: unexpected argument "acme", did you mean --org acme?`,
		"spend show acme ops":            `2 tollgate: unexpected argument "ops"` + "\n",
		"explain /v2/pods acme.yaml":     `2 tollgate: unexpected argument "acme.yaml", did you mean -c acme.yaml?`,
		"spend show acme -c acme.yaml":   "2 tollgate: unknown shorthand flag: 'c' in -c: tollgate spend show does not read a file; set the address of a running gateway with --admin",
		"spend show acme --watch -1s":    "2 tollgate: --watch must not be negative",
		"env clii":                       `2 tollgate: unknown client "clii", did you mean "cli"?`,
		"env openai":                     "2 tollgate: OpenAI clients use a single endpoint: specify the endpoint with --endpoint",
		"env cli":                        "2 tollgate: variables of cli begin with the name of the platform: set the name with --brand, in letters and digits",
		"env cli --brand a;b":            "2 tollgate: variables of cli begin with the name of the platform: set the name with --brand, in letters and digits",
		"explain":                        "2 tollgate: specify a path, a captured request (-f) or a decision ID",
		"demo --history --redis x":       "2 tollgate: --history cannot be combined",
		"demo --listen x":                `2 tollgate: address "x" must have the form host:port`,
		"dev --platform real .":          "2 tollgate: --platform real: expected emulator",
		"dev undeploy":                   "2 tollgate: specify one endpoint, or use --all or --cleanup-stale",
		"spend holds release acme x":     `2 tollgate: required flag(s) "reason" not set`,
	} {
		code, _, stderr := tell(t, strings.Fields(line)...)
		if got := string(rune('0'+code)) + " " + stderr; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// An answer is a table, the gateway's own answer in JSON or YAML, or cells for programs.
func TestAnswersHaveFourFormats(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		_, _ = w.Write([]byte("{\n  \"orgs\": [\n    {\n      \"id\": \"acme\",\n      \"teams\": [\n        \"ml\",\n        \"ops\"\n      ],\n      \"policies\": [\"gpu_count\"],\n      \"entries\": [{\"policy\": \"gpu_count\", \"mode\": \"shadow\", \"teams\": [\"ml\"]}]\n    }\n  ]\n}\n"))
	}))
	t.Cleanup(s.Close)
	for format, want := range map[string]string{
		"table": "ID    TEAMS    ZONE  POLICIES   ENTRIES\nacme  ml, ops        gpu_count  gpu_count shadow for team ml\n",
		"csv":   "id,teams,zone,policies,entries\nacme,\"ml, ops\",,gpu_count,gpu_count shadow for team ml\n",
		"yaml":  "orgs:\n- id: acme\n  teams:\n  - ml\n  - ops\n  policies:\n  - gpu_count\n  entries:\n  - policy: gpu_count\n    mode: shadow\n    teams:\n    - ml\n",
	} {
		if code, got, stderr := tell(t, "orgs", "--admin", s.Listener.Addr().String(), "-o", format); code != 0 || got != want {
			t.Errorf("%s: exit %d %s\n%s\nwant\n%s", format, code, stderr, got, want)
		}
	}
	if _, got, _ := tell(t, "orgs", "--admin", s.URL, "-o", "json"); !json.Valid([]byte(got)) || !strings.Contains(got, `"id": "acme"`) {
		t.Errorf("json: %s", got)
	}
	if want := slices.Repeat([]string{"GET /admin/orgs?"}, 4); !cmp.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

// Amounts and names stay strings in YAML, however they look.
func TestYAMLKeepsTypes(t *testing.T) {
	t.Parallel()
	want := map[string]any{"amount": "0.5", "name": "no", "id": "1e3", "date": "2026-11-01", "null": "~", "steers": "\x1b[2J\x7f\u0085\u2028\ufeff", "many": "a\nb: c", "n": 1.5, "none": nil}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := (&output{format: "yaml"}).raw(&out, text); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%s (%v)\n%s", out.String(), err, cmp.Diff(want, got))
	}
}

// Every response ends with one newline, also if the gateway sent none.
func TestResponsesEndWithNewline(t *testing.T) {
	text := `{"approvals":[]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	t.Cleanup(s.Close)
	t.Setenv("TOLLGATE_KEY", "k")
	for _, line := range []string{"my approvals --gateway", "approvals list acme --admin"} {
		for text = range map[string]bool{`{"approvals":[]}`: true, "{\"approvals\":[]}\n": true} {
			for format, want := range map[string]string{"json": "{\"approvals\":[]}\n", "yaml": "approvals: []\n"} {
				if code, got, stderr := tell(t, append(strings.Fields(line), s.URL, "-o", format)...); code != 0 || got != want {
					t.Errorf("%s -o %s: exit %d %s%q, want %q", line, format, code, stderr, got, want)
				}
			}
		}
	}
}

// Shells complete names configured at the gateway, and enumerations.
func TestCompletion(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(map[string]string{
			"/admin/orgs":                     `{"orgs":[{"id":"acme","teams":["ml","ops"]},{"id":"globex","teams":["ml"]}]}`,
			"/admin/keys?org=acme":            `{"keys":[{"id":"ci"},{"id":"batch"}]}`,
			"/admin/limits?org=acme":          `{"windows":[{"scope":"key:ci"},{"scope":"key:ci"},{"scope":"team:ml"}]}`,
			"/admin/approvals?org=acme":       `{"approvals":[{"id":"ap-1"},{"id":"ap-2"}]}`,
			"/admin/spend/resources?org=acme": `{"resources":[{"id":"pod1"}]}`,
		}[r.URL.String()]))
	}))
	t.Cleanup(s.Close)
	t.Setenv(adminEnv, s.URL)
	for line, want := range map[string][]string{
		"limits show ":                   {"acme", "globex"},
		"keys revoke ":                   {"acme/", "globex/"},
		"keys list ":                     {"acme", "globex"},
		"keys revoke acme/":              {"acme/ci", "acme/batch"},
		"decisions --org acme --key ":    {"ci", "batch"},
		"decisions --operation createCl": {"createCluster"},
		"limits reset acme --scope ":     {"key:ci", "team:ml"},
		"approvals grant acme ":          {"ap-1", "ap-2"},
		"spend snooze acme ":             {"pod1"},
		"decisions --org ":               {"acme", "globex"},
		"decisions --team ":              {"ml", "ops"},
		"spend show globex --team ":      {"ml"},
		"spend history a --bucket ":      {"hour", "day", "month", "total"},
		"limits show acme -o ":           {"table", "json", "yaml", "csv"},
		"policy docs gpu_co":             {"gpu_count"},
		"explain --role ":                {"viewer", "operator", "admin", "lead"},
		"limits show acme ":              nil,
	} {
		_, got, _ := tell(t, append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, " ")...)...)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, ":") })
		if len(want) == 1 && len(lines) > 1 { // the shell keeps values with this beginning
			lines = slices.DeleteFunc(lines, func(l string) bool { return l != want[0] })
		}
		if !slices.Equal(want, lines) {
			t.Errorf("%q completes %v, want %v", line, lines, want)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	_, flag, _ := tell(t, "--version")
	_, command, _ := tell(t, "version")
	_, text, _ := tell(t, "version", "-o", "json")
	var programs struct{ Version string }
	if err := json.Unmarshal([]byte(text), &programs); err != nil || command != "tollgate "+programs.Version+"\n" || flag != command {
		t.Errorf("--version: %q, version: %q, version -o json: %s", flag, command, text)
	}
}
