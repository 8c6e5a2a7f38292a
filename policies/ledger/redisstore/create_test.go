package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// creator creates pods under budgets: of the organisation alone, or of teams and keys, too.
type creator struct {
	ledger ledger.Ledger
	plan   ledger.Plan
	owners []ledger.Owner
	each   ledger.Amounts // of what a create makes
	made   atomic.Int64
}

// newCreator returns a creator whose calls are counted in so many scopes together: the organisation, a team and keys.
func newCreator(tb testing.TB, client redis.Cmdable, scopes, resources int) *creator {
	tb.Helper()
	ample := ledger.Budget{PerHour: 1e12, PerMonth: 1e14, Pods: 1e8}
	store := redisstore.New(client, "tg:spend:", nil)
	c := &creator{
		ledger: ledger.Ledger{Store: store}, owners: []ledger.Owner{{}}, each: oneGPU,
		plan: ledger.Plan{Org: ample, Teams: map[string]ledger.Budget{"research": ample}, Keys: make(map[string]ledger.Budget)},
	}
	if scopes > 1 {
		c.owners = nil
	}
	for i := range scopes - 2 {
		key := fmt.Sprint("key", i)
		c.plan.Keys[key] = ample
		c.owners = append(c.owners, ledger.Owner{Team: "research", Key: key})
	}
	if err := store.BeginRebuild(tb.Context(), "acme", "token"); err != nil {
		tb.Fatal(err)
	}
	if _, err := store.FinishRebuild(tb.Context(), "acme", "token"); err != nil {
		tb.Fatal(err)
	}
	all := make([]*ledger.Adjustment, resources)
	for i := range all {
		all[i] = &ledger.Adjustment{Kind: "pod", Resource: fmt.Sprintf("pod%010d", i), Amounts: oneGPU, Owner: &c.owners[i%len(c.owners)]}
	}
	if _, err := store.Adjust(tb.Context(), "acme", all...); err != nil {
		tb.Fatal(err)
	}
	return c
}

// oneGPU are the amounts of a pod.
var oneGPU = ledger.Amounts{ledger.Burn: 430_000, ledger.GPUs: 1, ledger.Pods: 1}

// create reserves the cost of a pod with an intent, and commits both.
func (c *creator) create(tb testing.TB) {
	tb.Helper()
	next := int(c.made.Add(1))
	id, owner := fmt.Sprintf("01KAMZ7QJ7D0V7RZ3P%08d", next), c.owners[next%len(c.owners)]
	wish, like := fmt.Sprintf("w%032x", next), fmt.Sprintf("l%032x", next)
	n := &ledger.IntentRecord{
		Org: "acme", Fingerprint: wish, Lookalike: like, Response: "a-", Intent: id, Owner: owner.Key,
		Row: `{"gateway":"01M8JPVXANT2A8M2JCDC82NS7C","print":"70e395aade48dd938b0c6d7225cdb962","name":"a","shape":"NVIDIA L4 x 1, img:1"}`,
	}
	r := ledger.Reservation{
		Hold: id, Kind: "pod", Owner: owner, After: c.each, Intent: n, Holder: ledger.Holder{Incarnation: "01M8JPVXANT2A8M2JCDC82NS7C"},
		Metadata: ledger.Metadata{Operation: "createPod", Decision: "01KAMZ7QJ7D0V7RZ3PX1D3V0C6", Name: "run-1", Description: "NVIDIA L4 x 1, img:1", GPU: "NVIDIA L4"},
	}
	quote, err := c.ledger.Reserve(tb.Context(), "acme", &c.plan, r)
	if err != nil || quote.Refused != nil {
		tb.Errorf("reserve: refused by %v, %v", quote.Refused, err)
		return
	}
	err = c.ledger.Settle(tb.Context(), "acme", &ledger.Settlement{
		End: ledger.Commit, Hold: id, Kind: r.Kind, Resource: fmt.Sprint("p", next), Owner: owner, Amounts: c.each, Metadata: r.Metadata,
		Intent: &ledger.IntentUpdate{
			Org: "acme", Created: fmt.Sprint("mpod/p", next), Fingerprint: wish, Lookalike: like, Response: "a-", Intent: id,
			OldRow: strconv.FormatInt(quote.Now.UnixMilli(), 10) + " " + n.Row, SetCreated: true, UnsetLookalike: true,
		},
	})
	if err != nil {
		tb.Errorf("settle: %v", err)
	}
}

// cpuTime is the CPU time of a server, in microseconds.
func cpuTime(tb testing.TB, client redistest.Conn) float64 {
	tb.Helper()
	text, err := client.Info(tb.Context(), "cpu").Result()
	if err != nil {
		tb.Fatal(err)
	}
	sum := 0.0
	for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
		var seconds float64
		_, rest, _ := strings.Cut(text, name)
		if _, err := fmt.Sscanf(rest, "%f", &seconds); err != nil {
			tb.Fatal(err)
		}
		sum += seconds
	}
	return sum * 1e6
}

// TestCreateCost compares the commands of a create under budgets, those of scripts included, with a committed figure: neither scopes nor
// resources change it.
func TestCreateCost(t *testing.T) {
	const n, most = 256, 27.5
	for _, c := range []struct{ scopes, resources int }{{1, 10}, {3, 10}, {10, 1_000}} {
		client := redistest.Client(t, redistest.Start(t))
		creator := newCreator(t, client, c.scopes, c.resources)
		creator.create(t)
		before := commands(t, client)
		for range n {
			creator.create(t)
		}
		per := float64(commands(t, client)-before-1) / n // without the question itself
		t.Logf("%d scopes, %d resources: %.1f commands a create", c.scopes, c.resources, per)
		if per > most {
			t.Errorf("%d scopes, %d resources: %.1f commands a create, want at most %.1f", c.scopes, c.resources, per, most)
		}
	}
}

// BenchmarkCreateInRedis measures what a create under budgets costs in Redis, as scopes and resources grow: CPU time and commands, of
// one call at a time and of many.
func BenchmarkCreateInRedis(b *testing.B) {
	for _, scopes := range []int{1, 3, 10} {
		for _, resources := range []int{10, 1_000, 10_000} {
			for _, atOnce := range []int{1, 32} {
				b.Run(fmt.Sprintf("scopes=%d/resources=%d/at-once=%d", scopes, resources, atOnce), func(b *testing.B) {
					client := redistest.Client(b, redistest.Start(b))
					creator := newCreator(b, client, scopes, resources)
					creator.create(b)
					cpu, ran := cpuTime(b, client), commands(b, client)
					b.ResetTimer()
					var callers sync.WaitGroup
					for i := range atOnce {
						callers.Go(func() {
							for range (b.N + i) / atOnce {
								creator.create(b)
							}
						})
					}
					callers.Wait()
					b.StopTimer()
					b.ReportMetric((cpuTime(b, client)-cpu)/float64(b.N), "redis-cpu-µs/op")
					b.ReportMetric(float64(commands(b, client)-ran)/float64(b.N), "commands/op")
				})
			}
		}
	}
}
