package envoy

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

const (
	// quota is that of a day of the keys that are counted, budget the pods of the
	// organisation that has one.
	quota, budget = 600, 20
	// ample is a quota that is counted and never used up.
	ample = "{minute: 1000000}"
)

// proof is a fleet of real parts: two Envoys that end TLS, one of each topology, three
// gateways, each a process behind a network in the test's hands, and a Redis Cluster of
// three masters. Each of orgs is on another master; spender, which has a budget, is on
// that of the first.
type proof struct {
	t        *testing.T
	platform *platform.Instance
	nodes    []*redistest.Server
	orgs     []string
	spender  string
	ca       *authority
	pair     string // directory of the callers' certificate
	members  []*instance
	envoys   []*front
}

// instance is a gateway process. Envoys reach it through data and door.
type instance struct {
	p          *proof
	file       string
	data, door *redistest.Relay
	address    netip.Addr // under which Envoys know it
	cmd        *exec.Cmd
	log        *world.Buffer
}

// front is an Envoy and where callers connect to it.
type front struct {
	*process

	group, addr string
	bootstrap   *bootstrap
}

func newProof(t *testing.T) *proof {
	t.Helper()
	program(t)
	p := &proof{t: t, nodes: redistest.ClusterNodes(t, 3), ca: newAuthority(t), pair: t.TempDir()}
	p.place()
	accounts := []platform.Account{{ID: p.spender, Key: "pk-" + p.spender, Exempt: true}}
	for _, org := range p.orgs {
		accounts = append(accounts, platform.Account{ID: org, Key: "pk-" + org, Exempt: true})
	}
	p.platform = platform.RunT(t, platform.WithOptions(platform.Options{Strict: true, KeepCalls: 100_000}), platform.WithAccounts(accounts...))
	if err := p.platform.SetStock("NVIDIA GeForce RTX 4090", "", "", 1_000_000); err != nil {
		t.Fatal(err)
	}
	p.ca.issue(t, p.pair)
	for i := range 2 {
		p.envoys = append(p.envoys, &front{group: fmt.Sprint("e", i), addr: fmt.Sprint("127.0.0.1:", port(t))})
	}
	var doors []netip.AddrPort
	for i := range 3 {
		m := p.newInstance(netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + i)}))
		p.members = append(p.members, m)
		doors = append(doors, netip.MustParseAddrPort(m.door.Addr()))
	}
	p.configure(nil)
	for _, m := range p.members {
		m.start()
	}
	for _, e := range p.envoys {
		e.bootstrap = decoded(t, envoy.Bootstrap{
			Node: e.group, Group: e.group, Admin: netip.MustParseAddrPort("127.0.0.1:0"), Doors: doors, Connections: 10_000,
		})
		e.start(t)
	}
	p.settle()
	return p
}

