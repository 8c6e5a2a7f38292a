package parity

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// certificates is the section of the tests' authorities: one that revokes, and one whose
// certificates are short.
const certificates = `
tls: {certificate: {env: SERVER}, key: {env: SERVERKEY}}
certificates:
  required: REQUIRED
  authorities:
    - id: mesh
      ca: {env: MESH}
      crl: {env: REVOKED}
      orgs: [acme, globex]
      require: {trust_domain: corp.test}
      claims: {org: /org, team: dns, roles: /sa}
      team: tiny
      teams: {ml.corp.test: research, infra.corp.test: platform}
      grants: {train: operator, watch: viewer}
      labels: {cost_center: email}
      limits: {minute: 300}
      budget: {pods: 2}
    - id: short
      ca: {env: SHORT}
      max_life: 3h
      subject: dns
      orgs: [acme]
      role: viewer
`

// ann is the caller of most tests.
const ann = "spiffe://corp.test/org/acme/sa/train"

// certified is a door whose listener asks for certificates.
type certified struct {
	*door
	mesh, short, server *world.Authority
	env                 map[string]string
	// sessions are those that callers may resume, nil for none.
	sessions tls.ClientSessionCache
}

// openCertified opens a gateway on a listener of its own.
func openCertified(t *testing.T, required bool) *certified {
	t.Helper()
	c := &certified{
		door: &door{name: "https", logs: new(world.Buffer), clock: platform.ManualClock(start)},
		mesh: world.NewAuthority(t, "mesh", start), short: world.NewAuthority(t, "short", start), server: world.NewAuthority(t, "servers", start),
	}
	c.text = withCertificates(required)
	c.platform = platform.RunT(t, platform.WithClock(platform.ManualClock(start)), platform.WithAccounts(
		platform.Account{ID: "acme", Key: "pk-acme-" + canary}, platform.Account{ID: "globex", Key: "pk-globex-" + canary},
	))
	c.upstream = c.platform.URL
	c.redis = miniredis.RunT(t)
	c.redis.SetTime(start)
	pair := c.server.Client(t, "", func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{"gw"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c.env = map[string]string{
		"SERVER": inPEM("CERTIFICATE", pair.Certificate[0]), "SERVERKEY": inPEM("PRIVATE KEY", der), "MESH": c.mesh.PEM(), "SHORT": c.short.PEM(),
		"REVOKED": c.mesh.Revoked(t, start.Add(24*time.Hour)),
	}
	data, admin := world.Listen(t), world.Listen(t)
	c.addr = data.Addr().String()
	cfg := c.config(t, nil)
	c.providers = world.Providers(t, cfg.Telemetry)
	c.gateway = world.Gateway(t, cfg, gateway.Deps{
		Redis: world.Redis(t, c.redis.Addr()), Providers: c.providers, Now: c.clock.Now, Logger: c.logs.Logger(), Data: data, Admin: admin,
	})
	world.Run(t, c.gateway)
	return c
}

func withCertificates(required bool) string {
	text := strings.Replace(configuration, "    teams: [{id: research}", "    labels: [{name: cost_center}]\n    teams: [{id: research}", 1)
	text = strings.Replace(text, "    credential: {env: GLOBEX}", "    credential: {env: GLOBEX}\n    labels: [{name: cost_center}]\n    teams: [{id: tiny}]", 1)
	text = strings.Replace(text, "limits: {timeout: 10s}", "limits: {timeout: 10s, anonymous_exempt: [127.0.0.0/8]}", 1)
	return text + strings.Replace(certificates, "REQUIRED", fmt.Sprint(required), 1)
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// config reads the configuration, with other secrets.
func (c *certified) config(t *testing.T, others map[string]string) settings.Config {
	t.Helper()
	maps.Copy(c.env, others)
	env := maps.Clone(c.env)
	maps.Copy(env, map[string]string{"ACME": "pk-acme-" + canary, "GLOBEX": "pk-globex-" + canary, "WRONG": "pk-wrong-" + canary})
	return world.Configuration(t, strings.ReplaceAll(c.text, "PLATFORM", c.upstream), env)
}

// swap loads the configuration with other secrets.
func (c *certified) swap(t *testing.T, others map[string]string) {
	t.Helper()
	if err := c.gateway.Swap(c.config(t, others)); err != nil {
		t.Fatal(err)
	}
}

// connect opens a connection with a certificate, nil for none, whichever authorities the gateway
// says that it accepts.
func (c *certified) connect(t *testing.T, with *tls.Certificate) *tls.Conn {
	t.Helper()
	if with == nil {
		with = new(tls.Certificate)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.server.Cert)
	raw, err := net.Dial("tcp", c.addr) // without a deadline, which would look like a cut
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{
		RootCAs: roots, ServerName: "gw", ClientSessionCache: c.sessions, Time: func() time.Time { return start },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return with, nil },
	})
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a request with a certificate.
func (c *certified) ask(t *testing.T, with *tls.Certificate, raw string) answer {
	t.Helper()
	return askOn(t, c.connect(t, with), raw)
}

func askOn(t *testing.T, conn io.ReadWriter, raw string) answer {
	t.Helper()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	return world.Read(t, bufio.NewReader(conn), raw)
}

// anonymous is a request without a key.
func anonymous(method, target, body string, headers ...string) string {
	return strings.Replace(request(method, target, "none", body, headers...), "Authorization: Bearer none\r\n", "", 1)
}

// The names in a certificate identify its caller, in every dialect, and a faulty certificate is
// answered like an unknown key.
func TestCallersWithCertificates(t *testing.T) {
	t.Parallel()
	c := openCertified(t, false)
	other := world.NewAuthority(t, "mesh", start)
	below, lost := c.mesh.Below(t, "below"), c.mesh.Below(t, "revoked")
	mute := c.mesh.Below(t, "mute")
	stolen := c.mesh.Client(t, ann)
	c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(time.Hour), stolen, &tls.Certificate{Leaf: lost.Cert}) +
		below.Revoked(t, start.Add(time.Hour)) + lost.Revoked(t, start.Add(time.Hour))})
	dns := func(names ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.DNSNames = names }
	}
	usage := func(u ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = u }
	}
	noName := func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: ann} }
	for what, k := range map[string]struct {
		with *tls.Certificate
		want int
	}{
		"a good one":               {c.mesh.Client(t, ann), 200},
		"of a department":          {c.mesh.Client(t, ann, dns("ml.corp.test", "host.corp.test")), 200},
		"of globex":                {c.mesh.Client(t, "spiffe://corp.test/org/globex/sa/watch"), 200},
		"of an authority below":    {below.Client(t, ann), 200},
		"that is short":            {c.short.Client(t, "", dns("job.corp.test")), 200},
		"of another authority":     {other.Client(t, ann), 401},
		"that was revoked":         {stolen, 401},
		"of one that was revoked":  {lost.Client(t, ann), 401},
		"of one without a list":    {mute.Client(t, ann), 401},
		"that has expired":         {c.mesh.Client(t, ann, func(c *x509.Certificate) { c.NotAfter = start.Add(-time.Second) }), 401},
		"that is not valid yet":    {c.mesh.Client(t, ann, func(c *x509.Certificate) { c.NotBefore = start.Add(time.Second) }), 401},
		"of a server":              {c.mesh.Client(t, ann, usage(x509.ExtKeyUsageServerAuth)), 401},
		"of no stated usage":       {c.mesh.Client(t, ann, usage()), 401},
		"of an authority":          {c.mesh.Client(t, ann, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), 401},
		"of no organisation":       {c.mesh.Client(t, "spiffe://corp.test/sa/train"), 401},
		"of two organisations":     {c.mesh.Client(t, "spiffe://corp.test/org/acme/org/globex/sa/train"), 401},
		"of an unknown one":        {c.mesh.Client(t, "spiffe://corp.test/org/wrong/sa/train"), 401},
		"of no role":               {c.mesh.Client(t, "spiffe://corp.test/org/acme/sa/play"), 401},
		"of another trust domain":  {c.mesh.Client(t, "spiffe://corp.test.evil/org/acme/sa/train"), 401},
		"with an escaped slash":    {c.mesh.Client(t, "spiffe://corp.test/org/acme%2fsa/train"), 401},
		"with a name of a value":   {c.mesh.Client(t, "spiffe://corp.test/org/sa/acme/sa"), 401},
		"with a common name alone": {c.mesh.Client(t, "", noName), 401},
		"with two URIs": {c.mesh.Client(t, ann, func(c *x509.Certificate) {
			c.URIs = append(c.URIs, world.URI(t, "spiffe://corp.test/org/acme/sa/watch"))
		}), 401},
		"of two departments":     {c.mesh.Client(t, ann, dns("ml.corp.test", "infra.corp.test")), 401},
		"of a team globex lacks": {c.mesh.Client(t, "spiffe://corp.test/org/globex/sa/watch", dns("ml.corp.test")), 401},
		"with a label of two":    {c.mesh.Client(t, ann, func(c *x509.Certificate) { c.EmailAddresses = []string{"a@x", "b@x"} }), 401},
		"that lasts too long":    {c.short.Client(t, "", dns("job.corp.test"), func(c *x509.Certificate) { c.NotAfter = start.Add(3 * time.Hour) }), 401},
		"of two names":           {c.short.Client(t, "", dns("job.corp.test", "jobs.corp.test")), 401},
	} {
		for dialect, raw := range map[string]string{
			"v2": anonymous("GET", "/v2/pods", ""), "v1": anonymous("GET", "/v1/pods", ""), "graphql": anonymous("POST", "/graphql", `{"query":"{ myself { pods { id } } }"}`),
		} {
			got := c.ask(t, k.with, raw)
			if got.Status != k.want {
				t.Errorf("a certificate %s, %s: %d %s, want %d", what, dialect, got.Status, got.Body, k.want)
			}
			unknown := c.ask(t, nil, strings.Replace(raw, "\r\n\r\n", "\r\nAuthorization: Bearer tg_unknown\r\n\r\n", 1))
			if k.want == http.StatusUnauthorized && comparable(got).Body != comparable(unknown).Body {
				t.Errorf("a certificate %s, %s: %s, want what an unknown key is answered: %s", what, dialect, got.Body, unknown.Body)
			}
		}
	}
	if a := c.ask(t, nil, anonymous("GET", "/v2/pods", "")); a.Status != 401 || !strings.Contains(a.Body, "missing key") {
		t.Errorf("neither a certificate nor a key: %d %s, want 401 that says so", a.Status, a.Body)
	}
	for _, part := range []string{`the certificate or one of its issuers was revoked`, `no current revocation list`, `"subject":"` + ann, `"key":"mesh:`, `"key":"short:`, `does not allow client authentication`} {
		if !strings.Contains(c.logs.String(), part) {
			t.Errorf("the log does not have %s", part)
		}
	}
}

