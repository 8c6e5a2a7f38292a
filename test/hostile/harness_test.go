package hostile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) {
	world.Overlap("6")
	net.DefaultResolver = nameservice.resolver()
	goleak.VerifyTestMain(m)
}

// The keys of the tests and the platform's key. canary is in the latter, and
// nothing a caller or an operator sees may hold it.
const (
	k1     = "key_research_1"
	k2     = "key_globex_22"
	k3     = "key_strict_33"
	few    = "key_few_calls" // stands for one of the keys with five calls
	canary = "CANARY-9b1c"
	pk     = "pk-acme-" + canary
)

const configuration = `
platform: {PLATFORM}
redis: {embedded: true}
overload: {working: 10000}
limits: {timeout: 10s, anonymous: {burst: BURST}}
policies: {deadline: 10s}
LEGACY
connections: {per_address: PERADDRESS}
timeouts: {body: BODYTIMEOUT, write: WRITETIMEOUT, drain: 1s, lookup: LOOKUP}
orgs:
  - id: acme
    credential: {env: ACME}
    policies:
      - {policy: gpu_allow_list, params: {gpus: ["NVIDIA A40"]}}
      - {policy: gpu_count, params: {max_per_pod: 8}}
      - {policy: price_ceiling, params: {max_usd_per_hour: 10}}
    keys:
      - {id: research, sha256: SHA256(` + k1 + `), roles: [operator], limits: {minute: 6000, hour: 60000, day: 600000}}
FEW  - id: strict
    credential: {env: STRICT}
    policies:
      - {policy: images, params: {allow: [ghcr.io/strict]}}
      - {policy: ports, params: {allow: [http]}}
      - {policy: templates, params: {allow_public: true}}
    keys:
      - {id: strict, sha256: SHA256(` + k3 + `), roles: [operator], limits: {minute: 6000, hour: 60000, day: 600000}}
  - id: globex
    credential: {env: GLOBEX}
    keys:
      - {id: globex, sha256: SHA256(` + k2 + `), limits: {minute: 6000, hour: 60000, day: 600000}}
`

// start is the time of every clock that decides something.
var start = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// site is one gateway on a real listener, with the servers around it.
type site struct {
	addr, admin string
	recorder    *recorder
	logs        *world.Buffer
	metrics     http.Handler
	gateway     *gateway.Gateway
	config      settings.Config
}

// option changes the parts of a site.
type option func(*setup)

type setup struct {
	platform     http.Handler
	bodyTimeout  string
	writeTimeout string
	lookup       string
	perAddress   string
	burst        int
	legacy       string
	name         string
	balancers    settings.Balancers
	data, admin  *tls.Certificate
}

// answering replaces the platform's answers.
func answering(h http.HandlerFunc) option { return func(s *setup) { s.platform = h } }

// bodyWithin bounds how long a body may take.
func bodyWithin(d time.Duration) option { return func(s *setup) { s.bodyTimeout = d.String() } }

// writeWithin bounds how long a caller may take for a part of an answer.
func writeWithin(d time.Duration) option { return func(s *setup) { s.writeTimeout = d.String() } }

// looking bounds how long a create without an answer is looked for.
func looking(d time.Duration) option { return func(s *setup) { s.lookup = d.String() } }

// holding bounds how many connections an address may hold.
func holding(n int) option { return func(s *setup) { s.perAddress = strconv.Itoa(n) } }

// keyless has callers without a key served as the organisation acme.
func keyless() option {
	return func(s *setup) {
		s.legacy = "legacy: {keyless: {org: acme, limit: {rate: 100000, burst: 100000}}}"
	}
}

// behind has the gateway believe load balancers.
func behind(c settings.Balancers) option { return func(s *setup) { s.balancers = c } }

// calling has the gateway call the platform by a name.
func calling(name string) option {
	return func(s *setup) { s.name = name }
}

// encrypted has the listeners speak TLS.
func encrypted(data, admin *tls.Certificate) option {
	return func(s *setup) { s.data, s.admin = data, admin }
}

// open starts a site and waits until it has read the price lists, so that every
// byte the recorder gets from then on is a caller's doing.
func open(t *testing.T, opts ...option) *site {
	t.Helper()
	set := setup{platform: http.HandlerFunc(obliging), bodyTimeout: "15s", writeTimeout: "30s", lookup: settings.Default().Timeouts.Lookup.String(), perAddress: "0", burst: 100000, name: "127.0.0.1"}
	for _, o := range opts {
		o(&set)
	}
	s := &site{recorder: record(t, set.platform), logs: new(world.Buffer)}
	s.run(t, set)
	s.recorder.settle(t)
	return s
}

