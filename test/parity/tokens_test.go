package parity

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/issuer"
)

// issuers is the section of the tests' issuer.
const issuers = `
issuers:
  - id: corp
    url: "ISSUER"
    audiences: [tollgate]
    orgs: [acme, globex]
    claims: {org: tenant, team: department, roles: /realm/roles}
    require: {azp: cli}
    team: tiny
    teams: {ml: research, infra: platform}
    grants: {gpu-users: operator, gpu-admins: admin, gpu-readers: viewer}
    labels: {cost_center: cc}
    limits: {minute: 20}
    budget: {pods: 2}
`

// withIssuer opens a door to callers with tokens of an issuer.
func withIssuer(i *issuer.Issuer) option {
	return func(d *door) {
		d.text = strings.Replace(configuration, "    teams: [{id: research}", "    labels: [{name: cost_center}]\n    teams: [{id: research}", 1)
		d.text = strings.Replace(d.text, "    credential: {env: GLOBEX}", "    credential: {env: GLOBEX}\n    labels: [{name: cost_center}]\n    teams: [{id: research}, {id: tiny}]", 1)
		d.text += strings.ReplaceAll(issuers, "ISSUER", i.URL)
	}
}

// claims are those of ann of research, with others instead.
func claims(others issuer.Claims) issuer.Claims {
	c := issuer.Claims{
		"sub": "ann@acme.test", "aud": "tollgate", "iat": start.Unix(), "exp": start.Add(time.Hour).Unix(), "azp": "cli",
		"tenant": "acme", "department": "ml", "realm": map[string]any{"roles": []string{"gpu-users", "offline_access"}}, "cc": "cc-42",
	}
	maps.Copy(c, others)
	return c
}

// The claims of a token identify its caller, in every dialect, and a faulty token is answered like
// an unknown key.
func TestTokens(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	eachDoor(t, func(t *testing.T, d *door) {
		other := issuer.RunT(t)
		stranger := other.Key()
		graphql := `{"query":"{ myself { pods { id } } }"}`
		for what, c := range map[string]struct {
			token string
			want  int
		}{
			"a good one":           {i.Token(t, claims(nil)), 200},
			"of globex":            {i.Token(t, claims(issuer.Claims{"tenant": "globex"})), 200},
			"without a department": {i.Token(t, claims(issuer.Claims{"department": nil})), 200},
			"of no organisation":   {i.Token(t, claims(issuer.Claims{"tenant": nil})), 401},
			"of an organisation it does not speak for": {i.Token(t, claims(issuer.Claims{"tenant": "wrong"})), 401},
			"of two departments":                       {i.Token(t, claims(issuer.Claims{"department": []string{"ml", "infra"}})), 401},
			"of a team that globex lacks":              {i.Token(t, claims(issuer.Claims{"tenant": "globex", "department": "infra"})), 401},
			"without a role":                           {i.Token(t, claims(issuer.Claims{"realm": nil})), 401},
			"of another client":                        {i.Token(t, claims(issuer.Claims{"azp": "browser"})), 401},
			"with a label of two":                      {i.Token(t, claims(issuer.Claims{"cc": "a,cost_center=b"})), 401},
			"for another service":                      {i.Token(t, claims(issuer.Claims{"aud": "billing"})), 401},
			"expired":                                  {i.Token(t, claims(issuer.Claims{"exp": start.Add(-time.Minute).Unix()})), 401},
			"not valid yet":                            {i.Token(t, claims(issuer.Claims{"nbf": start.Add(time.Minute).Unix()})), 401},
			"of another issuer":                        {other.Token(t, claims(nil)), 401},
			"signed by another":                        {stranger.Sign(t, issuer.Claims{"kid": i.Key().ID}, claims(issuer.Claims{"iss": i.URL})), 401},
			"without a signature":                      {issuer.Key{Algorithm: "none"}.Sign(t, nil, claims(issuer.Claims{"iss": i.URL})), 401},
			"signed with the public":                   {i.Key().Confuse(t, claims(issuer.Claims{"iss": i.URL})), 401},
		} {
			for dialect, ask := range map[string]func(key string) answer{
				"v2":      func(key string) answer { return d.ask(t, request("GET", "/v2/pods", key, "")) },
				"v1":      func(key string) answer { return d.ask(t, request("GET", "/v1/pods", key, "")) },
				"graphql": func(key string) answer { return d.ask(t, request("POST", "/graphql", key, graphql)) },
			} {
				got := ask(c.token)
				if got.Status != c.want {
					t.Errorf("a token %s, %s: %d %s, want %d", what, dialect, got.Status, got.Body, c.want)
				}
				if challenge := got.Header.Get("WWW-Authenticate"); got.Status == http.StatusUnauthorized && strings.Count(c.token, ".") == 2 && challenge != `Bearer error="invalid_token"` {
					t.Errorf("a token %s, %s: WWW-Authenticate is %q, want invalid_token", what, dialect, challenge)
				}
				if unknown := ask("tg_unknown_key"); c.want == http.StatusUnauthorized && comparable(got).Body != comparable(unknown).Body {
					t.Errorf("a token %s, %s: %s, want what an unknown key is answered: %s", what, dialect, got.Body, unknown.Body)
				}
			}
			// Neither the log nor the platform's calls have the signature.
			signature := c.token[strings.LastIndex(c.token, ".")+1:]
			if seen := d.logs.String() + strings.Join(platformCalls(d), ""); signature != "" && strings.Contains(seen, signature) {
				t.Errorf("a token %s is logged, or sent to the platform", what)
			}
		}
		for _, part := range []string{`wrong audience`, `"subject":"ann@acme.test"`, `"key":"corp:`} {
			if !strings.Contains(d.logs.String(), part) {
				t.Errorf("the log does not have %s", part)
			}
		}
	}, withIssuer(i), func(d *door) { // the limits are not what this is about
		d.text = strings.Replace(d.text, "limits: {minute: 20}", "limits: {minute: 1000}", 1)
		d.text = strings.Replace(d.text, "limits: {timeout: 10s}", "limits: {timeout: 10s, anonymous_exempt: [127.0.0.0/8]}", 1)
	})
}

