package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/policies/spend/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// creator creates pods under budgets: of the organisation alone, or of teams and keys, too.
type creator struct {
	store  *redisstore.Store
	ledger spend.Ledger
	plan   spend.Plan
	owners []spend.Owner
	next   int
}

// newCreator returns a creator whose calls are counted in so many scopes together: the organisation, a team and keys.
func newCreator(tb testing.TB, client redistest.Conn, scopes, resources int) *creator {
	tb.Helper()
	ample := spend.Budget{PerHour: 1e12, PerMonth: 1e14, Pods: 1e8}
	c := &creator{
		store: redisstore.New(client, "tg:spend:", nil), owners: []spend.Owner{{}},
		plan: spend.Plan{Org: ample, Teams: map[string]spend.Budget{"research": ample}, Keys: make(map[string]spend.Budget)},
	}
	c.ledger.Store = c.store
	if scopes > 1 {
		c.owners = nil
	}
	for i := range scopes - 2 {
		key := fmt.Sprint("key", i)
		c.plan.Keys[key] = ample
		c.owners = append(c.owners, spend.Owner{Team: "research", Key: key})
	}
	if err := c.store.Begin(tb.Context(), "acme", "token"); err != nil {
		tb.Fatal(err)
	}
	if _, err := c.store.Finish(tb.Context(), "acme", "token"); err != nil {
		tb.Fatal(err)
	}
	all := make([]*spend.Adjustment, resources)
	for i := range all {
		all[i] = &spend.Adjustment{Kind: "pod", Resource: fmt.Sprintf("pod%010d", i), Amounts: oneGPU, Owner: &c.owners[i%len(c.owners)]}
	}
	if _, err := c.store.Adjust(tb.Context(), "acme", all...); err != nil {
		tb.Fatal(err)
	}
	return c
}

// oneGPU are the amounts of a pod.
var oneGPU = spend.Amounts{spend.Burn: 430_000, spend.GPUs: 1, spend.Pods: 1}

// create reserves the cost of a pod with an intent, and commits both.
func (c *creator) create(tb testing.TB) {
	tb.Helper()
	c.next++
	id, owner := fmt.Sprintf("01KAMZ7QJ7D0V7RZ3P%08d", c.next), c.owners[c.next%len(c.owners)]
	wish, like := fmt.Sprintf("w%032x", c.next), fmt.Sprintf("l%032x", c.next)
	n := &spend.Note{
		Org: "acme", Wish: wish, Like: like, Answer: "a-", Intent: id, Owner: owner.Key,
		Row: `{"gateway":"01M8JPVXANT2A8M2JCDC82NS7C","print":"70e395aade48dd938b0c6d7225cdb962","name":"a","shape":"NVIDIA L4 x 1, img:1"}`,
	}
	r := spend.Reservation{
		Hold: id, Kind: "pod", Owner: owner, After: oneGPU, Note: n, Holder: spend.Holder{Incarnation: "01M8JPVXANT2A8M2JCDC82NS7C"},
		About: spend.About{Operation: "createPod", Decision: "01KAMZ7QJ7D0V7RZ3PX1D3V0C6", Name: "run-1", Print: "NVIDIA L4 x 1, img:1", GPU: "NVIDIA L4"},
	}
	quote, err := c.ledger.Reserve(tb.Context(), "acme", &c.plan, r)
	if err != nil || quote.Refused != nil {
		tb.Fatalf("reserve: refused by %v, %v", quote.Refused, err)
	}
	err = c.ledger.Settle(tb.Context(), "acme", &spend.Settlement{
		End: spend.Commit, Hold: id, Kind: r.Kind, Resource: fmt.Sprint("p", c.next), Owner: owner, Amounts: oneGPU, About: r.About,
		Intent: &spend.Ending{
			Org: "acme", Made: fmt.Sprint("mpod/p", c.next), Wish: wish, Like: like, Answer: "a-", Intent: id,
			Was: strconv.FormatInt(quote.Now.UnixMilli(), 10) + " " + n.Row, Known: true, Unlike: true,
		},
	})
	if err != nil {
		tb.Fatalf("settle: %v", err)
	}
}

// cost is the CPU time of a server, in microseconds, its number of commands, and the time of its scripts.
type cost struct{ cpu, commands, scripts float64 }

func costOf(tb testing.TB, client redistest.Conn) cost {
	tb.Helper()
	text, err := client.Info(tb.Context(), "cpu", "commandstats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	figure := func(name string) (v float64) {
		_, rest, _ := strings.Cut(text, name)
		_, _ = fmt.Sscanf(rest, "%f", &v)
		return v
	}
	return cost{
		cpu: 1e6 * (figure("used_cpu_user:") + figure("used_cpu_sys:")), commands: float64(commands(tb, client)),
		scripts: figure("cmdstat_evalsha:calls=") * figure("usec_per_call="),
	}
}

// BenchmarkCreateInRedis measures what a create under budgets costs in Redis: its CPU time and commands, as scopes and resources grow.
func BenchmarkCreateInRedis(b *testing.B) {
	for _, scopes := range []int{1, 3, 10} {
		for _, resources := range []int{10, 1_000, 10_000} {
			b.Run(fmt.Sprintf("scopes=%d/resources=%d", scopes, resources), func(b *testing.B) {
				client := redistest.Client(b, redistest.Start(b))
				c := newCreator(b, client, scopes, resources)
				c.create(b)
				before := costOf(b, client)
				for b.Loop() {
					c.create(b)
				}
				after, n := costOf(b, client), float64(b.N)
				b.ReportMetric((after.cpu-before.cpu)/n, "redis-cpu-µs/op")
				b.ReportMetric((after.commands-before.commands)/n, "commands/op")
			})
		}
	}
}
