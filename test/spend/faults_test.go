package spend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

const (
	// faultGPUs is the budget of the organisation in these scenes.
	faultGPUs    = 6
	faultCallers = 10
	// faultTime is how long callers live with a fault.
	faultTime = 4 * time.Second
	// faultsAtOnce is in how many scenes callers live at the same time. The others wait
	// for the ledger to settle, which takes some of them a minute.
	faultsAtOnce = 4
)

// trouble is a site whose network, store and platform are in a test's hands.
type trouble struct {
	*site

	server *redistest.Server
	store  *redistest.Relay
	late   *late
	// made are the names of the pods that were asked for, each in one request.
	made atomic.Int64
	// calm says that the callers have left.
	calm atomic.Bool
}

// TestFaults has callers rent, stop, start and return pods while something goes wrong. At no
// sample is the budget passed, in the ledger or at the platform; afterwards the ledger agrees with
// the platform, and no request has made two pods.
func TestFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("lives for a minute")
	}
	busy := make(chan struct{}, faultsAtOnce)
	for _, tt := range []struct {
		name  string
		clock *platform.Clock
		// loses says that the store loses data: its sums are no measure while it is made to agree
		// with the platform again.
		loses bool
		// fault goes on until ctx ends.
		fault func(ctx context.Context, x *trouble)
	}{
		{name: "the store's replies are lost", fault: lostReplies},
		{name: "the store answers late", fault: lateReplies},
		{name: "the platform's answers are lost", fault: platformFault(platform.Fault{Kind: platform.FaultDrop, After: true, Probability: 0.3})},
		{name: "the platform's answers break off", fault: platformFault(platform.Fault{Kind: platform.FaultCut, Probability: 0.3})},
		{name: "the platform hangs", fault: platformFault(platform.Fault{Kind: platform.FaultHang, After: true, Probability: 0.1})},
		{name: "the platform fails", fault: platformFault(platform.Fault{Kind: platform.FaultStatus, Status: 500, Probability: 0.3})},
		{name: "the platform commits after its 504", fault: lateCommits},
		{name: "the platform is an hour ahead", clock: platform.NewClock(time.Now().Add(time.Hour), 1), fault: lateCommits},
		{name: "the platform is an hour behind", clock: platform.NewClock(time.Now().Add(-time.Hour), 1), fault: lateCommits},
		{name: "the store restarts empty", loses: true, fault: once(func(x *trouble) { x.server.Restart() })},
		{name: "the store restarts from an old snapshot", loses: true, fault: oldSnapshot},
		{name: "a replica that is behind takes over", loses: true, fault: replicaBehind},
		{name: "two gateways lead", fault: twoLeaders},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			busy <- struct{}{}
			free := sync.OnceFunc(func() { <-busy })
			defer free()
			x := newTrouble(t, tt.clock)
			stop := x.watch(tt.loses)
			x.suffer(tt.fault)
			free()
			x.settle()
			if n := stop(); n < 10 {
				t.Errorf("the ledger was sampled %d times", n)
			}
			x.compare()
		})
	}
}

func newTrouble(t *testing.T, clock *platform.Clock) *trouble {
	t.Helper()
	x := &trouble{server: redistest.Run(t), late: &late{t: t}}
	x.store = redistest.NewRelay(t, x.server.Addr())
	p := &plan{
		gateways: 2, run: true, platformClock: clock, redis: x.store.Addr(), truth: x.server.Addr(), upstream: x.late.front,
		settings: "timeouts: {call: 1s, response: 1s}\nspend: {reconcile: 1s}",
		config: fmt.Sprintf("    budget: {gpus: %d, per_hour: 10}\n    teams: [{id: research}, {id: ops}]\n    keys:\n", faultGPUs) +
			"      - {id: ann, team: research, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}\n" +
			"      - {id: bob, team: ops, sha256: SHA256(key_of_bob_1), roles: [admin], exempt: true}\n",
	}
	x.site = open(t, p)
	x.await("the ledger is complete", func() bool { s := x.state(); return s.Complete })
	return x
}

// suffer has callers live with a fault.
func (x *trouble) suffer(fault func(ctx context.Context, x *trouble)) {
	ctx, cancel := context.WithTimeout(x.t.Context(), faultTime)
	defer cancel()
	var wg sync.WaitGroup
	for i := range faultCallers {
		wg.Go(func() { x.live(ctx, i) })
	}
	wg.Go(func() { fault(ctx, x) })
	wg.Wait()
	x.calm.Store(true)
}