// place finds organisations for each master. A cluster that has lost a master goes on
// with the others.
func (p *proof) place() {
	p.t.Helper()
	client := redistest.Client(p.t, p.nodes[0].Addr())
	p.orgs = make([]string, len(p.nodes))
	for i := 0; p.spender == "" || slices.Contains(p.orgs, ""); i++ {
		org := fmt.Sprint("org", i)
		slot, err := client.ClusterKeySlot(p.t.Context(), org).Result()
		if err != nil {
			p.t.Fatal(err)
		}
		at := int(slot) * len(p.nodes) / 16384
		switch {
		case p.orgs[at] == "":
			p.orgs[at] = org
		case at == 0 && p.spender == "":
			p.spender = org
		}
	}
	for _, n := range p.nodes {
		c := redistest.Client(p.t, n.Addr())
		if err := c.ConfigSet(p.t.Context(), "cluster-require-full-coverage", "no").Err(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func port(t *testing.T) int {
	t.Helper()
	n, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newInstance makes a gateway that listens on 127.0.0.1 and that Envoys know as another
// address of this machine, where its network is.
func (p *proof) newInstance(address netip.Addr) *instance {
	p.t.Helper()
	m := &instance{p: p, address: address, file: filepath.Join(p.t.TempDir(), "tollgate.yaml"), log: new(world.Buffer)}
	for _, network := range []**redistest.Relay{&m.data, &m.door} {
		n := port(p.t)
		*network = redistest.NewRelayAt(p.t, fmt.Sprintf("%s:%d", address, n), fmt.Sprint("127.0.0.1:", n))
	}
	p.t.Cleanup(func() {
		m.kill()
		if p.t.Failed() {
			p.t.Logf("the gateway at %s said:\n%s", address, m.log.Last(100))
		}
	})
	return m
}

// configure writes the file of each gateway, changed.
func (p *proof) configure(change func(string) string) {
	p.t.Helper()
	for _, m := range p.members {
		text := p.file(m)
		if change != nil {
			text = change(text)
		}
		if err := os.WriteFile(m.file, []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// file is the configuration of a gateway.
func (p *proof) file(m *instance) string {
	var b strings.Builder
	fmt.Fprintf(&b, `listen: %q
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: {url: {env: REDIS_URL}}
overload: {working: 10000}
limits: {timeout: 5s}
policies: {deadline: 10s}
timeouts: {lookup: 0s, body: 60s}
balancers: {addresses: [127.0.0.1/32], forwarded_hops: 1}
envoy:
  listen: %q
  xds:
    advertise: %s
    groups:
`, m.data.Server(), p.platform.URL, m.door.Server(), m.address)
	for i, e := range p.envoys {
		fmt.Fprintf(&b, "      - {id: %s, topology: %s, listen: %q, tls: {certificate: {file: %q}, key: {file: %q}}}\n",
			e.group, []envoy.Topology{envoy.InLine, envoy.ExtProc}[i], e.addr, filepath.Join(p.pair, "tls.crt"), filepath.Join(p.pair, "private", "tls.key"))
	}
	b.WriteString("orgs:\n")
	for _, org := range append([]string{p.spender}, p.orgs...) {
		fmt.Fprintf(&b, `  - id: %s
    credential: {env: KEY_OF_%[6]s}
    policies: [{policy: gpu_allow_list, params: {gpus: ["NVIDIA GeForce RTX 4090"]}}]
    keys:
      - {id: any, sha256: %[2]s, roles: [admin], limits: %[4]s}
      - {id: counted, sha256: %[3]s, roles: [admin], limits: {day: %[5]d}}
`, org, identity.DigestOf("any_of_"+org), identity.DigestOf("counted_of_"+org), ample, quota, strings.ToUpper(org))
	}
	return strings.Replace(b.String(), "  - id: "+p.spender+"\n", fmt.Sprintf("  - id: %s\n    budget: {pods: %d}\n", p.spender, budget), 1)
}

// start runs the gateway, and returns when it serves.
func (m *instance) start() {
	m.p.t.Helper()
	m.plug()
	m.log = new(world.Buffer)
	m.cmd = exec.CommandContext(context.WithoutCancel(m.p.t.Context()), tollgate.Path(m.p.t), "serve", "-c", m.file)
	var addrs []string
	for _, n := range m.p.nodes {
		addrs = append(addrs, n.Addr())
	}
	m.cmd.Env = append(os.Environ(), "REDIS_URL=redis+cluster://"+strings.Join(addrs, ","))
	for _, org := range append([]string{m.p.spender}, m.p.orgs...) {
		m.cmd.Env = append(m.cmd.Env, fmt.Sprintf("KEY_OF_%s=pk-%s", strings.ToUpper(org), org))
	}
	m.cmd.Stderr = m.log
	if err := m.cmd.Start(); err != nil {
		m.p.t.Fatal(err)
	}
	world.Until(m.p.t, "a gateway serves", func() bool {
		return strings.Contains(m.log.String(), `"msg":"serving"`)
	})
}

// stop ends the gateway as an operator does.
func (m *instance) stop() {
	m.end(syscall.SIGTERM)
	m.unplug()
}

// kill ends the gateway as a crash does, its connections with it. It is stopped first, or
// it might note of a create that its caller has left, and die before it notes the end:
// the same create, sent again, is then answered 504 until the first must have ended.
func (m *instance) kill() {
	if err := m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		m.p.t.Error(err)
	}
	m.unplug()
	m.end(syscall.SIGKILL)
}

// plug starts the network again.
func (m *instance) plug() {
	m.data.Start()
	m.door.Start()
}

// unplug ends the network: a relay would go on to accept connections.
func (m *instance) unplug() {
	m.data.Stop()
	m.door.Stop()
}

// fail puts a fault on the network of both doors and returns a function that removes it.
func (m *instance) fail(f redistest.Fault) (remove func()) {
	data, door := m.data.Fail(f), m.door.Fail(f)
	return func() {
		data()
		door()
	}
}

func (m *instance) end(signal os.Signal) {
	if m.cmd == nil || m.cmd.ProcessState != nil {
		return
	}
	_ = m.cmd.Process.Signal(signal)
	if err := m.cmd.Wait(); err != nil && signal == syscall.SIGTERM {
		m.p.t.Errorf("gateway ended with %v:\n%s", err, m.log)
	}
}

// reload has every gateway read its file.
func (p *proof) reload() {
	p.t.Helper()
	for _, m := range p.members {
		if err := m.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			p.t.Fatal(err)
		}
	}
}

// settle waits until both Envoys send to all gateways.
func (p *proof) settle() { p.healthy(len(p.members)) }

func (p *proof) healthy(n int) {
	p.t.Helper()
	for _, e := range p.envoys {
		world.Until(p.t, fmt.Sprintf("%s sends to %d gateways", e.group, n), func() bool { return e.stat(p.t, "cluster.tollgate.membership_healthy") == n })
	}
}

// start runs the Envoy, and returns when callers can connect.
func (e *front) start(t *testing.T) {
	t.Helper()
	e.process = start(t, e.bootstrap)
	world.Until(t, "callers can connect to "+e.addr, func() bool {
		conn, err := net.Dial("tcp", e.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// served is the serial number of the certificate that callers of an Envoy are shown.
func (p *proof) served(e *front) string {
	conn, err := tls.Dial("tcp", e.addr, p.ca.client())
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// ask makes one call to an Envoy on a connection of its own.
func (p *proof) ask(e *front, raw string) (status int, body string, err error) {
	conn, err := tls.Dial("tcp", e.addr, p.ca.client())
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = conn.Close() }()
	return exchange(conn, newReader(conn), raw)
}

// calls counts the calls of an organisation that reached the platform.
func (p *proof) calls(org, operation string) (n int) {
	for _, c := range p.platform.CallsTo(operation) {
		if c.Header.Get("Authorization") == "Bearer pk-"+org {
			n++
		}
	}
	return n
}

// judged checks that nothing reached the platform but calls that a gateway had judged.
func (p *proof) judged() {
	p.t.Helper()
	for _, c := range p.platform.Calls() {
		if h := c.Header.Get("Authorization"); c.Operation != "getOpenAPI" && !strings.HasPrefix(h, "Bearer pk-") {
			p.t.Errorf("%s %s reached the platform with %q", c.Method, c.Path, h)
		}
		if bytes.Contains(c.Body, []byte("H100")) {
			p.t.Errorf("a create that policies refuse reached the platform: %s", c.Body)
		}
	}
}

// command is a POST to the admin interface.
func (p *process) command(t *testing.T, path string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}
