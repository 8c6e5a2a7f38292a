package simulate

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var write = flag.Bool("write", false, "run the whole simulation and write docs/regions.svg and the table in docs/ratelimits.md") //nolint:gochecknoglobals // a flag

// TestSimulate compares the ways to share quotas between regions. None admits more than
// a quota; leases from home lose little and hide the distance from most calls.
func TestSimulate(t *testing.T) {
	s := scale{gateways: 9, keys: 60, orgs: 12, rate: 4000, length: 10 * time.Second, key: 500, org: 2500}
	if *write {
		s = scale{gateways: 50, keys: 10_000, orgs: 500, rate: 25_000, length: 60 * time.Second, key: 12_000, org: 40_000}
	}
	results := make(map[string]result)
	var all []result
	for _, how := range strategies() {
		r := simulate(t, s, how)
		t.Logf("%s: %d calls, %d possible, %d admitted, %d too many, %.4f exchanges per call, fairness %.4f, %+v",
			r.name, r.calls, r.possible, r.admitted, r.tooMany, r.perCall(), r.fairness(), r.regions)
		if r.tooMany != 0 {
			t.Errorf("%s: %d calls were admitted beyond their quotas, want none", r.name, r.tooMany)
		}
		if r.admitted == 0 || r.possible >= r.calls*99/100 {
			t.Errorf("%s: %d of %d calls were admitted, of which %d had room: this tries no quota", r.name, r.admitted, r.calls, r.possible)
		}
		results[how.name] = r
		all = append(all, r)
	}
	exact, leased, equal := results["exact, from home"], results["leases from home, horizon 2 s"], results["equal shares"]
	if far := len(exact.regions) - 1; exact.regions[far].waited < 0.9 || leased.regions[far].waited > 0.75*exact.regions[far].waited {
		t.Errorf("far from home %.2f of the exact and %.2f of the leased calls waited, want all and three quarters at most",
			exact.regions[far].waited, leased.regions[far].waited)
	}
	if leased.lost() > equal.lost() {
		t.Errorf("leases lost %.3f of the calls, equal shares %.3f: want fewer", leased.lost(), equal.lost())
	}
	if *write && !t.Failed() {
		publish(t, s, all)
	}
}

// publish writes what docs/ratelimits.md shows.
func publish(t *testing.T, s scale, all []result) {
	t.Helper()
	if err := os.WriteFile("../../docs/regions.svg", []byte(chart(all)), 0o644); err != nil {
		t.Fatal(err)
	}
	const page, begin, end = "../../docs/ratelimits.md", "<!-- written by make simulate -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+table(s, all)+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table is the results as Markdown.
func table(s scale, all []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d gateways, %d keys of %d organisations, %.0f calls a second for %s. The quotas (%d a minute for a key, %d for an organisation) have room for %.0f %% of them.\n\n",
		s.gateways, s.keys, s.orgs, s.rate, s.length, s.key, s.org, 100*float64(all[0].possible)/float64(all[0].calls))
	b.WriteString("| quotas are counted | over-admitted | under-admitted | Redis calls per call | fairness | waited |")
	for _, at := range all[0].regions {
		fmt.Fprintf(&b, " p99 %s |", at.name)
	}
	b.WriteString("\n|---|---|---|---|---|---|" + strings.Repeat("---|", len(all[0].regions)) + "\n")
	for _, r := range all {
		var waited, n float64
		for _, at := range r.regions {
			waited += at.waited
			n++
		}
		fmt.Fprintf(&b, "| %s | %d | %.2f %% | %.3f | %.3f | %.0f %% |", r.name, r.tooMany, 100*r.lost(), r.perCall(), r.fairness(), 100*waited/n)
		for _, at := range r.regions {
			fmt.Fprintf(&b, " %s |", at.p99.Round(100*time.Microsecond))
		}
		b.WriteString("\n")
	}
	return b.String()
}