// live is what one caller does: it rents, stops, starts and returns pods of its own.
func (x *trouble) live(ctx context.Context, i int) {
	r := rand.New(rand.NewPCG(uint64(i), 3))
	key := []string{"key_of_ann_1", "key_of_bob_1"}[i%2]
	var own []string
	for ctx.Err() == nil {
		method, path, body := http.MethodPost, pods, ""
		at := -1
		if len(own) == 0 || len(own) < 3 && r.IntN(3) == 0 {
			body = fmt.Sprintf(`{"name":"pod-%d","image":"img:1","disk":20,"gpu":{"id":"NVIDIA L4"}}`, x.made.Add(1))
		} else {
			at = r.IntN(len(own))
			path += "/" + own[at]
			switch r.IntN(4) {
			case 0:
				path, body = path+"/action", `{"action":"stop"}`
			case 1:
				path, body = path+"/action", `{"action":"start"}`
			default:
				method = http.MethodDelete
			}
		}
		a, err := x.ask(r.IntN(2), key, method, path, body)
		if err != nil {
			x.t.Errorf("%s %s: %v", method, path, err)
			continue
		}
		switch a.status {
		case http.StatusCreated:
			own = append(own, a.id())
		case http.StatusNoContent, http.StatusNotFound:
			own = append(own[:at], own[at+1:]...)
		case http.StatusOK, http.StatusPaymentRequired, http.StatusConflict, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		default:
			x.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
	}
}

// rented are the pods at the platform.
func (x *trouble) rented() []pod {
	x.t.Helper()
	a, err := x.call(x.platform.URL, credential, http.MethodGet, pods, "")
	var list struct{ Pods []pod }
	if err == nil {
		err = json.Unmarshal([]byte(a.body), &list)
	}
	if err != nil {
		x.t.Errorf("list: %v", err)
	}
	return list.Pods
}

type pod struct{ ID, Name, Status string }

func (p *pod) gpus() int64 {
	if p.Status == "EXITED" {
		return 0
	}
	return 1
}

// watch samples the ledger and the platform until stop is called, which says how
// often it did: without a pause while callers live, then twenty times a second.
func (x *trouble) watch(loses bool) (stop func() int64) {
	ctx, cancel := context.WithCancel(x.t.Context())
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if x.calm.Load() {
				pause(ctx, 50*time.Millisecond)
			}
			running := int64(0)
			for _, p := range x.rented() {
				running += p.gpus()
			}
			if running > faultGPUs {
				x.t.Errorf("%d GPUs run at the platform, want at most %d", running, faultGPUs)
			}
			state, err := x.site.store.Show(ctx, "acme")
			if err != nil || !state.Complete {
				continue // away, or not yet what counts
			}
			n.Add(1)
			b := balance(&state, ledger.Scope{Kind: ledger.KindOrg})
			if has := b.Committed[ledger.GPUs] + b.Reserved[ledger.GPUs]; has > faultGPUs && !loses {
				x.t.Errorf("%d GPUs are committed and reserved, want at most %d: %+v", has, faultGPUs, state)
			}
		}
	}()
	return func() int64 {
		cancel()
		<-done
		return n.Load()
	}
}

// settle waits until nothing is open.
func (x *trouble) settle() {
	x.t.Helper()
	x.late.wait()
	x.await("all holds are settled", func() bool {
		state, err := x.site.store.Show(x.t.Context(), "acme")
		return err == nil && state.Complete && len(state.Holds) == 0
	})
	// A pod that was made a moment ago may be missing in a list.
	x.await("the ledger has stood still", func() bool {
		r, err := x.pass(0)
		return err == nil && r.Adopted+r.Changed+r.Removed == 0 && r.Resources == len(x.state().Resources)
	})
}

// compare wants the ledger to agree with the platform.
func (x *trouble) compare() {
	x.t.Helper()
	state := x.state()
	records := make(map[string]ledger.Record)
	for _, r := range state.Resources {
		records[r.ID] = r
	}
	names := make(map[string]string)
	for _, p := range x.rented() {
		r, ok := records[p.ID]
		if !ok || r.Amounts[ledger.GPUs] != p.gpus() || r.Amounts[ledger.Pods] != 1 {
			x.t.Errorf("pod %s (%s) is %+v in the ledger", p.ID, p.Status, r)
		}
		delete(records, p.ID)
		if other, twice := names[p.Name]; twice {
			x.t.Errorf("one request made the pods %s and %s", other, p.ID)
		}
		names[p.Name] = p.ID
	}
	if len(records) > 0 {
		x.t.Errorf("in the ledger, but not at the platform: %v", records)
	}
	b := balance(&state, ledger.Scope{Kind: ledger.KindOrg})
	var sum ledger.Amounts
	for _, r := range state.Resources {
		for d, n := range r.Amounts {
			sum[d] += n
		}
	}
	if b.Committed != sum || b.Reserved != (ledger.Amounts{}) {
		x.t.Errorf("%+v is counted, want %v committed", b, sum)
	}
	asked := make(map[string]int)
	for _, c := range x.platform.CallsTo("createPod") {
		asked[string(c.Body)]++
	}
	for body, n := range asked {
		if n > 1 && !strings.Contains(x.t.Name(), "the platform fails") {
			x.t.Errorf("the platform was asked %d times for %s", n, body)
		}
	}
	x.t.Logf("%d creates, %d pods are left", len(asked), len(names))
}