// Roles, policies, quotas, budgets and labels hold for callers with certificates.
func TestCertificatesAreBound(t *testing.T) {
	t.Parallel()
	c := openCertified(t, false)
	email := func(c *x509.Certificate) { c.EmailAddresses = []string{"cc-42@corp.test"} }
	research := func(c *x509.Certificate) { c.DNSNames = []string{"ml.corp.test"} }
	with, reader := c.mesh.Client(t, ann, email, research), c.mesh.Client(t, "spiffe://corp.test/org/acme/sa/watch", research)
	for what, k := range map[string]struct {
		with *tls.Certificate
		raw  string
		want int
	}{
		"a viewer creates":                 {reader, anonymous("POST", "/v2/pods", pod4090), 403},
		"research creates what it may not": {with, anonymous("POST", "/v2/pods", strings.Replace(pod4090, "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", 1)), 403},
		"a label that the name sets":       {with, anonymous("POST", "/v2/pods", pod4090, "X-Tollgate-Labels: cost_center=other"), 422},
	} {
		if a := c.ask(t, k.with, k.raw); a.Status != k.want {
			t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, k.want)
		}
	}
	for i, want := range []int{201, 201, 402} { // with a fresh certificate each, which is the same caller
		if a := c.ask(t, c.mesh.Client(t, ann, email, research), anonymous("POST", "/v2/pods", pod4090)); a.Status != want {
			t.Errorf("pod %d: %d %s, want %d", i+1, a.Status, a.Body, want)
		}
	}
	if a := c.ask(t, c.mesh.Client(t, "spiffe://corp.test/org/acme/sa/train/x/y", research), anonymous("POST", "/v2/pods", pod4090)); a.Status != 201 {
		t.Errorf("another name's pod: %d %s, want 201", a.Status, a.Body)
	}
	if !strings.Contains(c.logs.String(), "cost_center=cc-42@corp.test") {
		t.Error("the pod does not have the label of the certificate")
	}
	status, conn := 0, c.connect(t, with)
	for range 301 {
		status = askOn(t, conn, anonymous("GET", "/v2/pods", "")).Status
	}
	if status != 429 {
		t.Errorf("beyond the quota of each caller: %d, want 429", status)
	}
}

