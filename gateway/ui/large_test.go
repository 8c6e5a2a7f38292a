package ui_test

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Sizes of a large organisation. Of its keys, each tenth has a budget; the pods were created one after another in the last 30 days.
const manyPods, manyTeams, manyKeys, manyDecisions = 5_000, 200, 10_000, 100_000

// Redis keys of the fixture's records.
const (
	ledgerPrefix = "tollgate:ledger:"
	decisionsOf  = "tollgate:decisions:{acme}"
	countsPrefix = "tollgate:decisions:policies:"
)

// organisation is a large organisation whose gateway counts its traffic to Redis.
type organisation struct {
	console *console
	// callers is the address of the data listener.
	callers string
	sent    counter
	now     time.Time
	redis   redistest.Conn
}

// large runs the gateway of a large organisation. None of its decisions is a refusal.
func large(tb testing.TB, store string) *organisation {
	tb.Helper()
	client, ok := world.Redis(tb, store).(redistest.Conn)
	if !ok {
		tb.Fatal("a client without hooks")
	}
	o := &organisation{redis: client, now: time.Now()}
	var parts errgroup.Group
	parts.Go(func() error { return o.decide(tb) })
	parts.Go(func() error { return o.rent(tb) })
	parts.Go(func() error { return o.judge(tb) })
	if err := parts.Wait(); err != nil {
		tb.Fatal(err)
	}
	client.AddHook(&o.sent)
	o.console = &console{text: strings.Replace(strings.Replace(text, "    idle: {for: 1h}", "    budget: {per_hour: 5000, per_month: 900000}\n    idle: {for: 1h}", 1), "PLATFORM", platform.RunT(tb).URL, 1)}
	cfg := o.console.config(tb, o.console.text+"audit: {file: {path: "+filepath.Join(tb.TempDir(), "audit.jsonl")+"}}\n")
	o.staff(&cfg.Orgs[0])
	o.console.gateway = world.Gateway(tb, cfg, gateway.Deps{Redis: client})
	o.console.serve(tb)
	data := httptest.NewServer(o.console.gateway.Handler())
	tb.Cleanup(data.Close)
	o.callers = data.URL
	return o
}

// staff adds teams and keys to a configuration.
func (*organisation) staff(org *settings.Org) {
	for i := range manyTeams {
		org.Teams = append(org.Teams, settings.Team{ID: teamOf(i), Budget: ledger.Budget{PerHour: 50e6, PerMonth: 20_000e6}})
	}
	for i := range manyKeys {
		k := org.Keys[0]
		k.ID, k.Team, k.Owner = keyOf(i), teamOf(i), fmt.Sprintf("person-%d@acme.example", i)
		if i%10 == 0 {
			k.Budget = ledger.Budget{PerMonth: 1_000e6}
		}
		copy(k.Digest[:], fmt.Sprintf("%032d", i))
		org.Keys = append(org.Keys, k)
	}
	lena := &org.Keys[len(org.Keys)-manyKeys]
	lena.Digest, lena.Roles = identity.DigestOf("key_of_lena"), []identity.Role{identity.RoleOperator, identity.RoleLead}
}

func teamOf(i int) string { return fmt.Sprint("team-", i%manyTeams) }

// keyOf returns the ID of a key. The first one belongs to a lead.
func keyOf(i int) string {
	if i%manyKeys == 0 {
		return "lena"
	}
	return fmt.Sprint("key-", i%manyKeys)
}

func podOf(i int) string { return fmt.Sprintf("pod%011d", i) }

// decide writes decisions, two a second up to now.
func (o *organisation) decide(tb testing.TB) error {
	tb.Helper()
	fill := o.redis.Pipeline()
	for i := range manyDecisions {
		began := o.now.Add(time.Duration(i-manyDecisions) * time.Second / 2)
		id := ulid.ULID{15: byte(i), 14: byte(i >> 8), 13: byte(i >> 16)}
		if err := id.SetTime(ulid.Timestamp(began)); err != nil {
			return err
		}
		report := fmt.Sprintf(`{"decisionId":"%s","time":%q,"method":"POST","path":"/v2/pods","dialect":"v2","operation":"createPod","verdict":"allowed","status":201,"caller":{"org":"acme","team":%q,"key":%q}}`,
			id, began.Format(time.RFC3339Nano), teamOf(i), keyOf(i))
		fill.XAdd(tb.Context(), &redis.XAddArgs{Stream: decisionsOf, ID: fmt.Sprintf("%d-1", began.UnixMilli()), Values: []string{id.String(), report}})
		if i%2000 == 1999 {
			if _, err := fill.Exec(tb.Context()); err != nil {
				return err
			}
		}
	}
	return nil
}

