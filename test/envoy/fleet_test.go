package envoy

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// edge and mesh are the node groups of a fleet, one of each topology.
const (
	edge = "edge"
	mesh = "mesh"
)

// groups is the part of a fleet's configuration that the other tests do not have.
const groups = `
balancers: {addresses: [127.0.0.1/32], forwarded_hops: 1}
envoy:
  listen: 127.0.0.1:0
  xds:
    groups:
      - {id: edge, listen: "127.0.0.1:0"}
      - {id: mesh, topology: ext_proc, listen: "127.0.0.1:0"}
`

// fleet is gateways that share a Redis and configure the Envoys before them.
type fleet struct {
	platform *platform.Instance
	store    *miniredis.Miniredis
	cfg      settings.Config
	// wrap stands between gateways that are started and their gRPC listener; nil is nothing.
	wrap func(net.Listener) net.Listener
}

// member is one gateway of a fleet, with all its listeners open.
type member struct {
	*gateway.Gateway

	data, door netip.AddrPort
	logs       *world.Buffer
	end        func()
}

func newFleet(t *testing.T, text string) *fleet {
	t.Helper()
	program(t)
	f := &fleet{store: miniredis.RunT(t)}
	f.platform = platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: "pk-acme-" + canary, Exempt: true}))
	f.cfg = f.configuration(t, text)
	return f
}

func (f *fleet) configuration(t *testing.T, text string) settings.Config {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(f.platform.RunURL, "http://"), ":")
	return world.Configuration(t, strings.NewReplacer("PLATFORM", f.platform.URL, "RUNS", f.platform.RunURL, "LBPORT", port).Replace(text), map[string]string{
		"ACME": "pk-acme-" + canary, "WRONG": "pk-wrong-" + canary, "TOKEN": token,
	})
}

// run starts a gateway, at the addresses of one that has ended or at new ones.
func (f *fleet) run(t *testing.T, before *member) *member {
	t.Helper()
	m := &member{logs: new(world.Buffer)}
	data, door := "127.0.0.1:0", "127.0.0.1:0"
	if before != nil {
		data, door = before.data.String(), before.door.String()
	}
	deps := gateway.Deps{
		Redis: world.Redis(t, f.store.Addr()), Logger: m.logs.Logger(),
		Data: listen(t, data), Envoy: listen(t, door), Admin: world.Listen(t),
	}
	m.data, m.door = address(t, deps.Data), address(t, deps.Envoy)
	if f.wrap != nil {
		deps.Envoy = f.wrap(deps.Envoy)
	}
	m.Gateway = world.Gateway(t, f.cfg, deps)
	m.end = world.Run(t, m.Gateway)
	return m
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func address(t *testing.T, l net.Listener) netip.AddrPort {
	t.Helper()
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// bootstrapOf is what an Envoy of a group is started with.
func bootstrapOf(t *testing.T, group string, doors ...netip.AddrPort) *bootstrap {
	t.Helper()
	return decoded(t, envoy.Bootstrap{
		Node: "envoy-" + group, Group: group, Admin: netip.MustParseAddrPort("127.0.0.1:0"), Doors: doors, Connections: 1000,
	})
}

func decoded(t *testing.T, c envoy.Bootstrap) *bootstrap {
	t.Helper()
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrap{t: t}
	if err := json.Unmarshal([]byte(text), &b.doc); err != nil {
		t.Fatal(err)
	}
	return b
}

// way puts an Envoy of a group before a fleet of one.
func (f *fleet) way(t *testing.T, group string) *way {
	t.Helper()
	m := f.run(t, nil)
	plain := httptest.NewServer(m.Handler())
	t.Cleanup(plain.Close)
	w := &way{platform: f.platform, gateway: m.Gateway, logs: m.logs, upstream: f.platform.URL, plain: plain.Listener.Addr().String()}
	w.process = start(t, bootstrapOf(t, group, m.door))
	w.settle(t)
	return w
}

// settle waits until a request is judged: Envoy listens some time after it has the
// listener, and health checks pass some time after that.
func (w *way) settle(t *testing.T) {
	t.Helper()
	world.Until(t, "a gateway is healthy", func() bool { return status(w.addr, request("GET", "/v2/pods", "", "")) == 401 })
}

// The table holds in both topologies, with nothing configured by hand.
func TestBehaviourOfFleets(t *testing.T) {
	t.Parallel()
	for _, group := range []string{edge, mesh} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			w := newFleet(t, configuration+groups).way(t, group)
			play(t, w, group == edge)
		})
	}
}