// A key beside a certificate decides who calls, and a wrong one is not replaced by it.
func TestCertificatesBesideKeys(t *testing.T) {
	t.Parallel()
	c := openCertified(t, false)
	good, bad := c.mesh.Client(t, ann), world.NewAuthority(t, "other", start).Client(t, ann)
	for what, k := range map[string]struct {
		with *tls.Certificate
		raw  string
		want string // who called, "" for 401
	}{
		"a key of another organisation": {good, request("GET", "/v2/pods", "key_globex", ""), "globex"},
		"a key beside a wrong one":      {bad, request("GET", "/v2/pods", "key_globex", ""), "globex"},
		"a key without one":             {nil, request("GET", "/v2/pods", "key_globex", ""), "globex"},
		"an unknown key":                {good, request("GET", "/v2/pods", "tg_unknown", ""), ""},
		"no key and a wrong one":        {bad, anonymous("GET", "/v2/pods", ""), ""},
		"no key of the Bearer scheme":   {good, anonymous("GET", "/v2/pods", "", "Authorization: Basic YTpi"), ""},
		"an empty key":                  {good, anonymous("GET", "/v2/pods", "", "Authorization: Bearer "), ""},
		"a parameter":                   {good, anonymous("GET", "/v2/pods?api_key=key_globex", ""), ""},
		"a forwarded certificate":       {nil, anonymous("GET", "/v2/pods", "", forwarded(good)), ""},
		"one forwarded beside a wrong":  {bad, anonymous("GET", "/v2/pods", "", forwarded(good)), ""},
	} {
		a := c.ask(t, k.with, strings.Replace(k.raw, "\r\n\r\n", "\r\nX-Request-Id: r-"+strings.ReplaceAll(what, " ", "-")+"\r\n\r\n", 1))
		if want := map[bool]int{true: 401, false: 200}[k.want == ""]; a.Status != want {
			t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, want)
		}
		if got, _ := (&lane{door: c.door}).event(t, "r-"+strings.ReplaceAll(what, " ", "-"))["org"].(string); got != k.want {
			t.Errorf("%s: called as %q, want %q", what, got, k.want)
		}
	}
}

