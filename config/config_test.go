package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sources(t *testing.T) config.Sources {
	t.Helper()
	mesh := world.NewAuthority(t, "mesh", time.Now())
	chain, key := newCertificate(t)
	secrets := map[string]string{
		"CHAIN": chain, "KEY": key, "MESH": mesh.PEM(), "REVOKED": mesh.Revoked(t, time.Now()),
		"ACME_KEY": "pk-secret-1", "ADMIN_TOKEN": "q8Zr-Vw2n-admin-secret-2", "REDIS_URL": "redis://127.0.0.1:6379",
		"SHORT_TOKEN": "pk-secret-4", "FIRST_KEY": "pk-secret-5", "OTHER_KEY": "pk-secret-6",
	}
	return config.Sources{
		Env: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
		ReadFile: func(name string) ([]byte, error) {
			if name == "./acme.key" {
				return []byte("pk-secret-3\n"), nil
			}
			return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
		},
	}
}

func dataFiles(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata/%s: %d files, %v", pattern, len(names), err)
	}
	return names
}

func TestGoodFiles(t *testing.T) {
	for _, name := range dataFiles(t, "*.good.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			loaded, err := config.Load(name, sources(t), nil)
			if err != nil {
				t.Fatalf("Load: %v", err)
			}
			loaded.Warnings(time.Now())
		})
	}
}

// Each bad file has one fault, named in its first line.
func TestBadFiles(t *testing.T) {
	for _, name := range dataFiles(t, "*.bad.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(data), "\n")
			want, ok := strings.CutPrefix(first, "# want: ")
			if !ok {
				t.Fatalf("the first line is %q, want # want: ...", first)
			}
			_, err = config.Load(name, sources(t), nil)
			if err == nil {
				t.Fatal("err = nil, want the fault")
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("err = %v\nwant %s in it", err, want)
			}
			if !strings.HasPrefix(err.Error(), name+":") {
				t.Errorf("err = %v\nwant the file and line first", err)
			}
			if strings.Contains(err.Error(), "pk-secret") || strings.Contains(err.Error(), "pk-123") {
				t.Errorf("the fault shows a secret: %v", err)
			}
		})
	}
}

