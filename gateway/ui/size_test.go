package ui_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/test/redistest"
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

// The most that a page of a large organisation may take, in bytes as they are and compressed, and in exchanges with Redis.
const maxPlain, maxPacked, maxTrips = 500_000, 60_000, 60

// navigation matches the links of the navigation.
var navigation = regexp.MustCompile(`<li><a href="(/(?:ui|tollgate/ui)/[^"]*)"[^>]*title="`)

// everyPage returns the pages of the navigation that a person sees, and the given ones.
func (p *person) everyPage(first string, others ...string) (list []string) {
	p.tb.Helper()
	_, _, body := p.get(first)
	for _, link := range navigation.FindAllStringSubmatch(body, -1) {
		list = append(list, html.UnescapeString(link[1]))
	}
	if len(list) < 5 {
		p.tb.Fatalf("the navigation has %q", list)
	}
	return append(list, others...)
}

// request returns the ID of the first request on a page.
func (p *person) request(page string) string {
	p.tb.Helper()
	_, _, list := p.get(page)
	id := regexp.MustCompile(`/ui/requests/(\w{26})`).FindStringSubmatch(list)
	if id == nil {
		p.tb.Fatalf("no request on %s", list)
	}
	return id[1]
}

// Each page of a large organisation is small, and asks Redis few times: neither grows with the number of pods, teams, keys and decisions.
func TestPagesOfALargeOrganisation(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a store")
	}
	t.Parallel()
	began := time.Now()
	o := large(t, redistest.Start(t))
	t.Logf("filled in %s", time.Since(began))
	root, lena := o.console.as(t, "root"), o.console.visitor(t)
	if status, _, body := lena.post(o.callers+"/tollgate/ui/login", url.Values{"token": {"key_of_lena"}}); status != http.StatusSeeOther {
		t.Fatal(status, body)
	}
	id := root.request(o.console.URL + "/ui/requests?limit=1")
	for _, page := range root.everyPage(o.console.URL+"/ui/",
		"/ui/requests?refused=true", "/ui/requests?limit=1000", "/ui/requests?before="+o.now.Add(-9*time.Hour).UTC().Format(time.RFC3339), "/ui/requests/"+id,
		"/ui/cost?by=resource", "/ui/cost?by=key", "/ui/cost?by=resource&range=24h", "/ui/cost?team=team-7&by=resource", "/ui/keys/key-10", "/ui/resources/"+podOf(10), "/ui/policies/gpu_count", "/ui/reservations",
		"/ui/policies?held=1", "/ui/configuration?view=file", "/ui/create-key", "/ui/search?q=key", "/ui/budgets?view=risk", "/ui/budgets?view=percent",
	) {
		o.measure(root, o.console.URL, page)
	}
	for _, page := range lena.everyPage(o.callers+"/tollgate/ui/", "/tollgate/ui/cost?by=resource", "/tollgate/ui/requests/"+lena.request(o.callers+"/tollgate/ui/requests"), "/tollgate/ui/create-key") {
		o.measure(lena, o.callers, page)
	}
	if _, _, page := root.get(o.console.URL + "/ui/requests?refused=true"); !strings.Contains(page, "Only the newest decisions were searched") || !strings.Contains(page, "Search older requests") {
		t.Error("a list that ends early does not say so, or does not lead on")
	}
	t.Logf("all in %s", time.Since(began))
}

// measure compares the size of a page and its exchanges with Redis with their limits.
func (o *organisation) measure(p *person, base, page string) {
	p.tb.Helper()
	var status int
	var trips, commands int64
	var took time.Duration
	var body string
	for attempt := 0; attempt == 0 || status == http.StatusServiceUnavailable && attempt < 4; attempt++ { // a busy machine may exceed the deadline of a page
		before, sent, began := o.sent.trips.Load(), o.sent.commands.Load(), time.Now()
		status, _, body = p.get(base + page)
		trips, commands, took = o.sent.trips.Load()-before, o.sent.commands.Load()-sent, time.Since(began)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(body))
	_ = z.Close()
	p.tb.Logf("%s: %d, %d kB, %d kB in gzip, %d trips, %d commands, %s", page, status, len(body)/1000, packed.Len()/1000, trips, commands, took.Round(time.Millisecond))
	if status != http.StatusOK || len(body) > maxPlain || packed.Len() > maxPacked || trips > maxTrips {
		p.tb.Errorf("%s: %d, %d bytes, %d in gzip, %d trips; want 200, at most %d, %d and %d", page, status, len(body), packed.Len(), trips, maxPlain, maxPacked, maxTrips)
	}
}

// BenchmarkPages shows the time to the first byte of pages of a large organisation, whose records are in a Redis of their own.
func BenchmarkPages(b *testing.B) {
	o := large(b, redistest.Start(b))
	root := o.console.as(b, "root")
	for _, page := range []string{"", "requests", "requests?refused=true", "keys", "cost", "budgets", "resources", "policies"} {
		b.Run("page="+page, func(b *testing.B) {
			before, trips, least := o.sent.commands.Load(), o.sent.trips.Load(), time.Hour
			for b.Loop() {
				least = min(least, root.firstByte(o.console.URL+"/ui/"+page))
			}
			b.ReportMetric(float64(least.Microseconds())/1000, "first-byte-ms") // the least: the machine may be busy
			b.ReportMetric(float64(o.sent.commands.Load()-before)/float64(b.N), "commands/op")
			b.ReportMetric(float64(o.sent.trips.Load()-trips)/float64(b.N), "trips/op")
		})
	}
}

// firstByte returns the time to the first byte of a page.
func (p *person) firstByte(page string) time.Duration {
	p.tb.Helper()
	r, err := http.NewRequestWithContext(p.tb.Context(), http.MethodGet, page, http.NoBody)
	if err != nil {
		p.tb.Fatal(err)
	}
	began := time.Now()
	res, err := p.http.Do(r)
	if err != nil {
		p.tb.Fatal(err)
	}
	took := time.Since(began)
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		p.tb.Fatal(res.Status)
	}
	return took
}
