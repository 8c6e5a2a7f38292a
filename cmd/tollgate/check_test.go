package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sampled is the configuration that the README shows, with the digest of a key in it.
func sampled(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "\n```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("README.md shows no tollgate.yaml")
	}
	return strings.ReplaceAll(text, "<64 hexadecimal digits>", strings.Repeat("5f", 32))
}

// mistake is a wrong configuration: the sample with one change.
type mistake struct {
	// to replaces the line of the sample that begins with at, behind its
	// indent; without at it is put before everything.
	at, to string
	// want is the message, at the place of the text that on is.
	want, on string
}

// write writes the configuration, and returns where it is and the line that it is wrong in.
func (m mistake) write(t *testing.T, sample string) (file string, line int) {
	t.Helper()
	text := m.to + "\n" + sample
	if m.at != "" {
		begin := regexp.MustCompile(`(?m)^( *)` + regexp.QuoteMeta(m.at) + `.*$`)
		if !begin.MatchString(sample) {
			t.Fatalf("the sample has no line %q", m.at)
		}
		text = begin.ReplaceAllStringFunc(sample, func(found string) string {
			indent := begin.FindStringSubmatch(found)[1]
			return indent + strings.ReplaceAll(m.to, "\n", "\n"+indent)
		})
	}
	before, _, ok := strings.Cut(text, m.on)
	if !ok {
		t.Fatalf("%q is not in\n%s", m.on, text)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "own"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tollgate.yaml": text, "own/data.json": `{"most": {"research": 4}}`,
		"own/mine.rego": "package policies.mine\n\ndeny contains \"too many\" if input.cost.gpus > data.most[input.caller.team]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "tollgate.yaml"), 1 + strings.Count(before, "\n")
}

// Lines of the sample that mistakes are made in.
const (
	inPolicies = "policies:"
	inKeys     = "- {id: ann-laptop"
	inBudget   = "budget: {per_month"
)

// policyOf is an entry of a policy of the library, and the line after which it is put.
func policyOf(entry string) string { return "policies:\n  - " + entry }

func keyOf(more string) string {
	return `- {id: ann-laptop, team: research, sha256: "` + strings.Repeat("5f", 32) + `", ` + more + `}`
}

// empty is the SHA-256 of nothing.
const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// faults are configurations that do not start, or break later.
func faults() map[string]mistake {
	return map[string]mistake{
		"port 99999":            {"", `listen: "127.0.0.1:99999"`, `listen: invalid port "99999"`, `listen:`},
		"port of a name":        {"", `listen: "127.0.0.1:nope"`, `listen: invalid port "nope"`, `listen:`},
		"two listeners":         {"", `listen: 127.0.0.1:8081`, `admin.listen: conflicts with the address of listen`, `listen`},
		"two on all addresses":  {"", "listen: 127.0.0.1:8080\nadmin: {listen: \":8080\", token: {env: ADMIN_TOKEN}}", `admin.listen: conflicts with the address of listen`, `admin:`},
		"envoy and admin":       {"", "envoy: {listen: 127.0.0.1:8081}", `envoy.listen: conflicts with the address of admin.listen`, `envoy:`},
		"log without directory": {"", "decisions: {file: {path: nowhere/decisions.log}}", `nowhere: no such file or directory`, `decisions:`},
		"directory is a file":   {"", "audit: {file: {path: tollgate.yaml/audit.log}}", `tollgate.yaml: not a directory`, `audit:`},
		"one log for both":      {"", "decisions: {file: {path: a.log}}\naudit: {file: {path: ./a.log}}", `audit.file.path: is the same file as decisions.file, so the audit log could not be verified; use another file`, `audit:`},
	}
}

// doubts are configurations of which a part can never apply, or refuses everything.
func doubts() map[string]mistake {
	return map[string]mistake{
		"no working hours":         {inPolicies, policyOf(`{policy: working_hours, params: {from: "09:00", to: "09:00"}}`), `params.to: is 09:00, the same as from, so everything is refused`, "working_hours"},
		"allow is deny":            {inPolicies, policyOf(`{policy: operations, params: {allow: [createPod], deny: [createPod]}}`), `params.allow[0]: "createPod" is also in deny and is therefore always refused`, "operations"},
		"allowed ports denied":     {inPolicies, policyOf(`{policy: ports, params: {allow: [http], deny: [http]}}`), `params.allow[0]: "http" is also in deny and is therefore always refused`, "ports, params"},
		"required and forbidden":   {inPolicies, policyOf(`{policy: env_rules, params: {required: [AWS_KEY], forbidden: ["AWS_*"]}}`), `params.required[0]: "AWS_KEY" is also in forbidden and is therefore always refused`, "env_rules"},
		"example against pattern":  {inPolicies, policyOf(`{policy: naming, params: {pattern: "[a-z]+-[0-9]+", example: train}}`), `params.example: "train" does not match pattern`, "naming"},
		"resource below pod":       {inPolicies, policyOf(`{policy: gpu_count, params: {max_per_pod: 4, max_per_resource: 2}}`), `params.max_per_pod: 4 exceeds max_per_resource (2)`, "max_per_resource"},
		"response after call":      {"", "timeouts: {response: 2m, call: 1m}", `timeouts.response: 2m0s exceeds timeouts.call (1m0s)`, "timeouts:"},
		"unknown verb":             {inPolicies, policyOf(`{policy: roles, params: {grants: {operator: ["pod:launch"]}}}`), `params.grants.operator[0]: "pod:launch" does not match the kind and verb of any operation`, "roles, params"},
		"exception of no path":     {"keys:", "exceptions: [{id: x, policy: gpu_count, teams: [research], where: {/gpu/cuont: [8]}, until: 2099-01-01T00:00:00Z, reason: r, granted_by: ada}]\nkeys:", `/gpu/cuont does not exist in any resource or in the body of any operation`, "exceptions"},
		"mask of no path":          {"", "decisions: {mask: [/input/reqeust/body/args]}", `decisions.mask[0]: member /input/reqeust/body/args does not exist in any event`, "decisions"},
		"mask of no member":        {"", "decisions: {mask: [/input/resource/after/ags]}", `decisions.mask[0]: member /input/resource/after/ags does not exist in any event`, "decisions"},
		"port beyond all":          {inPolicies, policyOf(`{policy: ports, params: {allow: [99999/http]}}`), `params.allow[0]: "99999/http" must contain a port from 1 to 65535`, "99999"},
		"runs that are not":        {inPolicies, policyOf(`{policy: run_cost, params: {max_usd_per_run: 1}}`), `.policy: run_cost has no effect because platform.run_url is not set`, "run_cost"},
		"runs with the whole key":  {inBudget, "run_credential: {env: ACME_PLATFORM_KEY}", `orgs[0].run_credential: equals credential, so runs are sent with a key that has all rights`, "run_credential"},
		"key of runs that are not": {inBudget, "run_credential: {env: REDIS_URL}", `orgs[0].run_credential: has no effect because neither platform.run_url nor platform.lb_url is set`, "run_credential"},
		"key that has ended":       {inKeys, keyOf("expires: 2020-01-01T00:00:00Z"), `orgs[0].keys[0].expires: is in the past, so the key "ann-laptop" is no longer accepted`, "expires"},
		"digests that have ended":  {inKeys, `- {id: ann-laptop, digests: [{sha256: "` + strings.Repeat("5f", 32) + `", not_after: 2020-01-01T00:00:00Z}]}`, `orgs[0].keys[0].digests[0].not_after: is in the past`, "not_after"},
		"admin that has ended":     {"", `admin: {admins: [{name: ann, roles: [viewer], sha256: "` + strings.Repeat("6f", 32) + `", expires: 2020-01-01T00:00:00Z}]}`, `admin.admins[0].expires: is in the past, so the token of "ann" is no longer accepted`, "expires"},
		"brownout that has ended":  {inBudget, "brownouts: [{dialects: [v1], from: 2020-01-01T00:00:00Z, until: 2020-01-02T00:00:00Z}]", `orgs[0].brownouts[0].until: is in the past`, "brownouts"},
		"limits of the exempt":     {inKeys, keyOf("exempt: true, limits: {minute: 5}"), `orgs[0].keys[0].limits: has no effect because the key "ann-laptop" is exempt`, "limits: {minute: 5}"},
		"key of nothing":           {inKeys, `- {id: ann-laptop, team: research, sha256: "` + empty + `"}`, `orgs[0].keys[0].sha256: is the digest of an empty key`, empty},
		"admin of nothing":         {"", `admin: {admins: [{name: ann, roles: [viewer], sha256: "` + empty + `"}]}`, `admin.admins[0].sha256: is the digest of an empty token`, empty},
		"balancers everywhere":     {"", "balancers: {addresses: [0.0.0.0/0], forwarded_hops: 1}", `balancers.addresses[0]: 0.0.0.0/0 contains all addresses, so it applies to every client`, "0.0.0.0/0"},
		"nobody is slowed down":    {"", "limits: {anonymous_exempt: [\"::/0\"]}", `limits.anonymous_exempt[0]: ::/0 contains all addresses, so it applies to every client`, "::/0"},
		"token that is guessed":    {"", `admin: {listen: "0.0.0.0:8081", token: {env: ADMIN_TOKEN}}`, `admin.token: is easy to guess; generate a token with openssl rand -hex 32`, "ADMIN_TOKEN"},
		"name of a GPU":            {inPolicies, policyOf(`{policy: gpu_allow_list, params: {gpus: ["RTX 4090"]}}`), `params.gpus[0]: "RTX 4090" is not the ID of a GPU type, such as "NVIDIA GeForce RTX 4090"`, "RTX 4090"},
		"name of a GPU's offer":    {inPolicies, policyOf(`{policy: gpu_allow_list, params: {by_offer: {SECURE: ["L4"]}}}`), `params.by_offer.SECURE[0]: "L4" is not the ID of a GPU type`, "L4"},
		"no such data centre":      {inPolicies, policyOf(`{policy: data_centers, params: {allow: ["EU-R0-1"]}}`), `params.allow[0]: "EU-R0-1" is not the ID of a data centre, such as "EU-RO-1"`, "EU-R0-1"},
		"pattern of images":        {inPolicies, policyOf(`{policy: images, params: {allow: ["ghcr.io/acme/*"]}}`), `params.allow[0]: "ghcr.io/acme/*" must not contain "*": use "ghcr.io/acme" to allow all images below it`, "ghcr.io"},
		"team without data":        {"teams:\n      - {id: research", "rego: own\nteams:\n  - {id: research}\n  - {id: ml}", `orgs[0].rego: data.most does not contain team "ml"`, "rego: own"},
		"thresholds of nothing":    {"orgs:", "orgs:\n  - id: globex\n    credential: {env: REDIS_URL}\n    alerts: {thresholds: [50]}", `orgs[0].alerts.thresholds: requires budgets`, "thresholds"},
	}
}

// TestWrongConfigurations: check finds each, with its text and its line.
func TestWrongConfigurations(t *testing.T) {
	whole := sampled(t)
	runless := regexp.MustCompile(`(?m)^ *run_url:.*\n`).ReplaceAllString(whole, "")
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	t.Setenv("ACME_PLATFORM_KEY", "pk-1")
	t.Setenv("ADMIN_TOKEN", "passwordpassword")
	for severity, list := range map[string]map[string]mistake{"": faults(), "warning: ": doubts()} {
		for name, m := range list {
			t.Run(name, func(t *testing.T) {
				sample := whole
				if strings.Contains(m.want, "platform.run_url") {
					sample = runless
				}
				file, line := m.write(t, sample)
				var stdout, stderr bytes.Buffer
				code := run(t.Context(), []string{"check", "-c", file}, &stdout, &stderr)
				if faulty := severity == ""; (code == exitFailure) != faulty {
					t.Errorf("exit %d, want a fault: %t", code, faulty)
				}
				at := fmt.Sprintf("%s%s:%d:", severity, file, line)
				for said := range strings.Lines(stderr.String()) {
					if m.want != "" && strings.HasPrefix(said, at) && strings.Contains(said, m.want) {
						return
					}
				}
				t.Errorf("got\n%swant %s ... %s", &stderr, at, m.want)
			})
		}
	}
}

// TestTheSampleHasNothingWrong: not even the address of the README's sample, which tells no name: nothing says that v1 is called.
func TestTheSampleHasNothingWrong(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	t.Setenv("ACME_PLATFORM_KEY", "pk-1")
	file, _ := mistake{on: "platform"}.write(t, sampled(t))
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"check", "-c", file}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit %d\n%s", code, &stderr)
	}
}

