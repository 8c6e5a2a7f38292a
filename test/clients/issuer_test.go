package clients

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// provider is oidc-provider, which issues access tokens of RFC 9068 to clients that
// show their secret.
type provider struct {
	url   string
	lines *bufio.Reader
	input io.Writer
}

// issues runs one until the test ends. clients are the claims of each one's tokens.
func issues(t *testing.T, clients map[string]any) *provider {
	t.Helper()
	module := installed(t, "oidc-provider-9.13.3/node_modules/oidc-provider/lib/index.js")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(clients)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "issuer.mjs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PROVIDER=" + module, "CLIENTS=" + string(claims)}
	var stderr strings.Builder
	cmd.Stderr, cmd.WaitDelay = &stderr, patience
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close() // which ends it
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("the issuer wrote: %s", &stderr)
		}
	})
	p := &provider{lines: bufio.NewReader(output), input: input}
	p.url = p.line(t)
	return p
}

func (p *provider) line(t *testing.T) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the issuer ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// restart gives the issuer other keys, and lets it forget all it knew.
func (p *provider) restart(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.input, "\n"); err != nil {
		t.Fatal(err)
	}
	p.line(t)
}

// token is one that a client gets for a resource, by RFC 6749, section 4.4, and RFC 8707.
func (p *provider) token(t *testing.T, client, resource string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(client, "secret_of_"+client)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Token string `json:"access_token"`
		Error string `json:"error_description"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("no token for %s: %d %s %v", client, resp.StatusCode, answer.Error, err)
	}
	return answer.Token
}

// issued is a gateway that accepts tokens of an issuer, and whose clock tests move.
type issued struct {
	*stack

	admin string // address of its admin listener
	ahead atomic.Int64
}

func newIssued(t *testing.T, p *provider) *issued {
	t.Helper()
	emulator := platform.RunT(t, platform.WithClock(standing()))
	cfg := world.Configuration(t, `
platform: {base_url: "`+emulator.URL+`"}
redis: {embedded: true}
limits: {timeout: 30s}
policies: {deadline: 30s}
admin:
  issuers:
    - id: ops
      url: "`+p.url+`"
      audiences: ["https://ops.example.com/EdDSA"]
      claims: {name: email}
      grants: {gpu-ops: admin, gpu-watch: viewer}
issuers:
  - id: corp
    url: "`+p.url+`"
    audiences: ["https://gpu.example.com/RS256", "https://gpu.example.com/ES256"]
    orgs: [acme]
    claims: {team: department, roles: /realm/roles}
    require: {client_id: ann}
    teams: {ml: research}
    grants: {gpu-users: operator}
orgs:
  - id: acme
    credential: {env: KEY}
    teams: [{id: research}]
`, map[string]string{"KEY": platform.DefaultKey})
	s := &issued{stack: &stack{platform: emulator}}
	g := world.Gateway(t, cfg, gateway.Deps{
		Redis: world.Redis(t, miniredis.RunT(t).Addr()),
		Now:   func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
	})
	data, admin := httptest.NewServer(g.Handler()), httptest.NewServer(g.AdminHandler())
	t.Cleanup(data.Close)
	t.Cleanup(admin.Close)
	s.gateway, s.admin = data.Listener.Addr().String(), admin.Listener.Addr().String()
	return s
}

// expect asks with a token, and for a status.
func (s *issued) expect(t *testing.T, what, token string, want int) {
	t.Helper()
	if a := world.Ask(t, s.gateway, world.Request("GET", "/v2/pods", token, "")); a.Status != want {
		t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, want)
	}
}

// people are the clients of the issuer and its claims about them.
func people() map[string]any {
	return map[string]any{
		"ann":   map[string]any{"department": "ml", "realm": map[string]any{"roles": []string{"gpu-users", "other"}}},
		"bob":   map[string]any{"department": "ml", "realm": map[string]any{"roles": []string{"gpu-users"}}},
		"ada":   map[string]any{"email": "ada@acme.example", "groups": []string{"staff", "gpu-ops"}},
		"vera":  map[string]any{"email": "vera@acme.example", "groups": []string{"gpu-watch"}},
		"chris": map[string]any{"email": "chris@acme.example", "groups": []string{"staff"}},
	}
}

// Access tokens of a real issuer create in every dialect, with each way to sign them; not
// those for another audience, of another client, or that have expired.
func TestTokensOfARealIssuer(t *testing.T) {
	t.Parallel()
	p := issues(t, people())
	s := newIssued(t, p)
	for _, algorithm := range []string{"RS256", "ES256"} {
		token := p.token(t, "ann", "https://gpu.example.com/"+algorithm)
		for dialect, c := range map[string]struct {
			path, body, want string
			status           int
		}{
			"v2":      {"/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`, `"id":`, 201},
			"v1":      {"/v1/pods", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`, `"id":`, 201},
			"graphql": {"/graphql", `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id } }"}`, `{"podFindAndDeployOnDemand":{"id":`, 200},
		} {
			a := world.Ask(t, s.gateway, world.Request("POST", c.path, token, c.body))
			if a.Status != c.status || !strings.Contains(a.Body, c.want) {
				t.Errorf("%s, %s: %d %s, want %d with %s", algorithm, dialect, a.Status, a.Body, c.status, c.want)
			}
		}
	}
	s.expect(t, "a token for another audience", p.token(t, "ann", "https://billing.example.com/RS256"), 401)
	s.expect(t, "a token for operators", p.token(t, "ann", "https://ops.example.com/EdDSA"), 401)
	s.expect(t, "a token of another client", p.token(t, "bob", "https://gpu.example.com/RS256"), 401)
	old := p.token(t, "ann", "https://gpu.example.com/RS256")
	s.expect(t, "a fresh token", old, 200)
	s.ahead.Store(int64(time.Hour + 31*time.Second)) // its life, and the skew that is borne
	s.expect(t, "the token, expired", old, 401)
}