// run serves a gateway until the test ends.
func (s *site) run(t *testing.T, set setup) {
	t.Helper()
	text := strings.NewReplacer(
		"PLATFORM", fmt.Sprintf("base_url: \"http://%s:%s\", allow_insecure: true", set.name, port(s.recorder.addr)), "BODYTIMEOUT", set.bodyTimeout, "WRITETIMEOUT", set.writeTimeout, "LOOKUP", set.lookup, "PERADDRESS", set.perAddress, "BURST", strconv.Itoa(set.burst), "LEGACY", set.legacy,
		"FEW", fewKeys(),
	).Replace(configuration)
	s.config = world.Configuration(t, text, map[string]string{
		"ACME": pk, "GLOBEX": "pk-globex-" + canary, "STRICT": "pk-strict-" + canary,
	})
	s.config.Balancers = set.balancers
	s.config.TLS.Pair, s.config.Admin.TLS.Pair = set.data, set.admin
	store := miniredis.RunT(t)
	store.SetTime(start)
	providers := world.Providers(t, s.config.Telemetry)
	data, admin := world.Listen(t), world.Listen(t)
	s.addr, s.admin, s.metrics = data.Addr().String(), admin.Addr().String(), providers.Handler()
	clock := platform.ManualClock(start)
	s.gateway = world.Gateway(t, s.config, gateway.Deps{
		Redis: world.Redis(t, store.Addr()), Providers: providers, Now: clock.Now, Logger: s.logs.Logger(),
		Sleep: func(ctx context.Context, d time.Duration) error { // between calls that the old dialects repeat
			clock.Advance(d)
			return ctx.Err()
		},
		Data: data, Admin: admin,
	})
	world.Run(t, s.gateway)
}

// port is that of an address.
func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// fewKey is one of the keys with five calls a minute.
func fewKey(i int) string { return fmt.Sprintf("key_few_%02d", i) }

// fewKeys lists them for the configuration.
func fewKeys() string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "      - {id: few%d, sha256: SHA256(%s), roles: [operator], limits: {minute: 5, hour: 100, day: 1000}}\n", i, fewKey(i))
	}
	return b.String()
}

// recorder is a platform that keeps all it gets.
type recorder struct {
	addr   string
	server *http.Server

	mu          sync.Mutex // guards what follows
	connections int
	bytes       bytes.Buffer
	calls       []call
	lists       int
	// from is how many bytes had come when the recorder settled.
	from, fromConnections int
	arrived               *sync.Cond
}

// call is one request as the platform parsed it.
type call struct {
	Method, Target, Host string
	Header               http.Header
	Trailer              http.Header
	Body                 string
}

// listsRead is what the gateway reads by itself: three lists for each of the three organisations, and the platform's description.
const listsRead = 10

func record(t *testing.T, platform http.Handler) *recorder {
	t.Helper()
	r := &recorder{}
	r.arrived = sync.NewCond(&r.mu)
	l := world.Listen(t)
	r.addr = l.Addr().String()
	r.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		// The gateway's own reads carry no caller's request id.
		own := req.Header.Get("X-Request-Id") == ""
		r.mu.Lock()
		if own {
			r.lists++
		} else {
			r.calls = append(r.calls, call{req.Method, req.RequestURI, req.Host, req.Header.Clone(), req.Trailer.Clone(), string(body)})
		}
		r.arrived.Broadcast()
		r.mu.Unlock()
		if own {
			obliging(w, req)
			return
		}
		platform.ServeHTTP(w, req)
	})}
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(&recording{l, r}) }()
	t.Cleanup(func() {
		_ = r.server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("recorder: %v", err)
		}
	})
	return r
}

// settle waits for the price lists and begins to count.
func (r *recorder) settle(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.lists < listsRead {
		r.arrived.Wait()
	}
	r.from, r.fromConnections = r.bytes.Len(), r.connections
}