// The token of a request does not reach the platform or the log in another part of the request.
func TestTokensInBodiesStayInside(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	eachDoor(t, func(t *testing.T, d *door) {
		token := i.Token(t, claims(nil))
		const v1 = `{"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA L4"],"env":{"K":"Bearer %s"}}`
		for _, c := range []struct {
			method, target, body, header string
			status                       int
		}{
			{"POST", "/v2/templates", `{"name":"t","image":"i:1","env":{"A":"b","K":"t=%s"}}`, "", 201},
			{"POST", "/v2/templates", `{"name":"u","image":"i:1","readme":"# %s"}`, "", 422},
			{"POST", "/v2/pods/%s/action", `{"action":"stop"}`, "", 422},
			{"POST", "/v1/pods", v1, "", 201},
			{"GET", "/v2/pods", "", "User-Agent: job (%s)", 200},
		} {
			var header []string
			if c.header != "" {
				header = []string{strings.Replace(c.header, "%s", token, 1)}
			}
			a := d.ask(t, request(c.method, strings.Replace(c.target, "%s", token, 1), token, strings.Replace(c.body, "%s", token, 1), header...))
			warned := strings.Contains(a.Header.Get("X-Tollgate-Warning"), "removed from env because of a gateway key or token: K")
			if a.Status != c.status || warned != (c.status == http.StatusCreated) || strings.Contains(fmt.Sprint(a.Header, a.Body), token) {
				t.Errorf("%s %s: %d %v %s, want %d without the token", c.method, c.target, a.Status, a.Header, a.Body, c.status)
			}
		}
		if a := d.ask(t, request("POST", "/v2/templates", token, `{"name":"`+token+`","image":"i:1"}`, "Tollgate-Dry-Run: true")); !strings.Contains(a.Body, `"status":422`) {
			t.Errorf("a dry run: %s, want a refusal", a.Body)
		}
		if seen := d.logs.String() + strings.Join(platformCalls(d), "") + d.page(t, "/admin/decisions?org=acme"); strings.Contains(seen, token[:200]) {
			t.Errorf("a token is logged, or sent to the platform: %s", seen)
		}
	}, withIssuer(i))
}

// A token that the issuer did issue counts as no guess, even one of nobody who may call.
func TestVerifiedTokensAreNoGuesses(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	d := openDoor(t, "http", withIssuer(i))
	nobody, expired := i.Token(t, claims(issuer.Claims{"tenant": nil})), i.Token(t, claims(issuer.Claims{"exp": start.Add(-time.Minute).Unix()}))
	ask := func(token string) int { return d.ask(t, request("GET", "/v2/pods", token, "")).Status }
	for n := range 40 {
		if got := ask(nobody); got != 401 {
			t.Fatalf("call %d of a colleague who is no caller: %d, want 401", n+1, got)
		}
	}
	for range 20 {
		ask(expired)
	}
	if got := ask(expired); got != 429 {
		t.Errorf("an expired token for the 21st time: %d, want 429", got)
	}
	if got := ask(i.Token(t, claims(nil))); got != 200 {
		t.Errorf("a right token from there: %d, want 200", got)
	}
}