func TestAFullFileIsReadWhole(t *testing.T) {
	l, err := config.Load("testdata/full.good.yaml", sources(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := l.Config
	if g.Timeouts.Drain != 5*time.Second || g.Timeouts.Connect != 2*time.Second || g.Timeouts.Call != time.Minute {
		t.Errorf("timeouts = %v, %v, %v", g.Timeouts.Drain, g.Timeouts.Connect, g.Timeouts.Call)
	}
	org := g.Orgs[0]
	if got := org.Credential.Reveal(); got != "pk-secret-3" {
		t.Errorf("credential = %q, want the file's, trimmed", got)
	}
	if got := g.Admin.Token.Reveal(); got != "q8Zr-Vw2n-admin-secret-2" {
		t.Errorf("admin token = %q", got)
	}
	key := org.Keys[0]
	want := []identity.Role{identity.RoleOperator, identity.RoleAdmin}
	if diff := cmp.Diff(want, key.Roles); diff != "" || key.Team != "research" || key.Limit.Day != 50000 || !org.Keys[1].Exempt {
		t.Errorf("key = %+v (roles -want +got:\n%s)", key, diff)
	}
	if text := fmt.Sprintf("%+v %#v", l.Config, l.Config); strings.Contains(text, "pk-secret") || strings.Contains(text, "admin-secret") {
		t.Error("printing the configuration shows a secret")
	}
}

func TestTheRevisionNamesTheContent(t *testing.T) {
	read := func(extra string) string {
		data, err := os.ReadFile("testdata/minimal.good.yaml")
		if err != nil {
			t.Fatal(err)
		}
		l, err := config.Parse("x.yaml", append(data, extra...), sources(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.Config.Revision
	}
	if a, b, c := read(""), read(""), read("listen: 127.0.0.1:9\n"); a != b || a == c || a == "" {
		t.Errorf("revisions %q, %q, %q: want equal for equal files only", a, b, c)
	}
}

// The published schema accepts every file that the decoder accepts.
func TestTheSchemaFitsTheGoodFiles(t *testing.T) {
	b, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.CompileString("tollgate.schema.json", string(b))
	if err != nil {
		t.Fatalf("the schema does not compile: %v", err)
	}
	var doc any
	good := `{"platform":{"base_url":"https://api.platform.example"},"redis":{"embedded":true},
		"orgs":[{"id":"acme","credential":{"env":"X"},"keys":[{"id":"a","sha256":"00"}]}]}`
	if err := json.Unmarshal([]byte(good), &doc); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("Validate: %v", err)
	}
	doc.(map[string]any)["lisen"] = "x"
	if err := schema.Validate(doc); err == nil {
		t.Error("an unknown key passes the schema")
	}
}

// TestFaultsOfCompilingArePlaced: a fault that only the engine can see is placed in the
// file all the same.
func TestFaultsOfCompilingArePlaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.rego"), []byte("package policies.mine\n\ndeny contains \"x\" if false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const file = `
platform: {base_url: "https://platform.test"}
redis: {embedded: true}
orgs:
  - {id: first, credential: {env: FIRST_KEY}}
  - id: acme
    credential: {env: ACME_KEY}
    rego: DIR
    teams: [{id: research}]
    exceptions:
      - {id: x, policy: mien, teams: [research], until: 2099-01-01T00:00:00Z, reason: r, granted_by: ada}
`
	loaded, err := config.Parse("tollgate.yaml", []byte(strings.ReplaceAll(file, "DIR", dir)), sources(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": loaded.Config.Orgs[1].Policies}, policies.Deps{})
	const want = `tollgate.yaml:11:25: orgs[1].exceptions[0].policy: unknown policy "mien", did you mean "mine"?`
	if err = loaded.Locate(err); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestPoliciesInForceUnlessListed: account_changes and roles.
func TestPoliciesInForceUnlessListed(t *testing.T) {
	const file = `
platform: {base_url: "https://platform.test"}
redis: {embedded: true}
orgs:
  - {id: silent, credential: {env: FIRST_KEY}}
  - {id: other, credential: {env: OTHER_KEY}, policies: [{policy: read_only}]}
  - {id: own, credential: {env: ACME_KEY}, policies: [{policy: account_changes, mode: shadow}, {policy: roles, mode: warn}]}
`
	loaded, err := config.Parse("tollgate.yaml", []byte(file), sources(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, o := range loaded.Config.Orgs {
		for _, e := range o.Policies.Policies {
			got[o.ID] = append(got[o.ID], e.Policy+" "+string(e.Mode))
		}
	}
	want := map[string][]string{
		"silent": {"account_changes ", "roles "}, "other": {"read_only ", "account_changes ", "roles "}, "own": {"account_changes shadow", "roles warn"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policies in force (-want +got):\n%s", diff)
	}
}

// An entry for some callers replaces a default policy for these callers only.
func TestDefaultPoliciesOfOtherCallers(t *testing.T) {
	for entries, want := range map[string]string{
		"{policy: roles, teams: [ml]}": "except teams [ml], roles []",
		"{policy: roles, teams: [ml]}, {policy: roles, teams: [ops], roles: [viewer]}":       "except teams [ml], roles []",
		"{policy: roles, roles: [viewer], except_teams: [ml]}, {policy: roles, teams: [ml]}": "except teams [ml], roles [viewer]",
		"{policy: roles, teams: [ml], roles: [viewer]}":                                      "except teams [], roles []",
		"{policy: roles, except_teams: [ml]}":                                                "none",
		"{policy: roles, teams: [ml]}, {policy: roles, except_roles: [admin], mode: shadow}": "none",
	} {
		file := `
platform: {base_url: "https://platform.test"}
redis: {embedded: true}
orgs: [{id: acme, credential: {env: ACME_KEY}, teams: [{id: ml}, {id: ops}], policies: [` + entries + `]}]
`
		loaded, err := config.Parse("tollgate.yaml", []byte(file), sources(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		for _, e := range loaded.Config.Orgs[0].Policies.Policies {
			if e.Policy == "roles" && e.Implied {
				got = fmt.Sprintf("except teams %s, roles %s", e.ExceptTeams, e.ExceptRoles)
			}
		}
		if got != want {
			t.Errorf("%s: the default is %s, want %s", entries, got, want)
		}
	}
}

// TestAdminTokens: a short token is refused, and the fault never shows it.
func TestAdminTokens(t *testing.T) {
	const file = `platform: {base_url: "https://platform.test"}
redis: {embedded: true}
admin: {listen: %q, token: {env: TOKEN}}
orgs: [{id: acme, credential: {env: KEY}}]
`
	for token, fine := range map[string]bool{
		"a": false, "changeme": false, "Tr0ub4dor&3": false, "fifteen-chars-x": false,
		"9f86d081884c7d659a2feaa0c55ad015": true, "q8Zr-Vw2n-x0Lk-77Bt": true, "correct horse battery staple": true,
	} {
		for _, listen := range []string{"0.0.0.0:8081", "127.0.0.1:8081"} {
			_, err := config.Parse("tollgate.yaml", fmt.Appendf(nil, file, listen), config.Sources{Env: func(name string) (string, bool) {
				return map[string]string{"TOKEN": token, "KEY": "pk-1"}[name], true
			}}, nil)
			if fine != (err == nil) {
				t.Errorf("%q on %s: err = %v, want fine %t", token, listen, err, fine)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "tollgate.yaml:3:") || len(token) > 1 && strings.Contains(err.Error(), token)) {
				t.Errorf("%q: err = %v, want it at line 3 and without the token", token, err)
			}
		}
	}
}

// TestPlatformKeysTravelEncrypted: https, unless nobody else can listen or the
// operator says so.
func TestPlatformKeysTravelEncrypted(t *testing.T) {
	const file = `platform: {base_url: %q, allow_insecure: %t}
redis: {embedded: true}
orgs: [{id: acme, credential: {env: ACME_KEY}}]
`
	for _, tc := range []struct {
		base           string
		insecure, fine bool
	}{
		{"https://api.platform.example", false, true},
		{"HTTPS://api.platform.example", false, true},
		{"http://127.0.0.1:9000", false, true},
		{"http://127.8.0.1", false, true},
		{"http://[::1]:9000", false, true},
		{"http://localhost:9000", false, true},
		{"http://api.platform.example", false, false},
		{"HTTP://api.platform.example", false, false},
		{"http://localhost.platform.example", false, false},
		{"http://127.0.0.1.platform.example", false, false},
		{"http://10.0.0.7:9000", false, false},
		{"http://0.0.0.0:9000", false, false},
		{"http://10.0.0.7:9000", true, true},
		{"ftp://10.0.0.7", true, false},
	} {
		_, err := config.Parse("tollgate.yaml", fmt.Appendf(nil, file, tc.base, tc.insecure), sources(t), nil)
		if tc.fine != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), "tollgate.yaml:1:22: platform.base_url: ") {
			t.Errorf("%s (insecure %t): err = %v, want fine %t, with its place", tc.base, tc.insecure, err, tc.fine)
		}
	}
}

// The way to the platform is judged with the file. The fault does not tell the proxy's password.
func TestTheWayToThePlatform(t *testing.T) {
	const file = `platform: {base_url: "https://platform.test", connections: %d, proxy: {env: PLATFORM_PROXY}}
redis: {embedded: true}
orgs: [{id: acme, credential: {env: ACME_KEY}}]
`
	for _, tc := range []struct {
		connections int
		proxy, want string
	}{
		{0, "http://gateway:hidden@proxy.test:3128", ""},
		{60, "socks5://proxy.test:1080", ""},
		{-1, "http://proxy.test", "tollgate.yaml:1:60: platform.connections: must not be negative"},
		{1, "gateway:hidden@proxy.test:3128", "tollgate.yaml:1:63: platform.proxy: must be an http, https or socks5 URL of a proxy"},
	} {
		env := func(name string) (string, bool) {
			return map[string]string{"PLATFORM_PROXY": tc.proxy, "ACME_KEY": "pk-acme"}[name], true
		}
		_, err := config.Parse("tollgate.yaml", fmt.Appendf(nil, file, tc.connections), config.Sources{Env: env}, nil)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%d connections, proxy %q: %v, want %q", tc.connections, tc.proxy, err, tc.want)
		}
	}
}

// TestWithoutSecrets: a command that only reads policies needs none of the secrets, also those that are checked when they are there.
func TestWithoutSecrets(t *testing.T) {
	const file = `platform: {base_url: "https://platform.test"}
redis: {url: {env: REDIS_URL}}
tls: {certificate: {file: /absent/chain.pem}, key: {file: /absent/key.pem}}
admin: {listen: "0.0.0.0:8081", token: {env: ABSENT}, tls: {certificate: {env: ABSENT}, key: {env: ABSENT}}}
orgs: [{id: acme, credential: {env: ABSENT}}]
`
	if _, err := config.Parse("tollgate.yaml", []byte(file), config.Sources{WithoutSecrets: true}, nil); err != nil {
		t.Errorf("Parse: %v", err)
	}
}

// TestGoodFilesNeedNoSecrets: without them they are as good, and bad ones as bad, but for faults of a secret.
func TestGoodFilesNeedNoSecrets(t *testing.T) {
	nothing := config.Sources{
		WithoutSecrets: true,
		Env:            func(name string) (string, bool) { t.Errorf("%s is asked for", name); return "", false },
		ReadFile:       os.ReadFile,
	}
	for _, name := range dataFiles(t, "*.good.yaml") {
		if _, err := config.Load(name, nothing, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ofSecrets := []string{"testdata/missing_secret.bad.yaml", "testdata/shared_account.bad.yaml", "testdata/shared_run_account.bad.yaml", "testdata/short_admin_token.bad.yaml"}
	for _, name := range dataFiles(t, "*.bad.yaml") {
		if _, err := config.Load(name, nothing, nil); (err == nil) != slices.Contains(ofSecrets, name) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}
