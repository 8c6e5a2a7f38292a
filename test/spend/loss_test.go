package spend

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

const (
	lossGPUs = 5
	// lossDay is the team's spending of today.
	lossDay = 7_000_000
)

// lossSite has two gateways with a team whose budget is used up, by pods of both.
type lossSite struct {
	*site

	server *redistest.Server
	redis  redistest.Conn
	mark   *redistest.Mark
	own    []string // pods of the team
}

func newLossSite(t *testing.T) *lossSite {
	t.Helper()
	return newLossSiteOn(t, redistest.Run(t, "--appendonly", "yes", "--appendfsync", "always"))
}

func newLossSiteOn(t *testing.T, server *redistest.Server) *lossSite {
	t.Helper()
	x := &lossSite{server: server}
	server.Mark() // its first replica changes the id of its data's history
	x.redis = redistest.Client(t, x.server.Addr())
	x.site = open(t, &plan{
		gateways: 2, run: true, redis: x.server.Addr(), settings: "spend: {reconcile: 1s}",
		config: fmt.Sprintf("    teams: [{id: research, budget: {gpus: %d}}, {id: ops}]\n    keys:\n", lossGPUs) +
			"      - {id: ann, team: research, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}\n" +
			"      - {id: bob, team: ops, sha256: SHA256(key_of_bob_1), roles: [admin], exempt: true}\n",
	})
	x.await("the ledger is complete", func() bool { s := x.state(); return s.Complete })
	for i := range lossGPUs {
		if i == lossGPUs-2 {
			x.spend()
			x.mark = x.server.Mark()
		}
		x.await("a pod is made", func() bool { // with 503 nothing is: a disk that is slow holds the store up
			a, err := x.ask(i, "key_of_ann_1", http.MethodPost, pods, slotPod)
			if err != nil || a.status != http.StatusCreated && a.status != http.StatusServiceUnavailable {
				t.Fatalf("create: %d %s (%v)", a.status, a.body, err)
			}
			if a.status == http.StatusCreated {
				x.own = append(x.own, a.id())
			}
			return a.status == http.StatusCreated
		})
	}
	for g := range x.gateways {
		x.reconcile(g) // their images are of now
	}
	return x
}

// research is the team's scope.
func research() ledger.Scope { return ledger.Scope{Kind: ledger.KindTeam, ID: "research"} }

// spend makes the team have spent something in each of the current periods.
func (x *lossSite) spend() {
	x.t.Helper()
	key := prefix + "{acme}:accounts"
	text, err := x.redis.HGet(x.t.Context(), key, "team:research").Result()
	if err != nil {
		x.t.Fatal(err)
	}
	n := strings.Split(text, ",")
	const first, width = 14, 3 // of each period the accrued cost, after a time, two times six amounts and the period's start
	for i := first; i < len(n); i += width {
		n[i] = strconv.Itoa(lossDay)
	}
	if err := x.redis.HSet(x.t.Context(), key, "team:research", strings.Join(n, ",")).Err(); err != nil {
		x.t.Fatal(err)
	}
}

// full asks until the budget is known to be used up: nothing is made before.
func (x *lossSite) full() (unavailable int) {
	x.t.Helper()
	x.await("the budget is used up", func() bool {
		a, err := x.ask(1, "key_of_ann_1", http.MethodPost, pods, slotPod)
		switch {
		case err != nil:
			x.t.Fatal(err)
		case a.status == http.StatusServiceUnavailable:
			unavailable++
			return false
		case a.status != http.StatusPaymentRequired:
			x.t.Fatalf("create: %d %s, want 402", a.status, a.body)
		}
		return true
	})
	return unavailable
}

// shown is what `tollgate spend show` reads.
func (x *lossSite) shown() (l money.Ledger) {
	x.t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(x.t.Context(), http.MethodGet, "/admin/spend?org=acme", http.NoBody)
	r.Host = "127.0.0.1"
	x.gateways[0].AdminHandler().ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
		x.t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return l
}

// same wants owners and sums to be those of before. Pods that were deleted within the
// last minute may count still.
func (x *lossSite) same(deleted int64) {
	x.t.Helper()
	state := x.state()
	owners := make(map[string]ledger.Owner)
	for _, r := range state.Resources {
		owners[r.ID] = r.Owner
	}
	for _, id := range x.own {
		if got, want := owners[id], (ledger.Owner{Team: "research", Key: "ann"}); got != want {
			x.t.Errorf("%s is of %+v, want %+v", id, got, want)
		}
	}
	b := balance(&state, research())
	if n := b.Committed[ledger.GPUs]; n < lossGPUs || n > lossGPUs+deleted || b.Reserved != (ledger.Amounts{}) || b.Day < lossDay || b.Month < lossDay {
		x.t.Errorf("the team has %+v, want %d GPUs and at least %d micro-dollars", b, lossGPUs, lossDay)
	}
	if d := state.Differences(); len(d) > 0 {
		x.t.Errorf("the sums differ from what they are sums of: %+v", d)
	}
}