// forwarded is a header with which a proxy says what certificate its caller has.
func forwarded(c *tls.Certificate) string {
	return "X-Forwarded-Client-Cert: Hash=" + strings.Repeat("0", 64) + `;Cert="` + url.QueryEscape(inPEM("CERTIFICATE", c.Leaf.Raw)) + `";URI=` + ann
}

// Where certificates are required, a key is refused without one of its organisation, and
// so is a question without a key.
func TestCertificatesAreRequired(t *testing.T) {
	t.Parallel()
	c := openCertified(t, true)
	good, bad := c.mesh.Client(t, ann), world.NewAuthority(t, "other", start).Client(t, ann)
	for what, k := range map[string]struct {
		with *tls.Certificate
		raw  string
		want int
	}{
		"a certificate":                  {good, anonymous("GET", "/v2/pods", ""), 200},
		"a key and a certificate":        {good, request("GET", "/v2/pods", "key_research", ""), 200},
		"a key alone":                    {nil, request("GET", "/v2/pods", "key_research", ""), 401},
		"a key and a wrong certificate":  {bad, request("GET", "/v2/pods", "key_research", ""), 401},
		"a key of another organisation":  {good, request("GET", "/v2/pods", "key_globex", ""), 401},
		"a key and a forwarded one":      {nil, request("GET", "/v2/pods", "key_research", "", forwarded(good)), 401},
		"a question without a key":       {nil, anonymous("POST", "/graphql", `{"query":"{ gpuTypes { id } }"}`), 401},
		"a page":                         {nil, anonymous("GET", "/tollgate/policies", ""), 401},
		"an unknown key and certificate": {good, request("GET", "/v2/pods", "tg_unknown", ""), 401},
	} {
		if a := c.ask(t, k.with, k.raw); a.Status != k.want {
			t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, k.want)
		}
	}
}