// once lets a fault happen in the middle of the time.
func once(f func(x *trouble)) func(context.Context, *trouble) {
	return func(ctx context.Context, x *trouble) {
		pause(ctx, faultTime/2)
		f(x)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fail puts a fault on the replies of the store for some time.
func (x *trouble) fail(ctx context.Context, f redistest.Fault, d time.Duration) {
	defer x.store.Fail(f)()
	pause(ctx, d)
}

// lostReplies lets scripts run and cuts their replies off, again and again.
func lostReplies(ctx context.Context, x *trouble) {
	for ctx.Err() == nil {
		x.fail(ctx, redistest.Fault{Bytes: 2000}, 200*time.Millisecond)
		pause(ctx, 100*time.Millisecond)
		x.fail(ctx, redistest.Fault{Drop: true, End: 5 * time.Millisecond, Reset: true}, 50*time.Millisecond)
		pause(ctx, 100*time.Millisecond)
	}
}

func lateReplies(ctx context.Context, x *trouble) {
	for ctx.Err() == nil {
		x.fail(ctx, redistest.Fault{Latency: 400 * time.Millisecond, Jitter: 300 * time.Millisecond}, 700*time.Millisecond)
		pause(ctx, 300*time.Millisecond)
	}
}

func platformFault(f platform.Fault) func(context.Context, *trouble) {
	return func(ctx context.Context, x *trouble) {
		for _, operation := range []string{"createPod", "podAction", "deletePod"} {
			f.Operation = operation
			x.platform.AddFault(f)
		}
		<-ctx.Done()
		x.platform.ClearFaults()
	}
}

func lateCommits(ctx context.Context, x *trouble) {
	x.late.often.Store(true)
	<-ctx.Done()
	x.late.often.Store(false)
}

func oldSnapshot(ctx context.Context, x *trouble) {
	own := redistest.Client(x.t, x.server.Addr())
	pause(ctx, faultTime/4)
	if err := own.Save(ctx).Err(); err != nil {
		x.t.Error(err)
	}
	pause(ctx, faultTime/4)
	x.server.Restart()
}

func replicaBehind(ctx context.Context, x *trouble) {
	pause(ctx, faultTime/4)
	mark := x.server.Mark()
	pause(ctx, faultTime/4)
	mark.RollBack()
}

// twoLeaders takes the locks away from their holders, and has both gateways reconcile at the same
// time. A pass fails if a busy machine answers later than a gateway waits, so each gateway goes on
// until it has completed one.
func twoLeaders(ctx context.Context, x *trouble) {
	own := redistest.Client(x.t, x.server.Addr())
	var wg sync.WaitGroup
	for g := range x.gateways {
		wg.Go(func() {
			for completed := false; ctx.Err() == nil || !completed; {
				_ = own.Del(x.t.Context(), prefix+"leader", prefix+"{acme}:pass").Err() // the time is over
				_, err := x.pass(g)
				if err != nil {
					x.t.Logf("gateway %d: %v", g, err)
				}
				completed = completed || err == nil
			}
		})
	}
	wg.Wait()
}

// late is a front of the platform that now and then answers 504 to a change and
// carries it out two seconds afterwards.
type late struct {
	t     *testing.T
	often atomic.Bool
	n     atomic.Int64
	wg    sync.WaitGroup
}

func (l *late) front(upstream string) string {
	target, err := url.Parse(upstream)
	if err != nil {
		l.t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32}
	l.t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // what the platform cuts off is cut off here
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.often.Load() || r.Method == http.MethodGet || l.n.Add(1)%4 != 0 {
			proxy.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		l.wg.Go(func() { l.commit(target, transport, r, string(body)) })
		w.WriteHeader(http.StatusGatewayTimeout)
	}))
	l.t.Cleanup(server.Close)
	return server.URL
}

func (l *late) commit(target *url.URL, transport http.RoundTripper, r *http.Request, body string) {
	pause(context.WithoutCancel(l.t.Context()), 2*time.Second)
	again, err := http.NewRequestWithContext(context.WithoutCancel(l.t.Context()), r.Method, target.JoinPath(r.URL.Path).String(), strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return
	}
	again.Header = r.Header.Clone()
	res, err := transport.RoundTrip(again)
	if err != nil {
		l.t.Error(err)
		return
	}
	_ = res.Body.Close()
}

// wait waits until everything was carried out.
func (l *late) wait() { l.wg.Wait() }