// TestCheckWithoutSecrets: a machine without them finds all other faults.
func TestCheckWithoutSecrets(t *testing.T) {
	m := mistake{
		inPolicies, policyOf(`{policy: gpu_count, params: {max_per_pod: 4, max_per_resource: 2}}`) + "\n  - {policy: ports, params: {allow: [nope]}}",
		`pattern`, "nope",
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	audited := mistake{"", fmt.Sprintf("audit: {file: {path: %q}}", log), "", "audit"}
	fine := mistake{"", "decisions: {file: {path: /nowhere/at/all/a.log}}\nadmin: {listen: \"0.0.0.0:8081\", token: {file: /nowhere/token}}", "", "token"}
	for _, tc := range []struct {
		mistake
		code int
	}{{m, exitFailure}, {fine, 0}, {audited, 0}} {
		file, line := tc.write(t, sampled(t))
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"check", "-c", file, "--no-secrets"}, &stdout, &stderr)
		if got := stderr.String(); code != tc.code || tc.code != 0 && (!strings.HasPrefix(got, fmt.Sprintf("%s:%d:", file, line)) || strings.Count(got, "\n") != 2) {
			t.Errorf("exit %d, want %d\n%s", code, tc.code, &stderr)
		}
		stderr.Reset()
		if code := run(t.Context(), []string{"check", "-c", file}, &stdout, &stderr); code != exitFailure || !strings.Contains(stderr.String(), "environment variable ACME_PLATFORM_KEY is not set") {
			t.Errorf("with secrets: exit %d\n%s", code, &stderr)
		}
	}
	if _, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("check has written to the audit log: %v", err)
	}
}