// TestNothingIsForgottenWithRedis: whichever keys the store loses while gateways live, no budget
// is passed, owners and sums come back, and the log tells of it.
func TestNothingIsForgottenWithRedis(t *testing.T) {
	t.Parallel()
	del := func(name string) func(context.Context, *lossSite) error {
		return func(ctx context.Context, x *lossSite) error { return x.redis.Del(ctx, prefix+"{acme}:"+name).Err() }
	}
	for lost, lose := range map[ledger.LostPart]func(context.Context, *lossSite) error{
		ledger.LostAll:       func(ctx context.Context, x *lossSite) error { return x.redis.FlushAll(ctx).Err() },
		ledger.LostChanges:   func(_ context.Context, x *lossSite) error { x.mark.RollBack(); return nil },
		ledger.LostAccounts:  del("accounts"),
		ledger.LostResources: del("resources"),
		ledger.LostHolds:     del("holds"),
		ledger.LostEnded:     del("ended"),
	} {
		t.Run(string(lost), func(t *testing.T) {
			t.Parallel()
			x := newLossSite(t)
			if err := lose(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			x.full()
			defer func() {
				if t.Failed() {
					t.Logf("the ledger is shown as %+v, and is %+v", x.shown(), x.state())
				}
			}()
			x.await("the loss is known", func() bool { l := x.shown().Loss; return l != nil && l.Rebuilt != nil })
			l := x.shown()
			// A server that goes back is another one, for gateways that are late.
			late := lost == ledger.LostChanges && l.Loss.Lost == string(ledger.LostServer)
			if l.Loss.Lost != string(lost) && !late || l.Loss.Unowned != 0 || !l.Complete {
				t.Errorf("loss = %+v, complete is %t, want %s with no resource unowned", l.Loss, l.Complete, lost)
			}
			x.same(0)
			if n := len(x.pods()); n != lossGPUs {
				t.Errorf("%d pods at the platform, want %d", n, lossGPUs)
			}
		})
	}
}

// TestARestartThatLosesNothing: what raises cost waits until every gateway has found its
// own writes at the new server, and nothing is rebuilt.
func TestARestartThatLosesNothing(t *testing.T) {
	t.Parallel()
	x := newLossSite(t)
	before := x.state()
	x.server.Restart()
	if n := x.full(); n == 0 {
		t.Error("the restart was not noticed: no call was refused with 503")
	}
	if after := x.state(); after.Epoch != before.Epoch || x.shown().Loss != nil {
		t.Errorf("epoch %d became %d, loss %+v: the ledger was rebuilt", before.Epoch, after.Epoch, x.shown().Loss)
	}
	x.same(0)
}

// TestAnOldServer: a server that has older data takes the place of the one that there
// was, and the gateway that lost nothing writes first: it finds a pod in the platform's list whose owner the other remembers.
func TestAnOldServer(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	x := newLossSiteOn(t, server)
	x.await("the data is saved", func() bool { return x.redis.Save(t.Context()).Err() == nil }) // a replica may be sent it
	a, err := x.ask(0, "key_of_ann_1", http.MethodDelete, pods+"/"+x.own[0], "")
	if err != nil || a.status != http.StatusNoContent {
		t.Fatalf("delete: %d %s (%v)", a.status, a.body, err)
	}
	a, err = x.ask(0, "key_of_ann_1", http.MethodPost, pods, slotPod)
	if err != nil || a.status != http.StatusCreated {
		t.Fatalf("create: %d %s (%v)", a.status, a.body, err)
	}
	x.own[0] = a.id()
	server.Restart()
	x.await("the gateway that lost nothing has reconciled", func() bool { _, err := x.pass(1); return err == nil })
	x.full()
	x.await("the loss is known", func() bool { l := x.shown().Loss; return l != nil && l.Rebuilt != nil })
	if got := ledger.LostPart(x.shown().Loss.Lost); got != ledger.LostChanges && got != ledger.LostServer { // that is what late gateways make of it
		t.Errorf("lost %q, want %q", got, ledger.LostChanges)
	}
	x.same(1)
}

// TestNewGatewaysReadTheAuditLog: when all gateways end and the store is emptied, the
// owners are those of the audit log.
func TestNewGatewaysReadTheAuditLog(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	p := &plan{
		gateways: 1, redis: server.Addr(), settings: fmt.Sprintf("audit: {file: {path: %q}}", filepath.Join(t.TempDir(), "audit.log")),
		config: "    budget: {gpus: 5}\n    teams: [{id: research}]\n    keys:\n" +
			"      - {id: ann, team: research, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}\n",
	}
	x := &lossSite{site: open(t, p), redis: redistest.Client(t, server.Addr())}
	x.reconcile(0)
	a, err := x.ask(0, "key_of_ann_1", http.MethodPost, pods, slotPod)
	if err != nil || a.status != http.StatusCreated {
		t.Fatalf("create: %d %s (%v)", a.status, a.body, err)
	}
	other := x.outside(http.MethodPost, pods, slotPod).id()
	x.gateways[0].Close()
	if err := x.redis.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	x.gateways = nil
	x.start(p)
	x.reconcile(0)
	owners := make(map[string]ledger.Owner)
	for _, r := range x.state().Resources {
		owners[r.ID] = r.Owner
	}
	if want := map[string]ledger.Owner{a.id(): {Team: "research", Key: "ann"}, other: {}}; !maps.Equal(owners, want) {
		t.Errorf("owners = %v, want %v", owners, want)
	}
	if l := x.shown().Loss; l == nil || l.Lost != string(ledger.LostAll) || l.Returned != 1 || l.Unowned != 1 {
		t.Errorf("loss = %+v, want one resource returned and one unowned", l)
	}
}

// pods lists what there is at the platform.
func (s *site) pods() []pod {
	s.t.Helper()
	a := s.outside(http.MethodGet, pods, "")
	var list struct{ Pods []pod }
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		s.t.Fatal(err)
	}
	return list.Pods
}
