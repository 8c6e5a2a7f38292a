package envoy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// A fleet of real parts counts exactly under many callers, and each of what can happen
// to it, in turn and under load, loses no call that was not held by what ended, and lets
// none pass without a verdict.
func TestFleetProof(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ten processes")
	}
	p := newProof(t)
	t.Run("limits and budgets hold exactly", p.countsExactly)
	l := newLoad(p)
	for _, tt := range []struct {
		name   string
		happen func(t *testing.T, l *load)
	}{
		{"gateways restart", p.gatewaysRestart},
		{"gateways are killed", p.gatewaysAreKilled},
		{"Envoys restart", p.envoysRestart},
		{"no gateway answers for configuration", p.xdsIsAway},
		{"bad configuration", p.badConfiguration},
		{"another certificate", p.anotherCertificate},
		{"configuration changes and changes", p.manyConfigurations},
		{"a slow network", p.slowNetwork},
		{"a network that is cut", p.cutNetwork},
		{"a network that swallows", p.deafNetwork},
		{"a gateway hangs", p.gatewayHangs},
		{"a Redis master is killed", p.masterIsKilled},
	} {
		if !t.Run(tt.name, func(t *testing.T) {
			p.settle()
			l.more(50)
			tt.happen(t, l)
			l.more(50)
			l.nothing(t)
		}) {
			break
		}
	}
	l.finish()
	p.judged()
	t.Logf("%d calls", l.made.Load())
}

// countsExactly uses up a quota from 300 callers at both Envoys, and then a budget.
func (p *proof) countsExactly(t *testing.T) {
	const many = 300
	all := func(key, method, path, body string, done func(status int) bool) (statuses map[int]int) {
		statuses = make(map[int]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				for {
					status, text, err := p.ask(p.envoys[i%2], request(method, path, key, body, "Connection: close"))
					if err != nil {
						t.Errorf("%s %s: %v", method, path, err)
						return
					}
					mu.Lock()
					statuses[status]++
					mu.Unlock()
					if done(status) {
						return
					}
					if status >= 500 {
						t.Errorf("%s %s: %d %s", method, path, status, text)
						return
					}
				}
			})
		}
		wg.Wait()
		return statuses
	}
	org := p.orgs[1]
	day := time.Now().UTC().YearDay()
	// A read that takes long is sent to a second gateway, and counted there, too.
	got := all("counted_of_"+org, http.MethodDelete, "/v2/pods/nope1234", "", func(status int) bool { return status == http.StatusTooManyRequests })
	switch reached := p.calls(org, "deletePod"); {
	case day != time.Now().UTC().YearDay():
		t.Log("the day turned: its quota has begun anew")
	case got[http.StatusNotFound] != quota || reached != quota:
		t.Errorf("%d callers were answered %v, and %d calls reached the platform; want %d", many, got, reached, quota)
	}
	got = all("any_of_"+p.spender, http.MethodPost, "/v2/pods", pod4090, func(int) bool { return true })
	if reached := p.calls(p.spender, "createPod"); got[http.StatusCreated] != budget || reached != budget {
		t.Errorf("%d callers were answered %v, and %d creates reached the platform; want %d", many, got, reached, budget)
	}
}

func (p *proof) gatewaysRestart(t *testing.T, l *load) {
	for _, m := range p.members {
		m.stop()
		l.more(20)
		m.start()
		p.settle()
	}
	l.nothing(t)
}

func (p *proof) gatewaysAreKilled(t *testing.T, l *load) {
	for _, m := range p.members {
		m.kill()
		l.more(100)
		m.start()
		p.settle()
		l.held(t)
	}
}

// envoysRestart takes each Envoy out of rotation, has it ask callers to leave, and
// restarts it when they have: docs/envoy.md.
func (p *proof) envoysRestart(t *testing.T, l *load) {
	for i, e := range p.envoys {
		l.rotate(p.envoys[1-i])
		e.command(t, "/healthcheck/fail")
		world.Until(t, "callers have left", func() bool { return e.stat(t, "http.callers.downstream_cx_active") == 0 })
		e.end()
		l.more(20)
		e.start(p.t) // it outlives this part
		p.settle()
		l.rotate(p.envoys...)
	}
	l.nothing(t)
}