// rent writes running pods, the history of their costs by day and, for the last day, by hour, and a list of idle resources with each tenth pod.
func (o *organisation) rent(tb testing.TB) error {
	tb.Helper()
	const writers = 32
	store := redisstore.New(o.redis, ledgerPrefix, nil)
	hour := ledger.Hourly.Start(o.now)
	p := ledger.Posting{Until: hour, Changes: manyPods, Retention: ledger.DefaultConfig().History}
	settlements := make([]ledger.Settlement, manyPods)
	var idle []string
	for i := range settlements {
		rate := int64(400_000 + i)
		about := ledger.Metadata{Operation: "createPod", Decision: fmt.Sprintf("01KAMZ7QJ7D0V7RZ3P%08d", i), Name: fmt.Sprint("train-", i), GPU: []string{"NVIDIA L4", "NVIDIA H100 80GB HBM3", "NVIDIA RTX A5000"}[i%3], DataCenter: fmt.Sprint("EU-RO-", i%7)}
		s := ledger.Settlement{Hold: podOf(i), End: ledger.Commit, Kind: "pod", Resource: podOf(i), Owner: ledger.Owner{Team: teamOf(i), Key: keyOf(i)}, Metadata: about, Amounts: ledger.Amounts{ledger.Burn: rate, ledger.GPUs: 1, ledger.Pods: 1}, From: hour}
		settlements[i] = s
		item := ledger.NewItem(s.Resource, s.Kind, s.Owner, about)
		item.Terms = ledger.Terms{Rate: rate}
		p.Series = append(p.Series, ledger.Series{Item: item, Rate: rate, At: hour.UnixMilli()})
		for day := i * 30 / manyPods; day > 0; day-- {
			p.Rollups = append(p.Rollups, ledger.Rollup{Start: ledger.Daily.Start(hour.AddDate(0, 0, -day)), Item: item, Micro: 24 * rate})
		}
		for ago := 1; ago <= 24; ago++ {
			p.Rollups = append(p.Rollups, ledger.Rollup{Start: hour.Add(-time.Duration(ago) * time.Hour), Item: item, Micro: rate})
		}
		if i%10 == 0 {
			idle = append(idle, fmt.Sprintf(`%q:{"kind":"pod","name":%q,"reason":"unused","since":%q,"observed":%d,"burn":%d}`, s.Resource, about.Name, hour.Add(-5*time.Hour).Format(time.RFC3339), 5*time.Hour, rate))
		}
	}
	var next atomic.Int64
	var all errgroup.Group
	for range writers {
		all.Go(func() error {
			for i := next.Add(1) - 1; i < manyPods; i = next.Add(1) - 1 {
				if err := store.Settle(tb.Context(), "acme", &settlements[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := store.Notice(tb.Context(), "acme", "idle", fmt.Sprintf(`{"at":%q,"idle":{%s}}`, o.now.Format(time.RFC3339), strings.Join(idle, ","))); err != nil {
		return err
	}
	progress, err := store.RollupProgress(tb.Context(), "acme")
	if err != nil || progress.Pending != manyPods {
		return fmt.Errorf("%d changes, want %d: %w", progress.Pending, manyPods, err)
	}
	rollups := p.Rollups
	for from := 0; from < len(rollups); from += 10_000 {
		p.Rollups, p.Version = rollups[from:min(from+10_000, len(rollups))], progress.Version
		if done, err := store.Post(tb.Context(), "acme", &p); err != nil || !done {
			return fmt.Errorf("posted: %t: %w", done, err)
		}
		p.Series, p.Changes, progress.Version = nil, 0, progress.Version+1
	}
	return nil
}

// judge writes the counts of a policy's results for each team in the last seven days.
func (o *organisation) judge(tb testing.TB) error {
	tb.Helper()
	store := decisions.NewCountStore(o.redis, countsPrefix)
	for ago := range 7 * 24 {
		counts := make(map[decisions.CountKey]int64)
		for i := range manyTeams {
			counts[decisions.CountKey{Hour: o.now.Add(-time.Duration(ago) * time.Hour).Truncate(time.Hour), Policy: "gpu_count", Verdict: "denies", Team: teamOf(i)}] = int64(1 + i%7)
		}
		if err := store.Add(tb.Context(), "acme", counts); err != nil {
			return err
		}
	}
	return nil
}