// An issuer that comes back with other keys: tokens of the new ones are accepted 10 s
// after its keys were last read, those of the old ones not any more then.
func TestARealIssuerChangesItsKeys(t *testing.T) {
	t.Parallel()
	const resource = "https://gpu.example.com/ES256"
	p := issues(t, people())
	s := newIssued(t, p)
	old := p.token(t, "ann", resource)
	s.expect(t, "a token of the first keys", old, 200)
	p.restart(t)
	fresh := p.token(t, "ann", resource)
	s.ahead.Store(int64(10 * time.Second))
	s.expect(t, "an old token before the keys were read", old, 200)
	s.expect(t, "a token of the next keys", fresh, 200)
	s.expect(t, "an old token after that", old, 401)
}

// An admin revokes one token by its jti, and then the rest of its client by the subject.
func TestARealIssuersTokensAreRevoked(t *testing.T) {
	t.Parallel()
	const resource, ops = "https://gpu.example.com/RS256", "https://ops.example.com/EdDSA"
	p := issues(t, people())
	s := newIssued(t, p)
	one, other := p.token(t, "ann", resource), p.token(t, "ann", resource)
	admin := p.token(t, "ada", ops)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(one, ".")[1])
	var claims struct{ Jti, Sub string }
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Jti == "" || claims.Sub == "" {
		t.Fatalf("claims %s: %v", payload, err)
	}
	revoke := func(q url.Values) {
		t.Helper()
		if a := world.Ask(t, s.admin, world.Request("POST", "/admin/tokens/revoke?"+q.Encode(), admin, "")); a.Status != 200 {
			t.Fatalf("revoke %v: %d %s", q, a.Status, a.Body)
		}
	}
	s.expect(t, "before", one, 200)
	revoke(url.Values{"issuer": {"corp"}, "id": {claims.Jti}})
	s.expect(t, "the token that is revoked", one, 401)
	s.expect(t, "another of its client", other, 200)
	revoke(url.Values{"issuer": {p.url}, "subject": {claims.Sub}})
	s.expect(t, "a token of a subject that is revoked", other, 401)
	revoke(url.Values{"issuer": {"ops"}, "subject": {"ada"}}) // itself
	if a := world.Ask(t, s.admin, world.Request("GET", "/admin/status", admin, "")); a.Status != 401 {
		t.Errorf("an admin that is revoked: %d %s, want 401", a.Status, a.Body)
	}
}

// The groups of a token give an admin its role, and a claim the name.
func TestAdminsOfARealIssuer(t *testing.T) {
	t.Parallel()
	const resource = "https://ops.example.com/EdDSA"
	p := issues(t, people())
	s := newIssued(t, p)
	create := "/admin/keys/create?" + url.Values{"org": {"acme"}, "spec": {`{"id":"ci","team":"research"}`}}.Encode()
	for _, c := range []struct {
		what, client, resource, method, target string
		want                                   int
	}{
		{"a viewer reads", "vera", resource, "GET", "/admin/status", 200},
		{"a viewer makes a key", "vera", resource, "POST", create, 403},
		{"an admin with a caller's token", "ada", "https://gpu.example.com/RS256", "POST", create, 401},
		{"one without a group that counts", "chris", resource, "GET", "/admin/status", 403},
		{"an admin makes a key", "ada", resource, "POST", create, 201},
	} {
		a := world.Ask(t, s.admin, world.Request(c.method, c.target, p.token(t, c.client, c.resource), ""))
		if a.Status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, a.Status, a.Body, c.want)
		}
		if by := fmt.Sprintf("%q: %q", "by", "ops:ada@acme.example"); c.want == 201 && !strings.Contains(a.Body, by) {
			t.Errorf("%s: %s, want it made by ops:ada@acme.example", c.what, a.Body)
		}
	}
}