// xdsIsAway cuts Envoys off from the gateways as control plane: their configuration stays,
// and changes of the meantime come after. By ext_proc, the same connections are for
// verdicts.
func (p *proof) xdsIsAway(t *testing.T, l *load) {
	l.rotate(p.envoys[0])
	world.Until(t, "callers have left", func() bool { return p.envoys[1].stat(t, "http.callers.downstream_cx_active") == 0 })
	defer l.rotate(p.envoys...)
	connected := func(e *front) bool { return e.stat(t, "control_plane.connected_state") == 1 }
	for _, m := range p.members {
		m.door.Stop()
	}
	for _, e := range p.envoys {
		world.Until(t, "the Envoy is alone", func() bool { return !connected(e) })
	}
	serial := p.ca.issue(t, p.pair)
	p.reload()
	l.more(100)
	l.nothing(t)
	for _, m := range p.members {
		m.door.Start()
	}
	for _, e := range p.envoys {
		world.Until(t, "the Envoy has what changed", func() bool { return connected(e) && p.served(e) == serial })
	}
}

// badConfiguration is one that gateways refuse, and then one that only an Envoy can.
func (p *proof) badConfiguration(t *testing.T, l *load) {
	said := func(text string) bool {
		n := 0
		for _, m := range p.members {
			n += strings.Count(m.log.String(), text)
		}
		return n > 0
	}
	p.configure(func(text string) string { return strings.ReplaceAll(text, "groups:", "grapes:") })
	p.reload()
	world.Until(t, "gateways refuse their file", func() bool { return said("grapes") })
	p.configure(func(text string) string { return strings.ReplaceAll(text, p.envoys[0].addr, "203.0.113.7:81") }) // no address of this machine
	p.reload()
	world.Until(t, "the Envoy refuses", func() bool { return said("restored the previous configuration of the group") })
	l.more(50)
	p.configure(nil)
	p.reload()
	l.nothing(t)
}

func (p *proof) anotherCertificate(t *testing.T, l *load) {
	for range 3 {
		serial := p.ca.issue(t, p.pair)
		p.reload()
		for _, e := range p.envoys {
			world.Until(t, "callers are shown the new certificate", func() bool { return p.served(e) == serial })
		}
		l.more(20)
	}
	l.nothing(t)
}

// manyConfigurations changes listeners, which Envoys replace.
func (p *proof) manyConfigurations(t *testing.T, l *load) {
	for i := range 8 {
		was := p.envoys[0].stat(t, "listener_manager.lds.update_success") + p.envoys[1].stat(t, "listener_manager.lds.update_success")
		p.configure(func(text string) string { return strings.Replace(text, "body: 60s", fmt.Sprintf("body: %ds", 61+i), 1) })
		p.reload()
		world.Until(t, "both Envoys have it", func() bool {
			return p.envoys[0].stat(t, "listener_manager.lds.update_success")+p.envoys[1].stat(t, "listener_manager.lds.update_success") >= was+2
		})
		l.more(10)
	}
	l.nothing(t)
}

func (p *proof) slowNetwork(t *testing.T, l *load) {
	defer p.members[0].fail(redistest.Fault{Latency: 150 * time.Millisecond, Jitter: 100 * time.Millisecond})()
	l.more(150)
	l.nothing(t)
}

func (p *proof) cutNetwork(t *testing.T, l *load) {
	p.members[0].unplug()
	l.more(150)
	p.healthy(len(p.members) - 1)
	p.members[0].plug()
	p.settle()
	l.held(t)
}

// deafNetwork keeps connections open and delivers nothing. In line, bytes that were sent
// into it wait until the connection ends; by ext_proc, until Envoy ends it for want of an
// answer to its pings. Health checks keep the rest from it.
func (p *proof) deafNetwork(t *testing.T, l *load) {
	func() {
		defer p.members[0].fail(redistest.Fault{Drop: true})()
		p.healthy(len(p.members) - 1)
		world.Until(t, "a ping is not answered", func() bool { return p.envoys[1].stat(t, "cluster.tollgate.http2.keepalive_timeout") > 0 })
	}()
	p.settle()
	l.held(t)
}