// Roles, policies, quotas, budgets and labels hold for callers with tokens.
func TestTokensAreBound(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	eachDoor(t, func(t *testing.T, d *door) {
		ann := i.Token(t, claims(nil))
		reader := i.Token(t, claims(issuer.Claims{"sub": "ron", "realm": map[string]any{"roles": "gpu-readers"}}))
		if a := d.ask(t, request("POST", "/v2/pods", reader, pod4090)); a.Status != 403 {
			t.Errorf("a viewer creates: %d %s, want 403", a.Status, a.Body)
		}
		if a := d.ask(t, request("POST", "/v2/pods", ann, strings.Replace(pod4090, "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", 1))); a.Status != 403 {
			t.Errorf("research creates what it may not: %d %s, want 403", a.Status, a.Body)
		}
		for name, token := range map[string]string{"sets": ann, "may set": i.Token(t, claims(issuer.Claims{"cc": nil}))} {
			for _, labels := range []string{"cost_center=other", "a=b, cost_center=cc-42"} {
				if a := d.ask(t, request("POST", "/v2/pods", token, pod4090, "X-Tollgate-Labels: "+labels)); a.Status != 422 || !strings.Contains(a.Body, "cost_center") {
					t.Errorf("a label that the token %s, %s: %d %s, want 422", name, labels, a.Status, a.Body)
				}
			}
		}
		first := d.ask(t, request("POST", "/v2/pods", ann, pod4090, "Idempotency-Key: once"))
		again := d.ask(t, request("POST", "/v2/pods", i.Token(t, claims(issuer.Claims{"jti": "fresh"})), pod4090, "Idempotency-Key: once"))
		if first.Status != 201 || again.Status != 201 || field(t, first.Body, "id") != field(t, again.Body, "id") {
			t.Errorf("create and its repeat with a fresh token: %d %s, %d %s, want the same pod", first.Status, first.Body, again.Status, again.Body)
		}
		if a := d.ask(t, request("POST", "/v2/pods", ann, pod4090)); a.Status != 201 {
			t.Errorf("a second pod: %d %s, want 201", a.Status, a.Body)
		}
		if a := d.ask(t, request("POST", "/v2/pods", ann, pod4090)); a.Status != 402 {
			t.Errorf("a third pod: %d %s, want 402", a.Status, a.Body)
		}
		bob := i.Token(t, claims(issuer.Claims{"sub": "bob"}))
		if a := d.ask(t, request("POST", "/v2/pods", bob, pod4090)); a.Status != 201 {
			t.Errorf("another subject's pod: %d %s, want 201", a.Status, a.Body)
		}
		if !strings.Contains(d.logs.String(), "cost_center=cc-42") {
			t.Error("the pod does not have the label of the token")
		}
		status := 0
		for range 20 {
			status = d.ask(t, request("GET", "/v2/pods", ann, "")).Status
		}
		if status != 429 {
			t.Errorf("beyond the quota of each caller: %d, want 429", status)
		}
		d.expect(t, "another subject", bob, 200)
	}, withIssuer(i))
}

// While an issuer is away its known keys go on, and a token with another is not called
// wrong.
func TestTokensOfAnIssuerThatIsAway(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		i := issuer.RunT(t)
		withIssuer(i)(d)
		if err := d.gateway.Swap(load(t, d.text, d.upstream)); err != nil {
			t.Fatal(err)
		}
		known := i.Token(t, claims(nil))
		d.expect(t, "a token, whose key is fetched", known, 200)
		i.Down(true)
		i.Rotate(t, "RS256")
		fresh := i.Token(t, claims(nil))
		d.advance(10 * time.Second)
		d.expect(t, "a known key of an issuer that is away", known, 200)
		d.expect(t, "an unknown key of an issuer that is away", fresh, 503)
		i.Down(false)
		d.advance(10 * time.Second)
		d.expect(t, "the new key when it is back", fresh, 200)
		if err := d.gateway.Swap(load(t, strings.Replace(d.text, "audiences: [tollgate]", "audiences: [tollgate, more]", 1), d.upstream)); err != nil {
			t.Fatal(err)
		}
		i.Down(true)
		d.expect(t, "a known key after a reload while its issuer is away", fresh, 200)
		if err := d.gateway.Swap(load(t, configuration, d.upstream)); err != nil {
			t.Fatal(err)
		}
		d.expect(t, "a token whose issuer is not configured any more", fresh, 401)
	})
}

// A stream ends when the token does that opened it, and when what its claims make
// its caller changes.
func TestStreamsEndWithTokens(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	d := openDoor(t, "http", withIssuer(i)) // through the other, a stream is Envoy's own
	pod := d.ask(t, request("POST", "/v2/pods", i.Token(t, claims(nil)), pod4090))
	if pod.Status != 201 {
		t.Fatalf("create: %d %s", pod.Status, pod.Body)
	}
	target := "/v2/pods/" + fmt.Sprint(field(t, pod.Body, "id")) + "/logs"
	lines, stop := d.stream(t, target, i.Token(t, claims(issuer.Claims{"exp": start.Add(-29 * time.Second).Unix()}))) // and a skew of 30 s
	for range lines {                                                                                                 // until it is cut; without that, until the test times out
	}
	stop()
	lines, stop = d.stream(t, target, i.Token(t, claims(nil)))
	defer stop()
	<-lines // it flows
	if err := d.gateway.Swap(load(t, strings.Replace(d.text, "ml: research", "ml: platform", 1), d.upstream)); err != nil {
		t.Fatal(err)
	}
	for range lines {
	}
}