// Gateways that are restarted in turn lose no request, of either topology, with
// the notice they give by default.
func TestRestartsLoseNothing(t *testing.T) {
	f := newFleet(t, patient(strings.ReplaceAll(configuration, "limits: {minute: 6000, hour: 30000, day: 50000}", "exempt: true"))+groups)
	members := []*member{f.run(t, nil), f.run(t, nil)}
	for _, group := range []string{edge, mesh} {
		w := &way{platform: f.platform, process: start(t, bootstrapOf(t, group, members[0].door, members[1].door))}
		w.settle(t)
		stop := hammer(t, w)
		defer func() {
			sent, lost := stop()
			t.Logf("%s: %d requests", group, sent)
			if len(lost) > 0 || sent < 200 {
				t.Errorf("%s: %d of %d requests lost, want none of 200 or more: %v", group, len(lost), sent, lost[:min(len(lost), 3)])
				for line := range strings.Lines(w.access.String()) {
					if strings.Contains(line, `"status":5`) {
						t.Log(line)
						break
					}
				}
			}
		}()
	}
	for i := range members {
		for _, m := range members { // an Envoy sends to a gateway when it has seen that it is healthy
			world.Until(t, "a gateway serves both groups", func() bool {
				return strings.Contains(m.logs.String(), `"door":"http"`) && strings.Contains(m.logs.String(), `"door":"envoy"`)
			})
		}
		members[i].end()
		members[i] = f.run(t, members[i])
	}
	world.Until(t, "the last gateway serves", func() bool { return strings.Contains(members[1].logs.String(), `"door":"envoy"`) })
}

// hammer sends requests one after the other, reads and creates in turn, until it
// is stopped, and tells which were lost.
func hammer(t *testing.T, w *way) (stop func() (sent int, lost []string)) {
	t.Helper()
	var lost []string
	sent := 0
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond): // a bounded rate
			}
			raw, want := request("GET", "/v2/pods", "key_research", "", "Connection: close"), 200
			if sent%10 == 9 {
				raw, want = request("POST", "/v2/pods", "key_research", pod4090, "Connection: close"), 201
			}
			if got := status(w.addr, raw); got != want {
				lost = append(lost, time.Now().Format(time.StampMilli)+" "+strconv.Itoa(got))
			}
			sent++
		}
	}()
	return func() (int, []string) {
		close(end)
		<-ended
		return sent, lost
	}
}

// status sends a request on a connection of its own and returns the answer's
// status, 0 for none.
func status(addr, raw string) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(raw)); err != nil {
		return 0
	}
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := conn.Read(line); err != nil {
		return 0
	}
	code, _ := strconv.Atoi(string(line[len("HTTP/1.1 "):]))
	return code
}

// A configuration that Envoy refuses is withdrawn: the configuration in force stays,
// callers notice nothing, and an Envoy that starts later gets it. Where nothing was before
// it, the Envoy serves as soon as it is mended.
func TestEnvoyRefusesAConfiguration(t *testing.T) {
	elsewhere := strings.Replace(groups, `{id: edge, listen: "127.0.0.1:0"}`, `{id: edge, listen: "203.0.113.7:81"}`, 1) // no address of this machine
	f := newFleet(t, configuration+elsewhere)
	m := f.run(t, nil)
	w := &way{platform: f.platform, process: launch(t, bootstrapOf(t, edge, m.door))}
	world.Until(t, "the first configuration is refused", func() bool { return strings.Contains(m.logs.String(), "Envoy refused its configuration") })
	for _, part := range []string{`"type":"Listener"`, "203.0.113.7:81"} {
		if !strings.Contains(m.logs.String(), part) {
			t.Errorf("the log does not say %q", part)
		}
	}
	if r := m.refusal(t); r == nil || r.Withdrawn || r.Node != "envoy-edge" || !strings.Contains(r.Reason, "203.0.113.7:81") {
		t.Errorf("the refusal is told as %+v, want one that leaves the group with nothing", r)
	}
	log := filepath.Join(t.TempDir(), "access.log")
	mended := strings.Replace(groups, `{id: edge, listen: "127.0.0.1:0"`, `{id: edge, listen: "127.0.0.1:0", access_log: `+strconv.Quote(log), 1)
	if err := m.Swap(f.configuration(t, configuration+mended)); err != nil {
		t.Fatal(err)
	}
	world.Until(t, "envoy listens to callers", func() bool { return w.locate(t) })
	w.settle(t)
	world.Until(t, "the refusal is over", func() bool { return m.refusal(t) == nil })
	good := w.dump(t)
	if err := m.Swap(f.configuration(t, configuration+elsewhere)); err != nil {
		t.Fatal(err)
	}
	world.Until(t, "the configuration is withdrawn", func() bool {
		return strings.Contains(m.logs.String(), "restored the previous configuration of the group")
	})
	if got := w.send(t, request("GET", "/v2/pods", "key_research", "")); got.Status != 200 {
		t.Errorf("status = %d, want 200 as before", got.Status)
	}
	if r := m.refusal(t); r == nil || !r.Withdrawn {
		t.Errorf("the refusal is told as %+v, want one that was withdrawn", r)
	}
	later := &way{platform: f.platform, process: start(t, bootstrapOf(t, edge, m.door))}
	later.settle(t)
	for name, w := range map[string]*way{"the first Envoy": w, "a later one": later} {
		if got := w.dump(t); !sameListener(good, got) {
			t.Errorf("%s has another listener than before", name)
		}
	}
	w.end() // which writes what Envoy holds
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), `"status":401`) {
		t.Errorf("access log = %s, %v, want the first answers", text, err)
	}
}