// TestFormats: faults and warnings for programs, each with its place, in own Rego too.
func TestFormats(t *testing.T) {
	faulty, _ := mistake{"", "listen: a:b:c\nlisen: x", "", "lisen"}.write(t, sampled(t))
	doubted, line := mistake{inKeys, keyOf("expires: 2020-01-01T00:00:00Z"), "", "expires"}.write(t, sampled(t))
	own, _ := mistake{"keys:", "rego: own\nkeys:", "", "rego"}.write(t, sampled(t))
	rego := filepath.Join(filepath.Dir(own), "own/mine.rego")
	if err := os.WriteFile(rego, []byte("package policies.mine\n\ndeny contains x if true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file, format string
		code         int
		want         []string // each a line, or a part of one
	}{
		{faulty, "github", exitFailure, []string{
			"::error file=" + faulty + ",line=1,col=9::listen: must have the form host:port\n",
			"::error file=" + faulty + `,line=2,col=1::lisen: unknown key (did you mean "listen"?)` + "\n",
		}},
		{doubted, "github", 0, []string{"::warning file=" + doubted, fmt.Sprintf(",line=%d,col=", line), `::orgs[0].keys[0].expires: is in the past`}},
		{own, "github", exitFailure, []string{"::error file=" + rego + ",line=3,col=15::"}},
		{filepath.Join(filepath.Dir(own), "absent.yaml"), "github", exitFailure, []string{"absent.yaml::read configuration: open"}},
		{faulty, "json", exitFailure, []string{`"severity": "error"`, `"file": "` + faulty + `"`, `"line": 2,`, `"column": 9,`, `"path": "listen"`, `"message": "must have the form host:port"`, `"hint": "did you mean \"listen\"?"`}},
		{doubted, "json", 0, []string{`"severity": "warning"`, fmt.Sprintf(`"line": %d,`, line)}},
		{faulty, "sarif", exitFailure, []string{`"version": "2.1.0"`, `"level": "error"`, `"startLine": 2`, `"uri": "` + faulty + `"`, `"text": "listen: must have the form host:port"`}},
		{doubted, "sarif", 0, []string{`"level": "warning"`, fmt.Sprintf(`"startLine": %d`, line)}},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"check", "-c", tc.file, "--no-secrets", "-o", tc.format}, &stdout, &stderr); code != tc.code || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, want %d\n%s", tc.format, code, tc.code, &stderr)
		}
		for _, want := range tc.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s: no %s in\n%s", tc.format, want, &stdout)
			}
		}
		if tc.format != "github" && !json.Valid(stdout.Bytes()) {
			t.Errorf("%s is not JSON:\n%s", tc.format, &stdout)
		}
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"check", "-c", faulty, "-o", "xml"}, &stderr, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "expected table, json, sarif, github") {
		t.Errorf("xml: exit %d\n%s", code, &stderr)
	}
}
