package ui_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// counter counts the traffic to Redis: trips, and commands in them.
type counter struct{ trips, commands atomic.Int64 }

// DialHook implements redis.Hook.
func (*counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.trips.Add(1)
		c.commands.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.trips.Add(1)
		c.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// Figures of a large organisation.
const manyKeys, manyDecisions = 10_000, 100_000

// large runs a gateway of an organisation with many keys, whose archive has many decisions, none of them refused.
func large(tb testing.TB, store string) (*console, *counter) {
	tb.Helper()
	client, sent, now := world.Redis(tb, store), new(counter), time.Now()
	fill := client.Pipeline()
	for i := range manyDecisions {
		began := now.Add(time.Duration(i-manyDecisions) * time.Second / 2)
		id := ulid.ULID{15: byte(i), 14: byte(i >> 8), 13: byte(i >> 16)}
		if err := id.SetTime(ulid.Timestamp(began)); err != nil {
			tb.Fatal(err)
		}
		report := fmt.Sprintf(`{"decisionId":"%s","time":%q,"method":"POST","path":"/v2/pods","dialect":"v2","operation":"createPod","verdict":"allowed","status":201,"caller":{"org":"acme","team":"research","key":"key-%d"}}`, id, began.Format(time.RFC3339Nano), i%manyKeys)
		fill.XAdd(tb.Context(), &redis.XAddArgs{Stream: "tollgate:decisions:{acme}", ID: fmt.Sprintf("%d-1", began.UnixMilli()), Values: []string{id.String(), report}})
		if i%1000 == 999 {
			if _, err := fill.Exec(tb.Context()); err != nil {
				tb.Fatal(err)
			}
		}
	}
	client.AddHook(sent)
	c := &console{text: strings.Replace(strings.Replace(text, "    idle: {for: 1h}", "    budget: {per_hour: 5, per_month: 900}\n    idle: {for: 1h}", 1), "PLATFORM", platform.RunT(tb).URL, 1)}
	cfg := c.config(tb, c.text)
	keys := &cfg.Orgs[0].Keys
	for i := range manyKeys {
		k := (*keys)[0]
		k.ID, k.Owner = fmt.Sprintf("key-%d", i), fmt.Sprintf("person-%d@acme.example", i)
		copy(k.Digest[:], fmt.Sprintf("%032d", i))
		*keys = append(*keys, k)
	}
	c.gateway = world.Gateway(tb, cfg, gateway.Deps{Redis: client})
	c.serve(tb)
	return c, sent
}

// A page of a large organisation is small, and asks for little: neither grows with the number of keys or of decisions.
func TestPagesOfALargeOrganisation(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a store")
	}
	t.Parallel()
	c, sent := large(t, miniredis.RunT(t).Addr())
	root := c.as(t, "root")
	_, _, list := root.get(c.URL + "/ui/requests?limit=1")
	_, id, _ := strings.Cut(list, `href="/ui/requests/`)
	id, _, _ = strings.Cut(id, `"`)
	for _, page := range append([]string{"/ui/requests?refused=true", "/ui/requests?limit=1000", "/ui/requests?before=" + time.Now().Add(-9*time.Hour).UTC().Format(time.RFC3339), "/ui/requests/" + id}, pages...) {
		trips, commands, began := sent.trips.Load(), sent.commands.Load(), time.Now()
		status, _, body := root.get(c.URL + page)
		took := time.Since(began)
		trips, commands = sent.trips.Load()-trips, sent.commands.Load()-commands
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(body))
		_ = z.Close()
		t.Logf("%s: %d, %d kB, %d kB in gzip, %d trips, %d commands, %s", page, status, len(body)/1000, packed.Len()/1000, trips, commands, took.Round(time.Millisecond))
		if status != 200 || packed.Len() > 200_000 || trips > 60 || commands > 800 {
			t.Errorf("%s: %d, %d bytes in gzip, %d trips with %d commands; want 200, at most 200,000, 60 and 800", page, status, packed.Len(), trips, commands)
		}
	}
	if _, _, page := root.get(c.URL + "/ui/requests?refused=true"); !strings.Contains(page, "Only the newest decisions were searched") || !strings.Contains(page, "Search older requests") {
		t.Error("a list that ends early does not say so, or does not lead on")
	}
}

// BenchmarkPages shows the time to the last byte of pages of a large organisation, whose archive is in a Redis of its own.
func BenchmarkPages(b *testing.B) {
	c, sent := large(b, redistest.Start(b))
	root := c.as(b, "root")
	for _, page := range []string{"", "requests", "requests?refused=true", "keys", "cost"} {
		b.Run("page="+page, func(b *testing.B) {
			before := sent.commands.Load()
			for b.Loop() {
				if status, _, body := root.get(c.URL + "/ui/" + page); status != http.StatusOK {
					b.Fatal(status, body)
				}
			}
			b.ReportMetric(float64(sent.commands.Load()-before)/float64(b.N), "commands/op")
		})
	}
}