// An Envoy finds gateways by a name, one of whose addresses, that of IPv6, leads
// nowhere here.
func TestAnEnvoyFindsGatewaysByName(t *testing.T) {
	f := newFleet(t, configuration+groups)
	m := f.run(t, nil)
	b := decoded(t, envoy.Bootstrap{
		Node: "e1", Group: edge, Admin: netip.MustParseAddrPort("127.0.0.1:0"), Connections: 1000,
		NamedDoors: []envoy.NamedServer{{Host: "localhost", Port: m.door.Port()}},
	})
	w := &way{platform: f.platform, process: start(t, b)}
	w.settle(t)
}

// refusal is the admin listener's account of the group edge, nil for nothing.
func (m *member) refusal(t *testing.T) *envoy.Refusal {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/admin/status", http.NoBody)
	r.Host = "127.0.0.1"
	m.AdminHandler().ServeHTTP(w, r)
	var status struct{ Envoys []envoy.GroupStatus }
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || len(status.Envoys) == 0 || status.Envoys[0].Group != edge {
		t.Fatalf("/admin/status: %d %s, %v", w.Code, w.Body, err)
	}
	return status.Envoys[0].Refused
}

// An Envoy that starts before any gateway answers 503, and serves as soon as there
// is one.
func TestAnEnvoyThatStartsFirst(t *testing.T) {
	t.Parallel()
	for _, group := range []string{edge, mesh} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			free := func() netip.AddrPort {
				return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port(t)))
			}
			door, callers := free(), free()
			f := newFleet(t, patient(configuration)+strings.Replace(strings.ReplaceAll(groups, `"127.0.0.1:0"`, strconv.Quote(callers.String())),
				"listen: 127.0.0.1:0", "listen: "+door.String(), 1))
			b := decoded(t, envoy.Bootstrap{
				Node: "e1", Group: group, Listen: callers, Admin: netip.MustParseAddrPort("127.0.0.1:0"), Doors: []netip.AddrPort{door}, Connections: 1000,
			})
			w := &way{platform: f.platform, process: launch(t, b)}
			w.addr = callers.String()
			world.Until(t, "envoy answers", func() bool { return status(w.addr, request("GET", "/", "", "")) > 0 })
			calls := w.sent(func() {
				for _, raw := range []string{
					request("GET", "/v2/pods", "key_research", "", "X-Request-Id: id-1"), request("POST", "/v2/pods", "key_research", pod4090, "X-Request-Id: id-1"),
				} {
					checkUnavailable(t, w.send(t, raw), `"id-1"`)
				}
				checkUnavailable(t, w.send(t, request("GET", "/", "", "")), `"[0-9a-f-]{36}"`)
			})
			if len(calls) > 0 {
				t.Errorf("requests reached the platform: %+v", calls)
			}
			m := f.run(t, &member{data: free(), door: door})
			w.settle(t)
			if got := w.send(t, request("GET", "/v2/pods", "key_research", "")); got.Status != 200 {
				t.Errorf("status = %d, want 200 with a gateway: %s", got.Status, got.Body)
			}
			if got := w.send(t, request("GET", "/v2/pods", "key_of_nobody", "")); got.Status != 401 || !strings.Contains(got.Body, "unknown key") {
				t.Errorf("what the gateway refuses is answered %d %s, want its own words", got.Status, got.Body)
			}
			m.end()
			got := w.send(t, request("GET", "/v2/pods", "key_research", "", "X-Request-Id: id-2"))
			checkUnavailable(t, got, `"id-2"`)
			if got := w.send(t, "GET /v2/pods HTTP/1.1\r\nContent-Length: x\r\n\r\n"); !strings.Contains(got.Body, `"status":400`) && (group == edge || !strings.Contains(got.Body, `"status":503`)) {
				t.Errorf("a request that cannot be read: %d %s, want a problem", got.Status, got.Body)
			}
		})
	}
}

// checkUnavailable checks a 503 of Envoy's own, with the id that its request has.
func checkUnavailable(t *testing.T, a answer, id string) {
	t.Helper()
	want := regexp.MustCompile(`^\{"detail":"no gateway responded; [^"]*","request_id":` + id + `,"status":503,"title":"Service Unavailable"\}\n?$`)
	if a.Status != 503 || !want.MatchString(a.Body) {
		t.Errorf("answer = %d %s, want 503 and %s", a.Status, a.Body, want)
	}
	for name, want := range map[string]string{"Content-Type": `application/problem\+json`, "Retry-After": "2", "X-Request-Id": strings.Trim(id, `"`)} {
		if got := a.Header.Values(name); len(got) != 1 || !regexp.MustCompile("^"+want+"$").MatchString(got[0]) {
			t.Errorf("%s = %q, want %s", name, got, want)
		}
	}
}