// gatewayHangs stops a gateway whose kernel goes on to accept connections. Another one
// answers the reads that it was sent; its writes are answered 504 when a call to the
// platform must have ended.
func (p *proof) gatewayHangs(t *testing.T, l *load) {
	p.configure(func(text string) string { return strings.Replace(text, "body: 60s", "body: 60s, call: 8s", 1) })
	p.reload()
	e := p.envoys[0]
	world.Until(t, "the Envoy has the time-out", func() bool {
		return strings.Contains(e.ask(t, "/config_dump?resource=dynamic_route_configs"), `"timeout": "9s"`)
	})
	calls := make([]*caller, 24)
	for i := range calls {
		calls[i] = &caller{load: l}
		defer calls[i].hangUp()
		if status, err := calls[i].ask(t.Context(), 0, request("GET", "/v2/serverless", "any_of_"+p.orgs[0], "")); status != http.StatusOK {
			t.Fatalf("before: %d %v", status, err)
		}
	}
	if err := p.members[0].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var held atomic.Int64
	reads := make([]time.Duration, len(calls))
	for i, c := range calls {
		wg.Go(func() {
			began := time.Now()
			if i%2 == 0 {
				status, err := c.ask(t.Context(), 0, request("GET", "/v2/serverless", "any_of_"+p.orgs[0], ""))
				if status != http.StatusOK {
					t.Errorf("a read: %d %v", status, err)
				}
				reads[i] = time.Since(began)
				return
			}
			status, err := c.ask(t.Context(), 0, request("POST", "/v2/pods", "any_of_"+p.orgs[0], strings.Replace(pod4090, `"a"`, fmt.Sprintf(`"hung-%d"`, i), 1)))
			if took := time.Since(began); status == http.StatusGatewayTimeout && took >= 8900*time.Millisecond { // its timers are some milliseconds early
				held.Add(1)
			} else if status != http.StatusCreated {
				t.Errorf("a write: %d %v after %s", status, err, took)
			}
		})
	}
	wg.Wait()
	t.Logf("the slowest read took %s", slices.Max(reads))
	if held.Load() == 0 || held.Load() == int64(len(calls)/2) {
		t.Errorf("%d of %d writes were answered 504, want those that the gateway was sent", held.Load(), len(calls)/2)
	}
	p.healthy(len(p.members) - 1)
	p.members[0].kill()
	p.configure(nil)
	p.members[0].start()
	p.reload()
	p.settle()
	for _, c := range l.take() {
		// A write that it held when it was killed, and by ext_proc a call that it had judged, is
		// a 503.
		if c.method != http.MethodPost && c.addr == e.addr || c.status != http.StatusGatewayTimeout && c.status != http.StatusServiceUnavailable {
			t.Errorf("lost: %v, want in line only writes, and all of them answered", c)
		}
	}
}

// masterIsKilled takes the master of one organisation: its callers are answered by their
// failure policies, those of the others notice nothing, and calls that cost are refused.
func (p *proof) masterIsKilled(t *testing.T, l *load) {
	spent := p.calls(p.spender, "createPod")
	p.nodes[0].Kill()
	for i := range 20 {
		status, text, err := p.ask(p.envoys[i%2], request("POST", "/v2/pods", "any_of_"+p.spender, pod4090, "Connection: close"))
		if err != nil || status == http.StatusCreated {
			t.Errorf("a create that may cost more than the budget: %d %s %v, want it refused", status, text, err)
		}
	}
	l.more(200)
	for _, c := range l.take() {
		if c.org != p.orgs[0] || c.method != http.MethodPost || c.status != http.StatusServiceUnavailable {
			t.Errorf("lost: %v, want nothing but creates of %s, answered 503", c, p.orgs[0])
		}
	}
	if got := p.calls(p.spender, "createPod"); got != spent {
		t.Errorf("%d creates reached the platform beyond the budget", got-spent)
	}
	p.nodes[0].Resume()
	world.Until(t, "creates pass again", func() bool {
		status, _, err := p.ask(p.envoys[0], request("POST", "/v2/pods", "any_of_"+p.orgs[0], pod4090, "Connection: close"))
		return err == nil && status == http.StatusCreated
	})
	world.Until(t, "all gateways count again", func() bool {
		l.take()
		l.more(100)
		return len(l.take()) == 0
	})
}