// untouched fails the test if the platform got anything since it settled.
func (r *recorder) untouched(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.bytes.Bytes()[r.from:]; len(got) > 0 || r.connections != r.fromConnections {
		t.Errorf("the platform got %d connections and %d bytes, want none: %.300q", r.connections-r.fromConnections, len(got), got)
		r.from, r.fromConnections = r.bytes.Len(), r.connections
	}
}

// take returns the calls since the last take.
func (r *recorder) take() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.calls
	r.calls = nil
	r.from, r.fromConnections = r.bytes.Len(), r.connections
	return got
}

// recording is a listener whose connections tell the recorder all they read.
type recording struct {
	net.Listener
	r *recorder
}

func (l *recording) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.connections++
	return &recorded{c, l.r}, nil
}

type recorded struct {
	net.Conn
	r *recorder
}

func (c *recorded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.bytes.Write(p[:n])
	return n, err
}

// obliging is a platform that grants everything.
func obliging(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/v2/catalog/gpus":
		_, _ = io.WriteString(w, `{"gpus":[`+gpu("NVIDIA A40", "0.40")+`,`+gpu("NVIDIA H200", "3.99")+`]}`)
	case r.URL.Path == "/v2/catalog/cpus":
		_, _ = io.WriteString(w, `{"cpus":[{"id":"cpu3c","name":"c","group":"c","vcpu":{"min":2,"max":32},"ramGbPerVcpu":2,"price":{"securePerVcpu":0.04,"serverlessPerVcpu":0.03}}]}`)
	case r.URL.Path == "/v2/catalog/datacenters":
		_, _ = io.WriteString(w, `{"dataCenters":[{"id":"EU-RO-1","name":"d","location":"Romania","storage":true,"listed":true}]}`)
	case r.URL.Path == "/v2/pods" && r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"pods":[]}`)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, pod)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = io.WriteString(w, pod)
	}
}

const pod = `{"id":"pod1","name":"a","image":"img:1","status":"RUNNING","cloud":"SECURE","gpu":{"id":"NVIDIA A40","count":1},"createdAt":"2026-11-21T10:00:00Z"}`

func gpu(id, price string) string {
	return fmt.Sprintf(`{"id":%q,"name":"g","pool":"AMPERE_48","manufacturer":"NVIDIA","memory":48,"secure":true,"community":true,"price":{"secure":%s,"community":%s,"serverless":0.5},"maxCount":{"secure":8,"community":8}}`, id, price, price)
}

// answer is one response as the stranger sees it.
type answer struct {
	Status int
	Header http.Header
	Body   string
	// Last says that the gateway announced the end of the connection.
	Last bool
}

// patience bounds every wait of the stranger.
const patience = 30 * time.Second

// talk sends raw bytes on one connection of its own and returns all answers up
// to the end of the connection, which the gateway must make.
func (s *site) talk(t *testing.T, raw string) []answer {
	t.Helper()
	conn := s.dial(t)
	defer func() { _ = conn.Close() }()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, raw)
	}()
	got := answers(t, conn)
	_ = conn.Close()
	<-sent
	return got
}

func (s *site) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("dialled a %T", conn)
	}
	return tcp
}

func answers(t *testing.T, conn net.Conn) []answer {
	t.Helper()
	var got []answer
	for r := bufio.NewReader(conn); ; {
		if _, err := r.Peek(1); err != nil {
			// Behind the last answer the rest of the sent bytes may be reset.
			reset := len(got) > 0 && got[len(got)-1].Last && errors.Is(err, syscall.ECONNRESET)
			if !errors.Is(err, io.EOF) && !reset {
				t.Errorf("after %d answers the connection ended with %v, want its orderly end", len(got), err)
			}
			return got
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(got), err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("after %d answers, body: %v", len(got), err)
		}
		_ = res.Body.Close()
		got = append(got, answer{res.StatusCode, res.Header, string(body), res.Close})
	}
}

// ask sends one well-framed request, whose connection ends with it.
func (s *site) ask(t *testing.T, raw string) answer {
	t.Helper()
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	got := s.talk(t, head+"\r\nConnection: close\r\n\r\n"+body)
	if len(got) != 1 {
		t.Fatalf("%d answers, want 1", len(got))
	}
	return got[0]
}

// request writes one request, as a line of a table does.
func request(method, target, key, body string, header ...string) string {
	return world.Request(method, target, key, body, header...)
}

// allowed is a pod acme may rent.
const allowed = `{"name":"x","image":"i:1","gpu":{"id":"NVIDIA A40","count":1}}`
